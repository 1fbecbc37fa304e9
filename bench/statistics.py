"""Figures of an archive: by the SQL of `qmodel statistics` on DuckDB and on Spark, by Polars, and by a fold in Python.

Each runs in a process of its own, on all CPUs, over the same files: made-up events of seven days in five namespaces, of
which one has nine tenths. By queue, klass, worker and tag; Polars tells less (it has no tags, takes nothing back that
recovers, and its percentiles are exact), and the fold has no percentiles. CPU seconds are of the process with all its
children, starts included, looked at 20 times a second; memory is the most that was resident. DuckDB may use 2 GB, and
so may Spark's JVM. (It needs duckdb, numpy, polars and pyspark.)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import Options
from bench.archives import generate
from bench.report import Report, Table

SIZES = (500_000, 5_000_000)
LARGE = 50_000_000
"""Made and counted too where QMODEL_BENCH_LARGE is set: that takes an hour, and a gigabyte of disk."""

DUCKDB = """
from qmodel.pipeline.archive import Archive
from qmodel.pipeline.statistics.counting import collect, count
from qmodel.pipeline.statistics.local import DuckDB
with DuckDB("2GB") as engine:
    count(engine, Archive(ROOT), None)
    print(sum(one.run.count for name, one in collect(engine).items() if name.kind == "queue"))
"""
SPARK = """
import os, tempfile
from pyspark.sql import SparkSession
from qmodel.pipeline.archive import Archive
from qmodel.pipeline.spark.statistics import Spark
from qmodel.pipeline.statistics.counting import collect, count
cpus = len(os.sched_getaffinity(0))
options = {"ui.enabled": "false", "driver.memory": "2g", "sql.shuffle.partitions": 2 * cpus}
builder = SparkSession.builder.master(f"local[{cpus}]")
for name, value in options.items():
    builder = builder.config(f"spark.{name}", value)
with tempfile.TemporaryDirectory() as out:
    engine = Spark(builder.getOrCreate())
    count(engine, Archive(ROOT), out)
    print(sum(one.run.count for name, one in collect(engine).items() if name.kind == "queue"))
"""
POLARS = """
import polars as pl
events = pl.scan_parquet(ROOT + "/*/*/*.parquet", hive_partitioning=True).with_columns(at=pl.col("at") // 86_400_000)
klasses = events.filter(event="put").select("namespace", "jid", kind="klass")
done = events.filter(pl.col("event").is_in(["popped", "completed", "failed", "retried"])).drop("klass")
done = done.join(klasses.rename({"kind": "klass"}), on=["namespace", "jid"])
total = 0
for by in ("queue", "klass", "worker"):
    both = (pl.col("wait_ms"), pl.col("run_ms"))
    figures = [getattr(ms, one)().name.suffix(one) for ms in both for one in ("count", "mean", "var")]
    figures += [ms.quantile(q).name.suffix(str(q)) for ms in both for q in (0.5, 0.9, 0.95, 0.99)]
    counts = [(pl.col("event") == one).sum().alias(one) for one in ("failed", "retried")]
    found = done.group_by("namespace", "at", by).agg(*figures, *counts).collect(engine="streaming")
    total = found["run_mscount"].sum()
print(total)
"""
FOLD = """
import pyarrow as pa
import pyarrow.parquet as pq
from qmodel.pipeline.archive import Archive
from qmodel.pipeline.decoding import events_of
from qmodel.pipeline.folding import Fold
archive, total = Archive(ROOT), 0
for namespace in archive.namespaces():
    fold = Fold()
    whole = pa.concat_tables(pq.ParquetFile(file.path).read() for file in archive.files(namespace)).sort_by("seq")
    fold.add(events_of(whole))
    total += sum(tally.run.count for key, tally in fold.tallies.items() if key.by == "queue")
print(total)
"""
CONTENDERS = {"DuckDB": DUCKDB, "Polars": POLARS, "Spark": SPARK, "fold": FOLD}


def measure(program: str, root: Path) -> tuple[float, float, float, str]:
    """Seconds, CPU seconds and megabytes of a program, and what it says."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(Path.cwd()), os.environ.get("PYTHONPATH", "")))}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", f"ROOT = {str(root)!r}\n{program}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        process_group=0,
    )
    most, cpu = 0.0, dict[int, float]()
    while process.poll() is None:
        found = _group(process.pid)
        most = max(most, sum(memory for memory, _ in found.values()))
        cpu |= {pid: seconds for pid, (_, seconds) in found.items()}
        time.sleep(0.05)
    took = time.monotonic() - began
    said, errors = process.communicate()
    if process.returncode:
        raise SystemExit(errors[-2000:])
    return took, sum(cpu.values()), most, said.strip()


def _group(group: int) -> dict[int, tuple[float, float]]:
    """Of each process of a group, the megabytes that are resident, and the CPU seconds so far."""
    found, tick = {}, os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if os.getpgid(int(folder.name)) == group:
                    stat = (folder / "stat").read_text().rpartition(")")[2].split()
                    pages = int((folder / "statm").read_text().split()[1])
                    seconds = (int(stat[11]) + int(stat[12])) / tick
                    found[int(folder.name)] = (pages * os.sysconf("SC_PAGE_SIZE") / 1e6, seconds)
            except (OSError, ValueError, IndexError):
                continue
    return found


def run(options: Options) -> Report:
    """Make the archives, and count them by each."""
    sizes = SIZES[:1] if options.quick else SIZES + ((LARGE,) if os.environ.get("QMODEL_BENCH_LARGE") else ())
    tables = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="qmodel-bench-") as folder:
            events = generate(Path(folder), size)
            table = Table(f"{events:,} events", ["", "seconds", "CPU seconds", "events a CPU second", "memory, MB"])
            counts = set()
            for name, program in CONTENDERS.items():
                if name == "fold" and size > SIZES[0]:
                    continue
                took, cpu, most, said = measure(program, Path(folder))
                counts.add(said)
                print(f"{events:,} events, {name}: {took:.1f} s, {cpu:.1f} CPU s, {most:,.0f} MB", file=sys.stderr)
                table.add(name, took, cpu, f"{events / cpu:,.0f}", f"{most:,.0f}")
            assert len(counts) == 1, counts
            tables.append(table)
    return Report("statistics", "python -m bench statistics", " ".join(str(__doc__).split()), tables)
