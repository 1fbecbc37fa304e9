"""The moments of cron expressions in time zones, which clients send to the engine.

The engine keeps a list of moments and knows no calendar (`qmodel/model/state/schedules.py`). A client computes the
moments after the last one that the engine knows. The engine accepts them only if that last one is still the same, so
the number of clients and their clocks do not matter.

An expression has five fields, or six with the seconds first, as Debian's cron reads them (`cronsim`): names of days and
months, `*/5`, `L`, `#`. If the day of the month or the day of the week begins with a star, both must fit; otherwise one
of them must. When clocks go forward, a moment that does not exist is replaced by the first one that does; when they go
back, a moment that comes twice is used once. Both hold for expressions with fixed minutes and hours; an expression with
a star there, or with seconds, simply continues.

Moments are sent for one month ahead, a hundred at most: changes of a time zone by law are known by then. So a schedule
continues for a month, or for a hundred runs, if no client runs to send more.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from qmodel.contract.operations import RecurAdvance
from qmodel.contract.replies import Schedule
from qmodel.errors import QmodelError
from qmodel.model.state.schedules import TIMES_MOST

if TYPE_CHECKING:
    from cronsim import CronSim

AHEAD_MS = 31 * 86_400_000
"""How far ahead moments are sent. The next one is sent however far away it is."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CronNotInstalled(QmodelError):
    """The package that reads cron expressions is not installed."""

    def __init__(self) -> None:
        super().__init__("Cron expressions need the package cronsim. Run: pip install cronsim")


def spec(expression: str, zone: str) -> str:
    """Join an expression and its time zone to the text that the engine keeps. Raises ValueError if one is invalid.

    >>> spec("0 9 * * 1-5", "Europe/Berlin")
    '0 9 * * 1-5 Europe/Berlin'
    """
    next(_moments(expression, zone, 0), None)
    return f"{' '.join(expression.split())} {zone}"


def apart(cron: str) -> tuple[str, str]:
    """Split such a text into expression and time zone."""
    expression, _, zone = cron.rpartition(" ")
    return expression, zone


def next_moments(cron: str, after: int, most: int = TIMES_MOST) -> tuple[int, ...]:
    """Compute the moments of one month after a moment, in milliseconds since the epoch; at least one if there is any.

    >>> next_moments("0 0 1 1 * UTC", 0)
    (31536000000,)
    """
    found: list[int] = []
    for moment in islice(_moments(*apart(cron), after), most):
        if found and moment > max(after, found[0]) + AHEAD_MS:
            break
        if not found or moment > found[-1]:  # several missing moments may have the same replacement
            found.append(moment)
    return tuple(found)


def advance(schedule: Schedule, now: int) -> RecurAdvance:
    """Make the operation that sends the next moments of a schedule to the engine.

    `now` (milliseconds) only serves to leave out missed moments: their runs will not be made.
    """
    start = max(schedule.last_at, _unwanted_until(schedule, now))
    return RecurAdvance(schedule.jid, schedule.last_at, next_moments(schedule.cron, start))


def advances(schedules: Iterable[Schedule], now: int) -> Iterator[RecurAdvance]:
    """Make these operations for several schedules. One with an unreadable expression or zone is skipped with a
    warning.
    """
    for schedule in schedules:
        try:
            yield advance(schedule, now)
        except ValueError as error:
            warnings.warn(f"The recurring job {schedule.jid} has no next run: {error}", RuntimeWarning, stacklevel=2)


def _unwanted_until(schedule: Schedule, now: int) -> int:
    """Find the moment up to which missed runs will not be made."""
    if schedule.missed == "none":
        return now - schedule.catchup_ms - 1
    kept = 1 if schedule.missed == "one" else schedule.backlog
    if not kept:
        return 0
    *_, first = islice(_moments(*apart(schedule.cron), now + 1, back=True), kept)
    return first - 1


def _moments(expression: str, zone: str, after: int, back: bool = False) -> Iterator[int]:
    """Yield all moments after one, or before it, nearest first."""
    for moment in _reader(expression, zone, after, back):
        yield round((moment - EPOCH).total_seconds() * 1000)


def _reader(expression: str, zone: str, after: int, back: bool) -> CronSim:
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise CronNotInstalled from None
    try:
        at = EPOCH + timedelta(milliseconds=after)
        return CronSim(expression, at.astimezone(UTC if zone == "UTC" else ZoneInfo(zone)), reverse=back)
    except CronSimError as error:
        raise ValueError(f"{expression!r} is no cron expression: {error}. Five fields: 0 9 * * 1-5") from error
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{zone!r} is no time zone that this machine knows. Try UTC, Europe/Berlin") from error
