"""Pauses of queues: each has a reason, and the time at which it ends by itself, or 0.

A queue is paused while any pause lasts, so one client does not end another client's pause. An expired pause is deleted
by the next pop of the queue, or by the next change of its pauses; for a read it has ended at its time.
"""

from __future__ import annotations

from qmodel.model.state import queues
from qmodel.model.state.store import Store

MOST = 10


def of(store: Store, name: str) -> dict[str, int]:
    """The pauses of a queue: reason -> until, expired ones included."""
    return queues.of(store, name).pauses


def ended(store: Store, now: int, name: str) -> list[str]:
    """The reasons of expired pauses, earliest first."""
    return [reason for until, reason in sorted((u, r) for r, u in of(store, name).items()) if 0 < until <= now]


def lasting(store: Store, now: int, name: str) -> tuple[tuple[str, int], ...]:
    """The pauses that last, by reason."""
    return tuple(sorted((reason, until) for reason, until in of(store, name).items() if until == 0 or until > now))


def ends_at(store: Store, now: int, name: str) -> int:
    """The time at which a paused queue resumes by itself, or 0."""
    ends = [until for _, until in lasting(store, now, name)]
    return max(ends) if ends and min(ends) > 0 else 0


def assign(store: Store, name: str, reason: str, until: int) -> None:
    """Pause a queue for a reason."""
    queues.set_pauses(store, name, {**of(store, name), reason: until})


def drop(store: Store, name: str, reason: str | None) -> int:
    """End the pause for a reason, or all without one; give how many are left."""
    left = {one: until for one, until in of(store, name).items() if reason not in (None, one)}
    queues.set_pauses(store, name, left)
    return len(left)
