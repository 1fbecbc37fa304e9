"""`memory://name?shards=8`: the model of a deployment in this process, so that an application tests its sharding
without a server.

Operations are routed and refused as on nodes (`qmodel.contract.routing`), and each shard is a store of its own, which
has its own events. So whatever works here needs nothing that a deployment does not promise: no order over shards, no
step over shards.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from qmodel.backends.layouts import LAYOUT, read_layout
from qmodel.backends.namespace import BEGIN_NONE, Clock, Namespace
from qmodel.backends.wait import AsyncWaits, Waiter, Waits
from qmodel.contract.operations import BeginEpoch, Operation
from qmodel.contract.routing import Layout
from qmodel.errors import ConnectError
from qmodel.model import engine
from qmodel.model.deployment import deployment as deployments
from qmodel.model.deployment.deployment import Deployment
from qmodel.model.deployment.plans import Call
from qmodel.model.state import epochs
from qmodel.model.state.store import Store


def layout_of(url: str, query: str) -> Layout:
    """Read the layout of a deployment from the options of its URL."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := options.keys() - set(LAYOUT):
        raise ConnectError(f"'{url}' has an unknown option, {min(unknown)}.", f"There are {', '.join(LAYOUT)}.")
    return read_layout(options)


class DeploymentNamespace(Namespace):
    """A deployment, a lock so that its steps happen one at a time, and the waiters for its queues and events."""

    layout: Layout

    def __init__(self, clock: Clock, layout: Layout) -> None:
        self.deployment = Deployment(layout)
        super().__init__(clock)
        del self.store
        self._begins = True  # also with the clock of a test: no two shards may issue the same token
        self.layout = layout

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
        """Count the events of all shards."""
        return sum(store.seq for store in self.stores)

    def execute(self, op: Operation, now: int | None) -> Any:
        """Execute an operation, and wake the waiters that it left wake-ups for."""
        with self.lock:
            now = self._moment(op, now)
            before = self.newest()
            reply = deployments.step(self.deployment, now, op)
            self._wake(before)
            return reply

    def execute_call(self, call: Call, now: int | None) -> Any:
        """Execute an operation in a given shard."""
        with self.lock:
            now = self._moment(call.op, now)
            before = self.newest()
            reply = deployments.execute(self.deployment, now, call, call.op)
            self._wake(before)
            return reply

    def _moment(self, op: Operation, now: int | None) -> int:
        now = self.clock() if now is None else now
        if self._begins and type(op) not in BEGIN_NONE:
            self._begin_epoch(now)
        return now

    def _wake(self, before: int) -> None:
        """Hand out the wake-ups of all shards if there was an event."""
        if self.newest() > before:
            if self._waiting:
                for store in self.stores:
                    self._hand_out(store)
            self._following.wake()

    def shards(self) -> list[MemoryShard]:
        """Give each shard as a backend of its own."""
        return [MemoryShard(self, shard) for shard in range(self.layout.shards)]

    def async_shards(self) -> list[AsyncMemoryShard]:
        """Give each shard as a backend of its own, for an event loop."""
        return [AsyncMemoryShard(self, shard) for shard in range(self.layout.shards)]

    def follow_shards(self, waiter: Waiter, after: Sequence[int]) -> None:
        """Add a waiter for an event of any shard after the sequence number given for it. It may be woken at once."""
        with self.lock:
            self._following.add(waiter)
            if any(store.seq > seq for store, seq in zip(self.stores, after, strict=True)):
                self._following.wake()


class ShardNamespace:
    """A shard, as those who wait for its jobs or events see it. They may be woken for another shard's too."""

    def __init__(self, namespace: DeploymentNamespace, shard: int) -> None:
        self._of = namespace
        self.shard = shard
        self.enter, self.leave, self.give_back = namespace.enter, namespace.leave, namespace.give_back

    @property
    def store(self) -> Store:
        """The shard's contents, for reading only."""
        return self._of.stores[self.shard]

    def execute(self, op: Operation, now: int | None) -> Any:
        """Execute an operation in this shard."""
        return self._of.execute_call(Call(self.shard, op), now)

    def follow(self, waiter: Waiter, after: int) -> None:
        """Add a waiter for an event after a sequence number. It may be woken at once."""
        everywhere = [store.seq for store in self._of.stores]
        everywhere[self.shard] = after
        self._of.follow_shards(waiter, everywhere)


class MemoryShard(Waits[ShardNamespace]):
    """A shard as a backend of its own."""

    def __init__(self, namespace: DeploymentNamespace, shard: int) -> None:
        self.namespace = ShardNamespace(namespace, shard)

    @property
    def store(self) -> Store:
        """The shard's contents, for reading only."""
        return self.namespace.store

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation; give its reply or Refusal."""
        return self.namespace.execute(op, now)

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    def close(self) -> None:
        """Do nothing."""


class AsyncMemoryShard(AsyncWaits[ShardNamespace]):
    """A shard as a backend of its own, for an event loop."""

    def __init__(self, namespace: DeploymentNamespace, shard: int) -> None:
        self.namespace = ShardNamespace(namespace, shard)

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation; give its reply or Refusal."""
        return self.namespace.execute(op, now)

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    async def close(self) -> None:
        """Do nothing."""
