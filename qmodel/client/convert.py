"""Conversions between Python's values and the catalogue's: seconds and milliseconds, objects and JSON, jobs and ids."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Protocol, cast

from qmodel.client.defaults import KEEP
from qmodel.contract.arguments import Edge
from qmodel.errors import DataError

Duration = float | timedelta
"""A length of time: a number of seconds, or a timedelta."""

Day = datetime | date | int
"""A day or a moment: a date, a datetime, or milliseconds since the epoch."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class HasJid(Protocol):
    """Anything with a job id: a job of either client, or a Put."""

    @property
    def jid(self) -> str: ...


class HasDependency(Protocol):
    """Anything that jobs may wait for and that is no job: a request of either client."""

    @property
    def dependency(self) -> str: ...


Awaited = HasJid | HasDependency | str
"""What a job may wait for: a job or its id, a request, or an Edge."""

Dependencies = Iterable[Awaited] | Awaited
"""One thing that a job waits for, or several."""


# ---- durations and moments


def milliseconds(duration: Duration) -> int:
    """Convert a duration to whole milliseconds. Raises TypeError, or ValueError for infinity and not-a-number.

    >>> milliseconds(1.5), milliseconds(timedelta(minutes=2))
    (1500, 120000)
    """
    try:
        return round(seconds_of(duration) * 1000)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{duration!r} is no duration: give seconds, or a timedelta") from error


def seconds_of(duration: Duration) -> float:
    """Convert a duration to seconds.

    >>> seconds_of(timedelta(minutes=2))
    120.0
    """
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def duration_of(ms: int | None) -> timedelta | None:
    """Convert milliseconds to a timedelta; None stays None."""
    return None if ms is None else timedelta(milliseconds=ms)


def instant(day: Day | None) -> int | None:
    """Convert a day or moment to milliseconds since the epoch. A datetime without a zone is taken as UTC.

    >>> instant(date(1970, 1, 2))
    86400000
    """
    if day is None or isinstance(day, int):
        return day
    at = day if isinstance(day, datetime) else datetime.combine(day, time())
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def exact_instant(at: datetime) -> int:
    """Convert a datetime with a time zone to milliseconds since the epoch, rounded up: nothing happens before it.

    Raises ValueError for a datetime without a zone, and TypeError for anything else.

    >>> exact_instant(datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC))
    1001
    """
    if not isinstance(at, datetime):
        raise TypeError(
            f"at={at!r} is not a datetime. Give one with a time zone, such as datetime(2026, 1, 31, 12, tzinfo=UTC), "
            "or a duration as delay."
        )
    if at.utcoffset() is None:
        raise ValueError(
            f"at={at!r} has no time zone. Add one: at.replace(tzinfo=ZoneInfo('Europe/Berlin')), or at.astimezone() "
            "for the zone of this machine."
        )
    return -((EPOCH - at) // timedelta(milliseconds=1))


def parse_exact_instant(text: str) -> int:
    """Read a moment as milliseconds since the epoch: that number, or an ISO 8601 time with a time zone.

    Raises ValueError for anything else.

    >>> parse_exact_instant("1970-01-01T01:00:01+01:00"), parse_exact_instant("250")
    (1000, 250)
    """
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a moment: write an ISO 8601 time such as 2026-01-31T12:00:00Z") from None
    if at.utcoffset() is None:
        raise ValueError(f"{text!r} has no time zone: add Z for UTC, or an offset such as +01:00")
    return exact_instant(at)


def moment(at: int) -> datetime | None:
    """Convert milliseconds since the epoch to an aware datetime in UTC. 0 means never and gives None.

    >>> moment(1500)
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    return utc(at) if at else None


def utc(at: int) -> datetime:
    """Convert milliseconds since the epoch to an aware datetime in UTC."""
    return EPOCH + timedelta(milliseconds=at)


# ---- JSON

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: object) -> str:
    """Encode a Python value as JSON. Raises DataError."""
    try:
        text = _JSON.encode(value)
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:  # a lone surrogate, as in the name of a file that is not UTF-8
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise DataError("This cannot be stored as JSON: it is nested too deeply.") from None
    except (TypeError, ValueError) as error:
        raise DataError(f"This cannot be stored as JSON: {error}. Convert it first.") from error
    return text


def decode(text: str | bytes) -> Any:
    """Decode JSON. Raises ValueError, also for a value that is nested more deeply than Python can read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def encode_unless_kept(value: object) -> str | None:
    """Encode new data as JSON; KEEP gives None, which leaves the stored data as they are."""
    return None if value is KEEP else encode(value)


def encode_result(value: object) -> str:
    """Encode a result as JSON; None gives the empty text, which means no result."""
    return "" if value is None else encode(value)


def encode_data(data: object, text: str | None) -> str:
    """Encode the data of a job: `data` as JSON, or `text` as it is. Raises TypeError if both are given."""
    if text is not None and data is not None:
        raise TypeError("give either data, which is stored as JSON, or text, which is stored as it is")
    return encode(data) if text is None else text


# ---- ids and names


def jid_of(job: HasJid | str) -> str:
    """Take the id of a job that is given as an object or as an id."""
    return job if isinstance(job, str) else job.jid


def jids_of(jobs: Iterable[HasJid | str] | HasJid | str) -> tuple[str, ...]:
    """Take the ids of one job or several, each given as an object or as an id."""
    if isinstance(jobs, str) or hasattr(jobs, "jid"):
        return (jid_of(cast("HasJid | str", jobs)),)
    return tuple(map(jid_of, jobs))


def edges_of(given: Dependencies) -> tuple[str, ...]:
    """Write dependencies as the catalogue does; one or several, each given as a job, an id, a request or an Edge.

    >>> edges_of(["a", Edge("b", "fail", "page"), Edge.to_request("import-7", "ignore")])
    ('a', 'b fail page', 'import-7 request ignore')
    """
    return tuple(one.text if isinstance(one, Edge) else _awaited(one) for one in _several(given))


def awaited_of(given: Dependencies) -> tuple[str, ...]:
    """Name what a job waits for, without policies; one or several, each given as a job, an id, a request or an Edge."""
    return tuple(map(_awaited, _several(given)))


def _several(given: Dependencies) -> Iterable[Awaited]:
    alone = isinstance(given, str) or hasattr(given, "jid") or hasattr(given, "dependency")
    return (cast("Awaited", given),) if alone else cast("Iterable[Awaited]", given)


def _awaited(one: Awaited) -> str:
    return one if isinstance(one, str) else one.jid if hasattr(one, "jid") else one.dependency


def names_of(names: Iterable[str] | str) -> tuple[str, ...]:
    """Take one name or several as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)
