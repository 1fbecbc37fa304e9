"""Start workers as processes, or in threads of the test."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from qmodel.app import App
from qmodel.worker import Worker

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
"""Seconds after which a test gives up waiting."""


def until(true: Callable[[], Any], what: str = "what was waited for") -> Any:
    """Poll until a condition is true; give its value."""
    deadline = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.01)
    return found


def lines(path: Path) -> list[str]:
    """Read the lines of a file; none if there is no file."""
    return path.read_text().splitlines() if path.exists() else []


def free_port() -> int:
    """Find a port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


JOBS = "tests.worker.jobs:app"


class Process:
    """A process `qmodel worker tests.worker.jobs:app`, and its output."""

    def __init__(self, url: str, *options: str, path: str = "", app: str = JOBS, cwd: Path = ROOT) -> None:
        search = os.pathsep.join(filter(None, (path, str(ROOT))))
        environment = {**os.environ, "QMODEL_URL": url, "PYTHONPATH": search, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "qmodel", "worker", app, *options]
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environment, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
            process_group=0,
        )  # fmt: skip
        self._written: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._written.append(line)

    @property
    def output(self) -> str:
        return "".join(self._written)

    def says(self, text: str) -> None:
        """Wait until the output contains a text."""
        until(lambda: text in self.output or self.process.poll() is not None, f"{text!r} in\n{self.output}")
        if text not in self.output:
            self._reader.join(PATIENCE)  # the process has ended: read all that it has written
        assert text in self.output, self.output

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait until the process ends; give its exit status."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)


@contextlib.contextmanager
def working(app: App, **options: Any) -> Iterator[Worker]:
    """Run a worker in a thread of the test; stop it at the end."""
    worker = Worker(app, **options)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop(now=True)
        thread.join(PATIENCE)
    assert not thread.is_alive() and not failed, failed


INTERRUPT, TERMINATE, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
