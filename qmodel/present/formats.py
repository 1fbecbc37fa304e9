"""How numbers, moments and durations are written on a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from qmodel.contract import replies

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number(value: float) -> str:
    """A number with its thousands apart.

    >>> number(1234567), number(0.25)
    ('1,234,567', '0.25')
    """
    return f"{value:,}"


def duration(ms: float) -> str:
    """A duration, to about three figures.

    >>> [duration(ms) for ms in (0, 12, 1500, 61_000, 5_400_000, 90_000_000)]
    ['0 s', '12 ms', '1.5 s', '1 min 1 s', '1 h 30 min', '1 d 1 h']
    """
    if ms < 1000:
        return f"{ms:.0f} ms" if ms >= 1 else "0 s" if not ms else f"{ms:.2g} ms"
    if ms < 60_000:
        return f"{ms / 1000:.3g} s"
    seconds = round(ms / 1000)
    parts = ((seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


def moment(at: int) -> str:
    """A moment in UTC, to the millisecond; a dash for never.

    >>> moment(1500)
    '1970-01-01 00:00:01.500'
    """
    return (EPOCH + timedelta(milliseconds=at)).strftime("%Y-%m-%d %H:%M:%S.") + f"{at % 1000:03d}" if at else "-"


def iso(at: int) -> str:
    """A moment as machines read it."""
    return (EPOCH + timedelta(milliseconds=at)).isoformat().replace("+00:00", "Z")


def day(at: int) -> str:
    """The UTC day of a moment.

    >>> day(86_400_000)
    '1970-01-02'
    """
    return (EPOCH + timedelta(milliseconds=at)).strftime("%Y-%m-%d")


def relative(at: int, now: int) -> str:
    """How long ago a moment is, or how far ahead.

    >>> relative(1000, 6000), relative(5_400_000, 0), relative(5, 5)
    ('5 s ago', 'in 1 h 30 min', 'now')
    """
    apart = abs(now - at)
    if apart < 1000:
        return "now"
    rough = duration(apart - apart % 1000).split(" ")
    told = " ".join(rough if rough[1] in ("h", "d") else rough[:2])
    return f"{told} ago" if at < now else f"in {told}"


def pretty(text: str) -> str:
    """JSON, indented; any other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, dict | list) else text


def short(text: str, most: int = 12) -> str:
    """The beginning of a long id or text.

    >>> short("0123456789abcdef"), short("abc")
    ('01234567…', 'abc')
    """
    return text if len(text) <= most else text[: most - 4] + "…"


def gist(text: str, most: int = 160) -> str:
    """What a message says, on one line: of a traceback its last line.

    >>> gist("Traceback (most recent call last):\\n  File 1\\nKeyError: 'x'")
    "KeyError: 'x'"
    """
    lines = text.strip().splitlines()
    return preview(lines[-1] if lines and lines[0].startswith("Traceback") else text, most)


def preview(text: str, most: int = 160) -> str:
    """The beginning of what a job carries, on one line."""
    return " ".join(text[: most * 2].split())[:most] + ("…" if len(text) > most else "")


def limits(throttle: replies.Throttle) -> str:
    """The limits of a throttle in words."""
    found = []
    if throttle.concurrency:
        found.append(f"{number(throttle.concurrency)} at once")
    if throttle.rate:
        found.append(f"{number(throttle.rate)} per {duration(throttle.rate_ms)}")
    if throttle.capacity:
        refill = f"{number(throttle.refill)} every {duration(throttle.refill_ms)}"
        found.append(f"bucket of {number(throttle.capacity)}, {refill}")
    return "; ".join(found) or "none"


def recurs(schedule: replies.Schedule) -> str:
    """When a job recurs, in words."""
    if schedule.kind == "cron":
        expression, _, zone = schedule.cron.rpartition(" ")
        return f"{expression} ({zone})"
    every = duration(schedule.interval_ms)
    return f"{every} after each run" if schedule.kind == "after" else f"every {every}"


def in_english(schedule: replies.Schedule) -> str:
    """What a cron expression says, if the package that reads it is there."""
    if schedule.kind != "cron":
        return ""
    try:
        from cronsim import CronSim

        expression = schedule.cron.rpartition(" ")[0]
        return str(CronSim(expression, EPOCH).explain())
    except Exception:  # not installed, or nothing that it can read: then the expression has to do
        return ""
