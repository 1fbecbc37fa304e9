"""Complete jobs, and how long they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.state import config
from qmodel.state.failures import latest
from qmodel.state.store import Store

if TYPE_CHECKING:
    from qmodel.state.jobs import Job

def add(store: Store, job: Job) -> None:
    """Enter a complete job."""
    store.completed.add((job.ended_at, job.seq, job.jid))


def discard(store: Store, job: Job) -> None:
    """Strike a complete job."""
    store.completed.remove((job.ended_at, job.seq, job.jid))


def expired(store: Store, now: int, most: int) -> list[Job]:
    """The oldest complete jobs that are past jobs-history or beyond jobs-history-count."""
    kept = store.completed
    if not kept:
        return []
    surplus = len(kept) - config.value(store, "jobs-history-count")
    oldest = now - config.value(store, "jobs-history")
    if surplus <= 0 and kept[0][0] > oldest:
        return []
    return [
        store.jobs[jid] for rank, (ended_at, _, jid) in enumerate(kept[:most]) if rank < surplus or ended_at <= oldest
    ]


def page(store: Store, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many complete jobs there are, and a page of them, latest first."""
    return len(store.completed), latest(store.completed, offset, count)
