"""Servers of a test's own, as processes that may be killed."""

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


class Serving:
    """`qmodel serve` on a unix socket, in a folder of its own."""

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
        """What it has logged."""
        return Path(f"{self.folder}/errors").read_text()

    def kill(self) -> None:
        """End it as a power failure would, but for what the system has not yet written."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def stop(self) -> str:
        """Ask it to stop; give what it has said."""
        assert self.process is not None
        self.process.terminate()
        said: str = self.process.communicate(timeout=60)[0]
        assert self.process.returncode == 0, said
        return said

    def line(self) -> socket.socket:
        """A bare connection."""
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(20)
        made.connect(self.socket)
        return made

    def client(self, **options: Any) -> redis.Redis:
        """A client that sends everything once."""
        return redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0), **options)


@contextlib.contextmanager
def serving(*options: str) -> Iterator[Serving]:
    """A server with options of its command line, killed at the end."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        server = Serving(folder, *options)
        server.start()
        try:
            yield server
        finally:
            server.kill()
        assert server.errors == ""


def run_to_its_end(*options: str) -> tuple[int, str]:
    """A server that will not start: its exit code, and what it says."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        command = [sys.executable, "-m", "qmodel", "serve", "--socket", f"{folder}/socket", *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stdout + done.stderr


def eventually(check: Any, seconds: float = 10) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until
        time.sleep(0.01)
