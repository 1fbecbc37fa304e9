"""A clock that a test advances by hand.

The engine takes the time as an argument of each operation, so a queue can use any time, on the model and on a real
server. `advance` does not jump. It stops at every time at which something becomes due by itself (a delay, a retry, a
recurring job, the end of a lease or a pause), and handles that before it continues.

Only the queue uses this clock. Code that reads the machine's clock is not affected.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from qmodel.client.convert import EPOCH, Duration, milliseconds
from qmodel.testing.steps import Steps, adrive, drive


class ClockUser(Protocol):
    """A harness, as its clock sees it."""

    def next_at(self) -> int:
        """Compute the next time at which something becomes due by itself, in milliseconds; 0 for none."""

    def arrive(self) -> Steps[None]:
        """Handle what is due now."""


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
        self._users: list[ClockUser] = []

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
        """Advance by seconds or a timedelta, or by its parts. What becomes due is handled in order of time.

        Raises ValueError for a time in the past.
        """
        drive(self.travel(self._now + _milliseconds(by, days, hours, minutes, seconds)))

    async def aadvance(
        self, by: Duration = 0, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> None:
        """Do the same in an event loop; jobs run in it."""
        await adrive(self.travel(self._now + _milliseconds(by, days, hours, minutes, seconds)))

    def advance_to(self, moment: datetime | int) -> None:
        """Advance to a time: a datetime (UTC if it has no zone) or milliseconds since the epoch."""
        drive(self.travel(_moment(moment)))

    async def aadvance_to(self, moment: datetime | int) -> None:
        """Do the same in an event loop; jobs run in it."""
        await adrive(self.travel(_moment(moment)))

    def travel(self, until: int) -> Steps[None]:
        """Advance from stop to stop. Handling a stop may itself advance the clock."""
        if until < self._now:
            raise ValueError(f"A clock cannot go back: {until} is before {self._now}. Use an earlier start.")
        while True:
            for one in tuple(self._users):
                yield from one.arrive()
            stops = [at for one in self._users if self._now < (at := one.next_at()) <= until]
            if not stops and self._now >= until:
                return
            self._now = max(min(stops, default=until), self._now)

    def enter(self, user: ClockUser) -> None:
        """Add a user of this clock."""
        self._users.append(user)

    def leave(self, user: ClockUser) -> None:
        """Remove a user of this clock."""
        self._users.remove(user)


def _milliseconds(by: Duration, days: float, hours: float, minutes: float, seconds: float) -> int:
    return milliseconds(by) + milliseconds(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds))


def _moment(at: datetime | int) -> int:
    """Convert a time to milliseconds since the epoch."""
    if isinstance(at, int):
        return at
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
