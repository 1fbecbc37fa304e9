"""How much is going on: the rate of events, lately."""

from __future__ import annotations

import time
from collections import deque


class Pulse:
    """How many events there were in a second, lately."""

    def __init__(self) -> None:
        self.rates: deque[float] = deque([0.0] * 20, 20)
        self._last: tuple[float, int] | None = None

    def note(self, newest: int) -> None:
        """Take down the sequence of the newest event."""
        now = time.monotonic()
        if self._last is not None:
            since, before = self._last
            self.rates.append(max(newest - before, 0) / max(now - since, 0.001))
        self._last = (now, newest)

    @property
    def rate(self) -> float:
        """The last of them."""
        return self.rates[-1]
