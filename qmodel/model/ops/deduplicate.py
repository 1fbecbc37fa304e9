"""Deduplication keys: showing the holder of a key, and releasing it."""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.contract.operations import UniqueGet, UniqueRelease
from qmodel.model.rules.deduplication import resume
from qmodel.model.state import jobs, uniques
from qmodel.model.state.store import Store, emit


def unique_get(store: Store, now: int, op: UniqueGet) -> replies.Unique | None:
    """Show the holder of a key."""
    unique = uniques.get(store, now, op.unique)
    return uniques.view(unique) if unique is not None else None


def unique_release(store: Store, now: int, op: UniqueRelease) -> int:
    """Release a key; a job that waits for the holder continues."""
    unique = uniques.get(store, now, op.unique)
    if unique is None:
        return 0
    emit(store, now, "unique_released", unique.key, unique.jid)
    uniques.remove(store, unique)
    if unique.next:
        resume(store, now, jobs.load(store, unique.next), unique.jid)
    return 1
