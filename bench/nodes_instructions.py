"""Count the machine instructions that a job costs all nodes of a deployment, with valgrind's callgrind.

The jobs are those of `nodes`, where time is measured. Instructions do not depend on the machine's load and caches: so
what `nodes` measures beyond them is the cost of several processes on one machine. A server packs sorted lists of up to
128 entries, which costs more instructions for each entry, so each shard has more jobs than that. All calls bring their
moment, and the servers do their upkeep once a second: under callgrind, that of every second would count too often. A
figure is the mean over a run, after another one.
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
from tests.clusters import Cluster
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

LEAST, ALLOWED = 1_200, 1.05


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
    heads = ["", "one shard", *map(_shards, SHARDS)]
    verdicts = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        nodes = Cluster(under_callgrind(candidate.program, folder), folder, TIMEOUT_MS, replicas=0, options=QUIETLY)
        stack.callback(nodes.stop)
        nodes.start()
        version = version_of(nodes.nodes[0])
        table = Table(f"Thousands of instructions a job on {version}, all nodes", heads)
        counters = [Counted(folder, node.process.pid) for node in nodes.nodes if node.process is not None]
        for title, one, many, jobs in MODES:
            name = many.__name__.lower()
            alone = _count(one(nodes.url(f"{{{name}}}:")), counters, LEAST)
            found = [
                _count(many(nodes.deployment(f"{name}{n}", f"shards={n}")), counters, max(jobs * n, LEAST))
                for n in SHARDS
            ]
            table.add(title, alone, *found)
            verdicts += [
                Verdict(f"{version}, {title}: instructions of {_shards(n)} / one shard", count / alone, ALLOWED)
                for n, count in zip(SHARDS, found, strict=True)
            ]
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
