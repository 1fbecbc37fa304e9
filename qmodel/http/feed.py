"""What wakes those who follow the events: one of them sleeps at the backend, the others at a bell.

So a thousand who follow cost one connection. Each reads for himself, from his own place on.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from qmodel.client.fields import LONGEST_SLEEP

if TYPE_CHECKING:
    from qmodel.client.aio import AsyncClient

BEHIND = 0.05
"""Seconds after which one looks again who is behind the one at the backend: what is between wakes nobody."""


class Feed:
    """The bell, and whether somebody sleeps at the backend."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._bell = asyncio.Event()
        self._leads: int | None = None

    async def sleep(self, after: int, seconds: float) -> None:
        """Sleep until there may be an event after a sequence number, or time is up."""
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
