"""Perform jobs in one event loop, in a separate thread: many at a time, for jobs that wait more than they compute."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from qmodel import runtime
from qmodel.app.attempt import aperform
from qmodel.app.errors import Cancelled
from qmodel.worker.attempt import Abort, Attempt
from qmodel.worker.perform import begin, failure, final_outcome

if TYPE_CHECKING:
    from qmodel.app import App
    from qmodel.app.outcome import Outcome


log = logging.getLogger("qmodel.worker")

SPARE: Final = 100
"""Additional threads, for those that are blocked by plain functions whose attempts are over."""


class AsyncRunner:
    """A task for each attempt, at most `concurrency` at a time; plain functions run in threads.

    A plain function that continues after its attempt is over blocks its thread until it returns; other functions then
    use a spare thread.
    """

    def __init__(self, app: App, concurrency: int, on_end: Callable[[Attempt], None]) -> None:
        self._app = app
        self._concurrency = concurrency
        self._on_end = on_end
        self._backlog: deque[Attempt] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = runtime.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(concurrency + SPARE, "qmodel-plain"))
        self._warned, self._process = False, os.getpid()
        self._thread = runtime.Thread(target=self._run, name="qmodel-jobs", daemon=True)

    def start(self) -> None:
        """Start the thread of the event loop."""
        self._thread.start()

    def run(self, attempts: list[Attempt]) -> None:
        """Perform attempts, each as soon as there is a free slot; `on_end` is called after each, in the loop."""
        self._backlog.extend(attempts)
        self._loop.call_soon_threadsafe(self._fill)

    def waiting(self) -> int:
        """Count the attempts that have not begun."""
        return len(self._backlog)

    def take_back(self) -> list[Attempt]:
        """Remove the attempts that have not begun, and return them."""
        found = []
        try:
            while True:
                found.append(self._backlog.popleft())
        except IndexError:
            return found

    def abort(self, attempt: Attempt, abort: Abort) -> None:
        """Abort an attempt: its task is cancelled."""
        if attempt.abort(abort):
            self._loop.call_soon_threadsafe(_cancel, attempt)

    def close(self) -> None:
        """Stop the loop; running tasks are cancelled."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._tasks, self._close_client(), return_exceptions=True))
            self._loop.close()

    async def _close_client(self) -> None:
        await self._app.aclose()

    def _fill(self) -> None:
        """Begin attempts while there are free slots."""
        while self._backlog and len(self._tasks) < self._concurrency:
            try:
                attempt = self._backlog.popleft()
            except IndexError:
                return
            attempt.began = runtime.monotonic()
            attempt.slot = task = self._loop.create_task(self._one(attempt))
            self._tasks.add(task)

    async def _one(self, attempt: Attempt) -> None:
        outcome: Outcome | None = None
        try:
            if attempt.aborted is None:
                outcome = await aperform(self._app, attempt.job, begin(self._app, attempt))
        except (asyncio.CancelledError, Cancelled):
            outcome = None
        except BaseException as error:  # for example the job's own KeyboardInterrupt: the loop continues
            outcome = failure(self._app, attempt, error)
        if os.getpid() != self._process:  # the job forked, and this is the child
            os._exit(0)
        attempt.outcome = final_outcome(self._app, attempt, outcome)
        attempt.ended_at = runtime.monotonic()
        self._warn_of_threads(attempt)
        self._tasks.discard(attempt.slot)
        self._on_end(attempt)
        self._fill()

    def _warn_of_threads(self, attempt: Attempt) -> None:
        """Warn once that this runner cannot end plain functions."""
        kind = self._app.jobs.get(attempt.job.klass)
        why = "" if attempt.aborted is None else attempt.aborted.why
        if self._warned or why in ("", "stop") or kind is None or kind.asynchronous:
            return
        self._warned = True
        log.warning(
            "%s %s is a plain function: it continues in its thread until it returns. At most %d may do so at a time; "
            "then other plain functions wait. --runner thread and fork can end them.",
            attempt.job.klass,
            attempt.jid,
            SPARE,
            extra=attempt.facts,
        )


def _cancel(attempt: Attempt) -> None:
    """Cancel the task of an attempt that has begun. Others see the abort when they begin: a task that is cancelled
    before its first step never runs, and would keep its slot for ever.
    """
    if attempt.context is not None and not attempt.ended_at:
        attempt.slot.cancel()
