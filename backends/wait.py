"""Waiting in this process, for work or for events: what `memory://` and `embedded://` share.

Each who waits sleeps in a waiter of his own. A wake-up of a queue is handed to exactly one waiter, the longest waiting;
an event wakes all who follow the events. What a namespace must be for that says `Namespace`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar


class Waiter:
    """One who sleeps until `wake` is called, once: he was handed a wake-up of one of some queues, or an event came."""

    __slots__ = ("_wake", "handed", "queues")

    def __init__(self, queues: Sequence[str], wake: Callable[[], object]) -> None:
        self.queues = tuple(dict.fromkeys(queues))
        self._wake = wake
        self.handed: str | None = None

    def wake(self) -> bool:
        """Wake him; say whether he was there, for his event loop may have been closed under him."""
        try:
            self._wake()
        except RuntimeError:
            return False
        return True


class Followers:
    """Those who wait for the next event. The namespace holds its lock whenever it calls this."""

    def __init__(self) -> None:
        self._waiting: dict[Waiter, None] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def enter(self, waiter: Waiter) -> None:
        """Let someone wait."""
        self._waiting[waiter] = None

    def strike(self, waiter: Waiter) -> None:
        """Let someone wait no more."""
        self._waiting.pop(waiter, None)

    def wake(self) -> None:
        """An event has come: wake them all."""
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            waiter.handed = ""
            waiter.wake()


class Namespace(Protocol):
    """Where one waits."""

    def enter(self, waiter: Waiter) -> None:
        """Let someone wait for his queues; he may be woken at once."""

    def follow(self, waiter: Waiter, after: int) -> None:
        """Let someone wait for an event after a sequence number; he may be woken at once."""

    def leave(self, waiter: Waiter) -> bool:
        """Let someone wait no more; say whether he was woken."""

    def give_back(self, waiter: Waiter) -> None:
        """Leave to others the wake-up of someone who was interrupted and will not use it."""


N = TypeVar("N", bound=Namespace)


class Waits(Generic[N]):
    """Waiting in a thread."""

    namespace: N

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or time is up (False)."""
        gate = _shut()
        waiter = Waiter(queues, gate.release)
        self.namespace.enter(waiter)
        return self._sleep(waiter, gate, timeout)

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or time is up (False)."""
        gate = _shut()
        waiter = Waiter((), gate.release)
        self.namespace.follow(waiter, after)
        return self._sleep(waiter, gate, timeout)

    def _sleep(self, waiter: Waiter, gate: threading.Lock, timeout: float) -> bool:
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
        return await self._sleep(queues, self.namespace.enter, timeout)

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or time is up (False)."""
        return await self._sleep((), lambda waiter: self.namespace.follow(waiter, after), timeout)

    async def _sleep(self, queues: Sequence[str], enter: Callable[[Waiter], None], timeout: float) -> bool:
        import asyncio  # 15 ms that only an event loop has paid already

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
