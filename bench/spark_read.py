"""Measure how fast events are read: by a client, as Arrow batches, by Spark as a batch and as a stream, and into an
archive.

Archives are written with and without Spark; their bytes per event are shown too. CPU time is that of all processes
involved: this process, Java, Spark's workers, and the server, which has one thread. `two CPUs` is the number of events
per second that two CPUs would read if they did nothing else. `a second` is the number by the clock; it depends on what
else the machine did. There are 300,000 events of 100,000 jobs. The first run does not count, and the best of the others
is shown.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench import Options
from bench.machine import candidates, pinned
from bench.report import Report, Table, Verdict
from qmodel import connect
from qmodel.client.sync import Client
from qmodel.contract import operations as ops

JOBS, QUICK = 100_000, 10_000
FEW = "seq bigint, happened_at timestamp, event string, queue string, run_ms bigint"
TICK = os.sysconf("SC_CLK_TCK")
READ, STREAM = 250_000, 100_000
TIMES = 2.5


class Measured(NamedTuple):
    """The time and the CPU time to read some events."""

    events: int
    seconds: float
    cpu: float

    @property
    def a_second(self) -> float:
        """Events per second, by the clock."""
        return self.events / self.seconds

    @property
    def two_cpus(self) -> float:
        """Events per second that two CPUs would read if they did nothing else."""
        return 2 * self.events / self.cpu


def cpu_of(pid: int, seen: dict[int, list[int]]) -> float:
    """Read the CPU seconds of a process, of its ended children, and of all its descendants."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICK + sum(cpu_of(child, seen) for child in seen.get(pid, ()))


def all_cpu() -> float:
    """Read the CPU seconds of this process and of all processes that it started, including the server."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    return cpu_of(os.getpid(), children)


def fill(client: Client, jobs: int) -> None:
    """Put, pop and complete jobs: three events each."""
    client.config.set("max-events", 10**7)
    queues = [f"queue-{number}" for number in range(20)]
    for start in range(0, jobs, 1000):
        client.put_many([ops.Put(queues[n % 20], f"job-{n}", f"Klass{n % 7}", "") for n in range(start, start + 1000)])
        client.complete_many(client.pop(queues, count=1000, worker="worker-1@host"))


def best(runs: int, action: Callable[[], int]) -> Measured:
    """Choose the run with the least CPU time, after a run that is not counted because Java warms up."""
    found = []
    action()
    for _ in range(runs):
        began, cpu = time.monotonic(), all_cpu()
        events = action()
        found.append(Measured(events, time.monotonic() - began, all_cpu() - cpu))
    return min(found, key=lambda one: one.cpu / one.events)


def by_client(url: str) -> dict[str, Callable[[], int]]:
    """Read without Spark."""
    from qmodel.pipeline.events.decode import read
    from qmodel.pipeline.events.pages import pages

    def count(found: Callable[[Client], Iterable[Any]]) -> int:
        with Client(url) as client:
            return sum(map(len, found(client)))

    return {"a client": lambda: count(pages), "a client, as Arrow": lambda: count(read)}


def by_spark(spark: Any, url: str) -> dict[str, Callable[[], int]]:
    """Read with Spark, and discard the rows."""

    def batch(schema: str = "") -> int:
        source = spark.read.format("qmodel").option("url", url).option("rowsPerPartition", 50_000)
        frame = (source.schema(schema) if schema else source).load()
        frame.write.format("noop").mode("overwrite").save()
        return int(connect(url).newest())

    def stream() -> int:
        read = spark.readStream.format("qmodel").option("url", url).option("minPartitions", 2)
        with tempfile.TemporaryDirectory() as folder:
            query = read.option("maxOffsetsPerTrigger", 100_000).load().writeStream.format("noop")
            query = query.option("checkpointLocation", folder).trigger(availableNow=True).start()
            query.awaitTermination()
            return sum(one.numInputRows for one in query.recentProgress)

    return {
        "Spark, as a batch": batch,
        "Spark, as a batch, five columns": lambda: batch(FEW),
        "Spark, as a stream of 100,000 a batch": stream,
    }


def into_archive(url: str, root: Path, spark: Any) -> dict[str, Callable[[], int]]:
    """Archive all events, each time into a new archive."""
    from qmodel.pipeline.archive.write import archive
    from qmodel.processes import processes

    def anew(run: Any) -> int:
        shutil.rmtree(root, ignore_errors=True)
        return sum(progress.rows for progress in archive(url, str(root), run=run, rows=50_000))

    def pool() -> int:
        with processes(2) as run:
            return anew(run)

    found = {"into an archive": lambda: anew(map), "into an archive, two processes": pool}
    if spark is not None:
        from qmodel.pipeline.spark.tasks import on

        found["into an archive, on Spark"] = lambda: anew(on(spark))
    return found


def session() -> Any:
    """Start Spark on two CPUs; None if it is not installed."""
    if find_spec("pyspark") is None or shutil.which("java") is None:
        print("bench: without Spark, which is not installed (extra `spark`, and Java)", file=sys.stderr)
        return None
    from pyspark.sql import SparkSession

    from qmodel.pipeline.spark import session as begin

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    return begin("bench")


def run(options: Options) -> Report:
    """Measure on the first server."""
    jobs, runs = (QUICK, 1) if options.quick else (JOBS, options.runs)
    spark = session()
    with pinned(candidates(options.server)[0]) as server, tempfile.TemporaryDirectory() as folder:
        url, root = f"{server.url}?prefix=bench:", Path(folder) / "archive"
        with connect(url) as client:
            fill(client, jobs)
            events = client.newest()
        what = by_client(url) | (by_spark(spark, url) if spark else {}) | into_archive(url, root, spark)
        found = {name: best(runs, action) for name, action in what.items()}
        with server.server.client() as raw:
            kept = int(raw.memory_usage("bench:events", samples=0)) / events
        stored = sum(path.stat().st_size for path in root.rglob("*.parquet")) / events
        version = server.version
    if spark:
        spark.stop()
    return _report(found, kept, stored, version)


def _report(found: dict[str, Measured], kept: float, stored: float, version: str) -> Report:
    table = Table("Events", ["", "two CPUs", "a second", "µs of CPU an event"])
    for name, one in found.items():
        table.add(name, f"{one.two_cpus:,.0f}", f"{one.a_second:,.0f}", f"{one.cpu / one.events * 1e6:.1f}")
    sizes = Table("Bytes an event", ["", "bytes"])
    sizes.add("on the server", kept)
    sizes.add("in the archive", stored)
    targets = (("Spark, as a batch", READ), ("Spark, as a stream of 100,000 a batch", STREAM))
    verdicts = [
        Verdict(f"{name}, on two CPUs", found[name].two_cpus, least, "events/s", at_least=True)
        for name, least in targets
        if name in found
    ]
    if "Spark, as a batch" in found:
        spark, arrow = (found[name].cpu / found[name].events for name in ("Spark, as a batch", "a client, as Arrow"))
        verdicts.append(Verdict("CPU of an event in Spark, times that of the Arrow reader", spark / arrow, TIMES))
    method = " ".join(str(__doc__).split())
    return Report("spark-read", "python -m bench spark-read", method, [table, sizes], verdicts, [version])
