"""`qmodel http` as it is run: what it refuses, how it ends, and who hangs up."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import pytest

from qmodel.client.sync import Client
from tests.http.conftest import served
from tests.http.test_events import Stream
from tests.processes import started
from tests.servers import ROOT, chosen_servers, running


def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `qmodel http` where it is expected to refuse."""
    command = [sys.executable, "-m", "qmodel", "http", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env=environment)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "Give --auth"),
        (("--auth", "ada:"), "user:password"),
        (("--port", "99999"), "port"),
        (("--url", "redis//x"), "is not a URL"),
    ],
)
def test_what_would_not_do_is_refused_in_a_sentence(options: tuple[str, ...], said: str) -> None:
    found = run(*options)
    assert found.returncode in (2, 69)
    assert said in found.stderr and "Traceback" not in found.stderr


def test_a_server_of_ones_own_takes_it_from_the_environment() -> None:
    program = "from qmodel.http.asgi import app; guard = app.state.api.guard; print(guard.writable, guard.hosts)"
    known = {"QMODEL_URL": "redis://localhost/0", "QMODEL_WRITABLE": "1", "QMODEL_HOSTS": "jobs.example, b"}
    for environment, said in ((known, "True ('localhost', '127.0.0.1', '::1', 'jobs.example', 'b')"), ({}, "memory")):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert said in done.stdout + done.stderr


def ask(api: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Ask, and give the answer; the connection stays open until it is read."""
    connection = http.client.HTTPConnection(urlsplit(api).netloc, timeout=30)
    given = {"Content-Type": "application/json"} | headers
    connection.request(method, path, None if body is None else json.dumps(body), given)
    return connection


def test_it_ends_at_once_though_somebody_follows() -> None:
    with served() as api:
        stream = Stream(api)
        waiting = ask(api, "GET", "/v1/jobs/x/wait?timeout=60")
        assert waiting.getresponse().status == 404
    stream.close()


def test_a_password_opens_it(tmp_path: Any) -> None:
    with served("--auth", "s3cr3t", "--writable") as api:
        denied = ask(api, "GET", "/v1/queues").getresponse()
        assert denied.status == 401
        opened = ask(api, "POST", "/v1/queues/q/jobs", {"klass": "K"}, Authorization="Bearer s3cr3t").getresponse()
        assert opened.status == 201


def test_who_hung_up_is_given_no_job() -> None:
    if not chosen_servers():
        pytest.skip("no server")
    with running(chosen_servers()[0]) as server:
        url = f"{server.url}?prefix={uuid.uuid4().hex}:"
        with served("--url", url, "--writable") as api, Client(url) as jobs:
            gone = ask(api, "POST", "/v1/queues/q/pop", {"worker": "gone", "timeout": 60})
            until = time.monotonic() + 60
            while not jobs.workers.counts() and time.monotonic() < until:
                time.sleep(0.01)
            gone.close()
            until = time.monotonic() + 60
            while time.monotonic() < until:  # until the server has noticed, a job comes back to the queue
                jobs.queues["q"].put("K", jid="a")
                there = ask(api, "POST", "/v1/queues/q/pop", {"worker": "there", "timeout": 1}).getresponse()
                if [job["jid"] for job in json.load(there)["jobs"]] == ["a"]:
                    return
            pytest.fail("the job went to nobody")


@contextmanager
def at_port(port: int) -> Iterator[None]:
    """A server at a port, as if it were started anew; killed at the end."""
    program = next(one.program for one in chosen_servers() if one.program)
    command = [program, "--port", str(port), "--save", "", "--appendonly", "no"]
    with started(command, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < until:
            time.sleep(0.01)
        yield
        process.kill()


def test_streams_outlive_the_server_with_the_jobs() -> None:
    if not any(one.program for one in chosen_servers()):
        pytest.skip("no server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"redis://127.0.0.1:{port}/0"
    with ExitStack() as stack:
        with at_port(port), Client(url) as jobs:
            api = stack.enter_context(served("--url", url, "--writable"))
            stream = Stream(api)
            jobs.queues["q"].put_many([("K", None), ("K", None)])
            assert len(stream.events(3)) == 3  # the first begins an epoch
        with at_port(port), Client(url) as jobs:
            jobs.queues["q"].put("K")
            following = (next(stream) for _ in range(60))
            told = next(one for one in following if one.get("event"))
            assert (told["event"], told["data"]["after"]) == ("forked", 3)
            kinds = (stream.events(1)[0][1] for _ in range(9))  # it may go back in several steps
            assert list(islice((kind for kind in kinds if kind != "forked"), 2)) == ["epoch_begun", "put"]
            assert ask(api, "GET", "/health").getresponse().status == 200
        stream.close()


def test_where_the_server_lost_its_events_that_is_said() -> None:
    if not chosen_servers():
        pytest.skip("no server")
    with running(chosen_servers()[0]) as server:
        url = f"{server.url}?prefix=x:"
        with served("--url", url) as api, Client(url) as jobs:
            jobs.queues["q"].put("K")
            stream = Stream(api, "?after=50")
            first = next(stream)
            assert (first["event"], first["id"], first["data"]) == ("restarted", "0", {"after": 50, "newest": 2})
            assert [kind for _, kind in stream.events(2)] == ["epoch_begun", "put"]
            stream.close()
