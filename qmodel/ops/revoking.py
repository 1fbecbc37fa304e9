"""Calling jobs off."""

from __future__ import annotations

from qmodel.arguments import MOST
from qmodel.operations import Revoke
from qmodel.ops.burying import bury_revoked, is_revoked
from qmodel.refusals import refuse
from qmodel.state import dependencies, jobs, options
from qmodel.state.jobs import Job
from qmodel.state.store import Store, emit


def revoke_one(store: Store, now: int, job: Job) -> str:
    """Fail a job that nobody runs, or let who runs it know; give its state."""
    if job.state in ("complete", "failed") or is_revoked(job):
        return job.state
    emit(store, now, "revoked", job.jid, job.queue, job.worker, job.token)
    if job.state == "running":
        options.set(job, "revoked", 1)
        return "running"
    dependencies.unlink(store, job, dependencies.of(job))
    jobs.lift(store, job)
    bury_revoked(store, now, job)
    return "failed"


def revoke(store: Store, now: int, op: Revoke) -> tuple[str, ...]:
    """Fail jobs that nobody runs, and let those who run the others know."""
    found = [jobs.find(store, jid) for jid in dict.fromkeys(op.jids)]
    if sum(len(job.dependencies) for job in found) > MOST:
        raise refuse("DEPENDENCY_LIMIT", found[0].jid)

    return tuple([revoke_one(store, now, job) for job in found])
