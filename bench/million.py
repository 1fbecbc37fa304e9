"""Perform a million jobs on a deployment of 64 shards, on three masters of a cluster, with eight worker processes.

Each job appends its number to a file of its worker. At the end every number is there once, the server has as many
complete jobs, `qmodel doctor` finds nothing, and the audit of the journal of each shard, and of the state after it, has
no difference from the model. Seconds are on a machine that the workers, the servers and the producer share.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from bench import Options
from bench.machine import candidates
from bench.report import Report, Table, Verdict
from bench.workjobs import app, noted
from qmodel import Client
from qmodel.app.connections import Connection
from qmodel.backends.redis.shards import prefix_of
from qmodel.backends.redis.take_snapshot import taken
from qmodel.contract import operations as ops
from qmodel.pipeline.audit.replay import Audit, differences, without_collection
from qmodel.pipeline.journal.pages import entries
from tests.clusters import Cluster

ROOT = Path(__file__).parent.parent
NAME, SHARDS, WORKERS = "million", 64, 8
JOBS, A_CALL = 1_000_000, 500
MOST_WAITING = 50_000
"""The producer waits while there are more."""

KEPT = {"journal": 1, "max-journal": 10**7, "jobs-history-count": 10**7}


class Done(NamedTuple):
    """A run: how long it took, the seconds of CPU of each part, and what was found."""

    seconds: float
    cpu: dict[str, float]
    performed: int
    twice: int
    complete: int
    doctor: str
    differ: list[str]
    entries: int


def run(options: Options) -> Report:
    """Perform the jobs on the first of the requested servers."""
    candidate = candidates(options.server)[0]
    jobs = options.jobs or (JOBS // 50 if options.quick else JOBS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        nodes = Cluster(candidate.program, folder, 15_000, replicas=0)
        stack.callback(nodes.stop)
        nodes.start()
        done = _performed(nodes, folder, jobs)
    table = Table(f"{jobs:,} jobs, {SHARDS} shards, 3 nodes, {WORKERS} workers", ["", ""])
    table.add("seconds from the first put to the last completion", done.seconds)
    for who, seconds in done.cpu.items():
        table.add(f"CPU of {who}, microseconds a job", seconds * 1e6 / jobs)
    table.add("entries of the journals", f"{done.entries:,}")
    verdicts = [
        Verdict("jobs that were performed", done.performed, jobs, at_least=True),
        Verdict("jobs that were performed twice", done.twice, 0),
        Verdict("complete jobs on the servers", done.complete, jobs, at_least=True),
        Verdict("findings of the doctor", len(done.doctor.splitlines()), 0),
        Verdict("differences in the audit", len(done.differ), 0),
    ]
    for sentence in (*done.doctor.splitlines(), *done.differ):
        print(sentence[:500], file=sys.stderr)
    method = " ".join(str(__doc__).split())
    return Report("million", "python -m bench million", method, [table], verdicts, [candidate.name])


def _performed(nodes: Cluster, folder: Path, jobs: int) -> Done:
    url = nodes.deployment(NAME, f"shards={SHARDS}", "deadline=60")
    with Client(nodes.url(prefix_of(NAME, 0, SHARDS))) as first:  # before the deployment is created there
        first.execute(ops.ConfigSet("journal", 1))
    with Client(url) as client:
        for option, value in KEPT.items():
            client.execute(ops.ConfigSet(option, value))
        with _workers(url, folder):
            began, producer = time.monotonic(), time.process_time()
            _put(url, client, jobs)
            while client.queues["noted"].length():
                time.sleep(0.5)
            seconds, producer = time.monotonic() - began, time.process_time() - producer
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = {
            "the producer": producer,
            "the workers": used.ru_utime + used.ru_stime,
            "the servers": sum(
                time.clock_gettime_ns((~node.process.pid << 3) | 2) / 1e9 for node in nodes.nodes if node.process
            ),
        }
        complete = client.execute(ops.Completed(count=1)).total
    performed, twice = _counted(folder, jobs)
    audited = [_audited(nodes.url(prefix_of(NAME, shard, SHARDS)), shard) for shard in range(SHARDS)]
    differ = [sentence for _, found in audited for sentence in found]
    return Done(seconds, cpu, performed, twice, complete, _doctor(url), differ, sum(count for count, _ in audited))


def _put(url: str, client: Client, jobs: int) -> None:
    """Put jobs, some hundreds in a call, while not too many wait."""
    queue = client.queues["noted"]
    app.connection = Connection(url)
    for first in range(0, jobs, A_CALL):
        if first % MOST_WAITING == 0:
            while queue.length() > MOST_WAITING:
                time.sleep(0.2)
        noted.put_many([(number,) for number in range(first, min(first + A_CALL, jobs))])


def _counted(folder: Path, jobs: int) -> tuple[int, int]:
    """Count the jobs that were performed, and how many of them more than once."""
    times = array("B", bytes(jobs))
    for path in folder.glob("*.noted"):
        for line in path.read_text().split():
            times[int(line)] += 1
    return sum(count > 0 for count in times), sum(count > 1 for count in times)


def _doctor(url: str) -> str:
    """Give what the doctor says is not in order, in its lines."""
    command = [sys.executable, "-m", "qmodel", "--url", url, "doctor"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if said.returncode == 0 else said.stdout + said.stderr


def _audited(url: str, shard: int) -> tuple[int, list[str]]:
    """Execute the journal of a shard on the model; give how many entries it has, and what differs."""
    audit, count = Audit(), 0

    def counted(found: Any) -> Iterator[Any]:
        nonlocal count
        for entry in found:
            count += 1
            yield entry

    with Client(url) as client, without_collection():
        found = [str(one) for one in audit.follow(counted(entries(client)))]
    return count, [f"shard {shard}: {one}" for one in (*found, *differences(audit.state(), taken(url)))]


@contextlib.contextmanager
def _workers(url: str, folder: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "qmodel", "worker", "bench.workjobs:app", "-q", "noted", "--quiet", "-c", "1"]
    with ExitStack() as stack:
        started = []
        for number in range(WORKERS):
            own = {"QMODEL_URL": url, "PYTHONPATH": str(ROOT), "BENCH_NOTES": str(folder / f"{number}.noted")}
            started.append(stack.enter_context(subprocess.Popen(command, env={**os.environ, **own})))
        try:
            yield
        finally:
            for one in started:
                one.terminate()
