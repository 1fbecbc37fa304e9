"""What to pop next: from which queues, in which order, and how many at once.

Jobs that are popped ahead of time save round trips, and are hidden from every other worker. So we hold no more than
will begin within a fiftieth of a second, by what jobs have taken so far; where they take longer than that, none. Should
one that was taken for quick take long, those behind it are given back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from qmodel.client.fields import shuffled
from qmodel.contract.operations import Operation, Pop, PopAny

Order = Literal["ordered", "round-robin", "weighted"]
ORDERS: Final = ("ordered", "round-robin", "weighted")

AHEAD: Final = 0.02
"""For how many seconds of work jobs are held that have not begun."""

MOST_AHEAD: Final = 100
PATIENCE: Final = 0.25
"""Seconds after which jobs that have not begun are given back, where nothing moves."""

_WEIGHT: Final = 0.2
"""How much the last job says about the next one."""


class Fetching:
    """Whose turn it is among the queues, and how quick jobs are."""

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
        """The operation that takes up to so many jobs; if we `wait`, it counts us as idle where there is none."""
        names = self._ordered()
        if len(names) == 1:
            return Pop(names[0], self.worker, count, wait)
        return PopAny(tuple(names), self.worker, count, wait)

    def _ordered(self) -> Sequence[str]:
        if self.order == "weighted":
            return shuffled(self.queues, self.weights)
        if self.order == "ordered" or len(self.queues) == 1:
            return self.queues
        turn = self._turn = (self._turn + 1) % len(self.queues)
        return self.queues[turn:] + self.queues[:turn]

    def ahead(self, concurrency: int) -> int:
        """How many jobs to hold that have not begun."""
        if self._mean is None:
            return 0
        return min(int(AHEAD * concurrency / max(self._mean, 1e-6)), self.prefetch)

    def took(self, seconds: float) -> None:
        """Note for how long a job ran."""
        self._mean = seconds if self._mean is None else self._mean + _WEIGHT * (seconds - self._mean)

    def slow(self) -> None:
        """Note that what was held did not move."""
        self._mean = max(self._mean or 0.0, PATIENCE)
