"""Count the machine instructions that a job costs all nodes of a deployment, with valgrind's callgrind.

The jobs are those of `nodes`, where time is measured, on a cluster of three nodes and on one plain server.
Instructions do not depend on the machine's load and caches: so what `nodes` measures beyond them is the cost of several
processes on one machine. A server packs sorted lists of up to 128 entries, which costs more instructions for each
entry, so each shard has more jobs than that. All calls bring their moment, and the servers do their upkeep once a
second: under callgrind, that of every second would count too often. A figure is the mean over a run, after another one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import Options
from bench.instructions import Counted, under_callgrind
from bench.machine import candidates
from bench.nodes_ways import SHARDS, Hundreds, Sharded, ShardedHundreds, Way, version_of
from bench.report import Report, Table, Verdict
from tests.clusters import Cluster, Node
from tests.servers import Candidate

NOW = 1_800_000_000_000
TIMEOUT_MS = 600_000
"""A node under callgrind that does not answer for so long is away."""

QUIETLY = ("--hz", "1", "--dynamic-hz", "no")
MODES: tuple[tuple[str, type[Way], type[Way], int], ...] = (
    ("a call for each step", Way, Sharded, 150),
    ("a hundred jobs a call", Hundreds, ShardedHundreds, 300),
)
"""For one shard and for several, and the jobs of each shard in a run."""

LEAST = 1_200
ALLOWED, BESIDE_PLAIN = 1.05, 1.15


def run(options: Options) -> Report:
    """Count on each requested server."""
    if not shutil.which("valgrind"):
        raise SystemExit("bench nodes-instructions needs valgrind (apt install valgrind)")
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        version, table, found = _counted(candidate)
        versions.append(version)
        tables.append(table)
        verdicts += found
    method = " ".join(str(__doc__).split())
    return Report("nodes-instructions", "python -m bench nodes-instructions", method, tables, verdicts, versions)


def _counted(candidate: Candidate) -> tuple[str, Table, list[Verdict]]:
    heads = ["", "one plain server", "one shard", *map(_shards, SHARDS)]
    verdicts = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        program = under_callgrind(candidate.program, folder)
        nodes = Cluster(program, folder, TIMEOUT_MS, replicas=0, options=QUIETLY)
        stack.callback(nodes.stop)
        nodes.start()
        plain = Node(program, folder, *QUIETLY, "--save", "", "--appendonly", "no")
        stack.callback(plain.kill)
        plain.start()
        version = version_of(plain)
        table = Table(f"Thousands of instructions a job on {version}, all nodes", heads)
        counters = [Counted(folder, node.process.pid) for node in nodes.nodes if node.process is not None]
        of_plain = [Counted(folder, plain.process.pid)] if plain.process is not None else []
        for title, one, many, jobs in MODES:
            name = many.__name__.lower()
            without = _count(one(f"redis://{plain.address}/0?prefix=%7B{name}%7D:"), of_plain, LEAST)
            alone = _count(one(nodes.url(f"{{{name}}}:")), counters, LEAST)
            found = [
                _count(many(nodes.deployment(f"{name}{n}", f"shards={n}")), counters, max(jobs * n, LEAST))
                for n in SHARDS
            ]
            table.add(title, without, alone, *found)
            for n, count in zip(SHARDS, found, strict=True):
                said = f"{version}, {title}: instructions of {_shards(n)}"
                verdicts.append(Verdict(f"{said} / one shard", count / alone, ALLOWED))
                verdicts.append(Verdict(f"{said} / one plain server", count / without, BESIDE_PLAIN))
    return version, table, verdicts


def _shards(count: int) -> str:
    return f"{count} shards"


def _count(way: Way, counters: Sequence[Counted], jobs: int) -> float:
    """Count the instructions of the second run."""
    way.now, way.at_once = NOW, jobs // way.nodes
    way.stock()
    way.run(jobs)
    for counter in counters:
        counter.instructions()
    way.run(jobs)
    spent = sum(counter.instructions() for counter in counters)
    way.close()
    return spent / jobs / 1000
