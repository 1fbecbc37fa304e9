"""Retention of single jobs that have ended, if their put set it.

A job that was put with `keep_complete_ms` or `keep_failed_ms` is deleted that long after it completed or failed. The
options of the namespace (state/completed.py, state/failures.py) apply as well, so that they bound what is kept: the
shorter of the two wins. Rules:

- *It is deleted when another job ends,* or by `fire`: until then it is found as it is. With 0 it is deleted in the step
  that ends it, after it has released everything that it held: such jobs come before all others, so that no step leaves
  one behind.
- A failed job with dependents or dependencies is not deleted, because it may still change. When its turn comes, it is
  removed from this list too (failures.keep).
- *Bounded.* A completion deletes 100 of them, a failure three, `fire` 1000, and none more than half of what its budget
  has left; those with 0 are always deleted.
"""

from __future__ import annotations

from typing import Final

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


def enter(store: Store, job: Job) -> None:
    """List a job that has ended, if it has its own retention."""
    place = _place(job)
    if place is not None:
        store.keeping.add(place)


def leave(store: Store, job: Job) -> None:
    """Remove a job from the list."""
    place = _place(job)
    if place is not None:
        store.keeping.remove(place)


def due(store: Store, now: int, most: int) -> list[Job]:
    """The jobs whose own retention is over, earliest first."""
    found: list[Job] = []
    kept = budget.room(store) // 2
    for moment, _, jid in store.keeping.until(now, most):
        job = store.jobs[jid]
        units = budget.weight(job)
        if moment and found and not budget.fits(store, units, kept):
            break
        budget.spend(store, units)
        found.append(job)
    return found
