"""Start `qmodel serve` as a process that a test may kill."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds after which a test gives up waiting."""


class Serving:
    """A process `qmodel serve` on a unix socket, with its own folder."""

    def __init__(self, folder: str, *options: str) -> None:
        self.folder = folder
        self.socket = f"{folder}/socket"
        self.url = f"unix://{self.socket}"
        self.options = options
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "qmodel", "serve", "--socket", self.socket, *self.options]
        with open(f"{self.folder}/errors", "a") as errors:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        assert " at " in self.process.stdout.readline(), self.errors

    @property
    def errors(self) -> str:
        """The log of the server."""
        return Path(f"{self.folder}/errors").read_text()

    def kill(self) -> None:
        """Kill the server, as a power failure would, except that the system's buffers survive."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def stop(self) -> str:
        """Stop the server with SIGTERM; give its output."""
        assert self.process is not None
        self.process.terminate()
        output: str = self.process.communicate(timeout=PATIENCE)[0]
        assert self.process.returncode == 0, output
        return output

    def line(self) -> socket.socket:
        """Open a bare connection."""
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(PATIENCE)
        made.connect(self.socket)
        return made

    def client(self, **options: Any) -> redis.Redis:
        """Open a client that never resends."""
        return redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0), **options)


@contextlib.contextmanager
def serving(*options: str) -> Iterator[Serving]:
    """Start a server with options of its command line; kill it at the end."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        server = Serving(folder, *options)
        server.start()
        try:
            yield server
        finally:
            server.kill()
        assert not server.errors, server.errors


def run_to_its_end(*options: str) -> tuple[int, str]:
    """Run a server that does not start; give its exit code and its output."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        command = [sys.executable, "-m", "qmodel", "serve", "--socket", f"{folder}/socket", *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stdout + done.stderr


def eventually(check: Any) -> None:
    """Poll until a condition is true."""
    until = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < until
        time.sleep(0.01)
