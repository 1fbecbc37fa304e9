"""The servers of a storm: a primary with a replica, or a cluster of three nodes, each behind a line."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bench.storm.line import Line, Network
from qmodel.contract.routing import Layout

PATIENCE = 120.0
"""Seconds after which a storm gives up waiting: what should come within a second or two does not come any more."""

USER = ("--user", "app", "on", ">storm", "~*", "&*", "+@all")
PREFIX = "{storm}:"
DEADLINE = 60


class Stuck(Exception):
    """What a storm waited for did not come."""


def until(true: Callable[[], Any], what: str) -> Any:
    """Poll until a condition is true; give its value. Raises Stuck after PATIENCE."""
    over = time.monotonic() + PATIENCE
    while not (found := true()):
        if time.monotonic() > over:
            raise Stuck(f"{what} did not come within {PATIENCE:g} seconds")
        time.sleep(0.02)
    return found


def free_ports(count: int) -> list[int]:
    """Find ports on which nothing listens."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


class Node:
    """A server that can be killed, stopped and started again."""

    def __init__(self, program: str, folder: Path, port: int, *options: str) -> None:
        folder.mkdir(parents=True)
        self.program, self.folder, self.port = program, folder, port
        self.options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
        self.options += ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"]
        self.options += [*options, *USER]
        self.process: subprocess.Popen[bytes] | None = None
        self._raw: Any = None

    @property
    def raw(self) -> Any:
        """A client for the storm itself, past the line."""
        if self._raw is None:
            self._raw = redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0), socket_timeout=20)
        return self._raw

    def start(self) -> None:
        """Start it, and wait until it has loaded its data. A file too large for a limit is an error of the write."""
        with (self.folder / "server.log").open("ab") as log:
            # Python ignores SIGXFSZ, and so does this child: `restore_signals` would let a full disk kill it.
            self.process = subprocess.Popen(
                [self.program, *self.options], stdout=log, stderr=log, restore_signals=False, process_group=0
            )
        until(self.answers, f"the start of the server on port {self.port}")

    def answers(self) -> bool:
        """Whether it serves clients."""
        try:
            return bool(self.raw.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        """End it as a crash would: what it gave to the system is kept."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def send(self, number: int) -> None:
        """Send its process a signal."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def limit_files(self, more: int | None) -> None:
        """Let its append-only files grow by at most so many bytes; None: without a limit."""
        assert self.process is not None
        largest = max((path.stat().st_size for path in self.folder.rglob("*.aof")), default=0)
        soft = resource.RLIM_INFINITY if more is None else largest + more
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))

    def rewrite_file(self) -> None:
        """Rewrite its append-only file, and wait for the new one."""
        until(self._rewrites, "the beginning of a rewrite")
        until(lambda: not self.info("persistence")["aof_rewrite_in_progress"], "the rewritten file")

    def _rewrites(self) -> bool:
        """Begin to rewrite the append-only file; False if a child process prevents it."""
        try:
            self.raw.bgrewriteaof()
        except redis.ResponseError:
            return False
        return bool(self.info("persistence")["aof_rewrite_scheduled"] == 0)

    def info(self, section: str) -> dict[str, Any]:
        """Give a section of INFO."""
        return dict(self.raw.info(section))


class World:
    """Servers and lines. `primary` is the server with the jobs, `line` leads to it."""

    kind: ClassVar[str]
    nodes: list[Node]
    lines: list[Line]
    first: int

    layout: Layout | None = None
    """The layout of a deployment."""

    def __init__(self, program: str, folder: Path, network: Network, nodes: int) -> None:
        self.program, self.folder = program, folder
        self.lines = [Line(network) for _ in range(nodes)]
        self.numbers = itertools.count(1)

    @property
    def primary(self) -> Node:
        """The server with the jobs."""
        return self.nodes[self.first]

    @property
    def line(self) -> Line:
        """The line to the server with the jobs."""
        return self.lines[self.first]

    def url(self, confirm: bool = False) -> str:
        """The URL for clients, over the line."""
        more = "&confirm=1" if confirm else ""
        return (
            f"redis://app:storm@127.0.0.1:{self.line.port}/0?prefix={PREFIX}&deadline={DEADLINE}&socket_timeout=1{more}"
        )

    @property
    def direct(self) -> str:
        """The URL for the storm itself, past the line."""
        return f"redis://127.0.0.1:{self.primary.port}/0?prefix={PREFIX}"

    @property
    def spaces(self) -> list[str]:
        """The URL of each namespace, past the line."""
        return [self.direct]

    def confirms(self, number: int) -> bool:
        """Whether a producer or worker of this number asks replicas for confirmation."""
        return False

    def is_healthy(self) -> bool:
        """Whether all servers serve, and agree."""
        raise NotImplementedError

    def heal(self) -> None:
        """Wait until all servers serve, and agree."""

        def healthy() -> bool:
            with contextlib.suppress(redis.RedisError):
                return self.is_healthy()
            return False

        until(healthy, "a healthy world")

    def close(self) -> None:
        """End all servers."""
        for line in self.lines:
            line.close()
        for node in self.nodes:
            node.kill()


