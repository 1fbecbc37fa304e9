"""Times to live: until which moment a job may begin.

A job that was put with `ttl_ms` may begin until that long after its put, that moment included; not a millisecond later
is it handed out. Delays and dependencies count: it lives from its put. What holds of it:

- *It ends with the first claim.* From then on the option is gone: a job that runs, or that ran and waits to be tried
  again, cannot expire.
- *An expired job fails when somebody takes,* as a lapsed lease ends then: by the next pop of its queue, before anything
  is handed out, or by `fire`. Until then it is listed and counted where it stands; `peek`, which shows what a pop would
  give, leaves it out. No read tells of a failure that no event has told of.
- It fails in the group `expired-<queue>`, and waits for nobody any longer. Tried again by unfail, it lives for ever.
- *Bounded.* One pop fails the 1000 that expired first, and ends 1000 dependencies; of more than that each further pop
  fails as many, and gives none of them to a worker.
"""

from __future__ import annotations

from typing import Final

from qmodel.model.state import options
from qmodel.model.state.records import Job, Position
from qmodel.model.state.store import Store

PENDING: Final = frozenset({"scheduled", "depends", "waiting", "throttled"})
"""The states in which a job can expire."""


def _place(job: Job) -> Position | None:
    """Where a job stands among those that will expire, if it does."""
    ttl = options.get(job, "ttl_ms")
    return (job.put_at + int(ttl), job.seq, job.jid) if ttl is not None and job.state in PENDING else None


def enter(store: Store, job: Job) -> None:
    """Enter a job that was placed, if it has a time to live."""
    place = _place(job)
    if place is not None:
        store.queues[job.queue].expires.add(place)


def leave(store: Store, job: Job) -> None:
    """Strike a job that is about to be lifted, if it stands here."""
    place = _place(job)
    if place is not None:
        store.queues[job.queue].expires.remove(place)


def is_over(now: int, job: Job) -> bool:
    """Whether a job that has not begun may no longer do so."""
    ttl = options.get(job, "ttl_ms")
    return ttl is not None and job.put_at + int(ttl) < now


def due(store: Store, name: str, now: int, most: int) -> list[Job]:
    """The jobs of a queue that have expired, by the moments until which they lived."""
    queue = store.queues.get(name)
    return [store.jobs[jid] for _, _, jid in queue.expires.until(now - 1, most)] if queue is not None else []
