"""A cluster: pairs of a master and a replica, with the shards of a deployment. Slots move.

Each node is the sessions of `qmodel serve` on the model in memory, behind a gate that knows slots as the nodes of a
Redis Cluster do. The gate answers MOVED for a slot of another node; ASK for one that is moving away; TRYAGAIN for one
that is moving here, if the client has sent ASKING, because the library reads a key first that no node has. What a node
knows of the others may be old: each learns of a change some time later, so two nodes may contradict each other.

A slot moves in one moment, or key by key, which takes a while. A killed master is replaced by its replica, at another
port, and comes back as the replica of that one. With settings that lie, the replica lags by some time: what the master
had acknowledged since then is lost. In a `split` the old master also goes on, with the clients that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from redis.crc import key_slot

from qmodel.backends.redis.shards import prefix_of
from qmodel.contract.operations import Operation, Put, Spec
from qmodel.contract.routing import SLOTS, Layout
from qmodel.model import copies
from qmodel.model.state.store import Store
from qmodel.serve import dispatch, info
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.host import Host, Options
from qmodel.serve.namespaces import Space
from qmodel.serve.resp import OK, Fault
from qmodel.serve.session import Session
from qmodel.simulator.baton import Process
from qmodel.simulator.disk import SimulatedDisk
from qmodel.simulator.oracles import PATIENCE
from qmodel.simulator.scene import Scene
from qmodel.simulator.server import DEADLINE, Server
from qmodel.worker.shard_looks import BEAT

NAME: Final = "shop"
SHARDS: Final = 4
LAYOUT: Final = Layout(SHARDS)
PREFIXES: Final = tuple(prefix_of(NAME, shard, SHARDS) for shard in range(SHARDS))
FIRST_PORT: Final = 7000

GOSSIP: Final = 0.5
"""Seconds until all nodes have learned of a change."""

ELECTION: Final = 2.0
"""Seconds that a killed master is at most away until it comes back as a replica."""

_KEYLESS: Final = frozenset(("INFO", "CLUSTER", "ASKING", "CLIENT", "HELLO", "FUNCTION", "CONFIG", "PING", "SELECT"))


def shard_of(words: Sequence[str]) -> int | None:
    """Find the shard that a command names a key of; None if it names none."""
    name = words[0].upper()
    if name in _KEYLESS or (name == "FCALL" and words[2] == "0"):
        return None
    at = 3 if name == "FCALL" else [word.upper() for word in words].index("STREAMS") + 1 if name == "XREAD" else 1
    return next(
        (shard for shard, prefix in enumerate(PREFIXES) if words[at : at + 1] and words[at].startswith(prefix)), None
    )


class Node:
    """A server of the cluster. `owns` are the shards that it serves, `knows` is the port of each shard's owner."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.process: Process | None = None
        self.start_at = 0.0
        self.loop: asyncio.AbstractEventLoop | None = None
        self.host: Host | None = None
        self.owns: set[int] = set()

    def begin(self) -> None:
        """Begin without any data, as a replica."""
        self.owns = set()
        self.knows: dict[int, int] = {}
        self.leaving: dict[int, int] = {}
        self.coming: set[int] = set()
        self.executor = ModelExecutor()
        self._asking: set[Session] = set()

    @property
    def runs(self) -> bool:
        """Whether it serves."""
        return self.process is not None and not self.process.dead and self.loop is not None

    def runs_as(self, process: Process | None) -> bool:
        """Whether it still runs as a given process."""
        return self.runs and self.process is process

    def space(self, shard: int) -> Space:
        """Get the namespace of a shard."""
        return self.executor.spaces.of(0, PREFIXES[shard])

    def take(self, shard: int, store: Store) -> None:
        """Own a shard from now on."""
        space = self.space(shard)
        space.store, space.is_begun = store, False
        self.owns.add(shard)
        self.coming.discard(shard)
        self.knows[shard] = self.port

    def give(self, shard: int, to: int) -> None:
        """Own a shard no longer. Clients that wait for it are told where it is."""
        self.owns.discard(shard)
        self.leaving.pop(shard, None)
        self.knows[shard] = to
        if self.loop is not None and self.host is not None:
            self.loop.call_soon_threadsafe(_redirect, list(self.host.sessions), self.space(shard), to)
        self.executor.spaces.clear(0, PREFIXES[shard])

    # ---- commands

    def perform(self, session: Session, words: list[str]) -> None:
        """Execute a command, or say where else."""
        name = words[0].upper()
        asks, shard = session in self._asking, shard_of(words)
        self._asking.discard(session)
        refused = self._redirected(shard, asks) if shard is not None else ""
        if refused:
            session.say(Fault(refused))
        elif name == "ASKING":
            self._asking.add(session)
            session.say(OK)
        elif name == "CLUSTER":
            session.say(self._slots())
        elif name == "INFO":
            role = "master" if self.owns else "slave"
            session.say(info.info(session, words).replace("role:master", f"role:{role}"))
        else:
            dispatch.perform(session, words)

    def _redirected(self, shard: int, asks: bool) -> str:
        if shard in self.owns:
            return f"ASK {_slot(shard)} node:{self.leaving[shard]}" if shard in self.leaving else ""
        if shard in self.coming and asks:
            return self.guard()
        owner = self.knows.get(shard, self.port)
        return f"MOVED {_slot(shard)} node:{owner}" if owner != self.port else "CLUSTERDOWN Hash slot not served"

    def guard(self) -> str:
        """Refuse a call for a slot that is moving here: the key that the library reads first is on no node."""
        return "TRYAGAIN Multiple keys request during rehashing of slot"

    def _slots(self) -> list[Any]:
        """Reply to CLUSTER SLOTS; the replica of a node is at the port beside its own."""
        size = SLOTS // SHARDS
        return [
            [shard * size, (shard + 1) * size - 1, ["node", owner, str(owner)], ["node", owner ^ 1, str(owner ^ 1)]]
            for shard, owner in sorted(self.knows.items())
        ]


