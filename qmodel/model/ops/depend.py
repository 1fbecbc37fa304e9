"""Changing the dependencies of a job."""

from __future__ import annotations

from qmodel.contract.operations import DependsOff, DependsOn, Results
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Result
from qmodel.model.rules.stages import unblock
from qmodel.model.state import dependencies, jobs, results
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def depends_on(store: Store, now: int, op: DependsOn) -> tuple[str, ...]:
    """Add dependencies to a job that waits for others."""
    job = _waits_for_others(store, op.jid)
    edges = dependencies.check_more(store, op.jid, op.dependencies)

    dependencies.link(store, job, edges)
    emit(store, now, "blocked", job.jid, len(job.dependencies))
    return dependencies.of(job)


def depends_off(store: Store, now: int, op: DependsOff) -> tuple[str, ...]:
    """Remove dependencies; when none is left, the job is unblocked."""
    job = _waits_for_others(store, op.jid)
    if op.all:
        dependencies.check_bounded(job)

    dependencies.unlink(store, job, dependencies.of(job) if op.all else op.dependencies)
    if not job.dependencies:
        unblock(store, now, job)
    return dependencies.of(job)


def results_(store: Store, now: int, op: Results) -> tuple[Result, ...]:
    """Show the outcomes of a job's named dependencies."""
    return results.view(store, now, jobs.find(store, op.jid), op)


def _waits_for_others(store: Store, jid: str) -> Job:
    """Find a job that waits for others, or refuse."""
    job = jobs.find(store, jid)
    if job.state != "depends":
        raise refuse("WRONG_STATE", jid, job.state)
    return job
