"""The moments of cron expressions, in time zones, for those who tell them to the engine.

The engine keeps a list of moments and knows no calendar (`qmodel/model/state/schedules.py`). Here a client works out
which moments come after the last one that the engine knows. What it tells is accepted from that moment only; so it
matters neither how many clients do so, nor what their clocks say.

An expression has five fields, or six with the seconds first, as Debian's cron reads them (`cronsim`): names of days
and months, `*/5`, `L`, `#`. The day of the month *and* that of the week must fit where one of them begins with a star,
else one *or* the other. Where clocks are put forward, a moment that does not exist is made up for at the first one that
does; where they are put back, one that comes twice is taken once. Both hold for expressions that name minutes and
hours; one that has a star there, or names seconds, simply goes on.

Moments are told a month ahead, a hundred at most: what a parliament changes about a time zone is known by then. So a
schedule goes on for a month, or for a hundred runs, while no client is alive to tell more.
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
"""How far ahead moments are told; the next one is told however far it is."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CronNotInstalled(QmodelError):
    """The package that reads cron expressions is not installed."""

    def __init__(self) -> None:
        super().__init__("Cron expressions need the package cronsim. Run: pip install cronsim")


def spec(expression: str, zone: str) -> str:
    """An expression and its time zone as one text, which the engine keeps. Raises ValueError where one of them is none.

    >>> spec("0 9 * * 1-5", "Europe/Berlin")
    '0 9 * * 1-5 Europe/Berlin'
    """
    next(_moments(expression, zone, 0), None)
    return f"{' '.join(expression.split())} {zone}"


def apart(cron: str) -> tuple[str, str]:
    """The expression and the time zone of such a text."""
    expression, _, zone = cron.rpartition(" ")
    return expression, zone


def next_moments(cron: str, after: int, most: int = TIMES_MOST) -> tuple[int, ...]:
    """The moments (milliseconds since the epoch) after one, a month of them; at least one, if there are any.

    >>> next_moments("0 0 1 1 * UTC", 0)
    (31536000000,)
    """
    found: list[int] = []
    for moment in islice(_moments(*apart(cron), after), most):
        if found and moment > max(after, found[0]) + AHEAD_MS:
            break
        if not found or moment > found[-1]:  # several that do not exist may be made up for at once
            found.append(moment)
    return tuple(found)


def advance(schedule: Schedule, now: int) -> RecurAdvance:
    """What tells the engine the next moments of a schedule. `now` (milliseconds) is of use only where some were missed
    that are not to be made: there is no need to tell those.
    """
    start = max(schedule.last_at, _unwanted_until(schedule, now))
    return RecurAdvance(schedule.jid, schedule.last_at, next_moments(schedule.cron, start))


def advances(schedules: Iterable[Schedule], now: int) -> Iterator[RecurAdvance]:
    """The same of several; one whose expression or zone cannot be read is passed over, with a warning."""
    for schedule in schedules:
        try:
            yield advance(schedule, now)
        except ValueError as error:
            warnings.warn(f"The recurring job {schedule.jid} has no next run: {error}", RuntimeWarning, stacklevel=2)


def _unwanted_until(schedule: Schedule, now: int) -> int:
    """The moment up to which missed runs are not to be made."""
    if schedule.missed == "none":
        return now - schedule.catchup_ms - 1
    kept = 1 if schedule.missed == "one" else schedule.backlog
    if not kept:
        return 0
    *_, first = islice(_moments(*apart(schedule.cron), now + 1, back=True), kept)
    return first - 1


def _moments(expression: str, zone: str, after: int, back: bool = False) -> Iterator[int]:
    """All moments after one, or before it, nearest first."""
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
