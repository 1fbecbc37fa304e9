"""Workers in processes of their own, and in threads of the test."""

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
PATIENCE = 60.0
"""Seconds after which a test no longer waits."""


def until(true: Callable[[], Any], what: str = "what was waited for") -> Any:
    """Wait until something is so; give it."""
    deadline = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.01)
    return found


def lines(path: Path) -> list[str]:
    """The lines of a file, none where there is no file."""
    return path.read_text().splitlines() if path.exists() else []


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


JOBS = "tests.worker.jobs:app"


class Process:
    """`qmodel worker tests.worker.jobs:app`, with what it says."""

    def __init__(self, url: str, *options: str, path: str = "", app: str = JOBS, cwd: Path = ROOT) -> None:
        search = os.pathsep.join(filter(None, (path, str(ROOT))))
        environment = {**os.environ, "QMODEL_URL": url, "PYTHONPATH": search, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "qmodel", "worker", app, *options]
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environment, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True,
            process_group=0,
        )  # fmt: skip
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)

    @property
    def output(self) -> str:
        return "".join(self.said)

    def says(self, text: str) -> None:
        """Wait until it has said something."""
        until(lambda: text in self.output or self.process.poll() is not None, f"{text!r} in\n{self.output}")
        time.sleep(0.01)
        assert text in self.output, self.output

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for its end; give its status."""
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
    """A worker in a thread of the test, stopped at the end."""
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
