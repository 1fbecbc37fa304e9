"""Servers that a test may kill, and a line that loses what a test wants lost."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from qmodel.conformance.concurrency.lossy import LossyLine


class Private:
    """A server of a test's own, on a unix socket, which may be killed and started again."""

    def __init__(self, program: str, folder: str, *options: str) -> None:
        self.program, self.folder, self.options = program, folder, options
        self.socket = f"{folder}/socket"
        self.url = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [self.program, "--port", "0", "--unixsocket", self.socket, "--dir", self.folder]
        command += ["--save", "", *self.options]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        until = time.monotonic() + 60
        while True:
            try:
                self.client().ping()
                return
            except redis.AuthenticationError:
                return
            except redis.ConnectionError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.01)

    def kill(self) -> None:
        """End it as a power failure would, but for what the system has not yet written."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def client(self, **options: Any) -> redis.Redis:
        return redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0), **options)


@contextlib.contextmanager
def started(program: str, *options: str) -> Iterator[Private]:
    """A server with options of its command line, killed at the end."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        server = Private(program, folder, *options)
        server.start()
        try:
            yield server
        finally:
            server.kill()


class Proxy(LossyLine):
    """A line to a server that loses the next `drop` replies, and is cut each time it does."""

    def __init__(self, server: str) -> None:
        self.drop = 0
        super().__init__(server)

    def loses(self, reply: bool) -> bool:
        lost = reply and self.drop > 0
        self.drop -= lost
        return lost


Starter = Callable[..., contextlib.AbstractContextManager[Private]]
"""Starts a server with options of its command line."""
