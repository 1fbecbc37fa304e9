"""How the pauses of a queue end: by time, or one reason after the other."""

from __future__ import annotations

from qmodel.model.state import pauses, queues
from qmodel.model.state.store import Store, emit


def end(store: Store, now: int, name: str, reason: str | None) -> bool:
    """End the pause for a reason, or without one all; say whether the queue goes on."""
    left = pauses.drop(store, name, reason)
    emit(store, now, "unpaused", name, reason or "", left)
    if left == 0:
        queues.resume(store, name)
    return left == 0


def holds(store: Store, now: int, name: str) -> bool:
    """Strike the pauses of a queue whose time is up; say whether it is paused for any other."""
    for reason in pauses.ended(store, now, name):
        end(store, now, name, reason)
    return queues.has_pauses(store, name)
