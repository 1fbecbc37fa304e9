"""The kinds of faults, a class each: what it prepares, what it does, and how the world heals.

A kind draws its details when it is made, so that the same seed gives the same faults.
"""

from __future__ import annotations

import random
import signal
import time
from typing import Any, ClassVar

import redis

from bench.storm.evidence import Window
from bench.storm.load import GRACE_MS, LEASE_MS, SORTS, Workers
from bench.storm.world import GO_ON, STOP, Cluster, Node, Pair, until

EVERYSEC_SECONDS = 3.0
"""How much an `appendfsync everysec` may lose: a write waits for up to two seconds for the one before."""

WITHOUT_CONFIRM = "failover without confirm"

EVERYWHERE = frozenset(("pair", "cluster", "deployment", "deployment-unconfirmed"))

UNCONFIRMED = frozenset(("NotConfirmed",))
"""What a client that asks for confirmation may hear at any fault: it is told the truth, and asks again."""


class Fault:
    """A fault. `worlds` says in which worlds it may happen."""

    name: ClassVar[str]
    worlds: ClassVar[frozenset[str]] = frozenset(("pair", "cluster"))
    allowed: ClassVar[frozenset[str]] = frozenset()
    """The codes of the errors that clients may raise meanwhile, beside UNCONFIRMED."""

    def __init__(self, world: Any, workers: Workers, chance: random.Random) -> None:
        self.world, self.workers = world, workers
        self.seconds = round(chance.uniform(0.1, 0.8), 2)
        self.chance = chance
        self.details: dict[str, Any] = {}
        self.begins = self.ends = 0.0
        self.loses, self.loses_since, self.loses_confirmed = "", 0.0, False
        self.away = 0.0
        self.draw()

    def draw(self) -> None:
        """Draw further details."""

    def before(self) -> None:
        """Prepare."""

    def strike(self) -> None:
        """Do it."""

    def after(self) -> None:
        """End it."""

    def run(self) -> None:
        """Prepare, strike, end, and wait until the world is healthy."""
        self.begins = time.time()
        self.before()
        self.strike()
        self.after()
        self.workers.ready()
        self.world.heal()
        self.ends = time.time()

    def window(self) -> Window:
        """Tell what it declares."""
        begins = min(self.begins, self.loses_since) if self.loses else self.begins
        allowed = self.allowed | UNCONFIRMED
        return Window(self.name, begins, self.ends, allowed, self.loses, self.loses_confirmed, self.away)


# ---- the server's process


class ServerKilled(Fault):
    """The server is killed and comes back; with `appendfsync always` nothing is lost.

    If it was killed in the middle of a write, its append-only file ends within a step. Afterwards the file is
    rewritten, as the docs say: Redis 7.0.15 leaves the beginning of that step in it, and would execute it at the next
    restart.
    """

    name = "server-killed"
    worlds = frozenset(("pair",))

    def strike(self) -> None:
        self.world.primary.kill()
        time.sleep(self.seconds)
        self.world.primary.start()

    def after(self) -> None:
        self.world.primary.rewrite_file()


class ServerKilledEverysec(ServerKilled):
    """The server is killed and comes back; with `appendfsync everysec` the last writes may be lost."""

    name = "server-killed-everysec"

    def before(self) -> None:
        self.world.primary.raw.config_set("appendfsync", "everysec")
        time.sleep(self.seconds)

    def strike(self) -> None:
        self.loses, self.loses_confirmed = "everysec and the server killed", True
        self.loses_since = time.time() - EVERYSEC_SECONDS
        super().strike()


class ServerStopped(Fault):
    """The server's process stops for a while."""

    name = "server-stopped"

    def draw(self) -> None:
        self.seconds = round(self.chance.uniform(0.2, 1.6), 2)

    def strike(self) -> None:
        node: Node = self.world.primary
        node.send(STOP)
        time.sleep(self.seconds)
        node.send(GO_ON)


class FunctionsFlushed(Fault):
    """Somebody deletes all functions of the server."""

    name = "functions-flushed"

    def strike(self) -> None:
        self.world.primary.raw.execute_command("FUNCTION", "FLUSH")


# ---- workers


