"""A backend with a virtual clock: every operation without a time gets the clock's time."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from qmodel.backends import AsyncBackend, Backend
from qmodel.contract.operations import Operation
from qmodel.testing.clock import VirtualClock

LOOK_SECONDS = 0.02
"""How often a sleeping caller checks whether the clock was advanced."""

After = Callable[[Sequence[Operation]], None]
AsyncAfter = Callable[[Sequence[Operation]], Awaitable[None]]


class TimedBackend:
    """Executes operations on another backend at the time of a virtual clock; calls `after` with what was executed.

    Callers sleep in real time, and wake when the clock is advanced.
    """

    def __init__(self, inner: Backend, clock: VirtualClock, after: After | None = None) -> None:
        self.inner = inner
        self._clock = clock
        self._after = after

    def now(self) -> int:
        """Read the clock, in milliseconds since the epoch."""
        return self._clock.now()

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation; give its reply or Refusal."""
        reply = self.inner.execute(op, self.now() if now is None else now)
        if self._after is not None:
            self._after((op,))
        return reply

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, each as a separate step."""
        found = self.inner.execute_many(ops, self.now() if now is None else now)
        if self._after is not None:
            self._after(ops)
        return found

    def confirming(self, replicas: int = 0, local: bool = False) -> Self:
        """Give this backend: the jobs of a test have one copy, which no replica confirms."""
        return self

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready (True), or until the timeout or an advance of the clock (False)."""
        return self._sleep(timeout, lambda some: self.inner.wait(queues, some))

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event (True), or until the timeout or an advance of the clock (False)."""
        return self._sleep(timeout, lambda some: self.inner.wait_events(after, some))

    def _sleep(self, timeout: float, wait: Callable[[float], bool]) -> bool:
        began, until = self.now(), time.monotonic() + timeout
        while self.now() == began and (left := until - time.monotonic()) > 0:
            if wait(min(left, LOOK_SECONDS)):
                return True
        return False

    def close(self) -> None:
        """Close the backend."""
        self.inner.close()


class AsyncTimedBackend:
    """The same for event loops; each event loop opens its own backend."""

    def __init__(self, open: Callable[[], AsyncBackend], clock: VirtualClock, after: AsyncAfter | None = None) -> None:
        self._open = open
        self._clock = clock
        self._after = after
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncBackend] = weakref.WeakKeyDictionary()

    @property
    def inner(self) -> AsyncBackend:
        """The backend of the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if found is None:
            found = self._by_loop[loop] = self._open()
        return found

    async def now(self) -> int:
        """Read the clock, in milliseconds since the epoch."""
        return self._clock.now()

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation; give its reply or Refusal."""
        reply = await self.inner.execute(op, self._clock.now() if now is None else now)
        if self._after is not None:
            await self._after((op,))
        return reply

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, each as a separate step."""
        found = await self.inner.execute_many(ops, self._clock.now() if now is None else now)
        if self._after is not None:
            await self._after(ops)
        return found

    def confirming(self, replicas: int = 0, local: bool = False) -> Self:
        """Give this backend: the jobs of a test have one copy, which no replica confirms."""
        return self

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready (True), or until the timeout or an advance of the clock (False)."""
        return await self._sleep(timeout, lambda some: self.inner.wait(queues, some))

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event (True), or until the timeout or an advance of the clock (False)."""
        return await self._sleep(timeout, lambda some: self.inner.wait_events(after, some))

    async def _sleep(self, timeout: float, wait: Callable[[float], Awaitable[bool]]) -> bool:
        began, until = self._clock.now(), time.monotonic() + timeout
        while self._clock.now() == began and (left := until - time.monotonic()) > 0:
            if await wait(min(left, LOOK_SECONDS)):
                return True
        return False

    async def close(self) -> None:
        """Close the backend of the running event loop."""
        found = self._by_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.close()
