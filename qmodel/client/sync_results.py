"""Waiting for results in a thread. `qmodel/client/outcomes.py` explains how it works.

Generated from `qmodel/client/aio_results.py` by `./dev docs` (tools/sync_client.py). Edit that file, not this one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from qmodel import runtime
from qmodel.backends import Backend
from qmodel.client.defaults import LONGEST_SLEEP
from qmodel.client.outcomes import (
    Ended,
    Key,
    RequestEnded,
    RequestKey,
    Signal,
    Waiter,
    Watch,
    check,
    check_request,
    jids_among,
    requests_among,
)
from qmodel.client.sync_executor import Executor
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.errors import Forked

FETCHED = 100
"""How many jobs one operation fetches: each comes with its data and its result."""


class Results:
    """The waiters for jobs and requests of one client."""

    def __init__(self, client: Executor) -> None:
        self._client = client
        self._watch, self._process = Watch(), os.getpid()
        self._of_shard: dict[int, Results] = {}

    def wait(self, jids: Sequence[str], timeout: float) -> dict[str, Ended]:
        """Sleep until all jobs have ended, or `timeout` seconds have passed; give the ended ones."""
        check(jids)
        if self._client.shards:
            return self._wait_in_shards(jids, timeout)
        return (self._wait(jids, timeout)).ended

    def wait_for_request(self, id: str, timeout: float) -> RequestEnded | None:
        """Sleep until a request has ended, and give it; None if `timeout` seconds have passed before."""
        check_request(id)
        at_home = self._at_home(id) if self._client.shards else self
        return (at_home._wait([RequestKey(id)], timeout)).requests.get(id)

    def _wait(self, keys: Sequence[Key], timeout: float) -> Waiter:
        """Sleep until all jobs and requests have ended, or `timeout` seconds have passed; give what has ended."""
        if self._process != os.getpid():  # the leader stayed in the parent process
            self._watch, self._process = Watch(), os.getpid()
        until = runtime.monotonic() + timeout
        signal = Signal()
        waiter = Waiter(keys, signal.set)
        known = self._watch.enter(waiter)
        try:
            if not known:
                self._watch.begin(self._client.position())
            self._fetch(list(waiter.missing))
            while waiter.missing and (left := until - runtime.monotonic()) > 0:
                signal.clear()
                if self._watch.lead(waiter):
                    self._follow(waiter, until)
                elif waiter.missing:
                    signal.wait(left)
        finally:
            self._watch.leave(waiter)
        return waiter

    def _at_home(self, name: str) -> Results:
        """The waiters in the shard in which a name is at home."""
        assert self._client.homes is not None
        shard = self._client.homes.home(name)
        return self._of_shard.setdefault(shard, Results(self._client._at_home(name)))

    def _wait_in_shards(self, jids: Sequence[str], timeout: float) -> dict[str, Ended]:
        """Wait for the jobs of one shard after the other: all of them are waited for."""
        until = runtime.monotonic() + timeout
        ended: dict[str, Ended] = {}
        homes: dict[Results, list[str]] = {}
        for jid in jids:
            homes.setdefault(self._at_home(jid), []).append(jid)
        for results, some in homes.items():
            ended |= results.wait(some, max(until - runtime.monotonic(), 0))
        return ended

    def _follow(self, waiter: Waiter, until: float) -> None:
        """Read the events for all waiters, until the leader's jobs have ended or its time is up."""
        while waiter.missing and (left := until - runtime.monotonic()) > 0:
            after = self._watch.after or 0
            if self._client.backend.wait_events(after, min(left, LONGEST_SLEEP)):
                self._read(after)
            else:
                self._restart()

    def _restart(self, forked: bool = False) -> None:
        """Fetch all jobs, and go on from the newest event if events were lost."""
        newest = self._client.position()
        self._fetch(self._watch.waited_for())
        self._watch.restart(newest, forked)

    def _read(self, after: int) -> None:
        """Read the events after a sequence number, and fetch the jobs that they name."""
        epoch = self._watch.epoch
        try:
            while page := self._client.execute(ops.Events(after, MOST, epoch)):
                self._fetch(self._watch.take(after, page))
                self._watch.passed(after, page)
                after, epoch = page[-1].seq, page[-1].epoch
                if len(page) < MOST:
                    return
        except Forked:
            self._restart(forked=True)

    def _fetch(self, keys: Sequence[Key]) -> None:
        jids, requests = jids_among(keys), requests_among(keys)
        for start in range(0, len(jids), FETCHED):
            some = jids[start : start + FETCHED]
            mark = self._watch.mark()
            self._watch.notify(some, self._client.multiget(some), mark)
        for start in range(0, len(requests), FETCHED):
            part = requests[start : start + FETCHED]
            mark = self._watch.mark()
            found = self._client.execute_many(ops.RequestGet(key.id) for key in part)
            self._watch.notify_requests(part, found, mark)


class WaitingExecutor(Executor):
    """An executor with which callers can wait for jobs and requests."""

    def __init__(self, backend: str | Backend = "memory://", *, worker: str | None = None) -> None:
        super().__init__(backend, worker=worker)
        self._results = Results(self)
