"""`qmodel dev`, for real: its processes, what a change of a file does, and that none of them is left behind."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmodel.cli import dev
from qmodel.cli.dev import _check_packages
from qmodel.client.sync import Client
from qmodel.errors import ConnectError
from tests.servers import ROOT

JOBS = """
from qmodel import App

app = App()

@app.job(queue="numbers")
def number() -> int:
    return {}
"""

SECONDS = 60.0

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="which processes there are is told by /proc"
)


class Running:
    """A `qmodel dev` in a folder, and what it says."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "qmodel", "dev", "jobs", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip())

    def until(self, word: str) -> str:
        """The next line that has a word in it."""
        while True:
            try:
                line = self._lines.get(timeout=SECONDS)
            except queue.Empty:
                pytest.fail(f"nothing said {word!r}:\n" + "\n".join(self.said))
            self.said.append(line)
            if word in line:
                return line

    def children(self) -> list[int]:
        """The ids of its processes."""
        return [
            pid
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if stat(pid)[1:2] == [str(self.process.pid)]
        ]


def stat(pid: int) -> list[str]:
    """The state of a process, and its parent; nothing where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
    except OSError:
        return []


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start one in a folder with some jobs."""
    started: list[Running] = []
    (tmp_path / "jobs.py").write_text(JOBS.format(1), encoding="utf-8")

    def begin(*options: str) -> Running:
        started.append(Running(tmp_path, *options))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait()


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has asked how has ended as well."""
    return stat(pid)[:1] in ([], ["Z"])


def await_end(pids: list[int]) -> None:
    until = time.monotonic() + SECONDS
    while not all(map(gone, pids)):
        assert time.monotonic() < until, "some process is left"
        time.sleep(0.05)


def test_jobs_are_performed_shown_and_kept_while_the_worker_begins_anew(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    dev = start("--port", "0")
    url = dev.until("has its jobs at").split(" at ")[1].split()[0]
    dev.until("Worker")
    with Client(url) as client:
        first = client.queues["numbers"].put("number", {})
        assert first.wait(timeout=SECONDS) == 1
        (tmp_path / "jobs.py").write_text(JOBS.format(22), encoding="utf-8")
        dev.until("jobs.py changed: the worker restarts")
        dev.until(" job type")  # of the new one; the old one still takes jobs until it has its signal
        assert client.queues["numbers"].put("number", {}).wait(timeout=SECONDS) == 22
        (tmp_path / "jobs.py").write_text("def wrong(", encoding="utf-8")
        dev.until("SyntaxError")
        dev.until("It restarts when a file changes")
        (tmp_path / "jobs.py").write_text(JOBS.format(333), encoding="utf-8")
        assert client.queues["numbers"].put("number", {}).wait(timeout=SECONDS) == 333
        assert first.refresh().state == "complete"
    page = next((line for line in dev.said if "qmodel web shows" in line), None) or dev.until("qmodel web shows")
    with urllib.request.urlopen(page.split(" at ")[1].split()[0], timeout=SECONDS) as answer:
        assert answer.status == 200
        assert "numbers" in answer.read().decode()
    pids = dev.children()
    assert len(pids) == 3
    dev.process.send_signal(signal.SIGINT)
    assert dev.process.wait(SECONDS) == 0
    await_end(pids)
    assert not any("Traceback" in line for line in dev.said)


def test_when_it_is_killed_its_processes_end_too(start: Callable[..., Running]) -> None:
    dev = start("--no-web")
    dev.until("Worker")
    pids = dev.children()
    assert len(pids) == 2
    dev.process.kill()
    await_end(pids)


def test_an_app_that_is_not_there_is_told(start: Callable[..., Running], tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("from qmodel import App\n", encoding="utf-8")
    dev = start("--no-web")
    assert "It is not clear which app of jobs to use" in dev.until("Error:")


def test_what_is_not_installed_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("watchfiles", "jinja2") else 1)
    with pytest.raises(ConnectError, match="qmodel dev needs watchfiles, jinja2, which are not installed"):
        _check_packages(["redis", "watchfiles", "jinja2"])


def test_a_port_that_is_taken_at_the_last_moment_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(dev, "_free", lambda port: taken.getsockname()[1])
        made = dev.Dev("jobs", "", "", 1)
        made._serve()
        process = made._processes["serve"]
        assert made.url.startswith("redis://127.0.0.1:") and str(taken.getsockname()[1]) not in made.url
        process.terminate()
        process.communicate(timeout=SECONDS)
