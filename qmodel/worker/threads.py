"""Performs jobs in threads: as many at a time as there are threads."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from qmodel.app.errors import Cancelled
from qmodel.worker.attempt import failed, judged, performed
from qmodel.worker.attempts import Abort, Attempt

if TYPE_CHECKING:
    from qmodel.app import App

Ended = Callable[[Attempt], None]
"""Is told of each that has ended."""


class ThreadRunner:
    """Threads that take attempts out of a line, first come first served.

    One is woken at a time, and wakes the next if there is more to do than for itself: quick jobs are done by a thread
    or two, for whom to change places would take longer than the jobs.
    """

    def __init__(self, app: App, concurrency: int, ended: Ended) -> None:
        self._app = app
        self._ended = ended
        self._line: deque[Attempt] = deque()
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._called = self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"qmodel-job-{number}", daemon=True)
            for number in range(1, concurrency + 1)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def run(self, attempts: list[Attempt]) -> None:
        """Perform attempts, each as soon as a thread is free; `ended` is called at the end of each, in its thread."""
        self._line.extend(attempts)
        self._call()

    def _call(self) -> None:
        """Wake a thread, unless one is on its way; it looks at the line after it has said that it is there."""
        if not self._called:
            self._called = True
            self._calls.put(None)

    def waiting(self) -> int:
        """How many have not begun."""
        return len(self._line)

    def take_back(self) -> list[Attempt]:
        """Take out those that have not begun."""
        found = []
        while (attempt := self._next()) is not None:
            found.append(attempt)
        return found

    def _next(self) -> Attempt | None:
        try:
            return self._line.popleft()
        except IndexError:
            return None

    def abort(self, attempt: Attempt, abort: Abort) -> None:
        """Let an attempt not go on: an exception is raised in it, as soon as it is in Python again."""
        with _SETTING:
            if attempt.abort(abort) and attempt.slot is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(attempt.slot), ctypes.py_object(Cancelled))

    def close(self) -> None:
        """Let the threads end, when they are free."""
        self._closed = True
        for _ in self._threads:
            self._calls.put(None)

    def _run(self) -> None:
        me, here = threading.get_ident(), os.getpid()
        while not self._closed:
            attempt = self._next()
            if attempt is None:
                self._calls.get()
                self._called = False
                continue
            if self._line:
                self._call()
            outcome = None
            try:
                attempt.slot = me
                attempt.began = time.monotonic()
                if attempt.aborted is None:
                    outcome = performed(self._app, attempt)
                attempt.slot = None
                if attempt.aborted is not None:
                    self._expect()
            except Cancelled:
                attempt.slot = None
            except BaseException as error:  # the job's KeyboardInterrupt, say: the thread goes on
                attempt.slot = None
                outcome = failed(self._app, attempt, error)
            if os.getpid() != here:  # the job has forked, and its child came back from it
                os._exit(0)
            attempt.outcome = judged(self._app, attempt, outcome) if attempt.aborted is not None else outcome
            attempt.ended_at = time.monotonic()
            self._ended(attempt)

    def _expect(self) -> None:
        """Await the exception that was raised in this thread while it left the job: it must not meet the next one."""
        with _SETTING:
            pass
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            time.sleep(0.001)


_SETTING = threading.Lock()
"""Held while an exception is raised in a thread, so that it is known whether the thread was still at the job."""
