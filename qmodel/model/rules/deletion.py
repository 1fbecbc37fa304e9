"""Deleting jobs, with their edges."""

from __future__ import annotations

from qmodel.model.rules.cleanup import clean_up
from qmodel.model.state import budget, dependencies, jobs, stats
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def delete(store: Store, now: int, job: Job) -> None:
    """Delete an unfinished job, and its edges."""
    if job.state == "running":
        emit(store, now, "lock_lost", job.jid, job.queue, job.worker, job.token, "cancel")
    elif job.state == "failed":
        stats.recovered(store, job.ended_at, job.queue)
    budget.spend(store, budget.weight(job))
    emit(store, now, "canceled", job.jid, job.queue, job.state)
    dependencies.unlink(store, job, dependencies.of(job))
    for dependent in dependencies.dependents(job):
        dependencies.unlink(store, jobs.load(store, dependent), [job.jid])
    jobs.remove(store, job)
    clean_up(store, now, job)


def delete_any(store: Store, now: int, job: Job) -> None:
    """Delete a job in any state."""
    if job.state == "complete":
        emit(store, now, "retired", job.jid)
        jobs.remove(store, job)
    else:
        delete(store, now, job)
