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
from typing import NamedTuple

from bench import Options
from bench.machine import candidates
from bench.nodes_ways import JOBS, SHARDS, Hundreds, Sharded, ShardedHundreds, Together, Way, version_of
from bench.report import Report, Table, Verdict, median, ratio
from tests.clusters import MASTERS, Cluster, Node


class Cost(NamedTuple):
    """Microseconds of a job: of each server, and of the client."""

    servers: tuple[float, ...]
    client: float

    @property
    def total(self) -> float:
        """The time of all servers."""
        return sum(self.servers)


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
            version = version_of(plain)
            versions.append(version)
            for title, alone, sharded in MODES:
                found = _measured(plain, nodes, _ways(plain, nodes, alone, sharded), options)
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


def _ways(plain: Node, nodes: Cluster, alone: type[Way], sharded: type[Way]) -> dict[str, Way]:
    name = alone.__name__.lower()
    ways = {
        PLAIN: alone(f"redis://{plain.address}/0?prefix=%7B{name}%7D:"),
        ONE: alone(nodes.url(f"{{{name}}}:")),
    }
    for shards in SHARDS:
        ways[f"{shards} shards"] = sharded(nodes.deployment(f"{name}{shards}", f"shards={shards}"))
    if sharded is Sharded:
        ways[AT_THE_SAME_TIME] = Together(nodes.deployment("together", f"shards={SHARDS[-1]}"))
    return ways


def _cost(way: Way, nodes: Sequence[Node], jobs: int) -> Cost:
    pids = [node.process.pid for node in nodes if node.process is not None]
    before, began = [_cpu_us(pid) for pid in pids], time.process_time()
    way.run(jobs)
    client = (time.process_time() - began) * 1e6 / jobs
    return Cost(tuple((_cpu_us(pid) - cpu) / jobs for pid, cpu in zip(pids, before, strict=True)), client)


def _measured(plain: Node, nodes: Cluster, ways: dict[str, Way], options: Options) -> dict[str, list[Cost]]:
    jobs = JOBS // (4 if options.quick else 1)
    found: dict[str, list[Cost]] = {name: [] for name in ways}
    for way in ways.values():
        way.stock()
        way.run(way.at_once * MASTERS)
    for _ in range(options.runs):
        for name, way in ways.items():
            found[name].append(_cost(way, [plain] if name == PLAIN else nodes.nodes, jobs))
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
