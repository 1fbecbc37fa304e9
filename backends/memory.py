"""`memory://`: the model itself, in this process. Not a mock: the definition.

`memory://` is a namespace of its own for each that connects; `memory://name` is the same one for
all in this process, for as long as the process lives. One lock per namespace makes it safe for
threads; an event loop may use it as well, for no operation takes longer than its step.

Idle workers sleep, each in a waiter of its own. The store counts, per queue, how many are idle and
how many wake-ups are left for them (`qmodel.model.state.queues`); a wake-up is handed to exactly one
waiter, the longest waiting, in the step that made it. That decrement is all that this file touches,
and stands for the BLPOP that Redis does.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from qmodel.backends.wait import AsyncWaits, Followers, Waiter, Waits
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError
from qmodel.model.engine import step
from qmodel.model.state.store import Store

Clock = Callable[[], int]
"""Gives the time in milliseconds since the epoch."""


def system_clock() -> int:
    """The time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Namespace:
    """A store, the lock that makes its steps one at a time, and those who wait for its queues."""

    def __init__(self, clock: Clock) -> None:
        self.store = Store()
        self.clock = clock
        self.lock = threading.Lock()
        self._waiting: dict[str, dict[Waiter, None]] = {}
        self._following = Followers()

    def execute(self, op: Operation, now: int | None) -> Any:
        """Make one step, and wake those for whom it left a wake-up."""
        with self.lock:
            before = self.store.seq
            reply = step(self.store, self.clock() if now is None else now, op)
            if self.store.seq != before:
                if self._waiting:
                    self._hand_out()
                if self._following:
                    self._following.wake()
            return reply

    def enter(self, waiter: Waiter) -> None:
        """Let someone wait; he may be woken at once."""
        with self.lock:
            for name in waiter.queues:
                self._waiting.setdefault(name, {})[waiter] = None
            self._hand_out()

    def follow(self, waiter: Waiter, after: int) -> None:
        """Let someone wait for an event after a sequence number; he may be woken at once."""
        with self.lock:
            self._following.enter(waiter)
            if self.store.seq > after:
                self._following.wake()

    def leave(self, waiter: Waiter) -> bool:
        """Let someone wait no more; say whether he was woken."""
        with self.lock:
            if waiter.handed is None:
                self._strike(waiter)
                self._following.strike(waiter)
            return waiter.handed is not None

    def give_back(self, waiter: Waiter) -> None:
        """Leave to others the wake-up of someone who was interrupted and will not use it."""
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
                self._strike(waiter)
                if waiter.wake():
                    waiter.handed = name
                    queue.wakes -= 1

    def _strike(self, waiter: Waiter) -> None:
        for name in waiter.queues:
            waiting = self._waiting.get(name, {})
            waiting.pop(waiter, None)
            if not waiting:
                self._waiting.pop(name, None)


class MemoryBackend(Waits[Namespace]):
    """Executes operations on the model.

    Two backends of the same `namespace` share their jobs. `clock` gives the time in milliseconds; a
    test can pass one that it moves by hand.
    """

    def __init__(self, namespace: Namespace | None = None, clock: Clock = system_clock) -> None:
        self.namespace = Namespace(clock) if namespace is None else namespace

    @property
    def store(self) -> Store:
        """All that the namespace holds; to be looked at, not to be touched."""
        return self.namespace.store

    def now(self) -> int:
        """The time of this backend's clock, in milliseconds since the epoch."""
        return self.namespace.clock()

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return self.namespace.execute(op, now)

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    def close(self) -> None:
        """Do nothing: a private namespace goes with its last user, a named one stays."""


class AsyncMemoryBackend(AsyncWaits[Namespace]):
    """The same for an event loop, on the same namespaces."""

    def __init__(self, namespace: Namespace | None = None, clock: Clock = system_clock) -> None:
        self.namespace = Namespace(clock) if namespace is None else namespace

    @property
    def store(self) -> Store:
        """All that the namespace holds; to be looked at, not to be touched."""
        return self.namespace.store

    async def now(self) -> int:
        """The time of this backend's clock, in milliseconds since the epoch."""
        return self.namespace.clock()

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return self.namespace.execute(op, now)

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    async def close(self) -> None:
        """Do nothing: a private namespace goes with its last user, a named one stays."""


_NAMED: dict[str, Namespace] = {}
_NAMING = threading.Lock()
_URL = re.compile(r"memory://([\w.-]*)/?\Z")


def namespace(url: str) -> Namespace:
    """The namespace of a URL: a new one for `memory://`, always the same for `memory://name`."""
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
