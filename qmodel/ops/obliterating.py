"""Deleting a queue with all that it has, a bounded part at a time."""

from __future__ import annotations

from dataclasses import replace

from qmodel.arguments import MOST
from qmodel.operations import Obliterate
from qmodel.ops import uniquing
from qmodel.ops.removing import delete
from qmodel.ops.resuming import stop
from qmodel.ops.searching import find
from qmodel.refusals import refuse
from qmodel.replies import Bulk
from qmodel.state import jobs, queues, schedules, throttles
from qmodel.state.jobs import Filter, Job
from qmodel.state.store import Store, emit


def obliterate(store: Store, now: int, op: Obliterate) -> Bulk:
    """Delete jobs of a queue, and in the step in which none is left the queue."""
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
    for jid in doomed:
        _delete(store, now, jobs.load(store, jid))
    left = queues.length(queues.of(store, op.queue)) + schedules.size(store, op.queue)
    if not left and not cursor:
        _forget(store, now, op.queue)
    return Bulk(len(doomed), left, cursor)


def _choose(store: Store, queue: str, found: list[Job]) -> tuple[list[str], int]:
    """As many of the jobs as one operation deletes, each with all that wait for it, and how many these are; or refuse.

    A job goes in one step with those that wait for it: else they would wait for nothing in between.
    """
    doomed: dict[str, None] = {}
    edges = 0
    for fit, job in enumerate(found):
        more = _with_dependents(store, queue, job, doomed)
        edges += sum(len(jobs.load(store, jid).dependencies) for jid in more)
        if len(doomed) + len(more) > MOST or edges > MOST:
            if fit == 0:
                raise refuse("CANCEL_LIMIT", job.jid)
            return list(doomed), fit
        doomed.update(dict.fromkeys(more))
    return list(doomed), len(found)


def _with_dependents(store: Store, queue: str, job: Job, doomed: dict[str, None]) -> list[str]:
    """A job and all that wait for it, nearest first, but those that are doomed already; or refuse."""
    if job.jid in doomed:
        return []
    met = {job.jid}
    more = [job.jid]
    for jid in more:
        for dependent in uniquing.dependents(store, jobs.load(store, jid)):
            if jobs.load(store, dependent).queue != queue:
                raise refuse("HAS_DEPENDENTS", jid, dependent)
            if dependent not in met and dependent not in doomed:
                met.add(dependent)
                more.append(dependent)
        if len(more) > MOST:
            break
    return more


def _delete(store: Store, now: int, job: Job) -> None:
    """Delete a job in whatever state."""
    if job.state == "complete":
        emit(store, now, "retired", job.jid)
        jobs.remove(store, job)
    else:
        delete(store, now, job)


def _forget(store: Store, now: int, queue: str) -> None:
    """Forget a queue in which nothing is left: its throttle, and what is known of it."""
    own = throttles.own(store, queue)
    if own and throttles.clear(store, own):
        emit(store, now, "unlimited", own)
    if queues.forget(store, queue):
        emit(store, now, "forgotten", queue)
