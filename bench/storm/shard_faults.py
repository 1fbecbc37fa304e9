"""The kinds of faults of a deployment: its shards move, and its masters die."""

from __future__ import annotations

import time

from bench.storm.faults import WITHOUT_CONFIRM, Fault
from bench.storm.sharded import SHARDS, Sharded, Unconfirmed

DEPLOYMENTS = frozenset((Sharded.kind, Unconfirmed.kind))


class ShardMoved(Fault):
    """The slot of a shard moves to another master: in one step where the server can (Valkey 9), or key by key."""

    name = "shard-moved"
    worlds = DEPLOYMENTS

    def draw(self) -> None:
        self.details["shard"] = self.chance.randrange(SHARDS)
        self.details["atomic"] = self.chance.random() < 0.5

    def strike(self) -> None:
        world: Sharded = self.world
        prefix, began = world.prefixes[self.details["shard"]], time.monotonic()
        if not self.details["atomic"] or not world.cluster.move_at_once(prefix):
            self.details["atomic"] = False
            with world.cluster.moving(prefix):
                pass
        self.away = time.monotonic() - began


class MasterKilled(Fault):
    """A master is killed. The cluster promotes its replica; the old master comes back, and follows the new one."""

    name = "master-killed"
    worlds = DEPLOYMENTS

    def draw(self) -> None:
        self.details["shard"] = self.chance.randrange(SHARDS)

    def before(self) -> None:
        self.loses, self.loses_since = WITHOUT_CONFIRM, self.world.synced()

    def strike(self) -> None:
        world: Sharded = self.world
        self.away = world.fail_over(world.prefixes[self.details["shard"]])
