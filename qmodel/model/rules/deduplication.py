"""Deduplication: a put is dropped or changed when another job already holds its key.

A put with a key is *accepted*, or *deduplicated*: then nothing is put, and the reply names the job that holds the key.
The holder's mode decides how long it holds the key (state/uniques.py). The mode of the new put decides what happens to
it:

- `pending`, `window`: it is dropped.
- `debounce`: if the holder has not started, it takes over the new data and its delay restarts, but ends at most
  `unique_max_ms` after the holder was put. A job that has started and waits for a retry stays as it is.
- `again`: if the holder has not started, it takes over the new data. If it has, the job is put and depends on the
  holder until that one has ended, however it ended; then it holds the key and continues. Only one job waits like this,
  with the newest data; further puts are deduplicated against it. No other rule sees this dependency: the holder may be
  canceled and drained.

A repeated request never puts twice: the reply is remembered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qmodel.contract.arguments import Edge
from qmodel.contract.operations import Put
from qmodel.contract.refusals import refuse
from qmodel.model.rules import concurrency, stages
from qmodel.model.state import dependencies, idempotency, jobs, options, uniques
from qmodel.model.state.records import Job, Unique
from qmodel.model.state.store import Store, emit

NOT_BEGUN = ("waiting", "scheduled", "depends", "throttled")


def _not_begun(job: Job) -> bool:
    """Whether the job that stands for a key has not started since it was put."""
    return job.state in NOT_BEGUN and not job.token


def resume(store: Store, now: int, job: Job, holder: str) -> None:
    """End a job's wait for the holder of its key."""
    options.drop(job, "holder")
    dependencies.unlink(store, job, (holder,))
    if job.state == "depends" and not job.dependencies:
        stages.unblock(store, now, job)


def dependents(store: Store, job: Job) -> tuple[str, ...]:
    """The jobs that depend on a job, without the one that only waits for its key."""
    found = dependencies.dependents(job)
    if options.get(job, "unique") is None:
        return found
    return tuple(jid for jid in found if options.get(jobs.load(store, jid), "holder") != job.jid)


def waits_for_key(store: Store, jid: str, job: Job) -> bool:
    """Whether a dependent of a job only waits for its key: one at most does."""
    return options.get(job, "unique") is not None and options.get(jobs.load(store, jid), "holder") == job.jid


def has_dependents(store: Store, job: Job) -> bool:
    """Whether any job depends on a job, beside the one that only waits for its key."""
    if len(job.dependents) != 1 or options.get(job, "unique") is None:
        return bool(job.dependents)
    return not waits_for_key(store, dependencies.dependents(job)[0], job)


# ---- before a put: what may refuse


def check(op: Put, operation: str) -> None:
    """Refuse arguments that have no meaning without a key, or in its mode."""
    mode = op.unique_mode or "pending"
    if op.unique_mode is not None and op.unique is None:
        raise refuse("BAD_ARGUMENT", operation, "unique_mode")
    if op.unique_ms is not None and (op.unique is None or mode not in ("pending", "window")):
        raise refuse("BAD_ARGUMENT", operation, "unique_ms")
    if mode == "window" and op.unique_ms is None:
        raise refuse("BAD_ARGUMENT", operation, "unique_ms")
    if op.unique_max_ms is not None and mode != "debounce":
        raise refuse("BAD_ARGUMENT", operation, "unique_max_ms")


def _check_apart(store: Store, puts: tuple[Put, ...], keyed: list[Put]) -> None:
    """Refuse to put, in one step, a job that has a key and another job with the same key: the result would depend on
    the order.
    """
    times: dict[str | None, int] = {}
    for op in keyed:
        times[op.unique] = times.get(op.unique, 0) + 1
    for op in puts:
        job = jobs.get(store, op.jid)
        key = options.get(job, "unique") if job is not None else None
        if key is not None and times.get(key, 0) > (1 if op.unique == key else 0):
            raise refuse("DUPLICATE_KEY", op.jid, key)


def _standing(store: Store, now: int, op: Put, key: str) -> str:
    """The job that would stand for one that is put with a key."""
    unique = uniques.get(store, now, key)
    if unique is None:
        return op.jid
    if unique.next:
        return unique.next
    if op.unique_mode == "again" and not unique.ends and not _not_begun(jobs.load(store, unique.jid)):
        return op.jid
    return unique.jid


def plan(store: Store, now: int, puts: tuple[Put, ...], operation: str) -> dict[str, str]:
    """For each job put with a key, find the job that will stand for it: itself, if it is accepted; or refuse."""
    keyed = []
    for op in puts:
        stages.check(op, operation)
        check(op, operation)
        if op.unique is not None:
            keyed.append(op)
    stands: dict[str, str] = {}
    if not keyed:
        return stands
    _check_apart(store, puts, keyed)
    taken: dict[str, str] = {}
    for op in keyed:
        key = op.unique or ""
        stands[op.jid] = taken.get(key) or _standing(store, now, op, key)
        if stands[op.jid] == op.jid:
            taken[key] = op.jid
    return stands


