"""How a job fails, whatever the cause."""

from __future__ import annotations

from qmodel.contract.replies import Failure
from qmodel.model.rules.cleanup import clean_up
from qmodel.model.rules.concurrency import ending
from qmodel.model.rules.stages import enter
from qmodel.model.state import (
    budget,
    cascade,
    dependencies,
    failures,
    history,
    jobs,
    options,
    parked,
    queues,
    retention,
    stats,
    tags,
    ttl,
)
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def retire_due(store: Store, now: int, most: int) -> bool:
    """Delete ended jobs whose own retention is over, up to `most`; say whether there were any."""
    if not store.keeping.size:
        return False
    found = retention.due(store, now, most)
    for old in found:
        _delete(store, now, old)
    return bool(found)


def fail_job(store: Store, now: int, job: Job, group: str, message: str, ended: int = 0) -> None:
    """Fail a lifted job into a group. `ended` is the token of the lease, if its holder itself failed the job: a holder
    that lost the lease must not find its token in the history.
    """
    budget.spend(store, budget.FAILURE)
    emit(store, now, "failed", job.jid, job.queue, job.worker, job.token, group)
    history.add(store, now, job, "failed", ended, group)
    stats.failed(store, now, job.queue)
    job.failure = Failure(group, message, now, job.worker)
    job.worker = job.grant = ""
    job.expires_at = 0
    job.ended_at = now
    options.drop(job, "ttl_ms")
    options.drop(job, "revoked")
    jobs.place(store, job, "failed")
    if job.dependents:
        cascade.push(store, job)
    clean_up(store, now, job)
    _write_letter(store, now, job)
    _retire(store, now)
    retire_due(store, now, SWEEP)


def _retire(store: Store, now: int) -> None:
    """Delete failed jobs past their retention: more than fail, so that the list comes down to a lowered limit."""
    for old in failures.expired(store, now, SWEEP):
        _delete(store, now, old)


def _delete(store: Store, now: int, job: Job) -> None:
    """Delete a job past its retention, unless it has dependents or dependencies."""
    if job.dependents or job.dependencies:
        failures.keep(store, job)
        return
    emit(store, now, "retired", job.jid)
    if job.state == "failed":
        stats.recovered(store, job.ended_at, job.queue)
    jobs.remove(store, job)


SWEEP = 3
"""The most failed jobs that one failure deletes for age or count, and the most that it deletes for their own retention.
"""

OF_LETTER = ("lifo", "lease_ms", "timeout_ms")
"""The options that a dead letter takes over from its job."""


def _copy(job: Job, letter: Job) -> None:
    """Copy a job to its dead letter."""
    letter.klass = job.klass
    letter.data = job.data
    letter.priority = job.priority
    letter.retries = job.retries
    letter.failure = job.failure
    for name in OF_LETTER:
        given = options.get(job, name)
        if given is not None:
            options.set(letter, name, given)
    options.set(letter, "origin", job.jid)
    options.set(letter, "origin_queue", job.queue)
    options.set(letter, "origin_dead_queue", job.options["dead_queue"])


def _write_letter(store: Store, now: int, job: Job) -> None:
    """Put a dead letter of a failed job, if the job has a dead queue. A letter has none itself, so there are no chains
    of letters.

    Its id consists of the job's id, shortened if it is long, and the sequence of the failure. If a job has just this id
    already, it stays: nothing is lost, because the failed job is in its failure group as well.
    """
    to = options.get(job, "dead_queue")
    jid = f"{job.jid[:100]}-dead-{job.seq}"
    if to is None or jobs.get(store, jid) is not None:
        return
    budget.spend(store, budget.weight(job))
    emit(store, now, "dead_lettered", job.jid, job.queue, jid, to)
    letter = jobs.create(store, jid)
    _copy(job, letter)
    queues.register(store, now, to)
    state = enter(store, now, letter, to, now)
    emit(store, now, "put", jid, to, job.klass, state, *tags.fact(job, None))
    tags.assign(store, letter, tuple(job.tags))
    jobs.place(store, letter, state)


def is_revoked(job: Job) -> bool:
    """Whether a job was revoked while it was running."""
    return options.get(job, "revoked") is not None


def fail_revoked(store: Store, now: int, job: Job, message: str = "", ended: int = 0) -> None:
    """Fail a lifted job that was revoked, whatever else would have become of it."""
    fail_job(store, now, job, "revoked-" + job.queue, message or "It was revoked.", ended)


def revoke_one(store: Store, now: int, job: Job) -> str:
    """Fail a job that is not running, or mark a running one as revoked; give its state."""
    if job.state in ("complete", "failed") or is_revoked(job):
        return job.state
    emit(store, now, "revoked", job.jid, job.queue, job.worker, job.token)
    if job.state == "running":
        options.set(job, "revoked", 1)
        return "running"
    dependencies.unlink(store, job, dependencies.of(job))
    jobs.lift(store, job)
    fail_revoked(store, now, job)
    return "failed"


def expire_due(store: Store, now: int, queue: str, most: int) -> None:
    """Fail the expired jobs of a queue, up to `most` and half of the budget; end as many dependencies."""
    room, kept, some = most, budget.room(store) // 2, False
    for job in ttl.due(store, queue, now, most):
        if not budget.take(store, ending(store, job), kept, some):
            break
        some = True
        if job.dependencies:
            ended = dependencies.of(job)[:room]
            dependencies.unlink(store, job, ended)
            room -= len(ended)
        if not job.dependencies:
            jobs.lift(store, job)
            _expire(store, now, job)


def expire_taken(store: Store, now: int, taken: list[Job]) -> list[Job]:
    """Fail the expired ones of some lifted jobs; give the others."""
    left = []
    for job in taken:
        if ttl.is_over(now, job):
            parked.unreserve(store, job)
            parked.forget_throttle(job)
            _expire(store, now, job)
        else:
            left.append(job)
    return left


def _expire(store: Store, now: int, job: Job) -> None:
    """Fail a lifted job that has expired."""
    fail_job(store, now, job, "expired-" + job.queue, "It did not begin within its time to live.")
