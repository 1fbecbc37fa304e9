"""A cluster of three masters with a replica each, and a master with a replica and sentinels, which tests may harm."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

MASTERS = 3
TIMEOUT_MS = 1000
"""After so long a node that does not answer counts as failed."""


PORTS = 3_300
"""How many ports each process of the tests chooses from: one that a killed node gave up is not taken by another."""

_FIRST = 11_000 + PORTS * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 3)
_GIVEN: set[int] = set()


def free_port() -> int:
    """Find a port that is free, with its cluster bus 10000 above it; neither is given to outgoing connections."""
    while True:
        port = random.randrange(_FIRST, _FIRST + PORTS)
        with socket.socket() as probe, socket.socket() as bus, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + 10_000))
            if port not in _GIVEN:
                _GIVEN.add(port)
                return port


def wait_until(holds: Callable[[], Any], seconds: float = 60) -> None:
    """Wait until something holds; a server that does not answer says no."""
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(redis.ConnectionError, redis.TimeoutError, redis.ResponseError):
            if holds():
                return
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


class Node:
    """A server on a port of this machine, which may be killed and started again with its data."""

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.folder = folder / str(self.port)
        self.folder.mkdir()
        self._command = [program, *options, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self.process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0), socket_timeout=5)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_until(self.client.ping)

    def kill(self) -> None:
        """End it as kill -9 does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def ask(self, *command: Any) -> Any:
        """Send a command; give its reply, bytes as text."""
        return _text(self.client.execute_command(*command))

    def stopped(self) -> contextlib.AbstractContextManager[None]:
        """Let it hang."""
        return stopped(self.process)

    def role(self) -> str:
        return str(self.ask("ROLE")[0])


@contextlib.contextmanager
def stopped(process: subprocess.Popen[bytes] | None) -> Iterator[None]:
    """Let a server hang: it answers nobody until the end of this context."""
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


class Move(NamedTuple):
    """A slot that moves from one master to another."""

    slot: int
    source: Node
    target: Node

    def keys(self, *keys: Any) -> None:
        """Move these keys."""
        self.source.client.execute_command("MIGRATE", "127.0.0.1", self.target.port, "", 0, 5000, "KEYS", *keys)

    def some(self) -> bool:
        """Move a few keys; say whether there were any."""
        keys: Any = self.source.client.execute_command("CLUSTER", "GETKEYSINSLOT", self.slot, 3)
        if keys:
            self.keys(*keys)
        return bool(keys)


