"""How the pauses of a queue end: by time, or by unpause."""

from __future__ import annotations

from qmodel.model.state import pauses, queues
from qmodel.model.state.store import Store, emit


def end(store: Store, now: int, name: str, reason: str | None) -> bool:
    """End the pause for a reason, or all without one; say whether the queue resumes."""
    left = pauses.drop(store, name, reason)
    emit(store, now, "unpaused", name, reason or "", left)
    if left == 0:
        queues.resume(store, name)
    return left == 0


def holds(store: Store, now: int, name: str) -> bool:
    """Delete the expired pauses of a queue; say whether any other is left."""
    for reason in pauses.ended(store, now, name):
        end(store, now, name, reason)
    return queues.has_pauses(store, name)
