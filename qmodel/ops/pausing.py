"""Pauses of queues, each for a reason of its own."""

from __future__ import annotations

from qmodel.operations import Pause, Unpause
from qmodel.refusals import refuse
from qmodel.state import pauses, queues
from qmodel.state.store import Store, emit


def holds(store: Store, now: int, name: str) -> bool:
    """Strike the pauses of a queue whose time is up; say whether it is paused for any other."""
    for reason in pauses.ended(store, now, name):
        _end(store, now, name, reason)
    return queues.has_pauses(store, name)


def _end(store: Store, now: int, name: str, reason: str | None) -> bool:
    """End the pause for a reason, or without one all; say whether the queue goes on."""
    left = pauses.drop(store, name, reason)
    emit(store, now, "unpaused", name, reason or "", left)
    if left == 0:
        queues.go_on(store, name)
    return left == 0


def pause(store: Store, now: int, op: Pause) -> int:
    """Stop handing out jobs of queues, for a reason."""
    for name in op.queues:
        others = [reason for reason, _ in pauses.lasting(store, now, name) if reason != op.reason]
        if len(others) >= pauses.MOST:
            raise refuse("LIMIT_REACHED", "pauses of queue " + name, pauses.MOST)

    until = now + op.for_ms if op.for_ms else 0
    changed = 0
    for name in op.queues:
        changed += not holds(store, now, name)
        if pauses.of(store, name).get(op.reason) != until:
            pauses.assign(store, name, op.reason, until)
            emit(store, now, "paused", name, op.reason, until)
    return changed


def unpause(store: Store, now: int, op: Unpause) -> int:
    """Let queues go on, unless there are other reasons."""
    changed = 0
    for name in op.queues:
        if holds(store, now, name) and (op.reason is None or op.reason in pauses.of(store, name)):
            changed += _end(store, now, name, op.reason)
    return changed
