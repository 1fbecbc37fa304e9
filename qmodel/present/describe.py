"""Limits, schedules and workers, described in words."""

from __future__ import annotations

from qmodel.client.profiles import Profile
from qmodel.contract import replies
from qmodel.present.durations import EPOCH, format_duration
from qmodel.present.numbers import counted, format_size, number


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


PROFILE_COLUMNS = ("host", ">pid", ">slots", ">memory", "version", "queues")


def profile_row(profile: Profile | None) -> tuple[str, ...]:
    """The cells of a worker's profile, a dash for each of an unknown one."""
    if profile is None:
        return ("-",) * len(PROFILE_COLUMNS)
    memory = format_size(profile.memory) if profile.memory else "-"
    slots = number(profile.concurrency)
    return profile.host, str(profile.pid), slots, memory, profile.version, served(profile)


def served(profile: Profile) -> str:
    """The first queues that a worker serves, and how many others."""
    first = profile.queues[:3]
    more = profile.queue_count - len(first)
    return ", ".join(first) + (f" and {number(more)} more" if more > 0 else "")


def worker(profile: Profile) -> str:
    """Describe a worker in a sentence."""
    memory = f", {format_size(profile.memory)} of memory" if profile.memory else ""
    slots = counted(profile.concurrency, "slot")
    return (
        f"Process {profile.pid} on {profile.host}: {profile.runner} runner, {slots}{memory}, "
        f"qmodel {profile.version}, Python {profile.python}; serves {served(profile)}."
    )
