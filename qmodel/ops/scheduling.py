"""Recurring jobs, and making their runs. What holds of runs is told in qmodel/state/schedules.py."""

from __future__ import annotations

from typing import NamedTuple

from qmodel import replies
from qmodel.arguments import MOST
from qmodel.operations import Fire, Recur, RecurGet, Recurring, RecurTag, RecurUntag, RecurUpdate, Unrecur
from qmodel.ops.burying import expire_due
from qmodel.ops.putting import enter
from qmodel.replies import Page
from qmodel.state import history, jobs, queues, schedules, tags
from qmodel.state.jobs import Job
from qmodel.state.schedules import Schedule
from qmodel.state.store import Store, emit


def recur(store: Store, now: int, op: Recur) -> str:
    """Let a job recur, or replace all but the number of its last run."""
    schedule = schedules.get(store, op.jid)
    if schedule is not None:
        schedules.leave(store, schedule)
    else:
        schedule = schedules.create(op.jid)
    schedule.queue = op.queue
    schedule.klass = op.klass
    schedule.data = op.data
    schedule.priority = op.priority
    schedule.retries = op.retries
    schedules.set_tags(schedule, op.tags)
    schedule.interval_ms = op.interval_ms
    schedule.backlog = op.backlog
    schedule.next_at = now + op.offset_ms
    schedule.seq = emit(store, now, "recurred", op.jid, op.queue, op.klass, schedule.next_at)
    queues.register(store, now, op.queue)
    schedules.enter(store, schedule)
    return op.jid


def unrecur(store: Store, now: int, op: Unrecur) -> int:
    """Let a job recur no more."""
    schedule = schedules.get(store, op.jid)
    if schedule is None:
        return 0
    emit(store, now, "unrecurred", op.jid, schedule.queue)
    schedules.remove(store, schedule)
    return 1


def recur_get(store: Store, now: int, op: RecurGet) -> replies.Schedule | None:
    """Show a recurring job."""
    schedule = schedules.get(store, op.jid)
    return schedules.view(schedule) if schedule is not None else None


def recur_update(store: Store, now: int, op: RecurUpdate) -> str:
    """Change what is given of a recurring job."""
    schedule = schedules.find(store, op.jid)

    schedules.leave(store, schedule)
    if op.queue is not None:
        schedule.queue = op.queue
        queues.register(store, now, op.queue)
    if op.klass is not None:
        schedule.klass = op.klass
    if op.data is not None:
        schedule.data = op.data
    if op.interval_ms is not None:
        if schedule.next_at > now:
            schedule.next_at = max(schedule.next_at - schedule.interval_ms + op.interval_ms, now)
        schedule.interval_ms = op.interval_ms
    if op.priority is not None:
        schedule.priority = op.priority
    if op.retries is not None:
        schedule.retries = op.retries
    if op.backlog is not None:
        schedule.backlog = op.backlog
    emit(store, now, "recur_updated", op.jid, schedule.queue, schedule.next_at)
    schedules.enter(store, schedule)
    return op.jid


def recur_tag(store: Store, now: int, op: RecurTag) -> tuple[str, ...]:
    """Give the runs to come more tags."""
    schedule = schedules.find(store, op.jid)

    return _set_tags(store, now, schedule, (*schedule.tags, *op.tags))


def recur_untag(store: Store, now: int, op: RecurUntag) -> tuple[str, ...]:
    """Give the runs to come fewer tags."""
    schedule = schedules.find(store, op.jid)

    return _set_tags(store, now, schedule, tuple(tag for tag in schedule.tags if tag not in op.tags))


def _set_tags(store: Store, now: int, schedule: Schedule, wanted: tuple[str, ...]) -> tuple[str, ...]:
    before = len(schedule.tags)
    schedules.set_tags(schedule, wanted)
    if len(schedule.tags) != before:
        emit(store, now, "recur_updated", schedule.jid, schedule.queue, schedule.next_at)
        schedules.save(store, schedule)
    return schedule.tags


def recurring(store: Store, now: int, op: Recurring) -> Page:
    """List the recurring jobs of a queue."""
    return Page(*schedules.page(store, op.queue, op.offset, op.count))


# ---- runs


class Run(NamedTuple):
    """A run that is due, and whether its id is free."""

    schedule: Schedule
    jid: str
    due_at: int
    free: bool


def fire(store: Store, now: int, op: Fire) -> int:
    """Make the runs of a queue that are due, once the jobs have failed that may no longer begin."""
    expire_due(store, now, op.queue, MOST)
    return fire_due(store, now, op.queue, op.count)


def fire_due(store: Store, now: int, queue: str, most: int) -> int:
    """Make runs that are due, of each schedule in turn, until none is due or so many were tried; give how many."""
    found = schedules.due(store, queue, now, most)
    for schedule in found:
        missed = schedules.pass_over(now, schedule)
        if missed:
            emit(store, now, "missed", schedule.jid, queue, missed, schedule.next_at)
    made = 0
    for run in _in_turn(store, now, found, most):
        if run.free:
            _make(store, now, run)
            made += 1
        else:
            emit(store, now, "renumbered", run.schedule.jid, queue, run.jid)
    schedules.advance(store, found)
    return made


def drafts(store: Store, now: int, queue: str, most: int) -> list[Job]:
    """The jobs that the runs would be that a pop would make now; for a read."""
    found = schedules.due(store, queue, now, most)
    for schedule in found:
        schedules.pass_over(now, schedule)
    shown: list[Job] = []
    for run in _in_turn(store, now, found, most):
        if run.free:
            job = jobs.draft(store, run.jid, "waiting", len(shown) + 1)
            _begin(store, job, run)
            tags.pretend(job, run.schedule.tags)
            shown.append(job)
    return shown


def _in_turn(store: Store, now: int, found: list[Schedule], most: int) -> list[Run]:
    """The next runs of drafts of schedules that are due, moving these on: one of each in turn."""
    runs: list[Run] = []
    turn = found
    while turn:
        again = []
        for schedule in turn[: most - len(runs)]:
            schedule.runs += 1
            jid = f"{schedule.jid}-{schedule.runs}"
            run = Run(schedule, jid, schedule.next_at, jobs.get(store, jid) is None)
            runs.append(run)
            if run.free:
                schedule.next_at += schedule.interval_ms
            if schedule.next_at <= now:
                again.append(schedule)
        turn = again
    return runs


def _make(store: Store, now: int, run: Run) -> None:
    """Put a run, as of the moment at which it was due."""
    schedule = run.schedule
    emit(store, now, "fired", schedule.jid, schedule.queue, run.jid, run.due_at)
    job = jobs.create(store, run.jid)
    state = _begin(store, job, run)
    emit(store, now, "put", run.jid, schedule.queue, schedule.klass, state)
    tags.assign(store, job, schedule.tags)
    jobs.place(store, job, state)


def _begin(store: Store, job: Job, run: Run) -> str:
    """Let a job be a run; give the state in which it begins."""
    schedule = run.schedule
    job.klass = schedule.klass
    job.data = schedule.data
    job.priority = schedule.priority
    job.retries = schedule.retries
    history.add(store, run.due_at, job, "spawned", schedule.jid)
    return enter(store, run.due_at, job, schedule.queue, 0)
