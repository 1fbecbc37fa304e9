"""Turns: the shards of a deployment that a worker takes jobs from, one after the other.

A shard is *open* if it may have jobs, *armed* if its last pop was empty and a wake-up was asked for with it, and *away*
if its node does not answer. A worker sleeps while no shard is open. Every empty pop is paid for by one wake-up, so the
calls for a job do not grow with the number of shards.

A worker stays with a shard while that has jobs, for at most `BURST` of them. Between two turns of a shard each other
open one has a turn, so none starves.

A shard that gave fewer jobs than were asked for *rests* for a moment before its next pop, which most often is empty:
when one of its jobs ends first, the report and that pop are one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

BURST: Final = 50
"""The most jobs that are taken from a shard in one turn."""


class Turns:
    """The open shards, in the order of their turns."""

    def __init__(self, shards: Iterable[int], burst: int = BURST) -> None:
        self._open = deque(shards)
        self._away: set[int] = set()
        self._burst = burst
        self._served = 0
        self._gave: set[int] = set()
        self._dry: set[int] = set()
        self._resting: set[int] = set()

    @property
    def away(self) -> frozenset[int]:
        """The shards on nodes that do not answer."""
        return frozenset(self._away)

    def current(self) -> int | None:
        """Give the shard that has its turn; None if no shard is open."""
        return self._open[0] if self._open else None

    def ahead(self) -> int | None:
        """Give the first open shard that is not known to have given all it has: to take jobs before there is need."""
        return next((shard for shard in self._open if shard not in self._dry), None)

    def gave(self, shard: int) -> bool:
        """Say whether a shard gave jobs since it was opened."""
        return shard in self._gave

    def is_dry(self, shard: int) -> bool:
        """Say whether an open shard is known to have given all it has."""
        return shard in self._resting or (shard in self._open and shard in self._dry)

    def took(self, jobs: int, more: bool) -> None:
        """Note that the current shard gave jobs; another one has its turn if it gave all it has, or enough."""
        shard = self._open[0]
        self._gave.add(shard)
        self._served += jobs
        (self._dry.discard if more else self._dry.add)(shard)
        if not more or self._served >= self._burst:
            self.rest()

    def rest(self) -> None:
        """Let the next open shard have its turn."""
        self._open.rotate(-1)
        self._served = 0

    @property
    def resting(self) -> bool:
        """Whether a shard has given all it has, and its pop waits for the report of a job."""
        return bool(self._resting)

    def set_aside(self, shard: int) -> None:
        """Let an open shard that has given all it has rest until a job of it ends."""
        if self._take_out(shard):
            self._resting.add(shard)

    def end_rest(self, shard: int) -> None:
        """Open a shard that still rests."""
        if shard in self._resting:
            self._resting.remove(shard)
            self._open.append(shard)

    def open(self, shard: int) -> None:
        """Note that a shard may have jobs. One that is away stays so."""
        self._dry.discard(shard)
        self._resting.discard(shard)
        if shard not in self._open and shard not in self._away:
            self._open.append(shard)

    def arm(self, shard: int) -> None:
        """Note that a shard has no job, and will wake this worker."""
        self._close(shard)

    def leave(self, shard: int) -> None:
        """Note that the node of a shard does not answer."""
        self._away.add(shard)
        self._close(shard)

    def come_back(self, shard: int) -> None:
        """Note that the node of a shard answers again: it may have jobs."""
        self._away.discard(shard)
        self.open(shard)

    def _close(self, shard: int) -> None:
        self._take_out(shard)
        self._resting.discard(shard)
        self._gave.discard(shard)

    def _take_out(self, shard: int) -> bool:
        """Take a shard out of the open ones; return whether it was one."""
        if shard not in self._open:
            return False
        if self._open[0] == shard:
            self._served = 0
        self._open.remove(shard)
        return True
