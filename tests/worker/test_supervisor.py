"""The supervisor of several processes, with processes that only end."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qmodel.worker import supervisor
from tests.worker.support import PATIENCE, lines, until


class Ending:
    """A worker whose process 0 ends at once, each time; process 1 ends once, and then works."""

    def __init__(self, path: Path) -> None:
        self.connection: Any = SimpleNamespace(connect=lambda: None)
        self.settings: Any = SimpleNamespace(processes=2, burst=False)
        self.stopped_remotely = False
        self._path = path
        self._index = 0

    def name_of_process(self, index: int, pid: int) -> str:
        return str(index)

    def become_process(self, index: int) -> None:
        self._index = index
        with self._path.open("a") as file:
            file.write(f"{index}\n")

    def run(self) -> None:
        if self._index == 0:
            os._exit(3)
        if lines(self._path).count("1") == 1:
            until(lambda: lines(self._path).count("0") == 1)
            time.sleep(0.5)  # process 0 is in its pause now
            os._exit(4)
        time.sleep(PATIENCE)


def test_a_process_that_dies_while_another_one_pauses_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[tuple[str, str]] = []
    monkeypatch.setattr(supervisor, "give_back", lambda connection, name, reason: given_back.append((name, reason)))
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 5.0)
    made = supervisor._Supervisor(Ending(tmp_path / "begun"))
    made._pause = 5.0
    took: list[float] = []

    def look() -> None:
        began = time.monotonic()
        until(lambda: len(given_back) == 2)
        took.append(time.monotonic() - began)
        until(lambda: lines(tmp_path / "begun").count("1") == 2)
        os.kill(os.getpid(), signal.SIGTERM)

    beside = threading.Thread(target=look)
    beside.start()
    made.run()
    beside.join()
    assert given_back[:2] == [("0", "ended with the status 3"), ("1", "ended with the status 4")]
    assert took[0] < 4
    assert not made._living and not made._due


def test_a_signal_before_a_replacement_starts_is_not_lost(tmp_path: Path) -> None:
    made = supervisor._Supervisor(Ending(tmp_path / "begun"))
    made._due[0] = 0.0
    made._stopping = True
    made._start_due()
    assert not made._living and not made._due


def test_a_fork_that_the_system_refuses_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "begun"

    class Through(Ending):
        def run(self) -> None:
            os._exit(0)

    worker = Through(path)
    worker.settings = SimpleNamespace(processes=2, burst=True)
    refusals, fork = iter([BlockingIOError(11, "Resource temporarily unavailable")]), os.fork

    def refused_once() -> int:
        if (error := next(refusals, None)) is not None:
            raise error
        return fork()

    monkeypatch.setattr(supervisor, "RETRY", 0.2)
    monkeypatch.setattr(os, "fork", refused_once)
    supervisor._Supervisor(worker).run()
    assert sorted(lines(path)) == ["0", "1"]
