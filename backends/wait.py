"""Waiting in this process for work or for events, shared by `memory://` and `embedded://`.

Each sleeping thread or task has a `Waiter`. A wake-up of a queue goes to exactly one waiter, the one that waits
longest; an event wakes all waiters for events. `Namespace` is what a namespace must offer for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar


class Waiter:
    """A thread or task that sleeps until `wake` is called once: a wake-up of one of its queues, or an event."""

    __slots__ = ("_wake", "handed", "queues")

    def __init__(self, queues: Sequence[str], wake: Callable[[], object]) -> None:
        self.queues = tuple(dict.fromkeys(queues))
        self._wake = wake
        self.handed: str | None = None

    def wake(self) -> bool:
        """Wake the waiter; say whether that worked. It fails if the waiter's event loop was closed meanwhile."""
        try:
            self._wake()
        except RuntimeError:
            return False
        return True


class EventWaiters:
    """The waiters for the next event. The namespace holds its lock whenever it calls this."""

    def __init__(self) -> None:
        self._waiting: dict[Waiter, None] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, waiter: Waiter) -> None:
        """Add a waiter."""
        self._waiting[waiter] = None

    def remove(self, waiter: Waiter) -> None:
        """Remove a waiter."""
        self._waiting.pop(waiter, None)

    def wake(self) -> None:
        """Wake all waiters, because there is an event."""
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            waiter.handed = ""
            waiter.wake()


class Namespace(Protocol):
    """The part of a namespace that waiting needs."""

    def enter(self, waiter: Waiter) -> None:
        """Add a waiter for its queues. It may be woken at once."""

    def follow(self, waiter: Waiter, after: int) -> None:
        """Add a waiter for an event after a sequence number. It may be woken at once."""

    def leave(self, waiter: Waiter) -> bool:
        """Remove a waiter; say whether it was woken."""

    def give_back(self, waiter: Waiter) -> None:
        """Pass on the wake-up of a waiter that was interrupted and will not use it."""


N = TypeVar("N", bound=Namespace)


class Waits(Generic[N]):
    """Waiting in a thread."""

    namespace: N

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or time is up (False)."""
        return self.sleep(queues, self.namespace.enter, timeout)

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or time is up (False)."""
        return self.sleep((), lambda waiter: self.namespace.follow(waiter, after), timeout)

    def sleep(self, queues: Sequence[str], enter: Callable[[Waiter], None], timeout: float) -> bool:
        """Sleep until the waiter that was entered is woken (True) or time is up (False)."""
        gate = _shut()
        waiter = Waiter(queues, gate.release)
        enter(waiter)
        try:
            gate.acquire(timeout=max(min(timeout, threading.TIMEOUT_MAX), 0))
        except BaseException:
            self.namespace.give_back(waiter)
            raise
        return self.namespace.leave(waiter)


def _shut() -> threading.Lock:
    gate = threading.Lock()
    gate.acquire()
    return gate


class AsyncWaits(Generic[N]):
    """Waiting in an event loop."""

    namespace: N

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or time is up (False)."""
        return await self.sleep(queues, self.namespace.enter, timeout)

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or time is up (False)."""
        return await self.sleep((), lambda waiter: self.namespace.follow(waiter, after), timeout)

    async def sleep(self, queues: Sequence[str], enter: Callable[[Waiter], None], timeout: float) -> bool:
        """Sleep until the waiter that was entered is woken (True) or time is up (False)."""
        import asyncio  # costs 15 ms, which an event loop has paid already

        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        waiter = Waiter(queues, lambda: loop.call_soon_threadsafe(woken.set))
        enter(waiter)
        try:
            await asyncio.wait_for(woken.wait(), max(timeout, 0))
        except TimeoutError:
            pass
        except BaseException:
            self.namespace.give_back(waiter)
            raise
        return self.namespace.leave(waiter)