def _redirected(store: Store, depends: tuple[str, ...], stands: dict[str, str]) -> tuple[str, ...]:
    """The same dependencies on the jobs that stand for the named ones; a holder that no longer exists is left out."""
    others = []
    for text in depends:
        edge = Edge.parse(text)
        other = stands.get(edge.jid, edge.jid)
        if other == edge.jid or other in stands or jobs.get(store, other) is not None:
            others.append(edge._replace(jid=other).text)
    return tuple(others)


def _holder(store: Store, now: int, op: Put) -> str:
    """The job that an accepted one must wait for because it holds the key, or none."""
    unique = uniques.get(store, now, op.unique) if op.unique is not None else None
    return unique.jid if unique is not None and unique.jid != op.jid else ""


def redirect(store: Store, now: int, puts: tuple[Put, ...], stands: dict[str, str]) -> tuple[Put, ...]:
    """The accepted puts, with their dependencies redirected to the jobs that stand for others, and to the holder."""
    accepted = []
    for op in puts:
        if stands.get(op.jid, op.jid) == op.jid:
            others = _redirected(store, op.depends, stands) if op.depends is not None else None
            holder = _holder(store, now, op)
            if holder:
                job = jobs.get(store, op.jid)
                known = dependencies.of(job) if job is not None else ()
                others = (*(known if others is None else others), holder)
            accepted.append(op if others is None else replace(op, depends=others))
    return tuple(accepted)


# ---- the put


def recall(store: Store, operation: str, request: str) -> Any:
    """The reply to a put with a key under this request, or None."""
    return idempotency.recall(store, f"{operation} {request}") if request != "" else None


def remember(store: Store, operation: str, request: str, reply: Any) -> None:
    """Remember the reply to a put with a key."""
    if request != "":
        idempotency.remember(store, f"{operation} {request}", reply)


def claim(store: Store, now: int, job: Job, op: Put) -> None:
    """Let a job that is being put hold its key, or make it the next holder."""
    key = op.unique or ""
    unique = uniques.get(store, now, key)
    if unique is not None and unique.jid != job.jid:
        uniques.keep_next(store, unique, job.jid)
        options.set(job, "holder", unique.jid)
        dependencies.wait_for(store, job, unique.jid)
        return
    uniques.sweep(store, now)
    ends = now + op.unique_ms if op.unique_ms is not None else 0
    uniques.hold(store, key, op.unique_mode or "pending", job, now, ends)


def _delay(store: Store, now: int, op: Put, job: Job, unique: Unique) -> None:
    """Restart the delay of the holder."""
    jobs.lift(store, job)
    concurrency.release_unused_slot(store, now, job)
    ready_at = stages.due(now, op)
    if op.unique_max_ms is not None:
        ready_at = min(ready_at, unique.since + op.unique_max_ms)
    job.ready_at = ready_at
    state = stages.begins(store, now, job)
    emit(store, now, "deduplicated", job.jid, job.queue, unique.key, "debounce", state)
    concurrency.place(store, now, job, state)


def deduplicate(store: Store, now: int, op: Put, jid: str) -> None:
    """Apply the mode of a put whose key another job holds."""
    key = op.unique or ""
    job = jobs.get(store, jid)
    mode = op.unique_mode or "pending"
    if job is None:
        emit(store, now, "deduplicated", jid, "", key, mode, "")
        return
    unique = uniques.get(store, now, key)
    assert unique is not None
    changes = mode in ("debounce", "again") and _not_begun(job)
    if changes:
        job.data = op.data
    if changes and mode == "debounce" and job.state != "throttled":
        _delay(store, now, op, job, unique)
    else:
        emit(store, now, "deduplicated", jid, job.queue, key, mode, job.state)


# ---- the end


def release_key(store: Store, now: int, job: Job) -> None:
    """Release the key of a job that has ended, or starts anew; the job that waits for it continues."""
    key = options.get(job, "unique")
    unique = uniques.load(store, key) if key is not None else None
    if unique is None:
        return
    if unique.next == job.jid:
        options.drop(job, "holder")
        dependencies.unlink(store, job, (unique.jid,))
        uniques.keep_next(store, unique, "")
    elif unique.jid == job.jid and unique.next:
        next_job = jobs.load(store, unique.next)
        uniques.hold(store, unique.key, "again", next_job, now, 0)
        resume(store, now, next_job, job.jid)
    elif unique.jid == job.jid and unique.mode != "window":
        uniques.remove(store, unique)