class WorkerKilled(Fault):
    """A worker is killed, and another one begins."""

    name = "worker-killed"
    worlds = EVERYWHERE

    def draw(self) -> None:
        self.details["worker"] = self.chance.randrange(len(SORTS))

    def strike(self) -> None:
        self.workers.replace(self.details["worker"], signal.SIGKILL)


class WorkerStopped(Fault):
    """A worker stops for longer than its leases last, and then goes on with jobs that others may have."""

    name = "worker-stopped"
    worlds = EVERYWHERE

    def draw(self) -> None:
        self.details["worker"] = self.chance.randrange(len(SORTS))
        self.seconds = round((LEASE_MS + GRACE_MS) / 1000 + self.chance.uniform(0, 1), 2)

    def strike(self) -> None:
        worker = self.workers.now[self.details["worker"]]
        worker.send(STOP)
        time.sleep(self.seconds)
        worker.send(GO_ON)


# ---- the network


class Cut(Fault):
    """All connections are cut at once."""

    name = "connections-cut"

    def strike(self) -> None:
        self.details["connections"] = sum(line.cut() for line in self.world.lines)


class RepliesLost(Fault):
    """Replies are lost, or arrive by half, after the server executed the requests."""

    name = "replies-lost"

    def draw(self) -> None:
        self.details["replies"] = self.chance.randint(1, 20)
        self.details["torn"] = self.chance.random() < 0.5

    def strike(self) -> None:
        line = self.world.line
        line.torn, line.lose = self.details["torn"], self.details["replies"]
        over = time.monotonic() + 5
        while line.lose and time.monotonic() < over:
            time.sleep(0.02)

    def after(self) -> None:
        for line in self.world.lines:
            line.lose, line.torn = 0, False


class Delayed(Fault):
    """Each packet is late."""

    name = "packets-delayed"

    def draw(self) -> None:
        self.details["delay"] = round(self.chance.uniform(0.01, 0.2), 3)

    def strike(self) -> None:
        for line in self.world.lines:
            line.delay = self.details["delay"]
        time.sleep(self.seconds)

    def after(self) -> None:
        for line in self.world.lines:
            line.delay = 0.0


# ---- what the server refuses


class ReadOnly(Fault):
    """The primary takes no writes for a while, as one that was demoted by mistake."""

    name = "readonly"
    worlds = frozenset(("pair",))

    def strike(self) -> None:
        self.world.primary.raw.execute_command("REPLICAOF", "127.0.0.1", "1")
        time.sleep(self.seconds)

    def after(self) -> None:
        self.world.primary.raw.execute_command("REPLICAOF", "NO", "ONE")


class OutOfMemory(Fault):
    """The server has reached maxmemory."""

    name = "out-of-memory"
    allowed = frozenset(("OOM",))

    def strike(self) -> None:
        self.world.primary.raw.config_set("maxmemory", 1)
        time.sleep(self.seconds)

    def after(self) -> None:
        self.world.primary.raw.config_set("maxmemory", 0)


class FullDisk(Fault):
    """The append-only file cannot grow.

    Afterwards the file is rewritten, as the docs say: the server cuts off half a write, but goes on writing where that
    had ended. What it leaves between is zeros, and with those it does not start again (Valkey 9.1.2 and Redis
    7.0.15, in a file that it began while it ran).
    """

    name = "full-disk"
    allowed = frozenset(("MISCONF",))

    def draw(self) -> None:
        self.details["room"] = self.chance.randrange(5_000)

    def before(self) -> None:
        self.world.primary.raw.config_set("appendfsync", "everysec")

    def strike(self) -> None:
        self.world.primary.limit_files(self.details["room"])
        time.sleep(self.seconds)

    def after(self) -> None:
        node: Node = self.world.primary
        node.limit_files(None)
        until(lambda: node.info("persistence")["aof_last_write_status"] == "ok", "the end of the full disk")
        node.rewrite_file()
        node.raw.config_set("appendfsync", "always")