def _slot(shard: int) -> int:
    return key_slot(PREFIXES[shard].encode())


def _redirect(sessions: Sequence[Any], space: Space, to: int) -> None:
    """Tell the clients that wait for wake-ups of a namespace where it is now."""
    slot = key_slot(space.prefix.encode())
    for session in sessions:
        waiter = getattr(session.waiting, "waiter", None)
        if waiter is not None and any(wanted is space for wanted, _, _ in waiter.wanted):
            session.waiting.end(Fault(f"MOVED {slot} node:{to}"))


class Cluster(Server):
    """The nodes, what becomes of them, and where the shards are."""

    def __init__(self, scene: Scene, folder: Path, disk: SimulatedDisk, snapshot_every: int) -> None:
        super().__init__(scene, folder, disk, snapshot_every)
        pairs = scene.settings.nodes
        self.nodes = {port: Node(port) for port in range(FIRST_PORT, FIRST_PORT + 2 * pairs)}
        self.owners = {shard: FIRST_PORT + 2 * (shard % pairs) for shard in range(SHARDS)}
        self._lasting = {shard: Store() for shard in range(SHARDS)}
        self._lasting_at = 0.0
        seeds = ",".join(f"node:{port}" for port in self.nodes if not port % 2)
        self.url = f"redis+cluster://{seeds}/0?name={NAME}&shards={SHARDS}&deadline={DEADLINE:g}&socket_timeout=2"
        scene.oracles.longest_sleep = BEAT + PATIENCE

    # ---- what others see

    @property
    def store(self) -> Store | None:
        """There is not one state."""
        return None

    @property
    def stores(self) -> list[Store]:
        """The states of the shards, as far as their owners run."""
        return [self.nodes[port].space(shard).store for shard, port in self.owners.items() if self.nodes[port].runs]

    @property
    def is_up(self) -> bool:
        """Whether every shard has an owner that runs."""
        return len(self.stores) == SHARDS

    def store_of(self, jid: str) -> Store | None:
        """The state of the shard of a job, while its owner runs."""
        shard = LAYOUT.home(jid)
        node = self.nodes[self.owners[shard]]
        return node.space(shard).store if node.runs else None

    @property
    def ports(self) -> list[int]:
        """The ports of all nodes."""
        return list(self.nodes)

    def settle(self) -> None:
        """Let the replicas have what the masters have."""
        if self.is_up:
            self._lasting = {shard: copies.copy(store) for shard, store in enumerate(self.stores)}
            self._lasting_at = self._scene.baton.now

    def check_at_the_end(self) -> None:
        """Look for every acknowledged job in its shard."""
        for shard, port in self.owners.items():
            self._recovered(shard, self.nodes[port].space(shard).store, None)

    def _recovered(self, shard: int, store: Store, since: float | None) -> None:
        self._scene.oracles.recovered(store, since, lambda jid: LAYOUT.home(jid) == shard)

    # ---- the nodes

    def _begin(self, node: Node) -> None:
        node.begin()
        node.knows = dict(self.owners)
        for shard, port in self.owners.items():
            if port == node.port:
                node.take(shard, Store())
        node.executor.watch = partial(self._observe, node)

    def operate(self) -> None:
        """Start each node when its time to start has come: the operator's part."""
        while True:
            for node in self.nodes.values():
                if (node.process is None or node.process.dead) and self._scene.baton.now >= node.start_at:
                    self._begin(node)
                    node.process = Process(f"node-{node.port}", self._scene.draw_skew())
                    self._scene.baton.start("serve", node.process, partial(self._run, node))
            self._scene.sleep(0.05)

    def _run(self, node: Node) -> None:
        self._scene.run_loop(self._listen(node))

    async def _listen(self, node: Node) -> None:
        node.host, node.loop = host, loop = Host(Options(port=node.port), node.executor), asyncio.get_running_loop()
        await loop.create_server(lambda: Session(host, node.perform), "node", node.port)
        await host.stopping.wait()

    def _observe(
        self, node: Node, space: Space, spec: Spec, words: Sequence[str], op: Operation | None, now: int, outcome: Any
    ) -> None:
        oracles, is_old = self._scene.oracles, node is self.isolated
        if is_old and isinstance(op, Put):
            oracles.orphans.add(op.jid)
        oracles.executed(None if is_old else space.store, spec, words, op, outcome, space.prefix)

    def _tell(self) -> None:
        """Let all nodes learn, each after some time, who owns what now."""
        scene = self._scene
        scene.net.faulted(GOSSIP)
        for node in self.nodes.values():
            scene.baton.at(scene.baton.now + scene.chance.random() * GOSSIP, partial(self._learn, node))

    def _learn(self, node: Node) -> None:
        if not self.isolated or node is not self.isolated:
            node.knows = dict(self.owners)

    # ---- faults

    isolated: Node | None = None
    """The old master that goes on in a split."""

    def crash(self, how: str, down: float) -> None:
        """Kill a master, and promote its replica; or, in a `split`, promote it first."""
        scene = self._scene
        old = self.nodes[scene.chance.choice(sorted(set(self.owners.values())))]
        new = self.nodes[old.port ^ 1]
        if not (old.runs and new.runs):
            return
        self.crashes += 1
        scene.oracles.counts[f"failovers: {how}"] += 1
        since = self._lasting_at if how != "kill" else None
        stores = self._replicated(old, how != "kill")
        if how == "split":
            self.isolated, scene.oracles.parted = old, True
        else:
            self._kill(old, down)
            scene.net.faulted(down)
            scene.sleep(down)
        scene.net.faulted(down + 1.0)
        for shard, store in stores.items():
            self.owners[shard] = new.port
            new.take(shard, store)
        if how == "split":
            self._tell()
            scene.sleep(2 * down)
            self._kill(old, down)
        for shard in stores:
            self._recovered(shard, new.space(shard).store, since)
        self.isolated, scene.oracles.parted = None, False
        if since is not None:
            scene.oracles.tail_lost_at = scene.baton.now
        self._tell()

    def _replicated(self, old: Node, lags: bool) -> dict[int, Store]:
        """Copy what the replica of a node has, and let none of its slots move on."""
        found = {}
        for shard in sorted(old.owns):
            there = old.space(shard).store
            found[shard] = copies.copy(self._lasting[shard] if lags else there)
            self._scene.oracles.orphans |= there.jobs.keys() - found[shard].jobs.keys()  # replies may be under way
            for node in self.nodes.values():
                node.leaving.pop(shard, None)
                node.coming.discard(shard)
        return found

    def _is_split(self) -> bool:
        return self.isolated is not None

    def _kill(self, node: Node, down: float) -> None:
        scene = self._scene
        node.start_at = scene.baton.now + down + scene.chance.random() * ELECTION
        node.owns, node.loop = set(), None
        if node.process is not None:
            scene.baton.kill(node.process)
            scene.baton.give_way()

    def move(self) -> None:
        """Move a slot to another master: at once, or key by key."""
        scene = self._scene
        shard = scene.chance.randrange(SHARDS)
        old = self.nodes[self.owners[shard]]
        others = sorted(set(self.owners.values()) - {old.port}) or sorted(
            {port & ~1 for port in self.nodes} - {old.port}
        )
        new = self.nodes[scene.chance.choice(others)]
        if not (old.runs and new.runs and shard in old.owns) or self._is_split():
            return
        if scene.chance.random() < 0.5:
            scene.oracles.counts["slots moved key by key"] += 1
            lasts = scene.chance.choice((0.1, 0.5, 2.0))
            scene.net.faulted(lasts)
            old.leaving[shard] = new.port
            new.coming.add(shard)
            process = new.process
            scene.sleep(lasts)
            gone = not new.runs_as(process) or self._is_split()
            if old.leaving.pop(shard, None) is None or gone:
                new.coming.discard(shard)
                return
        else:
            scene.oracles.counts["slots moved at once"] += 1
        store = copies.copy(old.space(shard).store)
        self.owners[shard] = new.port
        new.take(shard, store)
        old.give(shard, new.port)
        self._tell()
