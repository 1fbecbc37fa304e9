"""State index: the sorted list that contains a job, by its state, and the fields that order it there.

waiting     its queue's order         (priority, ready_at, sequence)
scheduled   its queue's schedule      (ready_at, sequence)
depends     its queue's dependents    (put_at, sequence)
throttled   its queue's throttled     (ready_at, sequence), and the jobs parked at its concurrency key or throttle
running     its queue's locks         (expires_at, sequence), its worker's leases, and its throttles
stalled     its queue's locks         (before all others, sequence), and its throttles
complete    the completed             (ended_at, sequence)
failed      its failure group         (ended_at, sequence)
"""

from __future__ import annotations

from collections.abc import Callable

from qmodel.model.state import completed, concurrency_keys, failures, parked, queues, workers
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store

Ways = tuple[Callable[[Store, "Job"], None], Callable[[Store, "Job"], None]]
"""How a job enters the lists of a state, and how it leaves them."""


def _push(store: Store, job: Job) -> None:
    queues.push(store, job)
    parked.reserve(store, job)


def _pull(store: Store, job: Job) -> None:
    queues.pull(store, job)
    parked.unreserve(store, job)


def _throttle(store: Store, job: Job) -> None:
    queues.throttle(store, job)
    if concurrency_keys.is_parked(job):
        concurrency_keys.park(store, str(concurrency_keys.of(job)), job)
    else:
        parked.park(store, job)


def _unthrottle(store: Store, job: Job) -> None:
    queues.unthrottle(store, job)
    if concurrency_keys.is_parked(job):
        concurrency_keys.unpark(store, str(concurrency_keys.of(job)), job)
    else:
        parked.unpark(store, job)


def _lock(store: Store, job: Job) -> None:
    queues.lock(store, job)
    parked.hold(store, job)


def _unlock(store: Store, job: Job) -> None:
    queues.unlock(store, job)
    if store.throttles:
        parked.release(store, job)


def _begin_lease(store: Store, job: Job) -> None:
    _lock(store, job)
    workers.hold(store, job)


def _begin_plain_lease(store: Store, job: Job) -> None:
    queues.lock(store, job)
    workers.hold(store, job)


def _end_lease(store: Store, job: Job) -> None:
    queues.unlock(store, job)
    if store.throttles:
        parked.release(store, job)
    workers.release(store, job)


PLACES: dict[str, Ways] = {
    "waiting": (_push, _pull),
    "scheduled": (queues.schedule, queues.unschedule),
    "depends": (queues.park, queues.unpark),
    "throttled": (_throttle, _unthrottle),
    "running": (_begin_lease, _end_lease),
    "stalled": (_lock, _unlock),
    "complete": (completed.add, completed.discard),
    "failed": (failures.add, failures.discard),
}
"""For each state, how a job enters its lists and how it leaves them."""

SHORTER: dict[str, Ways] = {
    "waiting": (queues.push, queues.pull),
    "running": (_begin_plain_lease, _end_lease),
    "stalled": (queues.lock, _unlock),
}
"""Shortcuts for a job without options: no throttle has admitted it, and it names none."""

PLAIN: dict[str, Ways] = PLACES | SHORTER


def enter(store: Store, job: Job) -> None:
    """Put a job into the lists of its state."""
    ways = PLACES if job.options else PLAIN
    ways[job.state][0](store, job)


def leave(store: Store, job: Job) -> None:
    """Take a job out of the lists of its state."""
    ways = PLACES if job.options else PLAIN
    ways[job.state][1](store, job)
