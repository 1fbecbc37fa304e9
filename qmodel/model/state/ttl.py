"""Time to live: the time until which a job may start.

A job that was put with `ttl_ms` may start until that long after its put, inclusive. Delays and dependencies count: the
time runs from the put. Rules:

- *It ends with the first claim.* The claim removes the option: a job that runs, or that ran and waits for a retry,
  cannot expire.
- *An expired job fails at the next pop,* like a lapsed lease: the next pop of its queue fails it before anything is
  handed out, or `fire` does. Until then it is listed and counted where it is; `peek`, which shows what a pop would
  give, leaves it out. No read reports a failure that has no event.
- It fails into the group `expired-<queue>`, and waits for no other job any longer. If it is retried, it does not expire
  again.
- *Bounded.* One pop fails the 1000 jobs that expired first, and ends 1000 dependencies; if there are more, each further
  pop fails as many, and gives none of them to a worker.
"""

from __future__ import annotations

from typing import Final

from qmodel.model.state import options
from qmodel.model.state.records import Job, Position
from qmodel.model.state.store import Store

PENDING: Final = frozenset({"scheduled", "depends", "waiting", "throttled"})
"""The states in which a job can expire."""


def _place(job: Job) -> Position | None:
    """The position of a job among those that will expire, or None."""
    ttl = options.get(job, "ttl_ms")
    return (job.put_at + int(ttl), job.seq, job.jid) if ttl is not None and job.state in PENDING else None


def enter(store: Store, job: Job) -> None:
    """List a job that was placed, if it has a time to live."""
    place = _place(job)
    if place is not None:
        store.queues[job.queue].expires.add(place)


def leave(store: Store, job: Job) -> None:
    """Remove a job that is about to be lifted from the list."""
    place = _place(job)
    if place is not None:
        store.queues[job.queue].expires.remove(place)


def is_over(now: int, job: Job) -> bool:
    """Whether a job that has not started may no longer start."""
    ttl = options.get(job, "ttl_ms")
    return ttl is not None and job.put_at + int(ttl) < now


def due(store: Store, name: str, now: int, most: int) -> list[Job]:
    """The expired jobs of a queue, earliest first."""
    queue = store.queues.get(name)
    return [store.jobs[jid] for _, _, jid in queue.expires.until(now - 1, most)] if queue is not None else []
