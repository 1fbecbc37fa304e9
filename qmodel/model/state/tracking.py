"""The tracked jobs, in the order of tracking. Tracking outlives the job: its id is then listed as expired."""

from __future__ import annotations

from qmodel.model.state.store import Store


def is_tracked(store: Store, jid: str) -> bool:
    """Whether a job is tracked."""
    return jid in store.tracked


def add(store: Store, jid: str) -> None:
    """Track a job. The current sequence is its position."""
    store.tracked[jid] = store.seq


def discard(store: Store, jid: str) -> None:
    """Stop tracking a job."""
    del store.tracked[jid]


def page(store: Store, offset: int, count: int) -> list[str]:
    """A page of the tracked jobs."""
    return list(store.tracked)[offset : offset + count]
