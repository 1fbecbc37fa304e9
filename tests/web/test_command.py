"""The pages as a process of their own, and on the worst night."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from starlette.testclient import TestClient

from qmodel.web import create
from tests.servers import Server, chosen_servers, running


def test_when_the_server_goes_away_pages_say_so_soon() -> None:
    with running(chosen_servers()[0]) as started:
        pages = TestClient(create(started.url), base_url="http://localhost")
        assert pages.get("/").status_code == 200
    began = time.monotonic()
    answer = pages.get("/queues")
    assert answer.status_code == 503
    assert "cannot be reached" in answer.text
    assert time.monotonic() - began < 30


def test_the_command_says_where_and_stops_when_told(server: Server) -> None:
    command = [sys.executable, "-m", "qmodel", "web", "--url", server.url, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"at http://127\.0\.0\.1:(\d+)/ \(to be looked at", said)
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
        (["--url", "redis://localhost:1"], "Connection refused"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "qmodel", "web", "--port", "0", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
