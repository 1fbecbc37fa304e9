"""Waiting for results in an event loop. `qmodel/client/outcomes.py` explains how it works."""

from __future__ import annotations

import os
from collections.abc import Sequence

from qmodel import runtime
from qmodel.client.aio_executor import AsyncExecutor
from qmodel.client.defaults import LONGEST_SLEEP
from qmodel.client.outcomes import AsyncSignal, Ended, Waiter, Watch, check
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.errors import Forked

FETCHED = 100
"""How many jobs one operation fetches: each comes with its data and its result."""


class AsyncResults:
    """The waiters for results of one client."""

    def __init__(self, client: AsyncExecutor) -> None:
        self._client = client
        self._watch, self._process = Watch(), os.getpid()
        self._of_shard: dict[int, AsyncResults] = {}

    async def wait(self, jids: Sequence[str], timeout: float) -> dict[str, Ended]:
        """Sleep until all jobs have ended, or `timeout` seconds have passed; give the ended ones."""
        check(jids)
        if self._client.shards:
            return await self._wait_in_shards(jids, timeout)
        if self._process != os.getpid():  # the leader stayed in the parent process
            self._watch, self._process = Watch(), os.getpid()
        until = runtime.monotonic() + timeout
        signal = AsyncSignal()
        waiter = Waiter(jids, signal.set)
        known = self._watch.enter(waiter)
        try:
            if not known:
                self._watch.begin(await self._client.position())
            await self._fetch(list(waiter.missing))
            while waiter.missing and (left := until - runtime.monotonic()) > 0:
                signal.clear()
                if self._watch.lead(waiter):
                    await self._follow(waiter, until)
                elif waiter.missing:
                    await signal.wait(left)
        finally:
            self._watch.leave(waiter)
        return waiter.ended

    async def _wait_in_shards(self, jids: Sequence[str], timeout: float) -> dict[str, Ended]:
        """Wait for the jobs of one shard after the other: all of them are waited for."""
        until = runtime.monotonic() + timeout
        ended: dict[str, Ended] = {}
        homes: dict[int, list[str]] = {}
        assert self._client.homes is not None
        for jid in jids:
            homes.setdefault(self._client.homes.home(jid), []).append(jid)
        for shard, some in homes.items():
            results = self._of_shard.setdefault(shard, AsyncResults(self._client._at_home(some[0])))
            ended |= await results.wait(some, max(until - runtime.monotonic(), 0))
        return ended

    async def _follow(self, waiter: Waiter, until: float) -> None:
        """Read the events for all waiters, until the leader's jobs have ended or its time is up."""
        while waiter.missing and (left := until - runtime.monotonic()) > 0:
            after = self._watch.after or 0
            if await self._client.backend.wait_events(after, min(left, LONGEST_SLEEP)):
                await self._read(after)
            else:
                await self._restart()

    async def _restart(self, forked: bool = False) -> None:
        """Fetch all jobs, and go on from the newest event if events were lost."""
        self._watch.restart(await self._client.position(), forked)
        await self._fetch(self._watch.waited_for())

    async def _read(self, after: int) -> None:
        """Read the events after a sequence number, and fetch the jobs that they name."""
        epoch = self._watch.epoch
        try:
            while page := await self._client.execute(ops.Events(after, MOST, epoch)):
                await self._fetch(self._watch.take(after, page))
                after, epoch = page[-1].seq, page[-1].epoch
                if len(page) < MOST:
                    return
        except Forked:
            await self._restart(forked=True)

    async def _fetch(self, jids: Sequence[str]) -> None:
        for start in range(0, len(jids), FETCHED):
            some = jids[start : start + FETCHED]
            self._watch.notify(some, await self._client.multiget(some))