class Denied(Fault):
    """A command that functions use is denied to the clients' user for a while.

    A step that needs it after its first write is kept. Until it is completed, its keys cannot be used: CORRUPT.
    """

    name = "command-denied"
    allowed = frozenset(("NOPERM", "CORRUPT"))
    COMMANDS = ("mset", "zadd", "zrem", "hset", "hdel", "xadd", "zcard", "set", "get", "mget", "del", "rpush", "incrby")

    def draw(self) -> None:
        self.details["command"] = self.chance.choice(self.COMMANDS)
        self.seconds = round(self.chance.uniform(0.05, 0.3), 2)

    def strike(self) -> None:
        self.world.primary.raw.execute_command("ACL", "SETUSER", "app", f"-{self.details['command']}")
        time.sleep(self.seconds)

    def after(self) -> None:
        self.world.primary.raw.execute_command("ACL", "SETUSER", "app", "+@all")


# ---- replicas


class Switchover(Fault):
    """The replica takes over as planned: it has everything, and the old primary follows it."""

    name = "switchover"
    worlds = frozenset(("pair",))

    def strike(self) -> None:
        world: Pair = self.world
        old, new = world.primary, world.replica
        old.raw.execute_command("FAILOVER", "TO", "127.0.0.1", new.port)
        until(lambda: new.info("replication")["role"] == "master", "the switchover")
        world.switch()


class Failover(Fault):
    """The replica takes over without the tail of the primary, which lives on for a moment, and then dies or follows.

    Only what a replica had confirmed is sure to be kept.
    """

    name = "failover"
    worlds = frozenset(("pair",))

    def draw(self) -> None:
        self.details["old primary"] = self.chance.choice(("dies", "follows"))
        self.seconds = round(self.chance.uniform(0.02, 0.4), 2)

    def before(self) -> None:
        self.loses, self.loses_since = WITHOUT_CONFIRM, self.world.synced()

    def strike(self) -> None:
        world: Pair = self.world
        old, new = world.primary, world.replica
        new.raw.execute_command("REPLICAOF", "NO", "ONE")
        time.sleep(self.seconds)
        if self.details["old primary"] == "dies":
            old.kill()
        world.switch()
        world.line.cut()

    def after(self) -> None:
        if self.details["old primary"] == "dies":
            self.world.replica.start()
        self.world.follow()


class ReplicaStopped(Fault):
    """The replica confirms nothing for a while."""

    name = "replica-stopped"
    worlds = frozenset(("pair",))

    def strike(self) -> None:
        self.world.replica.send(STOP)
        time.sleep(self.seconds)

    def after(self) -> None:
        self.world.replica.send(GO_ON)


# ---- the cluster


class SlotMoved(Fault):
    """The slot of all jobs moves to another node: in one step where the server can (Valkey 9), or key by key."""

    name = "slot-moved"
    worlds = frozenset(("cluster",))

    def draw(self) -> None:
        self.details["step"] = self.chance.randint(1, 2)
        self.details["atomic"] = self.chance.random() < 0.5

    def strike(self) -> None:
        world: Cluster = self.world
        to = (world.first + self.details["step"]) % len(world.nodes)
        source, target = world.primary, world.nodes[to]
        if not self.details["atomic"] or not self._at_once(world, source, target):
            self.details["atomic"] = False
            self._by_keys(world, source, target)
        world.first = to

    def _at_once(self, world: Cluster, source: Node, target: Node) -> bool:
        """Move the slot in one step; False if the server cannot."""
        try:
            source.raw.execute_command(
                "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", world.slot, world.slot, "NODE", world.id_of(target)
            )
        except redis.ResponseError:
            return False
        states = ("success", "failed", "cancel")

        def ended() -> str:
            jobs = str(source.raw.execute_command("CLUSTER", "GETSLOTMIGRATIONS"))
            newest = jobs.partition("'state'")[2] or jobs.partition("state")[2]
            return next((state for state in states if state in newest[:40]), "")

        return bool(until(ended, "the end of the migration") == "success")

    def _by_keys(self, world: Cluster, source: Node, target: Node) -> None:
        """Move the keys a few at a time, while clients use them."""
        slot = world.slot
        target.raw.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", world.id_of(source))
        source.raw.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", world.id_of(target))
        while keys := source.raw.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 50):
            source.raw.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 20_000, "KEYS", *keys)
        for node in (target, source, *(one for one in world.nodes if one not in (source, target))):
            node.raw.execute_command("CLUSTER", "SETSLOT", slot, "NODE", world.id_of(target))
