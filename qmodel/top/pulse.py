"""The rate of events."""

from __future__ import annotations

import time
from collections import deque


class Pulse:
    """The last rates, in events per second."""

    def __init__(self) -> None:
        self.rates: deque[float] = deque([0.0] * 20, 20)
        self._last: tuple[float, int] | None = None

    def note(self, newest: int) -> None:
        """Record the sequence number of the newest event."""
        now = time.monotonic()
        if self._last is not None:
            since, before = self._last
            self.rates.append(max(newest - before, 0) / max(now - since, 0.001))
        self._last = (now, newest)

    @property
    def rate(self) -> float:
        """Give the last rate."""
        return self.rates[-1]
