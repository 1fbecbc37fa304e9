"""Recurring jobs: their properties, and when their runs are due. Their rules are described in
qmodel/model/state/schedules.py; qmodel/model/rules/runs.py makes the runs.
"""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import (
    Fire,
    Recur,
    RecurAdvance,
    RecurGet,
    RecurNow,
    RecurPause,
    Recurring,
    RecurringUnset,
    RecurTag,
    RecurUnpause,
    RecurUntag,
    RecurUpdate,
    Unrecur,
)
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Page
from qmodel.model.rules.admission import check_names
from qmodel.model.rules.failure import expire_due, retire_due
from qmodel.model.rules.recurrence import keep, resume, stop
from qmodel.model.rules.request_cancellation import end_due
from qmodel.model.rules.runs import fire_due, make, next_run
from qmodel.model.state import queues, schedules, tags
from qmodel.model.state.queues import NO_TIME
from qmodel.model.state.records import Schedule
from qmodel.model.state.store import Store, emit


def recur(store: Store, now: int, op: Recur) -> str:
    """Create a recurring job, or replace its properties."""
    _check_kind(op)
    _check_times("recur", op.due_at)
    check_names(op.throttles, "recur")
    before = schedules.get(store, op.jid)
    schedule = schedules.draft(before, op.jid)
    _assign(schedule, op)
    if before is None or op.restart or not schedules.keeps_time(before, op):
        schedules.begin(now, schedule, op.due_at)
    if schedules.over(schedule):
        raise refuse("SCHEDULE_OVER", op.jid)

    if before is not None:
        schedules.leave(store, before)
    schedule.seq = emit(store, now, "recurred", op.jid, op.queue, op.klass, schedules.next_due(schedule))
    if before is None:
        schedule.since = schedule.seq
        schedule.runs = op.runs
    queues.register(store, now, op.queue)
    schedules.enter(store, schedule)
    return op.jid


def _check_kind(op: Recur) -> None:
    """Refuse arguments that do not belong to the kind."""
    if (op.kind == "cron") != (op.cron != ""):
        raise refuse("BAD_ARGUMENT", "recur", "cron")
    if (op.kind == "cron") != (op.interval_ms == 0):
        raise refuse("BAD_ARGUMENT", "recur", "interval_ms")
    if op.kind == "cron" and op.offset_ms:
        raise refuse("BAD_ARGUMENT", "recur", "offset_ms")
    if op.kind != "cron" and op.due_at:
        raise refuse("BAD_ARGUMENT", "recur", "due_at")
    if op.end_at and op.end_at < op.start_at:
        raise refuse("BAD_ARGUMENT", "recur", "end_at")


def _check_times(operation: str, times: tuple[int, ...]) -> None:
    """Refuse due times that are too many, or not in ascending order."""
    last = -1
    for moment in times:
        if moment <= last or len(times) > schedules.TIMES_MOST:
            raise refuse("BAD_ARGUMENT", operation, "due_at")
        last = moment


def _assign(schedule: Schedule, op: Recur) -> None:
    """Apply the properties that the operation gives."""
    schedule.queue = op.queue
    schedule.klass = op.klass
    schedule.data = op.data
    schedule.priority = op.priority
    schedule.retries = op.retries
    schedules.set_tags(schedule, op.tags)
    schedule.kind = op.kind
    schedule.interval_ms = op.interval_ms
    schedule.offset_ms = op.offset_ms
    schedule.cron = op.cron
    schedule.start_at = op.start_at
    schedule.end_at = op.end_at
    schedule.limit = op.limit
    schedule.backlog = op.backlog
    schedule.missed = op.missed
    schedule.catchup_ms = op.catchup_ms
    schedules.set_throttles(schedule, op.throttles)
    schedule.fair_key = op.fair_key or ""
    schedule.fair_weight = op.fair_weight or 0
    schedule.overlap = "skip" if op.kind == "after" else op.overlap


def unrecur(store: Store, now: int, op: Unrecur) -> int:
    """Delete a recurring job."""
    schedule = schedules.get(store, op.jid)
    if schedule is None:
        return 0
    schedules.leave(store, schedule)
    stop(store, now, schedule, "unrecur")
    return 1


def recur_get(store: Store, now: int, op: RecurGet) -> replies.Schedule | None:
    """Show a recurring job."""
    schedule = schedules.get(store, op.jid)
    return schedules.view(schedule) if schedule is not None else None


def _set_interval(now: int, schedule: Schedule, interval_ms: int) -> None:
    """Change the interval; the next run follows the last one by it."""
    if now < schedule.next_at < NO_TIME:
        schedule.next_at = max(schedule.next_at - schedule.interval_ms + interval_ms, now, schedule.start_at)
    schedule.interval_ms = interval_ms


