"""Limits and schedules, described in words."""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.present.durations import EPOCH, format_duration
from qmodel.present.numbers import number


def limits(throttle: replies.Throttle) -> str:
    """Describe the limits of a throttle."""
    found = []
    if throttle.concurrency:
        found.append(f"{number(throttle.concurrency)} at once")
    if throttle.rate:
        found.append(f"{number(throttle.rate)} per {format_duration(throttle.rate_ms)}")
    if throttle.capacity:
        refill = f"{number(throttle.refill)} every {format_duration(throttle.refill_ms)}"
        found.append(f"bucket of {number(throttle.capacity)}, {refill}")
    return "; ".join(found) or "none"


def recurrence(schedule: replies.Schedule) -> str:
    """Describe when a job recurs."""
    if schedule.kind == "cron":
        expression, _, zone = schedule.cron.rpartition(" ")
        return f"{expression} ({zone})"
    every = format_duration(schedule.interval_ms)
    return f"{every} after each run" if schedule.kind == "after" else f"every {every}"


def cron_in_english(schedule: replies.Schedule) -> str:
    """Explain a cron expression; nothing without the package cronsim, or for another kind of schedule."""
    if schedule.kind != "cron":
        return ""
    try:
        from cronsim import CronSim

        expression = schedule.cron.rpartition(" ")[0]
        return str(CronSim(expression, EPOCH).explain())
    except Exception:  # cronsim is missing or cannot read the expression: the page shows the expression alone
        return ""