class Cluster:
    """Masters with a replica each, whose data are on disk; or masters alone, without any file."""

    def __init__(
        self,
        program: str,
        folder: Path,
        timeout_ms: int = TIMEOUT_MS,
        replicas: int = MASTERS,
        options: Sequence[str] = (),
    ) -> None:
        own = ("--cluster-enabled", "yes", "--cluster-node-timeout", str(timeout_ms))
        data = ("--appendonly", "yes" if replicas else "no", "--save", "", "--repl-diskless-sync-delay", "0")
        self.nodes = [Node(program, folder, *own, *data, *options) for _ in range(MASTERS + replicas)]

    def start(self) -> None:
        """Start the nodes, and wait until all of them serve."""
        for node in self.nodes:
            node.start()
        for number, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < MASTERS:
                first, last = 16384 * number // MASTERS, 16384 * (number + 1) // MASTERS - 1
                node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
            if number:
                node.ask("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port)
        for master, replica in zip(self.nodes, self.nodes[MASTERS:], strict=False):
            identity = master.ask("CLUSTER", "MYID")
            wait_until(lambda replica=replica, identity=identity: replica.ask("CLUSTER", "REPLICATE", identity))  # type: ignore[misc]
        self.wait_until_whole()

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()

    def is_whole(self) -> bool:
        """Whether every node serves, and every master has a replica that has caught up."""
        for node in self.nodes:
            if node.ask("CLUSTER INFO")["cluster_state"] != "ok":
                return False
        roles = [node.ask("ROLE") for node in self.nodes]
        masters = [role for role in roles if role[0] == "master"]
        joined = [role for role in roles if role[0] == "slave" and role[3] == "connected"]
        if len(self.nodes) == MASTERS:
            return len(masters) == MASTERS
        return len(masters) == len(joined) == MASTERS and all(role[2] for role in masters)

    def wait_until_whole(self) -> None:
        wait_until(self.is_whole)

    def offsets(self) -> dict[int, int]:
        """Give how much each master has written, by its port."""
        roles = [(node.port, node.ask("ROLE")) for node in self.nodes]
        return {port: int(role[1]) for port, role in roles if role[0] == "master"}

    def have(self, offsets: dict[int, int]) -> bool:
        """Whether the replicas have what their masters had written."""
        roles = [node.ask("ROLE") for node in self.nodes]
        return all(int(role[4]) >= offsets.get(int(role[2]), 0) for role in roles if role[0] == "slave")

    def owner(self, prefix: str) -> Node:
        """Find the master that serves a namespace, as most nodes see it."""
        slot = key_slot(prefix.encode())
        for node in self.nodes:
            with contextlib.suppress(redis.ConnectionError):
                for first, last, master, *_ in node.ask("CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return next(one for one in self.nodes if one.port == master[1])
        raise AssertionError(f"nobody serves {prefix}")

    def fail_over(self, prefix: str) -> None:
        """Kill the master of a namespace; start it again, as a replica, when another node is the master."""
        self.wait_until_whole()
        dead = self.owner(prefix)
        dead.kill()
        wait_until(lambda: self.owner(prefix) is not dead)
        dead.start()

    def masters(self) -> list[Node]:
        return [node for node in self.nodes if node.role() == "master"]

    def url(self, prefix: str, *options: str) -> str:
        hosts = ",".join(node.address for node in self.nodes[:3])
        return f"redis+cluster://{hosts}/0?" + "&".join((f"prefix={prefix}", *options))

    def deployment(self, name: str, *options: str) -> str:
        """Give the URL of a deployment."""
        hosts = ",".join(node.address for node in self.nodes[:3])
        return f"redis+cluster://{hosts}/0?" + "&".join((f"name={name}", *options))

    @contextlib.contextmanager
    def moving(self, prefix: str) -> Iterator[Move]:
        """Begin to move the slot of a namespace to another master, key by key; at the end it belongs to that one."""
        source = self.owner(prefix)
        target = next(node for node in self.masters() if node is not source)
        move = Move(key_slot(prefix.encode()), source, target)
        there, here = target.ask("CLUSTER", "MYID"), source.ask("CLUSTER", "MYID")
        target.ask("CLUSTER", "SETSLOT", move.slot, "IMPORTING", here)
        source.ask("CLUSTER", "SETSLOT", move.slot, "MIGRATING", there)
        yield move
        while move.some():
            pass
        for node in (target, source, *self.masters()):
            node.ask("CLUSTER", "SETSLOT", move.slot, "NODE", there)

    def move_at_once(self, prefix: str) -> bool:
        """Move the slot of a namespace to another master in one step; False if the server cannot, or did not."""
        source, slot = self.owner(prefix), key_slot(prefix.encode())
        target = next(node for node in self.masters() if node is not source)
        there = target.ask("CLUSTER", "MYID")
        try:
            source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", there)
        except redis.ResponseError:
            return False
        wait_until(lambda: _newest_migration(source) in ("success", "failed", "canceled"))
        return _newest_migration(source) == "success"


def _newest_migration(node: Node) -> str:
    """Give the state of the newest migration of slots of a node."""
    newest = node.ask("CLUSTER", "GETSLOTMIGRATIONS")[0]
    named = newest if isinstance(newest, dict) else dict(zip(newest[::2], newest[1::2], strict=True))
    return str(named["state"])


class Watched:
    """A master with a replica, and sentinels that promote it."""

    NAME = "shop"

    def __init__(self, program: str, folder: Path) -> None:
        options = ("--save", "", "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
        self.servers = [Node(program, folder, *options) for _ in range(2)]
        self.sentinels = []
        for _ in range(3):
            node = Node(program, folder)
            settings = folder / f"{node.port}.conf"
            settings.write_text(
                f"port {node.port}\nbind 127.0.0.1\ndir {node.folder}\n"
                f"sentinel monitor {self.NAME} 127.0.0.1 {self.servers[0].port} 2\n"
                f"sentinel down-after-milliseconds {self.NAME} {TIMEOUT_MS}\n"
                f"sentinel failover-timeout {self.NAME} 6000\n"
            )
            node._command = [program, str(settings), "--sentinel"]
            self.sentinels.append(node)

    def start(self) -> None:
        """Start all, and wait until the sentinels know the replica and each other."""
        for server in self.servers:
            server.start()
        self.servers[1].ask("REPLICAOF", "127.0.0.1", self.servers[0].port)
        wait_until(lambda: self.servers[1].ask("ROLE")[3] == "connected")
        for sentinel in self.sentinels:
            sentinel.start()
        for sentinel in self.sentinels:
            wait_until(lambda sentinel=sentinel: self._knows_all(sentinel))  # type: ignore[misc]

    def _knows_all(self, sentinel: Node) -> bool:
        others = sentinel.ask("SENTINEL", "SENTINELS", self.NAME)
        return len(others) == 2 and len(sentinel.ask("SENTINEL", "REPLICAS", self.NAME)) == 1

    def stop(self) -> None:
        for node in (*self.sentinels, *self.servers):
            node.kill()

    def url(self, prefix: str, *options: str) -> str:
        hosts = ",".join(node.address for node in self.sentinels)
        return f"redis+sentinel://{hosts}/{self.NAME}/0?" + "&".join((f"prefix={prefix}", *options))


Nodes = TypeVar("Nodes", Cluster, Watched)


@contextlib.contextmanager
def _started(make: Callable[[str, Path], Nodes], program: str) -> Iterator[Nodes]:
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        made = make(program, Path(folder))
        try:
            made.start()
            yield made
        finally:
            made.stop()


def cluster(program: str) -> contextlib.AbstractContextManager[Cluster]:
    """Start a cluster, and kill its nodes at the end."""
    return _started(Cluster, program)


def watched(program: str) -> contextlib.AbstractContextManager[Watched]:
    """Start a master, a replica and sentinels, and kill all at the end."""
    return _started(Watched, program)


def _text(reply: Any) -> Any:
    if isinstance(reply, bytes):
        return reply.decode()
    if isinstance(reply, list | tuple):
        return [_text(one) for one in reply]
    if isinstance(reply, dict):
        return {_text(name): _text(value) for name, value in reply.items()}
    return reply
