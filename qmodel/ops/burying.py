"""How a job fails, whoever says so."""

from __future__ import annotations

from qmodel.ops.settling import settle
from qmodel.replies import Failure
from qmodel.state import dependencies, expiring, gates, history, jobs, options, stats
from qmodel.state.jobs import Job
from qmodel.state.store import Store, emit


def bury(store: Store, now: int, job: Job, group: str, message: str, ended: int = 0) -> None:
    """Fail a lifted job into a group. `ended` is the token of the lease that ended so by its holder's own word, if any:
    a holder who lost the lease must not be told that it failed the job.
    """
    emit(store, now, "failed", job.jid, job.queue, job.worker, job.token, group)
    history.add(store, now, job, "failed", ended, group)
    stats.failed(store, now, job.queue)
    job.failure = Failure(group, message, now, job.worker)
    job.worker = job.grant = ""
    job.expires_at = 0
    job.ended_at = now
    if job.options:
        options.drop(job, "ttl_ms")
        options.drop(job, "revoked")
    jobs.place(store, job, "failed")
    settle(store, now, job)


def is_revoked(job: Job) -> bool:
    """Whether somebody called a job off while it was running."""
    return options.get(job, "revoked") is not None


def bury_revoked(store: Store, now: int, job: Job, message: str = "", ended: int = 0) -> None:
    """Fail a lifted job that was called off, whatever else would have become of it."""
    bury(store, now, job, "revoked-" + job.queue, message or "It was revoked.", ended)


def expire_due(store: Store, now: int, queue: str, most: int) -> None:
    """Fail the jobs of a queue that may no longer begin, up to so many; end as many dependencies."""
    room = most
    for job in expiring.due(store, queue, now, most):
        if job.dependencies:
            ended = dependencies.of(job)[:room]
            dependencies.unlink(store, job, ended)
            room -= len(ended)
        if not job.dependencies:
            jobs.lift(store, job)
            _expire(store, now, job)


def expire_taken(store: Store, now: int, taken: list[Job]) -> list[Job]:
    """Fail those of some lifted jobs that may no longer begin; give the others."""
    left = []
    for job in taken:
        if expiring.is_over(now, job):
            gates.unreserve(store, job)
            gates.forget_gate(job)
            _expire(store, now, job)
        else:
            left.append(job)
    return left


def _expire(store: Store, now: int, job: Job) -> None:
    bury(store, now, job, "expired-" + job.queue, "It did not begin within its time to live.")
