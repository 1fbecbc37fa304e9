"""Reads. They change nothing, and are true at `now`."""

from __future__ import annotations

import math

from qmodel.contract import replies
from qmodel.contract.events import Event
from qmodel.contract.operations import (
    Completed,
    Depending,
    Events,
    Get,
    Journal,
    Length,
    Metrics,
    Multiget,
    Newest,
    Queue,
    Queues,
    Running,
    Scheduled,
    Search,
    Stalled,
    Stats,
    Throttled,
    Waiting,
    Why,
    Worker,
    Workers,
)
from qmodel.contract.reasons import Reason
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Page, QueueCounts, WorkerCounts, WorkerJobs
from qmodel.model.rules import admission, explanation, selection
from qmodel.model.state import (
    budget,
    completed,
    config,
    epochs,
    jobs,
    journal,
    pauses,
    queues,
    schedules,
    stats,
    workers,
)
from qmodel.model.state.store import Store, events_after


def why(store: Store, now: int, op: Why) -> tuple[Reason, ...]:
    """Explain why a job does not run, or say that it does."""
    return explanation.reasons(store, now, jobs.find(store, op.jid))


def get(store: Store, now: int, op: Get) -> replies.Job | None:
    """Show a job."""
    job = jobs.get(store, op.jid)
    return jobs.view(store, now, job) if job is not None else None


def multiget(store: Store, now: int, op: Multiget) -> tuple[replies.Job, ...]:
    """Show several jobs."""
    found = [jobs.get(store, jid) for jid in op.jids]
    budget.check("multiget", len(op.jids), sum(budget.weight(job) for job in found if job is not None))
    return tuple(jobs.view(store, now, job) for job in found if job is not None)


def search(store: Store, now: int, op: Search) -> replies.Found:
    """Find jobs."""
    found, cursor = selection.find(store, now, "search", op, selection.filter(op, op.state))
    return replies.Found(cursor, tuple(jobs.view(store, now, job) for job in found))


def waiting(store: Store, now: int, op: Waiting) -> Page:
    """List the jobs in order, then those that have become due since the last pop."""
    queue = queues.of(store, op.queue)
    ready = queues.order(queue, op.offset, op.count)
    skip = max(op.offset - len(queue.ready), 0)
    due, rest = queues.page(queue.scheduled, -math.inf, now, skip, op.count - len(ready))
    return Page(len(queue.ready) + due, (*ready, *rest))


def scheduled(store: Store, now: int, op: Scheduled) -> Page:
    """List the jobs that are not due yet."""
    return Page(*queues.page(queues.of(store, op.queue).scheduled, now, math.inf, op.offset, op.count))


def depending(store: Store, now: int, op: Depending) -> Page:
    """List the jobs that wait for other jobs."""
    return Page(*queues.page(queues.of(store, op.queue).depends, -math.inf, math.inf, op.offset, op.count))


def throttled(store: Store, now: int, op: Throttled) -> Page:
    """List the ready jobs that are parked."""
    return Page(*queues.page(queues.of(store, op.queue).throttled, -math.inf, math.inf, op.offset, op.count))


def running(store: Store, now: int, op: Running) -> Page:
    """List the jobs under a valid lease."""
    return Page(*queues.page(queues.of(store, op.queue).locks, now, math.inf, op.offset, op.count))


def stalled(store: Store, now: int, op: Stalled) -> Page:
    """List the jobs with a lapsed or ended lease."""
    return Page(*queues.page(queues.of(store, op.queue).locks, -math.inf, now, op.offset, op.count))


def completed_(store: Store, now: int, op: Completed) -> Page:
    """List the complete jobs, latest first."""
    return Page(*completed.page(store, op.offset, op.count))


def queues_(store: Store, now: int, op: Queues) -> tuple[QueueCounts, ...]:
    """Count the jobs of the queues on the list."""
    return tuple(_counts(store, now, name) for name in queues.listed(store)[op.offset : op.offset + op.count])


