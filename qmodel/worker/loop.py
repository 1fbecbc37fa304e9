"""Performs jobs in one event loop, in a thread of its own: many at a time, where they wait more than they compute."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from qmodel.app.attempt import aperform
from qmodel.app.errors import Cancelled
from qmodel.worker.attempt import begun, failed, judged
from qmodel.worker.attempts import Abort, Attempt

if TYPE_CHECKING:
    from qmodel.app import App
    from qmodel.app.outcome import Outcome


log = logging.getLogger("qmodel.worker")

SPARE: Final = 100
"""How many threads there may be besides those for `concurrency`, in the place of those that are held."""


class AsyncRunner:
    """A task for each attempt, so many at a time; plain functions are performed in threads.

    A plain function that goes on when its attempt is over holds its thread until it returns; others have a spare one.
    """

    def __init__(self, app: App, concurrency: int, ended: Callable[[Attempt], None]) -> None:
        self._app = app
        self._concurrency = concurrency
        self._ended = ended
        self._line: deque[Attempt] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(concurrency + SPARE, "qmodel-plain"))
        self._told = False
        self._thread = threading.Thread(target=self._run, name="qmodel-jobs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def run(self, attempts: list[Attempt]) -> None:
        """Perform attempts, each as soon as there is room; `ended` is called at the end of each, in the loop."""
        self._line.extend(attempts)
        self._loop.call_soon_threadsafe(self._fill)

    def waiting(self) -> int:
        """How many have not begun."""
        return len(self._line)

    def take_back(self) -> list[Attempt]:
        """Take out those that have not begun."""
        found = []
        try:
            while True:
                found.append(self._line.popleft())
        except IndexError:
            return found

    def abort(self, attempt: Attempt, abort: Abort) -> None:
        """Let an attempt not go on: its task is cancelled."""
        if attempt.abort(abort):
            self._loop.call_soon_threadsafe(_cancel, attempt)

    def close(self) -> None:
        """End; what is still at work is cancelled."""
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
        """Begin as many as there is room for."""
        while self._line and len(self._tasks) < self._concurrency:
            try:
                attempt = self._line.popleft()
            except IndexError:
                return
            attempt.began = time.monotonic()
            attempt.slot = task = self._loop.create_task(self._one(attempt))
            self._tasks.add(task)

    async def _one(self, attempt: Attempt) -> None:
        outcome: Outcome | None = None
        try:
            if attempt.aborted is None:
                outcome = await aperform(self._app, attempt.job, begun(self._app, attempt))
        except (asyncio.CancelledError, Cancelled):
            outcome = None
        except BaseException as error:  # the job's KeyboardInterrupt, say: the loop goes on
            outcome = failed(self._app, attempt, error)
        attempt.outcome = judged(self._app, attempt, outcome)
        attempt.ended_at = time.monotonic()
        self._tell_of_threads(attempt)
        self._tasks.discard(attempt.slot)
        self._ended(attempt)
        self._fill()

    def _tell_of_threads(self, attempt: Attempt) -> None:
        """Say once that plain functions cannot be ended here."""
        kind = self._app.jobs.get(attempt.job.klass)
        why = "" if attempt.aborted is None else attempt.aborted.why
        if self._told or why in ("", "stop") or kind is None or kind.asynchronous:
            return
        self._told = True
        log.warning(
            "%s %s is a plain function: it goes on in its thread until it returns. At most %d may do so at a time, and "
            "then plain functions wait. --runner thread and fork can end them.",
            attempt.job.klass,
            attempt.jid,
            SPARE,
            extra=attempt.facts,
        )


def _cancel(attempt: Attempt) -> None:
    if attempt.slot is not None and not attempt.ended_at:
        attempt.slot.cancel()
