"""Durations and moments: read what people write, and write what people read."""

from __future__ import annotations

import math
import re
import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h|d|w)?")


def parse_duration(text: str) -> int:
    """Read a duration as milliseconds; a bare number is seconds.

    >>> [parse_duration(text) for text in ("90", "1.5s", "10m", "1h30m", "250ms")]
    [90000, 1500, 600000, 5400000, 250]
    """
    text = text.strip().lower()
    parts = _PART.findall(text)
    if not parts or "".join(a + b for a, b in parts) != text or (len(parts) > 1 and "" in dict(parts).values()):
        raise ValueError(f"'{text}' is not a duration: write 90 (seconds), 1.5s, 10m, 2h, 1d or 1h30m")
    found = sum(float(number) * UNITS[unit or "s"] for number, unit in parts)
    if found == math.inf:
        raise ValueError(f"'{text[:40]}...' is longer than any duration")
    return round(found)


def write_duration(ms: int) -> str:
    """Write a duration as `parse_duration` reads it, to the millisecond.

    >>> [write_duration(ms) for ms in (0, 61_500, 86_400_000, 90_061_001)]
    ['0s', '1m1s500ms', '1d', '1d1h1m1s1ms']
    """
    found = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, UNITS[unit])
        found += f"{count}{unit}" if count else ""
    return found or "0s"


def format_duration(ms: float) -> str:
    """Format a duration: three figures and a unit below a minute, else its two largest units.

    >>> [format_duration(ms) for ms in (0, 0.25, 12, 1500, 60_000, 61_000, 5_400_000, 90_000_000, 604_800_000)]
    ['0 s', '0.25 ms', '12 ms', '1.5 s', '1 min', '1 min 1 s', '1 h 30 min', '1 d 1 h', '7 d']
    """
    if ms < 1000:
        return f"{ms:.2g} ms" if 0 < ms < 10 else f"{ms:.0f} ms" if ms else "0 s"
    if ms < 60_000:
        return f"{ms / 1000:.3g} s"
    seconds = round(ms / 1000)
    parts = ((seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


def short_duration(ms: float) -> str:
    """Format a duration for a narrow column: whole units of the largest one; 0 for a negative duration.

    >>> [short_duration(ms) for ms in (-5, 900, 59_000, 61_000, 7_200_000, 200_000_000)]
    ['0s', '0s', '59s', '1m', '2h', '2d']
    """
    seconds = max(int(ms), 0) // 1000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def relative(at: int, now: int) -> str:
    """Format a moment as its distance from `now`.

    >>> relative(1000, 6000), relative(5_400_000, 0), relative(5, 5)
    ('5 s ago', 'in 1 h 30 min', 'now')
    """
    distance = abs(now - at)
    if distance < 1000:
        return "now"
    parts = format_duration(distance - distance % 1000).split(" ")
    shown = " ".join(parts if parts[1] in ("h", "d") else parts[:2])
    return f"{shown} ago" if at < now else f"in {shown}"


def parse_moment(text: str) -> int:
    """Read a moment as milliseconds since the epoch: that number, an ISO date or time, today, yesterday or now.

    >>> parse_moment("1970-01-02"), parse_moment("1970-01-01T00:00:01Z"), parse_moment("250")
    (86400000, 1000, 250)
    """
    text = text.strip()
    if re.fullmatch(r"\d+", text):
        return int(text)
    words = {"now": 0, "today": 0, "yesterday": 1}
    if text.lower() in words:
        return time.time_ns() // 1_000_000 - words[text.lower()] * 86_400_000
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"'{text}' is not a moment: write milliseconds since the epoch, 2026-01-31, "
            "2026-01-31T12:00:00Z, today or yesterday"
        ) from None
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def format_moment(at: int) -> str:
    """Format a moment in UTC, to the millisecond; a dash for 0, which is never.

    >>> format_moment(1500), format_moment(0)
    ('1970-01-01 00:00:01.500', '-')
    """
    return _datetime(at).strftime("%Y-%m-%d %H:%M:%S.") + f"{at % 1000:03d}" if at else "-"


def format_iso(at: int) -> str:
    """Format a moment for machines.

    >>> format_iso(1500)
    '1970-01-01T00:00:01.500000Z'
    """
    return _datetime(at).isoformat().replace("+00:00", "Z")


def format_day(at: int) -> str:
    """Format the UTC day of a moment.

    >>> format_day(86_400_000)
    '1970-01-02'
    """
    return _datetime(at).strftime("%Y-%m-%d")


def _datetime(at: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at)
