"""How a job fails, whoever says so."""

from __future__ import annotations

from qmodel.contract.replies import Failure
from qmodel.model.rules.cleanup import clean_up
from qmodel.model.rules.stages import enter
from qmodel.model.state import (
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
    """Delete ended jobs that were to be kept until now by their own word, up to so many; say whether there were any."""
    if not store.keeping.size:
        return False
    found = retention.due(store, now, most)
    for old in found:
        _delete(store, now, old)
    return bool(found)


def fail_job(store: Store, now: int, job: Job, group: str, message: str, ended: int = 0) -> None:
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
    """Delete failed jobs that are kept no longer: more than fail, so that they come down to a lower limit."""
    for old in failures.expired(store, now, SWEEP):
        _delete(store, now, old)


def _delete(store: Store, now: int, job: Job) -> None:
    """Delete a job that is kept no longer, unless there is more to come of it."""
    if job.dependents or job.dependencies:
        failures.keep(store, job)
        return
    emit(store, now, "retired", job.jid)
    if job.state == "failed":
        stats.recovered(store, job.ended_at, job.queue)
    jobs.remove(store, job)


SWEEP = 3
"""The most failed jobs that one failure retires, and the most that are past their own keeping."""

OF_LETTER = ("lifo", "lease_ms", "timeout_ms")
"""What a dead letter has of the options with which its job was put."""


def _copy(job: Job, letter: Job) -> None:
    """Let a dead letter be what its job was."""
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
    """Put a dead letter of a failed job, if it has a queue for that. It has none itself, so letters come to an end.

    Its id is made of the job's, shortened where it is long, and of the sequence under which that failed. Whoever took
    just this id before keeps it: nothing is lost, for the job is in its failure group as well.
    """
    to = options.get(job, "dead_queue")
    jid = f"{job.jid[:100]}-dead-{job.seq}"
    if to is None or jobs.get(store, jid) is not None:
        return
    emit(store, now, "dead_lettered", job.jid, job.queue, jid, to)
    letter = jobs.create(store, jid)
    _copy(job, letter)
    queues.register(store, now, to)
    state = enter(store, now, letter, to, 0)
    emit(store, now, "put", jid, to, job.klass, state)
    tags.assign(store, letter, tuple(job.tags))
    jobs.place(store, letter, state)


def is_revoked(job: Job) -> bool:
    """Whether somebody called a job off while it was running."""
    return options.get(job, "revoked") is not None


def fail_revoked(store: Store, now: int, job: Job, message: str = "", ended: int = 0) -> None:
    """Fail a lifted job that was called off, whatever else would have become of it."""
    fail_job(store, now, job, "revoked-" + job.queue, message or "It was revoked.", ended)


def expire_due(store: Store, now: int, queue: str, most: int) -> None:
    """Fail the jobs of a queue that may no longer begin, up to so many; end as many dependencies."""
    room = most
    for job in ttl.due(store, queue, now, most):
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
        if ttl.is_over(now, job):
            parked.unreserve(store, job)
            parked.forget_throttle(job)
            _expire(store, now, job)
        else:
            left.append(job)
    return left


def _expire(store: Store, now: int, job: Job) -> None:
    fail_job(store, now, job, "expired-" + job.queue, "It did not begin within its time to live.")
