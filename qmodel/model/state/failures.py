"""Failed jobs: by group, and all of them by the moment at which they failed, for those that are kept no longer.

A failed job on which others depend, or that depends on others, is never deleted by age or count: there is more to come
of it. When its turn comes it is struck off the list of all, and marked as kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from qmodel.model.sorted_list import Ordered
from qmodel.model.state import config, options, retention
from qmodel.model.state.store import Place, Store

if TYPE_CHECKING:
    from qmodel.model.state.jobs import Job


def _group(job: Job) -> str:
    assert job.failure is not None
    return job.failure.group


def add(store: Store, job: Job) -> None:
    """Enter a failed job."""
    group = store.groups.get(_group(job))
    if group is None:
        group = store.groups[_group(job)] = Ordered()
    group.add((job.ended_at, job.seq, job.jid))
    store.failed.add((job.ended_at, job.seq, job.jid))
    retention.enter(store, job)


def discard(store: Store, job: Job) -> None:
    """Strike a failed job, and its group when it was the last."""
    group = store.groups[_group(job)]
    group.remove((job.ended_at, job.seq, job.jid))
    if not group:
        del store.groups[_group(job)]
    if options.get(job, "kept") is None:
        store.failed.remove((job.ended_at, job.seq, job.jid))
    retention.leave(store, job)
    options.drop(job, "kept")


def keep(store: Store, job: Job) -> None:
    """Let a failed job be kept for as long as it is failed."""
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


def of(store: Store, name: str) -> Ordered[Place]:
    """The jobs of a group, longest failed first."""
    return store.groups.get(name) or Ordered()


def groups(store: Store, offset: int, count: int) -> list[tuple[str, int]]:
    """A page of the groups by name, with their sizes."""
    return [(name, len(store.groups[name])) for name in store.groups.keys()[offset : offset + count]]


def names(store: Store, first: str, most: int) -> list[str]:
    """The first groups by name, from one on."""
    return list(islice(store.groups.irange(first), most))


def page(store: Store, name: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many jobs a group has, and a page of them, latest first."""
    return len(of(store, name)), latest(of(store, name), offset, count)


def latest(places: Ordered[Place], offset: int, count: int) -> tuple[str, ...]:
    """A page of places from the end."""
    end = len(places) - offset
    return tuple(jid for _, _, jid in reversed(places[max(end - count, 0) : max(end, 0)]))
