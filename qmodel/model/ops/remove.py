"""Deleting jobs and queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Cancel, CancelMany, Clean, Drain, Obliterate
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Bulk, Cleaned, Drained
from qmodel.model.rules import deduplication
from qmodel.model.rules.concurrency import ending, parked_first
from qmodel.model.rules.deletion import delete, delete_any
from qmodel.model.rules.recurrence import stop
from qmodel.model.rules.selection import acted, bulk, filter, find
from qmodel.model.state import budget, dependencies, jobs, queues, requests, schedules, throttles
from qmodel.model.state.jobs import Filter
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def cancel(store: Store, now: int, op: Cancel) -> tuple[str, ...]:
    """Delete unfinished jobs, or any, with all their dependents or none."""
    named = [jid for jid in dict.fromkeys(op.jids) if _is_meant(jobs.get(store, jid), op.complete)]
    doomed = _with_dependents(store, named) if op.cascade else _closed(store, named)
    _check_edges(store, doomed)
    found = [jobs.load(store, jid) for jid in doomed]
    budget.check("cancel", len(found), sum(ending(store, job) for job in found))

    for job in parked_first(found):
        delete_any(store, now, job)
    return tuple(doomed)


def check_cancel(store: Store, doomed: list[str]) -> None:
    """Refuse if one of these unfinished jobs cannot be canceled."""
    _closed(store, doomed)
    _check_edges(store, doomed)


def _check_edges(store: Store, doomed: list[str]) -> None:
    """Refuse to end more than 1000 dependencies at once."""
    if sum(len(jobs.load(store, jid).dependencies) for jid in doomed) > MOST:
        raise refuse("CANCEL_LIMIT", doomed[0])


def _is_unfinished(job: Job | None) -> bool:
    return job is not None and job.state != "complete"


def _is_meant(job: Job | None, complete: bool) -> bool:
    """Whether `cancel` deletes a job."""
    return job is not None and (complete or job.state != "complete")


def _closed(store: Store, named: list[str]) -> list[str]:
    """The same jobs; or refuse if a job outside the list depends on one of them."""
    known = set(named)
    for jid in named:
        for dependent in deduplication.dependents(store, jobs.load(store, jid)):
            if dependent not in known:
                raise refuse("HAS_DEPENDENTS", jid, dependent)
    return named


def _with_dependents(store: Store, named: list[str]) -> list[str]:
    """These jobs and all that depend on them, directly or not, nearest first."""
    found = dict.fromkeys(named)
    queue = list(named)
    for jid in queue:
        for dependent in deduplication.dependents(store, jobs.load(store, jid)):
            if dependent not in found:
                if len(found) == MOST:
                    raise refuse("CANCEL_LIMIT", named[0])
                found[dependent] = None
                queue.append(dependent)
    return queue


def drain(store: Store, now: int, op: Drain) -> Drained:
    """Cancel jobs of a queue that have not started, and have no dependents and at most 1000 dependencies."""
    canceled = 0
    for jid in queues.not_begun(store, op.queue, op.count):
        job = jobs.load(store, jid)
        units = ending(store, job)
        if canceled and not budget.fits(store, units, 0):
            break
        if dependencies.is_bounded(job) and not deduplication.has_dependents(store, job):
            budget.spend(store, units - budget.weight(job))  # the deletion spends the rest
            delete(store, now, job)
            canceled += 1
    return Drained(canceled, queues.length(queues.of(store, op.queue)))


def _canceler(store: Store, now: int) -> Callable[[Job], bool]:
    """Make a function that cancels a job if it may."""

    def act(job: Job) -> bool:
        if not dependencies.is_bounded(job) or deduplication.has_dependents(store, job):
            return False
        delete(store, now, job)
        return True

    return act


def _retirer(store: Store, now: int) -> Callable[[Job], bool]:
    """Make a function that deletes a complete job."""

    def act(job: Job) -> bool:
        emit(store, now, "retired", job.jid)
        jobs.remove(store, job)
        return True

    return act


def cancel_many(store: Store, now: int, op: CancelMany) -> Bulk:
    """Cancel the matching jobs without dependents."""
    found, cursor = find(store, now, "cancel_many", op, filter(op, op.state))
    unfinished = [job for job in found if _is_unfinished(job)]

    return bulk(store, op.preview, parked_first(unfinished), cursor, _canceler(store, now))


def clean(store: Store, now: int, op: Clean) -> Cleaned:
    """Delete finished jobs by age."""
    wanted = filter(op, op.state, now - op.older_ms)
    found, cursor = find(store, now, "clean", op, wanted)

    jids = acted(store, op.preview, found, _retirer(store, now) if op.state == "complete" else _canceler(store, now))
    return Cleaned(len(jids), len(found) - len(jids), cursor, jids)


def obliterate(store: Store, now: int, op: Obliterate) -> Bulk:
    """Delete jobs of a queue; the step that leaves none also deletes the queue."""
    busy = len(queues.of(store, op.queue).locks)
    if busy and not op.force:
        raise refuse("QUEUE_BUSY", op.queue, busy)
    wanted = Filter(op.queue, None, None, None, None, None, None)
    found, cursor = find(store, now, "obliterate", op, wanted)
    doomed, fit = _choose(store, op.queue, found)
    if fit < len(found):
        cursor = find(store, now, "obliterate", replace(op, count=fit), wanted)[1]

    for jid in schedules.page(store, op.queue, 0, MOST)[1]:
        schedule = schedules.find(store, jid)
        schedules.leave(store, schedule)
        stop(store, now, schedule, "obliterate")
    for job in parked_first(doomed):
        delete_any(store, now, job)
    left = queues.length(queues.of(store, op.queue)) + schedules.size(store, op.queue)
    if not left and not cursor and not requests.timed(store, op.queue):
        _forget_queue(store, now, op.queue)
    return Bulk(len(doomed), left, cursor)


def _choose(store: Store, queue: str, found: list[Job]) -> tuple[list[Job], int]:
    """Choose as many of the jobs as one operation deletes, each with all jobs that wait for it; give how many were
    chosen; or refuse.

    A job is deleted in one step with the jobs that wait for it: otherwise they would wait for nothing in between.
    """
    doomed: dict[str, Job] = {}
    edges = units = 0
    for fit, job in enumerate(found):
        more = _with_waiting(store, queue, job, doomed)
        edges += sum(len(jobs.load(store, jid).dependencies) for jid in more)
        units += sum(ending(store, jobs.load(store, jid)) for jid in more)
        if len(doomed) + len(more) > MOST or edges > MOST or (units > budget.UNITS and len(doomed) + len(more) > 1):
            if fit == 0:
                raise refuse("CANCEL_LIMIT", job.jid)
            return list(doomed.values()), fit
        doomed |= {jid: jobs.load(store, jid) for jid in more}
    return list(doomed.values()), len(found)


def _with_waiting(store: Store, queue: str, job: Job, doomed: dict[str, Job]) -> list[str]:
    """A job and all that wait for it, nearest first, without those already chosen; or refuse."""
    if job.jid in doomed:
        return []
    met = {job.jid}
    more = [job.jid]
    for jid in more:
        for dependent in deduplication.dependents(store, jobs.load(store, jid)):
            if jobs.load(store, dependent).queue != queue:
                raise refuse("HAS_DEPENDENTS", jid, dependent)
            if dependent not in met and dependent not in doomed:
                met.add(dependent)
                more.append(dependent)
        if len(more) > MOST:
            break
    return more


def _forget_queue(store: Store, now: int, queue: str) -> None:
    """Forget an empty queue: its own throttle, and its record."""
    own = throttles.own(store, queue)
    if own and throttles.clear(store, own):
        emit(store, now, "unlimited", own)
    if queues.forget(store, queue):
        emit(store, now, "forgotten", queue)