def recur_update(store: Store, now: int, op: RecurUpdate) -> str:
    """Change some properties of a recurring job."""
    schedule = schedules.find(store, op.jid)
    if op.interval_ms is not None and schedule.kind == "cron":
        raise refuse("BAD_ARGUMENT", "recur_update", "interval_ms")
    check_names(op.throttles or (), "recur_update")

    schedules.leave(store, schedule)
    if op.queue is not None:
        schedule.queue = op.queue
        queues.register(store, now, op.queue)
    if op.klass is not None:
        schedule.klass = op.klass
    if op.data is not None:
        schedule.data = op.data
    if op.interval_ms is not None:
        _set_interval(now, schedule, op.interval_ms)
    if op.priority is not None:
        schedule.priority = op.priority
    if op.retries is not None:
        schedule.retries = op.retries
    if op.backlog is not None:
        schedule.backlog = op.backlog
    if op.throttles is not None:
        schedules.set_throttles(schedule, op.throttles)
    if op.fair_key is not None:
        schedule.fair_key = op.fair_key
    if op.fair_weight is not None:
        schedule.fair_weight = op.fair_weight
    emit(store, now, "recur_updated", op.jid, schedule.queue, schedules.next_due(schedule))
    keep(store, now, schedule)
    return op.jid


def recur_tag(store: Store, now: int, op: RecurTag) -> tuple[str, ...]:
    """Add tags for future runs."""
    schedule = schedules.find(store, op.jid)
    tags.check_room("recurring job " + op.jid, schedule.tags, op.tags)

    return _set_tags(store, now, schedule, (*schedule.tags, *op.tags))


def recur_untag(store: Store, now: int, op: RecurUntag) -> tuple[str, ...]:
    """Remove tags for future runs."""
    schedule = schedules.find(store, op.jid)

    return _set_tags(store, now, schedule, tuple(tag for tag in schedule.tags if tag not in op.tags))


def _set_tags(store: Store, now: int, schedule: Schedule, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Set the tags for future runs; give them."""
    before = len(schedule.tags)
    schedules.set_tags(schedule, wanted)
    if len(schedule.tags) != before:
        emit(store, now, "recur_updated", schedule.jid, schedule.queue, schedules.next_due(schedule))
        schedules.save(store, schedule)
    return schedule.tags


def recurring(store: Store, now: int, op: Recurring) -> Page:
    """List the recurring jobs of a queue."""
    return Page(*schedules.page(store, op.queue, op.offset, op.count))


# ---- pausing


def recur_pause(store: Store, now: int, op: RecurPause) -> int:
    """Pause a recurring job."""
    schedule = schedules.find(store, op.jid)
    if schedule.paused:
        return 0

    schedules.leave(store, schedule)
    schedule.paused = True
    emit(store, now, "recur_paused", op.jid, schedule.queue)
    schedules.enter(store, schedule)
    return 1


def recur_unpause(store: Store, now: int, op: RecurUnpause) -> int:
    """Unpause a recurring job."""
    schedule = schedules.find(store, op.jid)
    if not schedule.paused:
        return 0

    schedules.leave(store, schedule)
    schedule.paused = False
    emit(store, now, "recur_unpaused", op.jid, schedule.queue)
    resume(store, now, schedule, "missed")
    return 1


# ---- lists of moments


def recur_advance(store: Store, now: int, op: RecurAdvance) -> int:
    """Supply more due times of a cron schedule."""
    _check_times("recur_advance", op.due_at)
    schedule = schedules.get(store, op.jid)
    if schedule is None:
        return 0
    if schedule.kind != "cron" or schedule.last_at != op.after:
        return schedule.last_at

    told = schedules.draft(schedule, op.jid)
    learned = schedules.learn(told, op.due_at)
    if not op.due_at:
        told.last_at = told.end_at = max(told.last_at, 1)  # 0 would be no end
    if told.last_at == schedule.last_at and told.end_at == schedule.end_at:
        return schedule.last_at

    schedules.leave(store, schedule)
    emit(store, now, "recur_advanced", op.jid, told.queue, learned, told.last_at)
    keep(store, now, told)
    return 0 if schedules.over(told) else told.last_at


def recurring_unset(store: Store, now: int, op: RecurringUnset) -> tuple[replies.Schedule, ...]:
    """Show the recurring jobs that run out of due times."""
    return tuple(schedules.view(one) for one in schedules.unset(store, now + op.ahead_ms, op.count))


# ---- runs


def fire(store: Store, now: int, op: Fire) -> int:
    """Make the due runs of a queue. First, end due requests, fail jobs past their time to live, and delete ended jobs
    past their own retention.
    """
    end_due(store, now, op.queue)
    retire_due(store, now, MOST)
    expire_due(store, now, op.queue, MOST)
    return fire_due(store, now, op.queue, op.count, op.qless)


def recur_now(store: Store, now: int, op: RecurNow) -> str:
    """Make one extra run, at once."""
    schedule = schedules.find(store, op.jid)

    schedules.leave(store, schedule)
    tries = 1
    run = next_run(store, schedule, now)
    while not run.free and tries < MOST:
        emit(store, now, "renumbered", op.jid, schedule.queue, run.jid)
        run = next_run(store, schedule, now)
        tries += 1
    if run.free:
        schedules.count_run(schedule)
        make(store, now, run)
    keep(store, now, schedule)
    return run.jid if run.free else ""
