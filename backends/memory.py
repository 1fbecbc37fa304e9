"""`memory://`: the reference model itself, in this process. It is not a mock but the definition.

Each connection to `memory://` gets a namespace of its own. `memory://name` is the same namespace for the whole process,
as long as the process lives. One lock per namespace makes it safe for threads. An event loop may use it too, because no
operation takes longer than its step.

Each idle worker sleeps in a `Waiter`. For each queue the store counts the idle workers and the wake-ups left for them
(`qmodel.model.state.queues`). A wake-up goes to exactly one waiter, the one that waits longest, in the step that made
the wake-up. This file changes nothing in the store but that count; it stands for the BLPOP of a client of Redis.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from qmodel.backends.wait import AsyncWaits, EventWaiters, Waiter, Waits
from qmodel.contract.operations import CATALOGUE, BeginEpoch, Operation
from qmodel.errors import ConnectError
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
                    self._hand_out()
                if self._following:
                    self._following.wake()
            return reply

    def _begin_epoch(self, now: int) -> None:
        """Begin an epoch before the first operation that changes something at the moment of the system's clock."""
        self._begins = False
        step(self.store, now, BeginEpoch(epochs.next_(self.store, now, secrets.randbelow(epochs.DIGITS))))

    def enter(self, waiter: Waiter) -> None:
        """Add a waiter for its queues. It may be woken at once."""
        with self.lock:
            for name in waiter.queues:
                self._waiting.setdefault(name, {})[waiter] = None
            self._hand_out()

    def follow(self, waiter: Waiter, after: int) -> None:
        """Add a waiter for an event after a sequence number. It may be woken at once."""
        with self.lock:
            self._following.add(waiter)
            if self.store.seq > after:
                self._following.wake()

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
                queue = self.store.queues.get(str(waiter.handed))
                if queue is not None:
                    queue.wakes += 1
                    self._hand_out()

    def _hand_out(self) -> None:
        for name in list(self._waiting):
            queue = self.store.queues.get(name)
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


class MemoryBackend(Waits[Namespace]):
    """Executes operations on the model.

    Two backends of the same `namespace` share their jobs. `clock` returns the time in milliseconds; a test can pass a
    clock that it moves by hand.
    """

    def __init__(self, namespace: Namespace | None = None, clock: Clock = system_clock) -> None:
        self.namespace = Namespace(clock) if namespace is None else namespace

    @property
    def store(self) -> Store:
        """The namespace's contents, for reading only."""
        return self.namespace.store

    def now(self) -> int:
        """Return the time of this backend's clock, in milliseconds since the epoch."""
        return self.namespace.clock()

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return self.namespace.execute(op, now)

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    def close(self) -> None:
        """Do nothing. A private namespace ends with its last user; a named one stays."""


class AsyncMemoryBackend(AsyncWaits[Namespace]):
    """Executes operations on the model, for an event loop. It shares the namespaces with MemoryBackend."""

    def __init__(self, namespace: Namespace | None = None, clock: Clock = system_clock) -> None:
        self.namespace = Namespace(clock) if namespace is None else namespace

    @property
    def store(self) -> Store:
        """The namespace's contents, for reading only."""
        return self.namespace.store

    async def now(self) -> int:
        """Return the time of this backend's clock, in milliseconds since the epoch."""
        return self.namespace.clock()

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return self.namespace.execute(op, now)

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    async def close(self) -> None:
        """Do nothing. A private namespace ends with its last user; a named one stays."""


_NAMED: dict[str, Namespace] = {}
_NAMING = threading.Lock()
_URL = re.compile(r"memory://([\w.-]*)/?\Z")


def namespace(url: str) -> Namespace:
    """Find the namespace of a URL: a new one for `memory://`, always the same for `memory://name`."""
    found = _URL.match(url)
    if found is None:
        raise ConnectError(
            f"'{url}' is not a memory URL.",
            "Write memory:// or memory://name, where the name has letters, digits and . _ - only.",
        )
    name = found[1]
    if not name:
        return Namespace(system_clock)
    with _NAMING:
        return _NAMED.setdefault(name, Namespace(system_clock))


def connect(url: str) -> MemoryBackend:
    """Open a memory URL."""
    return MemoryBackend(namespace(url))


def connect_async(url: str) -> AsyncMemoryBackend:
    """Open a memory URL for an event loop."""
    return AsyncMemoryBackend(namespace(url))
