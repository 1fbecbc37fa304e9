"""Recurring jobs that resume, or that end."""

from __future__ import annotations

from qmodel.model.state import options, schedules
from qmodel.model.state.queues import NO_TIME
from qmodel.model.state.records import Job, Schedule
from qmodel.model.state.store import Store, emit


def stop(store: Store, now: int, schedule: Schedule, cause: str) -> None:
    """Delete a recurring job that is in no list, and tell the cause."""
    emit(store, now, "unrecurred", schedule.jid, schedule.queue, cause)
    schedules.delete(store, schedule)


def keep(store: Store, now: int, schedule: Schedule) -> None:
    """List a recurring job again, unless it has no more runs."""
    cause = schedules.over(schedule)
    if cause:
        stop(store, now, schedule, cause)
    else:
        schedules.enter(store, schedule)


def resume(store: Store, now: int, schedule: Schedule, event: str) -> None:
    """Skip the runs that were due while a recurring job was suspended, and list it again.

    A run due at this very moment is skipped as well: otherwise the end of a run in a pop would let that pop make
    another one, which peek cannot predict.
    """
    if not schedules.is_suspended(schedule):
        passed = schedules.before(schedule, now + 1)
        schedules.skip(schedule, passed)
        if passed:
            emit(store, now, event, schedule.jid, schedule.queue, passed, schedules.next_due(schedule))
        schedule.next_at = max(schedule.next_at, now)  # the kind `after`; all others are past now already
    keep(store, now, schedule)


def run_ended(store: Store, now: int, job: Job) -> None:
    """Tell the recurring job of a run that the run has ended."""
    said = options.get(job, "schedule")
    if said is None:
        return
    options.drop(job, "schedule")
    jid, since = said.split(" ")
    schedule = schedules.get(store, jid)
    if schedule is None or schedule.since != int(since):
        return
    was_suspended = schedules.is_suspended(schedule)  # not if it was changed since to allow overlap
    schedules.leave(store, schedule)
    schedule.open -= 1
    if schedule.kind == "after" and schedule.open == 0 and schedule.next_at == NO_TIME:
        schedule.next_at = now + schedule.interval_ms
    if was_suspended:
        resume(store, now, schedule, "skipped")
    else:
        keep(store, now, schedule)
