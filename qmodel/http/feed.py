"""Wake-ups of event streams: one stream waits at the backend, and wakes the others.

So a thousand streams cost one waiting connection. Each stream reads by itself, from its own position.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from qmodel.client.defaults import LONGEST_SLEEP

if TYPE_CHECKING:
    from qmodel.client.aio import AsyncClient

BEHIND = 0.05
"""Seconds after which a stream that is behind the waiting one looks again: events between the two wake nobody."""


class Feed:
    """The wake-ups of one event loop, and whether a stream waits at the backend."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._bell = asyncio.Event()
        self._leads: int | None = None

    async def sleep(self, after: int, seconds: float) -> None:
        """Wait until there may be an event after a sequence number, or until the time is over."""
        seconds = min(max(seconds, 0.01), LONGEST_SLEEP)
        if self._leads is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), min(seconds, BEHIND) if after < self._leads else seconds)
            return
        self._leads = after
        try:
            await self._client.backend.wait_events(after, seconds)
        finally:
            self._leads = None
            self._bell.set()
            self._bell = asyncio.Event()
