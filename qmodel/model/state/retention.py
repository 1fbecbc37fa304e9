"""Retention of single jobs that have ended, if their put set it.

A job that was put with `keep_complete_ms` or `keep_failed_ms` is deleted that long after it completed or failed. The
options of the namespace (state/completed.py, state/failures.py) apply as well, so that they bound what is kept: the
shorter of the two wins. Rules:

- *It is deleted when another job ends,* or by `fire`: until then it is found as it is. With 0 it is deleted in the step
  that ends it, after it has released everything that it held: such jobs come before all others, so that no step leaves
  one behind.
- A failed job with dependents or dependencies is not deleted, because it may still change. When its turn comes, it is
  removed from this list too (failures.keep).
- With `keep_newest` it is listed with the others of its type that have this option. Each completion of one of them ends
  the retention of up to two beyond the number that it says, the longest complete first.
- *Bounded.* A completion deletes 100 of them, a failure three, `fire` 1000, and none more than half of what its budget
  has left; those with 0 are always deleted.
"""

from __future__ import annotations

from typing import Final

from qmodel.model.sorted_list import Ordered
from qmodel.model.state import budget, options
from qmodel.model.state.records import Job, Position
from qmodel.model.state.store import Store

OF_STATE: Final = {"complete": "keep_complete_ms", "failed": "keep_failed_ms"}
"""The option that sets how long a job is kept in a state."""


def _place(job: Job) -> Position | None:
    """The position of an ended job among those with their own retention, or None."""
    said = options.get(job, OF_STATE[job.state])
    if said is None or options.get(job, "kept") is not None:
        return None
    return (job.ended_at + int(said) if said != "0" else 0, job.seq, job.jid)


BEYOND = 2
"""How many jobs a completion lets go for `keep_newest`: more than one, so that a lower number is reached."""


def _counts(job: Job) -> bool:
    """Whether a job is among the newest of its type: until its retention is 0."""
    said = options.get(job, "keep_newest") if job.state == "complete" else None
    return said is not None and options.get(job, "keep_complete_ms") != "0"


def _keep_newest(store: Store, job: Job) -> None:
    """List a complete job among the newest of its type, if it says how many; end the retention of the others."""
    if not _counts(job):
        return
    newest = store.newest.setdefault(job.klass, Ordered())
    newest.add((job.ended_at, job.seq, job.jid))
    for _, _, jid in newest[: min(max(len(newest) - int(job.options["keep_newest"]), 0), BEYOND)]:
        old = store.jobs[jid]
        if old is not job:
            leave(store, old)
        else:
            _uncount(store, old)
        options.set(old, "keep_complete_ms", 0)
        if old is not job:
            _list(store, old)


def _uncount(store: Store, job: Job) -> None:
    """Remove a job from the newest of its type."""
    newest = store.newest[job.klass]
    newest.remove((job.ended_at, job.seq, job.jid))
    if not len(newest):
        del store.newest[job.klass]


def _unlist(store: Store, job: Job) -> None:
    """Remove a job from those with an end of their retention."""
    place = _place(job)
    if place is not None:
        store.keeping.remove(place)


def _list(store: Store, job: Job) -> None:
    """Add a job to those with an end of their retention, if it has one."""
    place = _place(job)
    if place is not None:
        store.keeping.add(place)


def enter(store: Store, job: Job) -> None:
    """List a job that has ended, if it has its own retention."""
    _keep_newest(store, job)
    _list(store, job)


def leave(store: Store, job: Job) -> None:
    """Remove a job from the lists."""
    _unlist(store, job)
    if _counts(job):
        _uncount(store, job)


def due(store: Store, now: int, most: int) -> list[Job]:
    """The jobs whose own retention is over, earliest first."""
    found: list[Job] = []
    kept = budget.room(store) // 2
    for moment, _, jid in store.keeping.until(now, most):
        job = store.jobs[jid]
        if not budget.take(store, budget.weight(job), kept, moment and found):
            break
        found.append(job)
    return found
