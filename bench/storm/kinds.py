"""All kinds of faults by name, and how a round draws them."""

from __future__ import annotations

import random
from typing import Any

from bench.storm import faults
from bench.storm.faults import Fault
from bench.storm.shard_faults import MasterKilled, ShardMoved
from bench.storm.world import World

KINDS: dict[str, type[Fault]] = {
    kind.name: kind
    for kind in (
        faults.ServerKilled,
        faults.ServerKilledEverysec,
        faults.ServerStopped,
        faults.FunctionsFlushed,
        faults.WorkerKilled,
        faults.WorkerStopped,
        faults.Cut,
        faults.RepliesLost,
        faults.Delayed,
        faults.ReadOnly,
        faults.OutOfMemory,
        faults.FullDisk,
        faults.Denied,
        faults.Switchover,
        faults.Failover,
        faults.ReplicaStopped,
        faults.SlotMoved,
        ShardMoved,
        MasterKilled,
    )
}


def chosen(wanted: str) -> list[type[Fault]]:
    """Give the kinds of a list with commas; nothing and `all` mean all. Raises KeyError for an unknown kind."""
    if wanted in ("", "all"):
        return list(KINDS.values())
    return [KINDS[name] for name in wanted.split(",")]


def deck(kinds: list[type[Fault]], world: type[World] | Any, count: int, chance: random.Random) -> list[type[Fault]]:
    """Draw kinds for a world, each about equally often."""
    fit = [kind for kind in kinds if world.kind in kind.worlds]
    found: list[type[Fault]] = []
    while len(found) < count:
        found += chance.sample(fit, len(fit))
    return found[:count]
