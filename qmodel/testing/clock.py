"""A clock that a test moves by hand.

The engine takes the time as an argument, so a queue lives in whatever time its operations name: on the model and on a
real server alike. `advance` does not jump. It stops at every moment at which something becomes due by itself (a delay,
a retry, a recurring job, the end of a lease or a pause) and lets happen what is due there, before it goes on.

Only the queue follows this clock. Code that reads the time of the machine itself goes on doing so.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from qmodel.client.fields import EPOCH, Duration, milliseconds
from qmodel.testing.steps import Steps, adrive, drive


class Traveller(Protocol):
    """What lives in the time of a clock."""

    def next_at(self) -> int:
        """The next moment at which something becomes due by itself, in milliseconds; 0 for none."""

    def arrive(self) -> Steps[None]:
        """Let happen what is due now."""


class VirtualClock:
    """A clock that stands still until it is advanced.

    It begins at `start`, a datetime (UTC if it has no zone) or milliseconds since the epoch; by default now.

    >>> clock = VirtualClock(datetime(2026, 1, 1))
    >>> clock.advance(hours=1, minutes=30)
    >>> print(clock)
    2026-01-01 01:30:00+00:00
    """

    def __init__(self, start: datetime | int | None = None) -> None:
        self._now = _moment(start) if start is not None else int(time.time()) * 1000
        self._travellers: list[Traveller] = []

    def now(self) -> int:
        """The time in milliseconds since the epoch."""
        return self._now

    @property
    def time(self) -> datetime:
        """The time as an aware datetime in UTC."""
        return EPOCH + timedelta(milliseconds=self._now)

    def __str__(self) -> str:
        return str(self.time)

    def __repr__(self) -> str:
        return f"<VirtualClock {self.time.isoformat()}>"

    def advance(
        self, by: Duration = 0, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Go on by some time: seconds or a timedelta, or the parts of one. What becomes due happens in order of time.

        Raises ValueError for a time in the past.
        """
        drive(self.travel(self._now + _milliseconds(by, days, hours, minutes, seconds)))

    async def aadvance(
        self, by: Duration = 0, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """The same in an event loop, in which jobs are then performed."""
        await adrive(self.travel(self._now + _milliseconds(by, days, hours, minutes, seconds)))

    def advance_to(self, moment: datetime | int) -> None:
        """Go on to a moment: a datetime (UTC if it has no zone) or milliseconds since the epoch."""
        drive(self.travel(_moment(moment)))

    async def aadvance_to(self, moment: datetime | int) -> None:
        """The same in an event loop, in which jobs are then performed."""
        await adrive(self.travel(_moment(moment)))

    def travel(self, until: int) -> Steps[None]:
        """Go from stop to stop. What happens at one may itself have moved the clock."""
        if until < self._now:
            raise ValueError(f"A clock goes on, not back: {until} is before {self._now}. Begin with an earlier start.")
        while True:
            for one in tuple(self._travellers):
                yield from one.arrive()
            stops = [at for one in self._travellers if self._now < (at := one.next_at()) <= until]
            if not stops and self._now >= until:
                return
            self._now = max(min(stops, default=until), self._now)

    def enter(self, traveller: Traveller) -> None:
        """Let something live in this time."""
        self._travellers.append(traveller)

    def leave(self, traveller: Traveller) -> None:
        """Let something no longer live in this time."""
        self._travellers.remove(traveller)


def _milliseconds(by: Duration, days: float, hours: float, minutes: float, seconds: float) -> int:
    return milliseconds(by) + milliseconds(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds))


def _moment(at: datetime | int) -> int:
    """A moment in milliseconds since the epoch."""
    if isinstance(at, int):
        return at
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
