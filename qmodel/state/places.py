"""Places: which sorted list a job stands in, by its state, and under which key.

waiting     its queue's order         (priority, ready_at, sequence)
scheduled   its queue's schedule      (ready_at, sequence)
depends     its queue's dependents    (put_at, sequence)
running     its queue's locks         (expires_at, sequence), and its worker's leases
stalled     its queue's locks         (before all others, sequence)
complete    the completed             (ended_at, sequence)
failed      its failure group         (ended_at, sequence)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.state import completed, failures, queues, workers
from qmodel.state.store import Store

if TYPE_CHECKING:
    from qmodel.state.jobs import Job


def enter(store: Store, job: Job) -> None:
    """Put a job into the place that its state says."""
    state = job.state
    if state == "waiting":
        queues.push(store, job)
    elif state == "running":
        queues.lock(store, job)
        workers.hold(store, job)
    elif state == "complete":
        completed.add(store, job)
    elif state == "failed":
        failures.add(store, job)
    elif state == "scheduled":
        queues.schedule(store, job)
    elif state == "depends":
        queues.park(store, job)
    elif state == "stalled":
        queues.lock(store, job)


def leave(store: Store, job: Job) -> None:
    """Take a job out of the place that its state says."""
    state = job.state
    if state == "running":
        queues.unlock(store, job)
        workers.let_go(store, job)
    elif state == "waiting":
        queues.pull(store, job)
    elif state == "scheduled":
        queues.unschedule(store, job)
    elif state == "depends":
        queues.unpark(store, job)
    elif state == "stalled":
        queues.unlock(store, job)
    elif state == "complete":
        completed.discard(store, job)
    elif state == "failed":
        failures.discard(store, job)
