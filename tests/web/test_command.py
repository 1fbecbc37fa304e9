"""The pages as a process of their own, and on the worst night."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from qmodel.web import create
from tests.processes import started
from tests.servers import ROOT, Server, chosen_servers, running
from tests.web.conftest import BASE, send


def test_when_the_server_goes_away_pages_say_so_soon() -> None:
    with running(chosen_servers()[0]) as started:
        pages = TestClient(create(started.url), base_url="http://localhost")
        assert pages.get("/").status_code == 200
    began = time.monotonic()
    answer = pages.get("/queues")
    assert answer.status_code == 503
    assert "cannot be reached" in answer.text
    assert time.monotonic() - began < 50  # by itself a call is sent again for a minute


def test_the_command_says_where_and_stops_when_told(server: Server) -> None:
    command = [sys.executable, "-m", "qmodel", "web", "--url", server.url, "--port", "0"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"at http://127\.0\.0\.1:(\d+)/ \(read-only", said)
        assert found is not None, said
        with socket.create_connection(("127.0.0.1", int(found[1])), 10) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "Give --auth"),
        (["--auth", "ada:"], "user:password"),
        (["--url", "memory://", "--decode", "no.such:app"], "no module"),
        (["--url", "redis://localhost:1?deadline=0"], "Connection refused"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "qmodel", "web", "--port", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


JOBS = """
from qmodel import App

app = App({url!r})


@app.job
def nothing() -> None:
    pass
"""


def test_a_worker_heeds_what_it_is_told_on_a_page(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}?prefix=heeding:"
    (tmp_path / "heeding.py").write_text(JOBS.format(url=url), encoding="utf-8")
    command = [sys.executable, "-m", "qmodel", "worker", "heeding:app", "--name", "host-1", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    pages = TestClient(create(url, writable=True), base_url=BASE, follow_redirects=False)
    with started(command, cwd=tmp_path, env=environment) as worker:
        shows(pages, "host-1")
        send(pages, "quiet", worker="host-1")
        shows(pages, ">quiet</span>")
        send(pages, "stop", worker="host-1", confirmed="1")
        assert worker.wait(30) == 0


def shows(pages: TestClient, text: str) -> None:
    """Wait until the list of workers says something."""
    until = time.monotonic() + 60
    while text not in pages.get("/workers").text:
        assert time.monotonic() < until, f"the page does not say {text}"
        time.sleep(0.1)
