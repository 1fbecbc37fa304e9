"""Jobs: their records, and the only code that writes a state."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import NamedTuple

from qmodel.contract import replies
from qmodel.contract.lifecycle import seen_at
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import record
from qmodel.model.state import (
    dependencies,
    history,
    idempotency,
    options,
    parked,
    results,
    state_index,
    subjects,
    tags,
    ttl,
)
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store


class Filter(NamedTuple):
    """The properties that a search asks for; None matches anything. `before` is the latest time at which a job may have
    ended. Data are not examined here.
    """

    queue: str | None
    state: str | None
    klass: str | None
    tag: str | None
    worker: str | None
    group: str | None
    before: int | None
    klass_like: str | None = None
    jid_like: str | None = None


def get(store: Store, jid: str) -> Job | None:
    """A job, or None if it does not exist."""
    return store.jobs.get(jid)


def load(store: Store, jid: str) -> Job:
    """A job that is known to exist."""
    return store.jobs[jid]


def find(store: Store, jid: str) -> Job:
    """A job, or refuse."""
    job = store.jobs.get(jid)
    if job is None:
        raise refuse("JOB_NOT_FOUND", jid)
    return job


def held(store: Store, jid: str, token: int, what: str = "") -> tuple[Job, str | None]:
    """A job that is leased under this token; or the job and the outcome, if a call of the kind `what` has ended that
    lease; or refuse.
    """
    job = store.jobs.get(jid)
    if job is None:
        return _gone(store, jid, token, what)
    if job.state == "running" and job.token == token:
        return job, None
    outcome = history.outcome(job, token, what) if what and token else None  # no lease has the token 0
    if outcome is None and what:  # the lease of an earlier job with this id that was not kept
        outcome = idempotency.recall(store, _lease(what, jid, token))
    if outcome is None:
        raise refuse("LOCK_LOST", jid, token, job.state, job.worker)
    return job, outcome


def _gone(store: Store, jid: str, token: int, what: str) -> tuple[Job, str]:
    """A placeholder for a job that was not kept, and the remembered outcome of its lease; or refuse."""
    outcome = idempotency.recall(store, _lease(what, jid, token))
    if outcome is None:
        raise refuse("JOB_NOT_FOUND", jid)
    return Job(jid), outcome


def remember(store: Store, job: Job, what: str, outcome: str) -> None:
    """Remember how a lease ended, if the job's history is gone because this operation has deleted the job."""
    if job.jid not in store.jobs:
        idempotency.remember(store, _lease(what, job.jid, job.token), outcome)


def _lease(what: str, jid: str, token: int) -> str:
    """The name under which the outcome of a lease is remembered."""
    return f"{what} {jid} {token}"


def create(store: Store, jid: str) -> Job:
    """A new job, in no list yet."""
    job = store.jobs[jid] = Job(jid)
    return job


def made(store: Store, jid: str) -> Job:
    """The existing job, or a new one."""
    job = store.jobs.get(jid)
    if job is None:
        job = store.jobs[jid] = Job(jid)
    return job


def draft(store: Store, jid: str, state: str, ahead: int) -> Job:
    """A job as it would be in a state, `ahead` sequences from now. For a read: it is not stored."""
    job = Job(jid)
    job.state = state
    job.seq = store.seq + ahead
    return job


def with_priority(job: Job, priority: int) -> Job:
    """A copy of a job with another priority. For a read."""
    job = copy(job)
    job.priority = priority
    return job


def as_waiting(store: Store, now: int, job: Job, priority: int, ahead: int) -> Job:
    """A copy of a job as it would be if it became ready now, `ahead` sequences from now. For a read."""
    job = with_priority(job, priority)
    job.state = "waiting"
    job.ready_at = now
    job.seq = store.seq + ahead
    return job


def lift(store: Store, job: Job) -> None:
    """Take a job out of its lists. Call it before changing any field that orders them."""
    if job.options:
        state_index.leave(store, job)
        ttl.leave(store, job)
        parked.forget_throttle(job)
        options.drop(job, "told")
        options.drop(job, "ended")
    else:
        state_index.PLAIN[job.state][1](store, job)
    job.state = ""


def place(store: Store, job: Job, state: str) -> None:
    """Put a lifted job into the lists of a state; its sequence is that of the last event, which told of it."""
    job.state = state
    job.seq = store.seq
    job.aged = 0
    if job.options:
        if state != "waiting":
            options.drop(job, "turn")
        state_index.enter(store, job)
        ttl.enter(store, job)
    else:
        state_index.PLAIN[state][0](store, job)


def remove(store: Store, job: Job) -> None:
    """Delete a job and everything that refers to it."""
    if job.options:
        state_index.leave(store, job)
        ttl.leave(store, job)
        results.forget(store, job)
    else:
        state_index.PLAIN[job.state][1](store, job)
    if job.tags:
        tags.drop(store, job)
    del store.jobs[job.jid]


def fits(now: int, job: Job, wanted: Filter) -> bool:
    """Whether a job matches a search."""
    failure = job.failure if job.state == "failed" else None
    return (
        (wanted.state is None or seen_at(now, job.state, job.ready_at, job.expires_at) == wanted.state)
        and (wanted.queue is None or job.queue == wanted.queue)
        and (wanted.klass is None or job.klass == wanted.klass)
        and (wanted.tag is None or wanted.tag in job.tags)
        and (wanted.worker is None or job.worker == wanted.worker)
        and (wanted.group is None or (failure is not None and failure.group == wanted.group))
        and (wanted.before is None or job.ended_at <= wanted.before)
        and (wanted.klass_like is None or subjects.like(wanted.klass_like, job.klass))
        and (wanted.jid_like is None or subjects.like(wanted.jid_like, job.jid))
    )


def view(store: Store, now: int, job: Job) -> replies.Job:
    """Everything about a job, true at `now`."""
    fields = (
        job.jid,
        job.klass,
        job.queue,
        seen_at(now, job.state, job.ready_at, job.expires_at),
        job.data,
        job.priority,
        job.retries,
        job.remaining,
        tuple(job.tags) if job.tags else (),
        job.worker,
        job.token,
        job.expires_at,
        job.put_at,
        job.ready_at,
        job.popped_at,
        job.ended_at,
        job.result,
        job.progress,
        job.failure,
        job.jid in store.tracked,
        dependencies.of(job) if job.dependencies else (),
        dependencies.dependents(job) if job.dependents else (),
        record(replies.Stages, job.history),
        options.view(job) if job.options else (),
    )
    return record(replies.Job, fields)


def views(store: Store, now: int, jids: Iterable[str]) -> tuple[replies.Job, ...]:
    """Everything about several jobs. (A comprehension would cost two cells and a function.)"""
    shown = []
    for jid in jids:
        shown.append(view(store, now, store.jobs[jid]))
    return tuple(shown)
