"""Making the runs of recurring jobs. The rules are described in qmodel/model/state/schedules.py."""

from __future__ import annotations

from typing import NamedTuple

from qmodel.model.rules.recurrence import stop
from qmodel.model.rules.stages import enter
from qmodel.model.state import budget, history, jobs, options, schedules, tags
from qmodel.model.state.records import Job, Schedule
from qmodel.model.state.store import Store, emit


class Run(NamedTuple):
    """A due run, and whether its id is free."""

    schedule: Schedule
    jid: str
    due_at: int
    free: bool


def next_run(store: Store, schedule: Schedule, due_at: int) -> Run:
    """The next run of a schedule, with the next number."""
    schedule.runs += 1
    jid = f"{schedule.jid}-{schedule.runs}"
    return Run(schedule, jid, due_at, jobs.get(store, jid) is None)


def make(store: Store, now: int, run: Run) -> None:
    """Put a run, with its due time as its ready time."""
    schedule = run.schedule
    emit(store, now, "fired", schedule.jid, schedule.queue, run.jid, run.due_at)
    job = jobs.create(store, run.jid)
    state = _begin(store, job, run)
    emit(store, now, "put", run.jid, schedule.queue, schedule.klass, state, *tags.fact(job, schedule.tags))
    tags.assign(store, job, schedule.tags)
    jobs.place(store, job, state)


def _begin(store: Store, job: Job, run: Run) -> str:
    """Set up a job as a run; give the state in which it begins."""
    schedule = run.schedule
    job.klass = schedule.klass
    job.data = schedule.data
    job.priority = schedule.priority
    job.retries = schedule.retries
    if schedule.overlap == "skip":
        options.set(job, "schedule", f"{schedule.jid} {schedule.since}")
    if schedule.throttles:
        options.set(job, "throttles", " ".join(schedule.throttles))
    if schedule.fair_key:
        options.set(job, "fair_key", schedule.fair_key)
    if schedule.fair_weight:
        options.set(job, "fair_weight", schedule.fair_weight)
    history.add(store, run.due_at, job, "spawned", schedule.jid)
    return enter(store, run.due_at, job, schedule.queue, run.due_at)


def fire_due(store: Store, now: int, queue: str, most: int, drain: bool = False) -> int:
    """Make due runs, one of each schedule in turn, until none is due, `most` were tried or half of the budget is spent;
    give how many. With `drain`, all runs of a schedule come before those of the next, and schedules of one due time
    come by id.
    """
    kept = budget.room(store) // 2
    found = schedules.due(store, queue, now, most, kept, drain)
    made = tried = 0
    for some in [[schedule] for schedule in found] if drain else [found]:
        if tried < most:
            runs = _fire(store, now, queue, some, most - tried, kept)
            tried += len(runs)
            made += sum(run.free for run in runs)
    _keep_all(store, now, found)
    return made


def _fire(store: Store, now: int, queue: str, found: list[Schedule], most: int, kept: int) -> list[Run]:
    """Make due runs of some schedules; give those that were tried."""
    for schedule in found:
        missed = schedules.pass_over(now, schedule)
        if missed:
            emit(store, now, "missed", schedule.jid, queue, missed, schedules.next_due(schedule))
    runs = _in_turn(store, now, found, most, kept)
    for run in runs:
        if run.free:
            make(store, now, run)
        else:
            emit(store, now, "renumbered", run.schedule.jid, queue, run.jid)
    return runs


def _keep_all(store: Store, now: int, found: list[Schedule]) -> None:
    """Store the progress of schedules of one queue; delete those that have no more runs."""
    schedules.advance(store, [schedule for schedule in found if not schedules.over(schedule)])
    for schedule in found:
        cause = schedules.over(schedule)
        if cause:
            schedules.leave(store, schedule)
            stop(store, now, schedule, cause)


def drafts(store: Store, now: int, queue: str, most: int) -> list[Job]:
    """The jobs that a pop would make as runs now; for a read."""
    kept = budget.room(store) // 2
    found = schedules.due(store, queue, now, most, kept)
    for schedule in found:
        schedules.pass_over(now, schedule)
    shown: list[Job] = []
    for run in _in_turn(store, now, found, most, kept):
        if run.free:
            job = jobs.draft(store, run.jid, "waiting", len(shown) + 1)
            _begin(store, job, run)
            tags.pretend(job, run.schedule.tags)
            shown.append(job)
    return shown


def _in_turn(store: Store, now: int, found: list[Schedule], most: int, kept: int) -> list[Run]:
    """The next runs of due schedules, one of each in turn, as long as the budget leaves `kept`; the schedules, which
    are drafts, advance.
    """
    made: list[Run] = []
    turn = [schedule for schedule in found if _is_due(now, schedule)]
    while turn:
        again = []
        for schedule in turn[: most - len(made)]:
            if not budget.take(store, budget.of_run(store, schedule), kept, made):
                return made
            run = next_run(store, schedule, schedule.next_at)
            made.append(run)
            if run.free:
                schedules.move_on(schedule)
            if _is_due(now, schedule):
                again.append(schedule)
        turn = again
    return made


def _is_due(now: int, schedule: Schedule) -> bool:
    """Whether a schedule has a run that is due now."""
    return schedule.next_at <= now and not schedules.is_suspended(schedule) and not schedules.over(schedule)
