"""Deleting jobs before they are done."""

from __future__ import annotations

from collections.abc import Callable

from qmodel.arguments import MOST
from qmodel.operations import Cancel, CancelMany, Clean, Drain
from qmodel.ops import uniquing
from qmodel.ops.searching import bulk, filter, find
from qmodel.ops.settling import settle
from qmodel.refusals import refuse
from qmodel.replies import Bulk, Drained
from qmodel.state import dependencies, jobs, queues, stats
from qmodel.state.jobs import Job
from qmodel.state.store import Store, emit


def cancel(store: Store, now: int, op: Cancel) -> tuple[str, ...]:
    """Delete unfinished jobs, with all that depend on them or none."""
    named = [jid for jid in dict.fromkeys(op.jids) if _is_unfinished(jobs.get(store, jid))]
    doomed = _with_dependents(store, named) if op.cascade else _closed(store, named)
    _check_edges(store, doomed)

    for jid in doomed:
        delete(store, now, jobs.load(store, jid))
    return tuple(doomed)


def check_cancel(store: Store, doomed: list[str]) -> None:
    """Refuse to cancel unfinished jobs of which one cannot be."""
    _closed(store, doomed)
    _check_edges(store, doomed)


def _check_edges(store: Store, doomed: list[str]) -> None:
    """Refuse to end more than 1000 dependencies at once."""
    if sum(len(jobs.load(store, jid).dependencies) for jid in doomed) > MOST:
        raise refuse("CANCEL_LIMIT", doomed[0])


def _is_unfinished(job: Job | None) -> bool:
    return job is not None and job.state != "complete"


def _closed(store: Store, named: list[str]) -> list[str]:
    """The same jobs, or refuse when another depends on one of them."""
    known = set(named)
    for jid in named:
        for dependent in uniquing.dependents(store, jobs.load(store, jid)):
            if dependent not in known:
                raise refuse("HAS_DEPENDENTS", jid, dependent)
    return named


def _with_dependents(store: Store, named: list[str]) -> list[str]:
    """These jobs and all that depend on them, nearest first."""
    found = dict.fromkeys(named)
    queue = list(named)
    for jid in queue:
        for dependent in uniquing.dependents(store, jobs.load(store, jid)):
            if dependent not in found:
                if len(found) == MOST:
                    raise refuse("CANCEL_LIMIT", named[0])
                found[dependent] = None
                queue.append(dependent)
    return queue


def delete(store: Store, now: int, job: Job) -> None:
    """Delete an unfinished job, and its edges."""
    if job.state == "running":
        emit(store, now, "lock_lost", job.jid, job.queue, job.worker, job.token, "cancel")
    elif job.state == "failed":
        stats.recovered(store, job.ended_at, job.queue)
    emit(store, now, "canceled", job.jid, job.queue, job.state)
    dependencies.unlink(store, job, dependencies.of(job))
    for dependent in dependencies.dependents(job):
        dependencies.unlink(store, jobs.load(store, dependent), [job.jid])
    jobs.remove(store, job)
    settle(store, now, job)


def drain(store: Store, now: int, op: Drain) -> Drained:
    """Cancel jobs of a queue that have not begun, unless others depend on them."""
    canceled = 0
    for jid in queues.not_begun(store, op.queue, op.count):
        job = jobs.load(store, jid)
        if not job.dependents or not uniquing.dependents(store, job):
            delete(store, now, job)
            canceled += 1
    return Drained(canceled, queues.length(queues.of(store, op.queue)))


def _canceler(store: Store, now: int) -> Callable[[Job], bool]:
    """What cancels a job, if it may; it ends at most 1000 dependencies."""
    ended = 0

    def act(job: Job) -> bool:
        nonlocal ended
        ended += len(job.dependencies)
        if job.dependents or ended > MOST:
            return False
        delete(store, now, job)
        return True

    return act


def _retirer(store: Store, now: int) -> Callable[[Job], bool]:
    """What deletes a complete job."""

    def act(job: Job) -> bool:
        emit(store, now, "retired", job.jid)
        jobs.remove(store, job)
        return True

    return act


def cancel_many(store: Store, now: int, op: CancelMany) -> Bulk:
    """Cancel the jobs that fit, unless others depend on them; the dependencies that this ends are bounded."""
    found, cursor = find(store, now, "cancel_many", op, filter(op, op.state))
    unfinished = [job for job in found if _is_unfinished(job)]

    return bulk(store, op.preview, unfinished, cursor, _canceler(store, now))


def clean(store: Store, now: int, op: Clean) -> Bulk:
    """Delete finished jobs by age."""
    wanted = filter(op, op.state, now - op.older_ms)
    found, cursor = find(store, now, "clean", op, wanted)

    return bulk(
        store, op.preview, found, cursor, _retirer(store, now) if op.state == "complete" else _canceler(store, now)
    )