class Pair(World):
    """A primary with a replica, and one line, to whichever is the primary."""

    kind = "pair"

    def __init__(self, program: str, folder: Path, network: Network) -> None:
        super().__init__(program, folder, network, 1)
        self.nodes = [Node(program, folder / f"node-{port}", port) for port in free_ports(2)]
        self.first = 0
        for node in self.nodes:
            node.start()
        self.line.to = self.primary.port
        self.follow()
        self.heal()

    @property
    def line(self) -> Line:
        """The line to the primary."""
        return self.lines[0]

    @property
    def replica(self) -> Node:
        """The server that is not the primary."""
        return self.nodes[1 - self.first]

    def confirms(self, number: int) -> bool:
        """Every second one confirms."""
        return number % 2 == 1

    def follow(self) -> None:
        """Make the replica follow the primary."""
        self.replica.raw.execute_command("REPLICAOF", "127.0.0.1", self.primary.port)

    def switch(self) -> None:
        """Let the replica be the primary for the clients."""
        self.first = 1 - self.first
        self.line.to = self.primary.port

    def is_healthy(self) -> bool:
        first, second = self.primary.info("replication"), self.replica.info("replication")
        follows = second["role"] == "slave" and second["master_link_status"] == "up"
        return bool(first["role"] == "master" and follows)

    def synced(self) -> float:
        """Wait until the replica has everything from before a moment; give this moment."""
        moment = time.time()
        offset = self.primary.info("replication")["master_repl_offset"]

        def reached() -> bool:
            return bool(self.replica.info("replication").get("slave_repl_offset", 0) >= offset)

        until(reached, "the replica")
        return moment


SLOTS = (0, 5461, 10923, 16384)


class Cluster(World):
    """Three nodes, each behind a line that it announces; the jobs are in one slot."""

    kind = "cluster"

    def __init__(self, program: str, folder: Path, network: Network) -> None:
        super().__init__(program, folder, network, 3)
        ports = free_ports(6)
        self.nodes = [
            Node(
                program, folder / f"node-{port}", port,
                "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "5000",
                "--cluster-port", str(bus), "--cluster-announce-bus-port", str(bus),
                "--cluster-announce-port", str(line.port),
            )
            for port, bus, line in zip(ports[:3], ports[3:], self.lines, strict=True)
        ]  # fmt: skip
        for number, (node, line) in enumerate(zip(self.nodes, self.lines, strict=True)):
            line.to = node.port
            node.start()
            node.raw.execute_command("CLUSTER", "ADDSLOTSRANGE", SLOTS[number], SLOTS[number + 1] - 1)
        self.slot = int(self.nodes[0].raw.execute_command("CLUSTER", "KEYSLOT", PREFIX))
        self.first = next(number for number in range(3) if self.slot < SLOTS[number + 1])
        for node, bus in list(zip(self.nodes, ports[3:], strict=True))[1:]:
            self.nodes[0].raw.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        self.heal()

    def id_of(self, node: Node) -> str:
        """The name of a node in the cluster."""
        found = node.raw.execute_command("CLUSTER", "MYID")
        return found.decode() if isinstance(found, bytes) else str(found)

    def is_healthy(self) -> bool:
        for node in self.nodes:
            found = node.raw.execute_command("CLUSTER", "INFO")
            text = found.decode() if isinstance(found, bytes) else str(found)
            if "'cluster_state': 'ok'" not in text and "cluster_state:ok" not in text:
                return False
            if "'cluster_known_nodes': '3'" not in text and "cluster_known_nodes:3" not in text:
                return False
        return True


STOP, GO_ON = signal.SIGSTOP, signal.SIGCONT
