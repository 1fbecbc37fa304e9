"""Jobs: the record of each, and the only code that writes a state."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, Final, NamedTuple

from qmodel.contract import replies
from qmodel.contract.lifecycle import seen_at
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import record
from qmodel.model.state import dependencies, history, idempotency, options, parked, results, state_index, tags, ttl
from qmodel.model.state.store import Store


class Nothing(dict[str, Any]):
    """The tags and dependencies of most jobs: one for all of them, which nobody can change. Three dictionaries for each
    would cost more than all its other fields.
    """

    __slots__ = ()

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("it is every job's")


NONE: Final = Nothing()


class Job:
    """A job's record. A job that is in no place has the empty state; it is so only within a step."""

    __slots__ = (
        "data", "dependencies", "dependents", "ended_at", "expires_at", "failure", "grant", "history", "jid", "klass",
        "options", "popped_at", "priority", "progress", "put_at", "put_request", "queue", "ready_at", "remaining",
        "result", "retries", "seq", "state", "tags", "token", "worker",
    )  # fmt: skip

    def __init__(self, jid: str) -> None:
        self.jid = jid
        self.state = self.klass = self.queue = self.data = self.worker = self.result = self.progress = ""
        self.put_request = self.grant = ""
        self.priority = self.seq = self.token = 0
        self.retries = self.remaining = 5
        self.put_at = self.ready_at = self.popped_at = self.expires_at = self.ended_at = 0
        self.tags: dict[str, int] = NONE
        self.options: dict[str, str] = NONE
        self.failure: replies.Failure | None = None
        self.dependencies: dict[str, int] = NONE
        self.dependents: dict[str, int] = NONE
        self.history: list[Any] = []


class Filter(NamedTuple):
    """What a search looks for; what is None may be anything. `before` is when a job had ended at the latest."""

    queue: str | None
    state: str | None
    klass: str | None
    tag: str | None
    worker: str | None
    group: str | None
    before: int | None


def get(store: Store, jid: str) -> Job | None:
    """A job that may not exist."""
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
    """A job leased under a token; or one whose lease this kind of call has ended, and the outcome; or refuse."""
    job = store.jobs.get(jid)
    if job is None:
        return _gone(store, jid, token, what)
    if job.state == "running" and job.token == token:
        return job, None
    outcome = history.outcome(job, token, what) if what and token else None  # no lease has the token 0
    if outcome is None and what:  # of another job that had this id and was not kept
        outcome = idempotency.recall(store, _lease(what, jid, token))
    if outcome is None:
        raise refuse("LOCK_LOST", jid, token, job.state, job.worker)
    return job, outcome


def _gone(store: Store, jid: str, token: int, what: str) -> tuple[Job, str]:
    """A job that was not kept, in name only, and the remembered outcome of its lease; or refuse."""
    outcome = idempotency.recall(store, _lease(what, jid, token))
    if outcome is None:
        raise refuse("JOB_NOT_FOUND", jid)
    return Job(jid), outcome


def remember(store: Store, job: Job, what: str, outcome: str) -> None:
    """Remember how a lease ended, of a job whose history is gone: this very operation has deleted it."""
    if job.jid not in store.jobs:
        idempotency.remember(store, _lease(what, job.jid, job.token), outcome)


def _lease(what: str, jid: str, token: int) -> str:
    return f"{what} {jid} {token}"


def create(store: Store, jid: str) -> Job:
    """A new job, in no place yet."""
    job = store.jobs[jid] = Job(jid)
    return job


def made(store: Store, jid: str) -> Job:
    """A job to put: the one that there is, or a new one."""
    job = store.jobs.get(jid)
    if job is None:
        job = store.jobs[jid] = Job(jid)
    return job


def draft(store: Store, jid: str, state: str, ahead: int) -> Job:
    """A job as it would be in a state, so many sequences from now. It is for a read: nobody will find it."""
    job = Job(jid)
    job.state = state
    job.seq = store.seq + ahead
    return job


def with_priority(job: Job, priority: int) -> Job:
    """A job as it would be with a priority. It is for a read."""
    job = copy(job)
    job.priority = priority
    return job


def as_waiting(store: Store, now: int, job: Job, priority: int, ahead: int) -> Job:
    """A job as it would be if it became ready now, so many sequences from now. It is for a read."""
    job = with_priority(job, priority)
    job.state = "waiting"
    job.ready_at = now
    job.seq = store.seq + ahead
    return job


def lift(store: Store, job: Job) -> None:
    """Take a job out of its place. Do so before anything changes by which the place is found."""
    if job.options:
        state_index.leave(store, job)
        ttl.leave(store, job)
        parked.forget_gate(job)
    else:
        state_index.PLAIN[job.state][1](store, job)
    job.state = ""


def place(store: Store, job: Job, state: str) -> None:
    """Put a lifted job into the place that a state says; its sequence is that of the event that told so."""
    job.state = state
    job.seq = store.seq
    if job.options:
        state_index.enter(store, job)
        ttl.enter(store, job)
    else:
        state_index.PLAIN[state][0](store, job)


def remove(store: Store, job: Job) -> None:
    """Delete a job, leaving nothing of it behind."""
    state_index.leave(store, job)
    ttl.leave(store, job)
    tags.drop(store, job)
    results.forget(store, job)
    del store.jobs[job.jid]


def fits(now: int, job: Job, wanted: Filter) -> bool:
    """Whether a job is what a search looks for."""
    failure = job.failure if job.state == "failed" else None
    return (
        (wanted.state is None or seen_at(now, job.state, job.ready_at, job.expires_at) == wanted.state)
        and (wanted.queue is None or job.queue == wanted.queue)
        and (wanted.klass is None or job.klass == wanted.klass)
        and (wanted.tag is None or wanted.tag in job.tags)
        and (wanted.worker is None or job.worker == wanted.worker)
        and (wanted.group is None or (failure is not None and failure.group == wanted.group))
        and (wanted.before is None or job.ended_at <= wanted.before)
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


def views(store: Store, now: int, found: Iterable[Job]) -> tuple[replies.Job, ...]:
    """Everything about several jobs. (A comprehension would cost the caller two cells and a function.)"""
    shown = []
    for job in found:
        shown.append(view(store, now, job))
    return tuple(shown)
