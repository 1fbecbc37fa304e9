"""Perform jobs in threads: one job at a time in each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from qmodel import runtime
from qmodel.app.errors import Cancelled
from qmodel.worker.attempt import Abort, Attempt
from qmodel.worker.perform import failure, final_outcome, perform

if TYPE_CHECKING:
    from qmodel.app import App

OnEnd = Callable[[Attempt], None]
"""Is called with each attempt that has ended."""


class ThreadRunner:
    """Threads that take attempts from a backlog, in order.

    One thread is woken at a time, and wakes the next one if there is more work. So short jobs are performed by one or
    two threads: switching between threads would take longer than the jobs.
    """

    def __init__(self, app: App, concurrency: int, on_end: OnEnd) -> None:
        self._app = app
        self._on_end = on_end
        self._backlog: deque[Attempt] = deque()
        self._calls: SimpleQueue[None] = runtime.SimpleQueue()
        self._called = self._closed = False
        # Held while an exception is raised in a thread, so that it is certain whether the thread was still in the job.
        self._setting = runtime.Lock()
        self._threads = [
            runtime.Thread(target=self._run, name=f"qmodel-job-{number}", daemon=True)
            for number in range(1, concurrency + 1)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def run(self, attempts: list[Attempt]) -> None:
        """Perform attempts, each as soon as a thread is free; `on_end` is called after each, in its thread."""
        self._backlog.extend(attempts)
        self._wake_one()

    def _wake_one(self) -> None:
        """Wake a thread, unless one is waking: that one clears `_called` before it reads the backlog."""
        if not self._called:
            self._called = True
            self._calls.put(None)

    def waiting(self) -> int:
        """Count the attempts that have not begun."""
        return len(self._backlog)

    def take_back(self) -> list[Attempt]:
        """Remove the attempts that have not begun, and return them."""
        found = []
        while (attempt := self._next()) is not None:
            found.append(attempt)
        return found

    def _next(self) -> Attempt | None:
        try:
            return self._backlog.popleft()
        except IndexError:
            return None

    def abort(self, attempt: Attempt, abort: Abort) -> None:
        """Abort an attempt: an exception is raised in its thread as soon as that executes Python code again."""
        with self._setting:
            if attempt.abort(abort) and attempt.slot is not None:
                runtime.raise_in(attempt.slot, Cancelled)

    def close(self) -> None:
        """Make each thread end when it is free."""
        self._closed = True
        for _ in self._threads:
            self._calls.put(None)

    def _run(self) -> None:
        me, here = runtime.get_ident(), os.getpid()
        while not self._closed:
            attempt = self._next()
            if attempt is None:
                self._calls.get()
                self._called = False
                continue
            if self._backlog:
                self._wake_one()
            outcome = None
            try:
                attempt.slot = me
                attempt.began = runtime.monotonic()
                if attempt.aborted is None:
                    outcome = perform(self._app, attempt)
                attempt.slot = None
                if attempt.aborted is not None:
                    self._absorb_exception()
            except Cancelled:
                attempt.slot = None
            except BaseException as error:  # for example the job's own KeyboardInterrupt: the thread continues
                attempt.slot = None
                outcome = failure(self._app, attempt, error)
            if os.getpid() != here:  # the job forked, and this is the child
                os._exit(0)
            attempt.outcome = final_outcome(self._app, attempt, outcome) if attempt.aborted is not None else outcome
            attempt.ended_at = runtime.monotonic()
            self._on_end(attempt)

    def _absorb_exception(self) -> None:
        """Wait for the exception that was raised in this thread while it left the job: it must not hit the next job."""
        with self._setting:
            pass
        until = runtime.monotonic() + 0.05
        while runtime.monotonic() < until:
            runtime.sleep(0.001)
