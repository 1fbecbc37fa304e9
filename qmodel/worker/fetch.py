"""Decide what to pop next: the queues, their order, and the number of jobs.

Popping jobs ahead of time saves round trips, but hides the jobs from other workers. So a worker prefetches only jobs
that will begin within 20 ms, estimated from the run times so far; if jobs take longer than that, it prefetches none.
If a job blocks, the jobs queued behind it are released after 250 ms so that other workers can take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from qmodel.client.queue_order import shuffled
from qmodel.contract import replies
from qmodel.contract.operations import Operation, Pop, PopAny, Queue
from qmodel.errors import RefusedError

Order = Literal["ordered", "round-robin", "weighted"]
ORDERS: Final = ("ordered", "round-robin", "weighted")

AHEAD: Final = 0.02
"""Seconds of work to prefetch."""

MOST_AHEAD: Final = 100
PATIENCE: Final = 0.25
"""Seconds without progress after which prefetched jobs are released."""

_WEIGHT: Final = 0.2
"""Weight of the last run time in the moving average."""


class FetchPlan:
    """The order of the queues, and the moving average of run times."""

    def __init__(
        self, queues: Sequence[str], order: Order, weights: Mapping[str, float], worker: str, prefetch: int | None
    ) -> None:
        self.queues = tuple(dict.fromkeys(queues))
        self.order = order
        self.weights = dict(weights)
        self.worker = worker
        self.prefetch = MOST_AHEAD if prefetch is None else prefetch
        self._turn = 0
        self._mean: float | None = None

    def pop(self, count: int, wait: bool) -> Operation:
        """Make the operation that pops up to `count` jobs; `wait` registers the worker as idle if none is ready."""
        names = self._ordered()
        if len(names) == 1:
            return Pop(names[0], self.worker, count, wait)
        return PopAny(tuple(names), self.worker, count, wait)

    def looks(self) -> list[Operation]:
        """Make the operations that count the jobs of each queue."""
        return [Queue(name) for name in self.queues]

    def _ordered(self) -> Sequence[str]:
        if self.order == "weighted":
            return shuffled(self.queues, self.weights)
        if self.order == "ordered" or len(self.queues) == 1:
            return self.queues
        turn = self._turn = (self._turn + 1) % len(self.queues)
        return self.queues[turn:] + self.queues[:turn]

    def ahead(self, concurrency: int) -> int:
        """Compute the number of jobs to prefetch."""
        if self._mean is None:
            return 0
        return min(int(AHEAD * concurrency / max(self._mean, 1e-6)), self.prefetch)

    def took(self, seconds: float) -> None:
        """Record a run time, in seconds."""
        self._mean = seconds if self._mean is None else self._mean + _WEIGHT * (seconds - self._mean)

    def slow(self) -> None:
        """Record that prefetched jobs did not begin in time."""
        self._mean = max(self._mean or 0.0, PATIENCE)


def has_work(queue: replies.QueueCounts | RefusedError) -> bool:
    """Whether a queue has a job that a pop would hand out, or send to its throttles."""
    if isinstance(queue, RefusedError):
        return True  # a server that is away: what it has is not known
    return not queue.paused and queue.waiting + queue.stalled + queue.due > 0
