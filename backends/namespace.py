"""A namespace in this process: a store of the model, a lock, and the waiters for its queues and events.

Each idle worker sleeps in a `Waiter`. For each queue the store counts the idle workers and the wake-ups left for them
(`qmodel.model.state.queues`). A wake-up goes to exactly one waiter, the one that waits longest, in the step that made
the wake-up. This file changes nothing in the store but that count; it stands for the BLPOP of a client of Redis.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from qmodel.backends.wait import EventWaiters, Waiter
from qmodel.contract.operations import CATALOGUE, BeginEpoch, Operation
from qmodel.contract.routing import Layout
from qmodel.model.engine import step
from qmodel.model.state import epochs
from qmodel.model.state.store import Store

BEGIN_NONE = frozenset(spec.cls for spec in CATALOGUE.values() if spec.reads or spec.cls is BeginEpoch)
"""The operations before which no epoch begins by itself: those that change nothing, and the one that begins one."""

Clock = Callable[[], int]
"""Returns the time in milliseconds since the epoch."""


def system_clock() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Namespace:
    """A store, a lock so that its steps happen one at a time, and the waiters for its queues and events."""

    layout: Layout | None = None
    """The layout of a deployment; None for one store."""

    def __init__(self, clock: Clock) -> None:
        self.store = Store()
        self.clock = clock
        self._begins = clock is system_clock  # an earlier process may have issued tokens
        self.lock = threading.Lock()
        self._waiting: dict[str, dict[Waiter, None]] = {}
        self._following = EventWaiters()

    def execute(self, op: Operation, now: int | None) -> Any:
        """Make one step, and wake the waiters that it left wake-ups for."""
        with self.lock:
            before = self.store.seq
            if now is None:
                now = self.clock()
                if self._begins and type(op) not in BEGIN_NONE:
                    self._begin_epoch(now)
            reply = step(self.store, now, op)
            if self.store.seq != before:
                if self._waiting:
                    self._hand_out(self.store)
                if self._following:
                    self._following.wake()
            return reply

    @property
    def stores(self) -> list[Store]:
        """All stores: one for each shard."""
        return [self.store]

    def _begin_epoch(self, now: int) -> None:
        """Begin an epoch before the first operation that changes something at the moment of the system's clock."""
        self._begins = False
        step(self.store, now, BeginEpoch(epochs.next_(self.store, now, secrets.randbelow(epochs.DIGITS))))

    def enter(self, waiter: Waiter) -> None:
        """Add a waiter for its queues. It may be woken at once."""
        with self.lock:
            for name in waiter.queues:
                self._waiting.setdefault(name, {})[waiter] = None
            for store in self.stores:
                self._hand_out(store)

    def follow(self, waiter: Waiter, after: int) -> None:
        """Add a waiter for an event after a sequence number. It may be woken at once."""
        with self.lock:
            self._following.add(waiter)
            if self.newest() > after:
                self._following.wake()

    def newest(self) -> int:
        """Give the sequence of the newest event."""
        return self.store.seq

    def leave(self, waiter: Waiter) -> bool:
        """Remove a waiter; say whether it was woken."""
        with self.lock:
            if waiter.handed is None:
                self._remove(waiter)
                self._following.remove(waiter)
            return waiter.handed is not None

    def give_back(self, waiter: Waiter) -> None:
        """Pass on the wake-up of a waiter that was interrupted and will not use it."""
        if self.leave(waiter):
            with self.lock:
                name = str(waiter.handed)
                for store in self.stores:
                    if name in store.queues:
                        store.queues[name].wakes += 1
                        return self._hand_out(store)

    def _hand_out(self, store: Store) -> None:
        """Hand out the wake-ups of a store."""
        for name in list(self._waiting):
            queue = store.queues.get(name)
            while queue is not None and queue.wakes and name in self._waiting:
                waiter = next(iter(self._waiting[name]))
                self._remove(waiter)
                if waiter.wake():
                    waiter.handed = name
                    queue.wakes -= 1

    def _remove(self, waiter: Waiter) -> None:
        for name in waiter.queues:
            waiting = self._waiting.get(name, {})
            waiting.pop(waiter, None)
            if not waiting:
                self._waiting.pop(name, None)
