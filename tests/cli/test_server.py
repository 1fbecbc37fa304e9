"""The same commands on a real server, by processes that share nothing else."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_commands import real
from tests.clusters import wait_until
from tests.processes import started
from tests.servers import Server


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """A server without jobs."""
    with server.client() as connection:
        connection.flushall()
    yield server.url


def test_a_job_goes_from_process_to_process(url: str) -> None:
    jid = real("put", "emails", "Send", '{"to": 1}', QMODEL_URL=url).stdout.strip()
    popped = real("op", "pop", "emails", QMODEL_URL=url)
    assert jid in popped.stdout
    assert popped.stderr == ""

    assert real("op", "complete", jid, QMODEL_URL=url).stdout == "complete\n"
    assert "complete" in real("get", jid, QMODEL_URL=url).stdout


def test_the_demo_counts_the_same_under_a_prefix_of_its_own(run: Run, url: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two\n")
    (tmp_path / "b").write_bytes(b"\xff")
    done = run("demo", str(tmp_path), "--url", url)

    assert done.code == 0
    assert "Verified" in done.out
    assert "prefix=qmodel-demo:" in done.out
    assert run("queues", "--url", url, "--json").json == []
    assert len(run("queues", "--url", f"{url}?prefix=qmodel-demo:", "--json").json) == 2


def test_the_doctor_looks_at_every_key_of_a_server_when_asked(run: Run, url: str) -> None:
    run("put", "q", "A", "--url", url)
    run("op", "pop", "q", "--url", url)

    assert "the keys were not checked" in run("doctor", "--url", url).out
    done = run("doctor", "--url", url, "--keys")
    assert done.code == 0
    assert "OK    every invariant holds" in done.out


def test_the_doctor_finds_a_key_that_somebody_else_wrote(run: Run, url: str, server: Server) -> None:
    run("put", "q", "A", "--jid", "a", "--url", url)
    with server.client() as connection:
        connection.delete("ql:j:a")
    done = run("doctor", "--url", url, "--keys")

    assert done.code == 1
    assert "FAIL" in done.out


def test_events_are_followed_until_somebody_interrupts_it(run: Run, url: str) -> None:
    run("put", "q", "A", "--jid", "a", "--url", url)
    command = [sys.executable, "-m", "qmodel", "events", "--follow", "--url", url]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None and following.stderr is not None
        assert "epoch_begun" in following.stdout.readline()
        first = following.stdout.readline()
        run("put", "q", "B", "--jid", "b", "--url", url)
        second = following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert (following.wait(30), following.stderr.read()) == (0, "")

    assert "jid=a" in first and "jid=b" in second


def test_events_are_followed_from_where_the_last_run_ended(run: Run, url: str, tmp_path: Path) -> None:
    for jid in ("a", "b"):
        run("put", "q", "A", "--jid", jid, "--url", url)
        command = [sys.executable, "-m", "qmodel", "events", "--keep", str(tmp_path / "place"), "--url", url]
        with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            lines = [following.stdout.readline() for _ in range(2 if jid == "a" else 1)]
            if jid == "a":  # its place is kept when it waits for the next one
                wait_until(lambda: (tmp_path / "place").exists() and (tmp_path / "place").read_text().startswith("2."))
            following.kill()
        assert f"jid={jid}" in lines[-1]


def test_a_place_in_other_events_is_refused(run: Run, url: str, tmp_path: Path) -> None:
    for kept in ("1.2,3.4", "nonsense"):
        (tmp_path / "place").write_text(kept)
        done = run("events", "--keep", str(tmp_path / "place"), "--url", url)
        assert done.code == 2 and "keeps no place in these events" in done.err and "Give another file" in done.err
    done = run("events", "--keep", str(tmp_path / "place"), "--after", "3", "--url", url)
    assert done.code == 2 and "--keep says where to begin" in done.err


def test_events_of_a_process_that_nobody_reaches_are_not_followed(run: Run) -> None:
    done = run("events", "--follow", "--url", "memory://")
    assert done.code == 2 and "No other process can reach" in done.err


@pytest.mark.parametrize(
    "command",
    [
        "run --examples 2 --steps 20 --subject",
        "run --examples 2 --steps 20 --dialect qless --subject",
        "run --examples 2 --steps 20 --processes 2 --subject",
        "fresh --seconds 0 --subject",
        "graph plain --scope 1x1 --edges 50 --server",
    ],
)
def test_a_campaign_leaves_nothing_on_the_server(url: str, server: Server, command: str) -> None:
    with server.client() as connection:
        connection.flushdb()
        real("put", "mine", "K", QMODEL_URL=url)
        before = sorted(connection.keys())
        real("conformance", *command.split(), url)
        assert sorted(connection.keys()) == before
