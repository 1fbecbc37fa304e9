"""Measure the CPU time of servers and client for a job on a deployment of many shards, beside one namespace.

A job is a put, a pop and a completion. Either each is a call, with 1,600 calls on their way to a node, or each is a
hundredth of a call, as `put_many` and a busy worker make them. The client encodes, routes and decodes; the calls of a
shard stand together in a round trip, as the backend of a deployment sends them. The nodes are three masters of a
cluster without replicas, the plain server stands alone, and none writes files. The clock of a server is the CPU clock
of its process; that of the client is its own. All ways take turns within every run, and a ratio is the median of the
ratios within the runs. What a cluster costs by itself is the difference between the plain server and one shard on the
cluster: the server computes the slot of the key of each call, and of each command of a function.

Each node works while the others wait. In production a node has CPUs of its own; here all share two, and a process that
often gives way finds its caches full of what the others left. "All nodes at once" shows how much that is: the calls are
those of 64 shards, 200 on their way to every node at the same time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from redis.connection import Connection

from bench import Options
from bench.machine import candidates
from bench.report import Report, Table, Verdict, median, ratio
from qmodel.backends.redis.common import encoded
from qmodel.backends.redis.connect import connect
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.routing import shard_tag
from qmodel.model.deployment.plans import Call, destination
from qmodel.wire.codec import decode
from tests.clusters import MASTERS, Cluster, Node

AT_ONCE, FEWER = 1600, 200
"""Calls on their way to a node; and to each of several nodes at the same time."""

HUNDRED, STOCK = 100, 12
DATA = '{"i": 1}'
SHARDS = (4, 16, 64)
JOBS = 19_200
"""Jobs of a run: a hundred for each shard and more."""


class Cost(NamedTuple):
    """Microseconds of a job: of each server, and of the client."""

    servers: tuple[float, ...]
    client: float

    @property
    def total(self) -> float:
        """The time of all servers."""
        return sum(self.servers)


class Way:
    """Performs jobs in one namespace, a call for each step."""

    nodes = 1
    at_once = AT_ONCE

    def __init__(self, url: str, pids: Sequence[int]) -> None:
        self.backend: Any = connect(url)
        self._pids = pids
        self._begun, self._shards = 0, 1
        self._lines: dict[int, Connection] = {}

    def stock(self) -> None:
        """Leave waiting and running jobs in each shard: creating a key and deleting it again costs more than a call."""
        numbers = range(-STOCK * self._shards, 0)
        self._execute([(self._at(op), op) for op in [self._put(number) for number in numbers]])
        self._execute([(shard, ops.Pop("q", "w")) for shard in range(self._shards)])

    def run(self, jobs: int) -> Cost:
        """Put, pop and complete so many jobs."""
        before, began = [_cpu_us(pid) for pid in self._pids], time.process_time()
        size = min(self.at_once * self.nodes, jobs)
        for _ in range(0, jobs, size):
            self._begun += size
            self._batch(range(self._begun - size, self._begun))
        client = (time.process_time() - began) * 1e6 / jobs
        return Cost(tuple((_cpu_us(pid) - cpu) / jobs for pid, cpu in zip(self._pids, before, strict=True)), client)

    def close(self) -> None:
        """Disconnect."""
        self.backend.close()
        for line in self._lines.values():
            line.disconnect()

    def _batch(self, numbers: range) -> None:
        self._execute([(self._at(op), op) for op in [self._put(number) for number in numbers]])
        found = self._execute([(self._shard(number), ops.Pop("q", "w")) for number in numbers])
        done = [ops.Complete(job.jid, job.token) for (job,) in found]
        self._execute([(self._at(op), op) for op in done])

    def _put(self, number: int) -> ops.Put:
        return ops.Put("q", f"j{number}", "K", DATA)

    def _shard(self, number: int) -> int:
        return 0

    def _at(self, op: Operation) -> int:
        return 0

    def _backend(self, shard: int) -> Any:
        return self.backend

    def _execute(self, calls: list[tuple[int, Operation]]) -> list[Any]:
        """Send calls, one round trip to each node, one node after the other; give their replies, sorted by node."""
        found: list[Any] = []
        for port, some in self._by_node(calls).items():
            self._send(port, some)
            found += self._replies(port, some)
        return found

    def _by_node(self, calls: list[tuple[int, Operation]]) -> dict[int, list[tuple[int, Operation]]]:
        by_node: dict[int, list[tuple[int, Operation]]] = {}
        for shard, op in sorted(calls, key=lambda call: call[0]):  # shard after shard, as the backend sends them
            by_node.setdefault(self._backend(shard).at["port"], []).append((shard, op))
        return by_node

    def _send(self, port: int, calls: list[tuple[int, Operation]]) -> None:
        line = self._lines.setdefault(port, Connection(port=port))
        packed = [self._backend(shard)._dialect.pack(type(op), encoded(op, None, True)) for shard, op in calls]
        line.send_packed_command((b"".join(packed),))

    def _replies(self, port: int, calls: list[tuple[int, Operation]]) -> list[Any]:
        return [decode(op, self._lines[port].read_response(disable_decoding=True)) for _, op in calls]


class Sharded(Way):
    """Performs jobs on a deployment, a call for each step. A worker pops from a shard that it names, as here."""

    nodes = MASTERS

    def __init__(self, url: str, pids: Sequence[int]) -> None:
        super().__init__(url, pids)
        self._shards = int(self.backend.layout.shards)
        self._tags = [f"{{{shard_tag(shard, self._shards)}}}" for shard in range(self._shards)]

    def _put(self, number: int) -> ops.Put:
        return ops.Put("q", f"j{number}{self._tags[self._shard(number)]}", "K", DATA)

    def _shard(self, number: int) -> int:
        return number % self._shards

    def _at(self, op: Operation) -> int:
        found = destination(self.backend.layout, op)
        assert type(found) is int
        return found

    def _backend(self, shard: int) -> Any:
        return self.backend.shards[shard]


class Together(Sharded):
    """Performs jobs on a deployment, a call for each step, with calls on their way to all nodes at the same time."""

    at_once = FEWER

    def _execute(self, calls: list[tuple[int, Operation]]) -> list[Any]:
        by_node = self._by_node(calls)
        for port, some in by_node.items():
            self._send(port, some)
        return [reply for port, some in by_node.items() for reply in self._replies(port, some)]


class Hundreds(Way):
    """Performs jobs in one namespace, a hundred in each call of the client; all calls for a shard come together."""

    at_once = JOBS // MASTERS

    def _batch(self, numbers: range) -> None:
        for first in range(0, len(numbers), HUNDRED):
            shard = first * self._shards // len(numbers)
            self.backend.execute(ops.PutMany(tuple(self._job(number, shard) for number in numbers[first:][:HUNDRED])))
            jobs = self._pop(shard)
            self.backend.execute(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in jobs)))

    def _job(self, number: int, shard: int) -> ops.Put:
        return self._put(number)

    def _pop(self, shard: int) -> Sequence[Any]:
        return self.backend.execute(ops.Pop("q", "w", HUNDRED))  # type: ignore[no-any-return]


class ShardedHundreds(Hundreds, Sharded):
    """Performs jobs on a deployment, a hundred in each call of the client, shard after shard."""

    def _job(self, number: int, shard: int) -> ops.Put:
        return ops.Put("q", f"j{number}{self._tags[shard]}", "K", DATA)

    def _pop(self, shard: int) -> Sequence[Any]:
        return self.backend.execute_calls([Call(shard, ops.Pop("q", "w", HUNDRED))])[0]  # type: ignore[no-any-return]


def run(options: Options) -> Report:
    """Measure on each requested server."""
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            plain = Node(candidate.program, folder, "--save", "", "--appendonly", "no")
            stack.callback(plain.kill)
            plain.start()
            nodes = Cluster(candidate.program, folder, replicas=0)
            stack.callback(nodes.stop)
            nodes.start()
            version = _version(plain)
            versions.append(version)
            for title, alone, sharded in MODES:
                found = _measured(_ways(plain, nodes, alone, sharded), options)
                tables.append(_table(f"{version}, {title}", found))
                verdicts += _verdicts(f"{version}, {title}", found)
    method = " ".join(str(__doc__).split())
    return Report("nodes", "python -m bench nodes", method, tables, verdicts, versions)


MODES: tuple[tuple[str, type[Way], type[Way]], ...] = (
    ("a call for each step", Way, Sharded),
    ("a hundred jobs a call", Hundreds, ShardedHundreds),
)
PLAIN, ONE = "one plain server", "one shard on the cluster"
AT_THE_SAME_TIME = f"{SHARDS[-1]} shards, all nodes at once"


def _version(node: Node) -> str:
    said: Any = node.client.info("server")
    return f"Valkey {said['valkey_version']}" if "valkey_version" in said else f"Redis {said['redis_version']}"


def _ways(plain: Node, nodes: Cluster, alone: type[Way], sharded: type[Way]) -> dict[str, Way]:
    pid, *pids = [node.process.pid for node in (plain, *nodes.nodes) if node.process is not None]
    name = alone.__name__.lower()
    ways = {
        PLAIN: alone(f"redis://{plain.address}/0?prefix=%7B{name}%7D:", [pid]),
        ONE: alone(nodes.url(f"{{{name}}}:"), pids),
    }
    for shards in SHARDS:
        ways[f"{shards} shards"] = sharded(nodes.deployment(f"{name}{shards}", f"shards={shards}"), pids)
    if sharded is Sharded:
        ways[AT_THE_SAME_TIME] = Together(nodes.deployment("together", f"shards={SHARDS[-1]}"), pids)
    return ways


def _measured(ways: dict[str, Way], options: Options) -> dict[str, list[Cost]]:
    jobs = JOBS // (4 if options.quick else 1)
    found: dict[str, list[Cost]] = {name: [] for name in ways}
    for way in ways.values():
        way.stock()
        way.run(way.at_once * MASTERS)
    for _ in range(options.runs):
        for name, way in ways.items():
            found[name].append(way.run(jobs))
    for way in ways.values():
        way.close()
    return found


def _apart(costs: Sequence[Cost]) -> float:
    """Give by how many per cent the busiest node has more than the mean, as the median of the runs."""
    return median(100 * (max(one.servers) * len(one.servers) / one.total - 1) for one in costs)


def _table(what: str, found: dict[str, list[Cost]]) -> Table:
    title = f"Microseconds of CPU a job on {what}"
    table = Table(title, ["", "servers", "beside one shard", "beside the plain one", "busiest node", "client"])
    for name, costs in found.items():
        table.add(
            name, median(one.total for one in costs), f"{_times(found, name, ONE):.2f}",
            f"{_times(found, name, PLAIN):.2f}", f"+{_apart(costs):.1f} %" if name not in (PLAIN, ONE) else "",
            median(one.client for one in costs),
        )  # fmt: skip
    return table


def _times(found: dict[str, list[Cost]], ours: str, theirs: str) -> float:
    return ratio([one.total for one in found[ours]], [one.total for one in found[theirs]])


def _verdicts(version: str, found: dict[str, list[Cost]]) -> list[Verdict]:
    verdicts = []
    for shards in SHARDS:
        name = f"{shards} shards"
        verdicts.append(Verdict(f"{version}: {name} / one shard", _times(found, name, ONE), 1.05))
        verdicts.append(Verdict(f"{version}: {name} / one plain server", _times(found, name, PLAIN), 1.15))
        client = ratio([one.client for one in found[name]], [one.client for one in found[PLAIN]])
        verdicts.append(Verdict(f"{version}: client of {name} / of one plain server", client, 1.25))
    most = f"{SHARDS[-1]} shards"
    verdicts.append(Verdict(f"{version}: busiest node of {most}, over the mean", _apart(found[most]), 5, "%"))
    return verdicts


def _cpu_us(pid: int) -> float:
    return time.clock_gettime_ns((~pid << 3) | 2) / 1000
