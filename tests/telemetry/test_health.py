"""The health probes over HTTP."""

from __future__ import annotations

import json
import socket
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import qmodel
from qmodel.telemetry.health import Endpoint, Health, serve


@contextmanager
def endpoint(health: Health, **more: Any) -> Iterator[Endpoint]:
    served = serve(health, 0, **more)
    try:
        yield served
    finally:
        served.close()


def get(served: Endpoint, path: str) -> tuple[int, str]:
    """Get the status and the text of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{served.port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_process_whose_loop_goes_round_is_alive_and_ready() -> None:
    with endpoint(Health()) as served:
        assert [get(served, path)[0] for path in ("/live", "/ready")] == [200, 200]


def test_a_loop_that_stands_still_is_dead_until_it_goes_on() -> None:
    health = Health(patience=-1)
    assert not health.live().ok
    assert "the loop has not run" in str(health.ready().facts["why"])

    patient = Health(patience=1000)
    patient.tick()
    assert patient.live().ok


def test_a_server_that_cannot_be_reached_makes_it_unready_but_not_dead() -> None:
    def check() -> None:
        raise qmodel.ConnectError("Nobody is there.", "Start it.")

    with endpoint(Health(check)) as served:
        assert get(served, "/live")[0] == 200
        status, text = get(served, "/ready")
        assert (status, json.loads(text)["why"]) == (503, "Nobody is there.")


def test_a_server_that_hangs_is_asked_once_and_counts_as_a_no() -> None:
    asked, go_on = [], threading.Event()

    def check() -> None:
        asked.append(1)
        go_on.wait(60)

    health = Health(check, deadline=0.01)
    assert [health.ready().ok, health.ready().ok] == [False, False]
    assert asked == [1]
    go_on.set()


def test_it_is_ready_again_when_the_server_is_back(server: Any) -> None:
    client = qmodel.connect(server.url)
    with endpoint(Health(client.newest, deadline=30)) as served:
        assert get(served, "/ready")[0] == 200
    client.close()


def test_metrics_and_unknown_pages() -> None:
    with endpoint(Health(), metrics=lambda: ("text/plain", b"up 1\n")) as served:
        assert get(served, "/metrics") == (200, "up 1\n")
        assert get(served, "/nowhere") == (404, "The pages are /live, /metrics, /ready.\n")


def test_a_page_that_breaks_says_so() -> None:
    def broken() -> tuple[str, bytes]:
        raise ValueError("no")

    with endpoint(Health(), metrics=broken) as served:
        assert get(served, "/metrics") == (500, "ValueError: no\n")


def test_a_port_that_is_taken_is_refused() -> None:
    with endpoint(Health()) as served, pytest.raises(OSError):
        serve(Health(), served.port)


@pytest.mark.parametrize("asked", [b"GET /slow HTTP/1.1\r\n\r\n", b"GET /sl"])
def test_a_probe_that_goes_away_is_no_error(asked: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """A probe's patience is a second, and a readiness check may take two: each left a traceback in the log."""
    gone, answered = threading.Event(), threading.Event()

    def slow() -> tuple[str, bytes]:
        gone.wait(30)
        answered.set()
        return "text/plain", b"slow"

    served = Endpoint(Health(), "127.0.0.1", 0, {"/slow": slow})
    probe = socket.create_connection(("127.0.0.1", served.port))
    probe.sendall(asked)
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    probe.close()
    gone.set()
    assert asked.endswith(b"sl") or answered.wait(30)
    assert get(served, "/live")[0] == 200
    served.close()
    assert "Exception" not in capfd.readouterr().err


def test_probes_come_by_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with (
        endpoint(Health(), host="::1") as served,
        urllib.request.urlopen(f"http://[::1]:{served.port}/live", timeout=30) as answer,
    ):
        assert answer.status == 200
