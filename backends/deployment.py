"""`memory://name?shards=8`: the model of a deployment in this process, so that an application tests its sharding
without a server.

Operations are routed and refused as on a cluster (`qmodel.contract.routing`), and each shard is a store of its own. So
whatever works here needs nothing that a deployment does not promise: no order over shards, no step over shards.

One thing is more than a cluster gives: the events of all shards stand in one order, the order in which they happened in
this process, and are numbered in it. A reader on a cluster has a number for each shard instead.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import Any, Final
from urllib.parse import parse_qsl

from qmodel.backends.namespace import BEGIN_NONE, Clock, Namespace
from qmodel.contract.events import Event
from qmodel.contract.operations import BeginEpoch, Events, Newest, Operation
from qmodel.contract.replies import Newest as Position
from qmodel.contract.routing import MOST_SHARDS, Layout
from qmodel.errors import ConnectError
from qmodel.model import engine
from qmodel.model.deployment import deployment as deployments
from qmodel.model.deployment.deployment import Deployment
from qmodel.model.state import epochs
from qmodel.model.state.store import Store, events_after

KEPT: Final = 10_000
"""The most events of all shards that are kept."""

_OPTIONS = ("shards", "single", "split")


def layout_of(url: str, query: str) -> Layout:
    """Read the layout of a deployment from the options of its URL."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := options.keys() - set(_OPTIONS):
        raise ConnectError(f"'{url}' has an unknown option, {min(unknown)}.", f"There are {', '.join(_OPTIONS)}.")
    shards = options.get("shards", "")
    if not shards.isdecimal() or not 1 <= int(shards) <= MOST_SHARDS or int(shards) & (int(shards) - 1):
        raise ConnectError(
            f"A deployment cannot have {shards or 'no'} shards.", f"Write a power of two, from 1 to {MOST_SHARDS}."
        )
    single, split = (frozenset(filter(None, options.get(name, "").split(","))) for name in _OPTIONS[1:])
    return Layout(int(shards), single, split)


class DeploymentNamespace(Namespace):
    """A deployment, a lock so that its steps happen one at a time, and the waiters for its queues and events."""

    layout: Layout

    def __init__(self, clock: Clock, layout: Layout) -> None:
        self.deployment = Deployment(layout)
        super().__init__(clock)
        del self.store
        self._begins = True  # also with the clock of a test: no two shards may issue the same token
        self.layout = layout
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._told = [0] * layout.shards
        self._newest = 0

    @property
    def stores(self) -> list[Store]:
        """All stores: one for each shard."""
        return self.deployment.stores

    def __getattr__(self, name: str) -> Any:
        if name == "store":
            raise ConnectError("A deployment has no store of its own.", "Read `stores`: one for each shard.")
        raise AttributeError(name)

    def _begin_epoch(self, now: int) -> None:
        """Begin an epoch in each shard, none of them the same."""
        self._begins = False
        digits = secrets.randbelow(epochs.DIGITS)
        for shard, store in enumerate(self.stores):
            own = (digits + shard) % epochs.DIGITS
            engine.step(store, now, BeginEpoch(epochs.next_(store, now, own)))

    def newest(self) -> int:
        """Give the number of the newest event of all shards."""
        return self._newest

    def execute(self, op: Operation, now: int | None) -> Any:
        """Execute an operation, and wake the waiters that it left wake-ups for."""
        with self.lock:
            now = self.clock() if now is None else now
            if self._begins and type(op) not in BEGIN_NONE:
                self._begin_epoch(now)
            if engine.fault(op) is None:
                if type(op) is Newest:
                    return Position(self._newest, 0)
                if type(op) is Events:
                    return self._page(op)
            reply = deployments.step(self.deployment, now, op)
            if self._collect():
                self._following.wake()
            return reply

    def _page(self, op: Events) -> tuple[Event, ...]:
        """List the events of all shards after a number."""
        skip = max(op.after - (self._newest - len(self._events)), 0)
        return tuple(self._events[at] for at in range(skip, min(skip + op.count, len(self._events))))

    def _collect(self) -> bool:
        """Number the new events of each shard, and hand out its wake-ups; say whether there was an event."""
        before = self._newest
        for shard, store in enumerate(self.stores):
            if store.seq == self._told[shard]:
                continue
            for event in events_after(store, self._told[shard], store.seq - self._told[shard]):
                self._newest += 1
                self._events.append(event._replace(seq=self._newest, epoch=0))
            self._told[shard] = store.seq
            if self._waiting:
                self._hand_out(store)
        return self._newest > before
