"""Threads, events, locks and queues of the simulation, with the interfaces of `threading` and `queue`."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from qmodel.simulator.baton import Baton, Strand


class Waiters:
    """The strands that wait for one thing."""

    __slots__ = ("_baton", "_waiting")

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._waiting: list[Strand] = []

    def wait(self, until: float | None) -> bool:
        """Wait until `wake` (True), or until a moment (False)."""
        me = self._baton.current
        self._waiting.append(me)
        woken = self._baton.block(until)
        if not woken and me in self._waiting:
            self._waiting.remove(me)
        return woken

    def wake(self) -> None:
        """Make all of them ready."""
        waiting, self._waiting = self._waiting, []
        for strand in waiting:
            self._baton.wake(strand)


class Event:
    """As threading.Event."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._is_set = False
        self._waiters = Waiters(baton)

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it, and wake all waiters."""
        self._baton.pause()
        self._is_set = True
        self._waiters.wake()

    def clear(self) -> None:
        """Clear it."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, or until the timeout has passed; say which."""
        until = _until(self._baton, timeout)
        self._baton.pause()
        while not self._is_set:
            if until is not None and self._baton.now >= until:
                return False
            self._waiters.wait(until)
        return True


class Lock:
    """As threading.Lock."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._held = False
        self._waiters = Waiters(baton)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; wait if another strand has it."""
        until = _until(self._baton, None if timeout < 0 else timeout)
        self._baton.pause()
        while self._held:
            if not blocking or (until is not None and self._baton.now >= until):
                return False
            self._waiters.wait(until)
        self._held = True
        return True

    def release(self) -> None:
        """Give it back."""
        self._held = False
        self._waiters.wake()

    def locked(self) -> bool:
        """Whether a strand has it."""
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimpleQueue:
    """As queue.SimpleQueue."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._items: deque[Any] = deque()
        self._waiters = Waiters(baton)

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Add an item."""
        self._items.append(item)
        self._waiters.wake()
        self._baton.pause()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first item. Raises queue.Empty if there is none in time."""
        until = _until(self._baton, timeout)
        self._baton.pause()
        while not self._items:
            if not block or (until is not None and self._baton.now >= until):
                raise queue.Empty
            self._waiters.wait(until)
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """Take the first item, if there is one."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether there is no item."""
        return not self._items

    def qsize(self) -> int:
        """Count the items."""
        return len(self._items)


class Thread:
    """As threading.Thread. It belongs to the process of the strand that starts it."""

    def __init__(
        self,
        baton: Baton,
        *,
        target: Callable[..., object],
        name: str = "thread",
        args: Iterable[Any] = (),
        daemon: bool | None = None,
    ) -> None:
        self.name = name
        self.daemon = daemon
        self._baton = baton
        self._target, self._arguments = target, tuple(args)
        self._ended = Event(baton)
        self._strand: Strand | None = None

    @property
    def ident(self) -> int | None:
        """The number of the strand."""
        return self._strand.number if self._strand is not None else None

    def start(self) -> None:
        """Start it."""
        self._strand = self._baton.start(self.name, self._baton.current.process, self._run)
        self._strand.thread = self
        self._baton.pause()

    def _run(self) -> None:
        try:
            self._target(*self._arguments)
        finally:
            self._ended._is_set = True
            self._ended._waiters.wake()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        self._ended.wait(timeout)

    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._strand is not None and not self._ended.is_set()


def _until(baton: Baton, timeout: float | None) -> float | None:
    return None if timeout is None else baton.now + max(timeout, 0.0)
