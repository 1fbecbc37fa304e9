"""Durations and moments as people write and read them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}

_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h|d|w)?")


def parse_duration(text: str) -> int:
    """A duration in milliseconds; a bare number is seconds.

    >>> [parse_duration(text) for text in ("90", "1.5s", "10m", "1h30m", "250ms")]
    [90000, 1500, 600000, 5400000, 250]
    """
    text = text.strip().lower()
    parts = _PART.findall(text)
    if not parts or "".join(a + b for a, b in parts) != text or (len(parts) > 1 and "" in dict(parts).values()):
        raise ValueError(f"'{text}' is not a duration: write 90 (seconds), 1.5s, 10m, 2h, 1d or 1h30m")
    return round(sum(float(number) * UNITS[unit or "s"] for number, unit in parts))


def format_duration(ms: float) -> str:
    """A duration for reading.

    >>> [format_duration(ms) for ms in (0, 0.25, 12, 1500, 60_000, 5_400_000, 604_800_000)]
    ['0', '0.25 ms', '12 ms', '1.5 s', '1 min', '1 h 30 min', '7 d']
    """
    if ms < 1000:
        return f"{ms:.2g} ms" if 0 < ms < 10 else "0" if not ms else f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.3g} s"
    minutes = round(ms / 60_000)
    days, minutes = divmod(minutes, 1440)
    hours, minutes = divmod(minutes, 60)
    named = ((days, "d"), (hours, "h"), (minutes, "min"))
    return " ".join(f"{number} {unit}" for number, unit in named if number)


def parse_moment(text: str) -> int:
    """A moment in milliseconds since the epoch: that number, an ISO date or time, today, yesterday or now.

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
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"'{text}' is not a moment: write milliseconds since the epoch, 2026-01-31, "
            "2026-01-31T12:00:00Z, today or yesterday"
        ) from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def format_moment(at: int) -> str:
    """A moment for reading, in UTC; a dash for never.

    >>> format_moment(1500)
    '1970-01-01 00:00:01.500'
    """
    if not at:
        return "-"
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{at % 1000:03d}"
