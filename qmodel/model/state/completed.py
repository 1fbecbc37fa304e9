"""Complete jobs, and how long they are kept.

The count may be exceeded by a sixteenth, at most by 64. Beyond that, the jobs that exceed the count are deleted
together: this costs less than deleting one with every completion.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmodel.model.state import budget, retention
from qmodel.model.state.failures import latest
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store

PART, MOST = 16, 64


def add(store: Store, job: Job) -> None:
    """List a complete job."""
    store.completed.add((job.ended_at, job.seq, job.jid))
    if job.options:
        retention.enter(store, job)


def discard(store: Store, job: Job) -> None:
    """Remove a complete job."""
    store.completed.remove((job.ended_at, job.seq, job.jid))
    if job.options:
        retention.leave(store, job)


def surplus_of(store: Store) -> int:
    """How many jobs are to be deleted because there are too many; 0 while the count is exceeded by few."""
    count = store.settings["jobs-history-count"]
    surplus = store.completed.size - count
    return surplus if surplus > min(count // PART, MOST) else 0


def expired(store: Store, now: int, most: int) -> Sequence[Job]:
    """The oldest complete jobs that are past jobs-history or beyond jobs-history-count."""
    completed, settings = store.completed, store.settings
    surplus = surplus_of(store) if completed.size > settings["jobs-history-count"] else 0
    last = now - settings["jobs-history"]
    if not surplus and not completed.begins_by(last):
        return ()
    found = completed.until(last, most)
    if surplus > len(found):
        found = completed[: min(surplus, most)]
    old: list[Job] = []
    kept = budget.room(store) // 2
    for _, _, jid in found:
        if not budget.take(store, budget.weight(store.jobs[jid]), kept, old):
            break
        old.append(store.jobs[jid])
    return old


def page(store: Store, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many complete jobs there are, and a page of them, latest first."""
    return len(store.completed), latest(store.completed, offset, count)
