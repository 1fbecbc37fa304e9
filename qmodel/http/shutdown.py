"""The stop signal of a server for its streams, in each event loop that uses the application.

Tests, and servers that are started again, use one application in several event loops, one after the other; objects of
asyncio belong to one of them.
"""

from __future__ import annotations

import asyncio
import weakref


class Closing:
    """A flag that can be waited for in any event loop. It is set, and cleared, in the event loop of the server."""

    def __init__(self) -> None:
        self._is_set = False
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Event] = weakref.WeakKeyDictionary()

    def set(self) -> None:
        """Wake everything that waits for it."""
        self._is_set = True
        for event in list(self._by_loop.values()):
            event.set()

    def clear(self) -> None:
        """Begin anew."""
        self._is_set = False
        self._by_loop.clear()

    def is_set(self) -> bool:
        """Say whether the server is about to stop."""
        return self._is_set

    async def wait(self) -> None:
        """Sleep until it is."""
        if not self._is_set:
            await self._by_loop.setdefault(asyncio.get_running_loop(), asyncio.Event()).wait()
