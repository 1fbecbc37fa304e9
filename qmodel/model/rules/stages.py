"""The stages of a job: how one begins in a queue, and how a blocked job continues."""

from __future__ import annotations

from qmodel.contract.operations import Put
from qmodel.contract.refusals import refuse
from qmodel.model.rules.concurrency import admit, place, wait_for_time, yield_slot
from qmodel.model.state import history, jobs, options
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def check(op: Put, operation: str) -> None:
    """Refuse a put that names both a delay and a moment."""
    if op.at is not None and op.delay_ms != 0:
        raise refuse("BAD_ARGUMENT", operation, "at")


def due(now: int, op: Put) -> int:
    """When the job of a put is ready."""
    return max(op.at, now) if op.at is not None else now + op.delay_ms


def begins(store: Store, now: int, job: Job) -> str:
    """The state in which a job begins: it depends on its dependencies, its ready time and its concurrency key."""
    if job.dependencies:
        yield_slot(store, now, job)
        return "depends"
    if job.ready_at > now:
        wait_for_time(store, now, job)
        return "scheduled"
    return admit(store, job) if job.options else "waiting"


def enter(store: Store, now: int, job: Job, queue: str, ready_at: int) -> str:
    """Begin a lifted job's stage in a queue, to be ready at a moment; give the state in which it begins."""
    job.queue = queue
    job.remaining = job.retries
    if job.options:
        options.drop(job, "lapses")
    job.put_at = now
    job.ready_at = ready_at
    history.add(store, now, job, "put", queue)
    return begins(store, now, job)


def unblock(store: Store, now: int, job: Job) -> None:
    """Continue with a job that has no dependencies left."""
    jobs.lift(store, job)
    job.ready_at = max(job.ready_at, now)
    state = begins(store, now, job)
    emit(store, now, "unblocked", job.jid, job.queue, state)
    place(store, now, job, state)