def queue(store: Store, now: int, op: Queue) -> QueueCounts:
    """Count the jobs of one queue."""
    return _counts(store, now, op.queue)


def _counts(store: Store, now: int, name: str) -> QueueCounts:
    """Count the jobs of a queue by state, and find its next event."""
    queue = queues.of(store, name)
    due = queues.count(queue.scheduled, now)
    stalled = queues.count(queue.locks, now)
    ready_at = queues.next_at(queue, now, config.value(store, "grace-period"))
    lasting = pauses.lasting(store, now, name)
    opens_at = 0 if lasting else admission.opens_at(store, now, name)
    return QueueCounts(
        name,
        waiting=len(queue.ready) + due,
        scheduled=len(queue.scheduled) - due,
        depends=len(queue.depends),
        running=len(queue.locks) - stalled,
        stalled=stalled,
        paused=bool(lasting),
        next_at=min(filter(None, (ready_at, opens_at, pauses.ends_at(store, now, name))), default=0),
        recurring=schedules.size(store, name),
        due=schedules.count_due(store, name, now),
        throttled=len(queue.throttled),
        pauses=tuple(replies.Pause(*one) for one in lasting),
    )


def length(store: Store, now: int, op: Length) -> int:
    """Count the jobs of a queue in any state."""
    return queues.length(queues.of(store, op.queue))


def workers_(store: Store, now: int, op: Workers) -> tuple[WorkerCounts, ...]:
    """List the workers with the number of their leases, as far as the budget goes."""
    found = workers.listed(store, now)[op.offset : op.offset + op.count]
    return tuple(WorkerCounts(name, seen_at, *_held_by(store, now, name)) for seen_at, name in found)


def _held_by(store: Store, now: int, name: str) -> tuple[int, int]:
    """How many valid and lapsed leases a worker has; beyond the budget, how many at least: one for each grant."""
    entries = workers.entries(store, name)
    units = budget.of_leases(entries)
    if units > budget.room(store):
        return entries // 2, 0
    budget.spend(store, units)
    valid, lapsed = _leases(store, now, workers.unordered(store, name))
    return len(valid), len(lapsed)


def worker(store: Store, now: int, op: Worker) -> WorkerJobs:
    """List the jobs that a worker holds."""
    workers.check_bounded(store, "worker", op.worker)
    return WorkerJobs(*_leases(store, now, workers.held(store, op.worker)))


def _leases(store: Store, now: int, held: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of some jobs that are held with a valid lease, and those with a lapsed one."""
    valid = tuple(jid for jid in held if jobs.load(store, jid).expires_at > now)
    lapsed = tuple(jid for jid in held if jobs.load(store, jid).expires_at <= now)
    return valid, lapsed


def stats_(store: Store, now: int, op: Stats) -> replies.Stats:
    """Show the statistics of a queue on a day, or those by a tag or a worker."""
    if op.tag is not None and op.worker is not None:
        raise refuse("BAD_ARGUMENT", "stats", "worker")

    return stats.view(store, now, op.queue, now if op.at is None else op.at, op.tag, op.worker)


def metrics(store: Store, now: int, op: Metrics) -> tuple[replies.Minute, ...]:
    """Show what became of a queue's jobs, minute by minute."""
    return stats.metrics(store, now, op.queue, now if op.at is None else op.at, op.count)


def events(store: Store, now: int, op: Events) -> tuple[Event, ...]:
    """List the events after a sequence number; with the epoch of that event, only if it is part of this history."""
    if op.epoch is not None:
        epochs.check(store, op.after, op.epoch)

    return events_after(store, op.after, op.count)


def newest(store: Store, now: int, op: Newest) -> replies.Newest:
    """Give the sequence and the epoch of the newest event."""
    return replies.Newest(store.seq, store.epoch)


def journal_(store: Store, now: int, op: Journal) -> tuple[replies.Recorded, ...]:
    """List the entries of the journal after a number; with the epoch of that entry, only if it is part of this
    history.
    """
    if op.epoch is not None:
        journal.check(store, op.after, op.epoch)

    return journal.after(store, op.after, op.count)
