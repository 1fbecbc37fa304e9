"""Wait for wake-ups in the place of an idle worker, whose own thread can handle other messages meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final

from qmodel import runtime
from qmodel.contract.operations import Pop, PopAny, Queue, Release, Running, Workers
from qmodel.contract.replies import Page, QueueCounts
from qmodel.errors import ConnectError
from qmodel.worker.connection import Connection

log = logging.getLogger("qmodel.worker")

BACK: Final = 60_000.0
"""Milliseconds by which the reported server time may fall behind our estimate; beyond that, the server's clock was set
back."""

LONGEST_SLEEP = 1.0
"""Seconds after which an idle worker looks for jobs by itself. There is no wake-up for a job that was put, or given
back, with a delay after the worker fell asleep, so such a job begins at most this late. A look costs some tenths of a
millisecond."""

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
        self._last = self._tries = 0
        self._ahead = 0.0
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
        if woken:  # a put caused this wake-up, so it tells nothing about the time for which we slept
            self._last = 0
        return woken

    def _until_next(self) -> float:
        """Compute the seconds until a job becomes ready by itself; a little more after each look that was too early.

        Times are the server's: our own clock may be wrong by an hour. Our last pop made the server write its time to
        the list of workers. A job that became ready by itself after that pop has caused no wake-up, so if jobs are
        ready the worker looks again soon. The same holds for a lease that ran out, until its grace period is over.
        """
        asked = [op for name in self._queues for op in (Queue(name), Running(name, 0, 1))]
        *found, seen = self._connection.client.execute_many([*asked, Workers(0, 1)])
        counts = [one for one in found if isinstance(one, QueueCounts)]
        times = [one.next_at for one in counts if one.next_at]
        times += self._expiries(tuple(jid for one in found if isinstance(one, Page) for jid in one.jids))
        if any((one.waiting and not one.paused) or one.stalled for one in counts):
            times.append(1)
        next_at = min(times, default=0)
        self._tries = self._tries + 1 if next_at == self._last else 0
        self._last = next_at
        if not next_at or not seen:
            return LONGEST_SLEEP
        left: float = max(next_at - self._now(seen[0].seen_at), 0) / 1000 + 0.001 * 2 ** min(self._tries, 10)
        return min(left, LONGEST_SLEEP)

    def _now(self, seen_at: int) -> float:
        """Estimate the server's time from the time at which a worker was last seen.

        That time is never ahead of the server's clock, and is written once a second. So the smallest lag that was ever
        observed counts, unless the server's clock was set back.
        """
        passed = runtime.monotonic() * 1000
        ahead = seen_at - passed
        if not self._ahead - BACK < ahead < self._ahead:
            self._ahead = ahead
        return passed + self._ahead

    def _expiries(self, running: tuple[str, ...]) -> list[int]:
        """Read the times at which the leases of running jobs end."""
        return [job.expires_at for job in self._connection.client.multiget(running) if job.expires_at]

    def _pass_on(self) -> None:
        client = self._connection.client
        one = len(self._queues) == 1
        pop = Pop(self._queues[0], self._worker) if one else PopAny(self._queues, self._worker)
        with self._passing:
            if not self._finished:
                client.execute_many([Release(job.jid, job.token) for job in client.execute(pop)])
