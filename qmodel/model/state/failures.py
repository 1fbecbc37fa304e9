"""Failed jobs: by group, and all of them by the time of failure, for retention.

A failed job with dependents or dependencies is never deleted by age or count, because it may still change. When its
turn comes, it is removed from the list of all failed jobs and marked as kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from qmodel.model.sorted_list import Ordered
from qmodel.model.state import config, options, retention
from qmodel.model.state.records import Job, Position
from qmodel.model.state.store import Store


def _group(job: Job) -> str:
    """The failure group of a failed job."""
    assert job.failure is not None
    return job.failure.group


def add(store: Store, job: Job) -> None:
    """List a failed job."""
    group = store.groups.get(_group(job))
    if group is None:
        group = store.groups[_group(job)] = Ordered()
    group.add((job.ended_at, job.seq, job.jid))
    store.failed.add((job.ended_at, job.seq, job.jid))
    retention.enter(store, job)


def discard(store: Store, job: Job) -> None:
    """Remove a failed job, and its group if it was the last."""
    group = store.groups[_group(job)]
    group.remove((job.ended_at, job.seq, job.jid))
    if not group:
        del store.groups[_group(job)]
    if options.get(job, "kept") is None:
        store.failed.remove((job.ended_at, job.seq, job.jid))
    retention.leave(store, job)
    options.drop(job, "kept")


def keep(store: Store, job: Job) -> None:
    """Keep a failed job for as long as it is failed."""
    store.failed.remove((job.ended_at, job.seq, job.jid))
    retention.leave(store, job)
    options.set(job, "kept", 1)


def expired(store: Store, now: int, most: int) -> Sequence[Job]:
    """The failed jobs that are past failed-history or beyond failed-history-count, longest failed first."""
    age, count = config.value(store, "failed-history"), config.value(store, "failed-history-count")
    if not age and not count:
        return ()
    found = store.failed.until(now - age, most) if age else []
    surplus = len(store.failed) - count if count else 0
    if surplus > len(found):
        found = store.failed[: min(surplus, most)]
    return [store.jobs[jid] for _, _, jid in found]


def of(store: Store, name: str) -> Ordered[Position]:
    """The jobs of a group, longest failed first."""
    return store.groups.get(name) or Ordered()


def groups(store: Store, offset: int, count: int) -> list[tuple[str, int]]:
    """A page of the groups by name, with their sizes."""
    return [(name, len(store.groups[name])) for name in store.groups.keys()[offset : offset + count]]


def names(store: Store, first: str, most: int) -> list[str]:
    """The first groups by name, starting at `first`."""
    return list(islice(store.groups.irange(first), most))


def page(store: Store, name: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many jobs a group has, and a page of them, latest first."""
    return len(of(store, name)), latest(of(store, name), offset, count)


def latest(places: Ordered[Position], offset: int, count: int) -> tuple[str, ...]:
    """A page of a list from its end."""
    end = len(places) - offset
    return tuple(jid for _, _, jid in reversed(places[max(end - count, 0) : max(end, 0)]))
