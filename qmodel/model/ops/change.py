"""Changing jobs without moving them to another queue."""

from __future__ import annotations

from qmodel.contract.operations import Delay, Log, Priority, Progress, Promote, Update
from qmodel.contract.refusals import refuse
from qmodel.model.rules.admission import park_or_admit
from qmodel.model.rules.concurrency import place, release_unused_slot, wait_for_time
from qmodel.model.rules.stages import begins
from qmodel.model.state import history, jobs, options, parked, state_index
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def update(store: Store, now: int, op: Update) -> str:
    """Replace a job's data."""
    job = jobs.find(store, op.jid)

    emit(store, now, "updated", job.jid)
    job.data = op.data
    return job.jid


def priority(store: Store, now: int, op: Priority) -> int:
    """Change a job's priority; it keeps the ready time and the sequence that order it among jobs of equal priority."""
    job = jobs.find(store, op.jid)

    if op.first and job.state == "stalled":
        emit(store, now, "prioritized", job.jid, op.priority, "waiting")
        jobs.lift(store, job)
        job.priority, job.ready_at = op.priority, 0
        options.drop(job, "released")
        options.set(job, "ended", 1)
        jobs.place(store, job, "waiting")
        return op.priority
    emit(store, now, "prioritized", job.jid, op.priority)
    if job.state not in ("waiting", "throttled"):  # other lists ignore it, and leaving a lease would end its grant
        job.priority = op.priority
        return op.priority
    state_index.leave(store, job)
    job.priority = op.priority
    if op.first and job.state == "waiting":
        job.ready_at = 0
    state_index.enter(store, job)
    if job.state == "throttled":
        parked.recheck(store, job)
    return op.priority


def delay(store: Store, now: int, op: Delay) -> str:
    """Make a job that has not started ready at another time."""
    job = _not_begun(jobs.find(store, op.jid))

    if op.qless:
        park_or_admit(store, now, job)
        return job.state
    jobs.lift(store, job)
    release_unused_slot(store, now, job)
    if op.delay_ms > 0:
        wait_for_time(store, now, job)
    emit(store, now, "delayed", job.jid, job.queue, now + op.delay_ms)
    job.ready_at = now + op.delay_ms
    state = begins(store, now, job)
    place(store, now, job, state)
    return state


def promote(store: Store, now: int, op: Promote) -> str:
    """Make a scheduled job ready now; a waiting job already is."""
    job = jobs.find(store, op.jid)
    if job.state not in ("scheduled", "waiting"):
        raise refuse("WRONG_STATE", job.jid, job.state)

    if job.state == "scheduled":
        emit(store, now, "promoted", job.jid, job.queue)
        jobs.lift(store, job)
        job.ready_at = min(job.ready_at, now)
        place(store, now, job, begins(store, now, job))
    return job.state


def _not_begun(job: Job) -> Job:
    """Refuse a job that has started."""
    if job.state not in ("scheduled", "waiting", "depends", "throttled"):
        raise refuse("WRONG_STATE", job.jid, job.state)
    return job


def log(store: Store, now: int, op: Log) -> str:
    """Add a line to a job's history."""
    job = jobs.find(store, op.jid)

    emit(store, now, "logged", job.jid)
    history.add(store, now, job, "log", op.message)
    return job.jid


def progress(store: Store, now: int, op: Progress) -> str:
    """Report the progress of a leased job."""
    job, _ = jobs.held(store, op.jid, op.token)

    emit(store, now, "progressed", job.jid)
    job.progress = op.progress
    return job.jid
