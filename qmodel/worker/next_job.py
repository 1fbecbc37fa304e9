"""When a job becomes ready by itself: a delay that ends, or a lease."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from qmodel import runtime
from qmodel.contract.operations import Operation, Queue, Running, Workers
from qmodel.contract.replies import Job, Page, QueueCounts

BACK: Final = 60_000.0
"""Milliseconds by which the reported server time may fall behind our estimate; beyond that, the server's clock was set
back."""

LONGEST_SLEEP = 1.0
"""Seconds after which an idle worker looks for jobs by itself. There is no wake-up for a job that was put, or given
back, with a delay after the worker fell asleep, so such a job begins at most this late. A look costs some tenths of a
millisecond."""


class NextJob:
    """Computes the seconds until a job becomes ready by itself; a little more after each look that was too early.

    Times are the server's: our own clock may be wrong by an hour. Our last pop made the server write its time to the
    list of workers. A job that became ready by itself after that pop has caused no wake-up, so if jobs are ready the
    worker looks again soon. The same holds for a lease that ran out, until its grace period is over.
    """

    def __init__(self, queues: Sequence[str]) -> None:
        self.asked: list[Operation] = [op for name in queues for op in (Queue(name), Running(name, 0, 1))]
        """What must be asked; then the jobs that `running` lists."""
        self.asked.append(Workers(0, 1))
        self._last = self._tries = 0
        self._ahead = 0.0

    def running(self, found: Iterable[Any]) -> tuple[str, ...]:
        """List the jobs that hold the leases that end first."""
        return tuple(jid for one in found if isinstance(one, Page) for jid in one.jids)

    def seconds(self, found: Sequence[Any], jobs: Iterable[Job], most: float = LONGEST_SLEEP) -> float:
        """Compute the seconds from the replies, at most so many."""
        counts = [one for one in found if isinstance(one, QueueCounts)]
        seen = found[-1] if isinstance(found[-1], tuple) else ()
        times = [one.next_at for one in counts if one.next_at]
        times += [job.expires_at for job in jobs if job.expires_at]
        if any((one.waiting and not one.paused) or one.stalled for one in counts):
            times.append(1)
        next_at = min(times, default=0)
        self._tries = self._tries + 1 if next_at == self._last else 0
        self._last = next_at
        if not next_at or not seen:
            return most
        left: float = max(next_at - self.now(seen[0].seen_at), 0) / 1000 + 0.001 * 2 ** min(self._tries, 10)
        return min(left, most)

    def woken(self) -> None:
        """Note a wake-up: a put caused it, so it tells nothing about how long we should have slept."""
        self._last = 0

    def now(self, seen_at: int) -> float:
        """Estimate the server's time from the time at which a worker was last seen.

        That time is never ahead of the server's clock, and is written once a second. So the smallest lag that was ever
        observed counts, unless the server's clock was set back.
        """
        passed = runtime.monotonic() * 1000
        ahead = seen_at - passed
        if not self._ahead - BACK < ahead < self._ahead:
            self._ahead = ahead
        return passed + self._ahead
