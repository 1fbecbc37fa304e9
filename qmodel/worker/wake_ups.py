"""Wait for wake-ups in the place of an idle worker, whose own thread can handle other messages meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final

from qmodel import runtime
from qmodel.contract.operations import Pop, PopAny, Release
from qmodel.errors import ConnectError
from qmodel.worker.connection import Connection
from qmodel.worker.next_job import NextJob

log = logging.getLogger("qmodel.worker")

_JOIN: Final = 1.5
"""Maximum seconds to wait for the thread at the end: a little longer than its longest sleep."""

_AWAY: Final = 0.5
"""Seconds to sleep when the server cannot be reached; the worker's own pop logs that, and waits longer."""


class WakeUps:
    """Calls `on_wake_up` once for each request: when a job may be ready in one of the queues.

    A wake-up is for one worker. If it reaches a worker that has stopped meanwhile, or that is quiet (`paused`), it is
    passed on: a job is popped and released, which wakes another worker.
    """

    def __init__(
        self, connection: Connection, queues: Sequence[str], worker: str, on_wake_up: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._queues = tuple(queues)
        self._worker = worker
        self._on_wake_up = on_wake_up
        self._requests: SimpleQueue[bool] = runtime.SimpleQueue()
        self._next = NextJob(queues)
        self.closed = self.paused = False
        self._passing = runtime.Lock()
        self._finished = False
        self._thread = runtime.Thread(target=self._run, name="qmodel-wake-ups", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def request(self) -> None:
        """Request one call of `on_wake_up`."""
        self._requests.put(True)

    def close(self) -> None:
        """Stop waiting, and pass on the wake-up that may still come."""
        self.closed = True
        self._requests.put(False)

    def join(self, gives_back: bool) -> None:
        """Close, and wait until no wake-up can arrive if the worker then gives jobs back.

        The release of a job would wake this worker itself, which would pop and release the same job again to pass the
        wake-up on.
        """
        self.close()
        if gives_back and self._thread is not runtime.current_thread() and self._thread.is_alive():
            self._thread.join(_JOIN)

    def finish(self) -> None:
        """Stop passing on wake-ups; when this returns, every job that was popped for that has been released."""
        with self._passing:
            self._finished = True

    def _run(self) -> None:
        while self._requests.get():
            try:
                woken = self._sleep()
                if woken and (self.closed or self.paused):
                    self._pass_on()
            except ConnectError:
                runtime.sleep(_AWAY)
            except Exception:  # a worker without wake-ups would never work again: wake it up after any error
                log.exception("Waiting for a wake-up failed; the worker looks for jobs instead.")
                runtime.sleep(_AWAY)
            if self.closed:
                return
            self._on_wake_up()

    def _sleep(self) -> bool:
        woken = self._connection.client.backend.wait(self._queues, self._until_next())
        if woken:
            self._next.woken()
        return woken

    def _until_next(self) -> float:
        """Compute the seconds until a job becomes ready by itself (next_job.py)."""
        client = self._connection.client
        found = client.execute_many(self._next.asked)
        return self._next.seconds(found, client.multiget(self._next.running(found)))

    def _pass_on(self) -> None:
        client = self._connection.client
        one = len(self._queues) == 1
        pop = Pop(self._queues[0], self._worker) if one else PopAny(self._queues, self._worker)
        with self._passing:
            if not self._finished:
                client.execute_many([Release(job.jid, job.token) for job in client.execute(pop)])
