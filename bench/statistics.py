"""Measure how fast the figures of an archive are computed: by the SQL of `qmodel statistics` on DuckDB and on Spark, by
Polars, and by a fold in Python.

Each runs in a process of its own, on all CPUs, over the same files: artificial events of seven days in five namespaces.
One namespace has nine tenths of them. Figures are by queue, klass, worker and tag, and are kept for the next run.
Polars computes less: no tags, no corrections for jobs that recover, but exact percentiles. The fold has no percentiles
and keeps nothing. The counts that all have in common must be equal, and all figures of the two SQL engines equal to
the last bit. CPU seconds are those of the process and all its children, including their start, sampled 20 times a
second. Memory is the maximum of resident memory. DuckDB may use 3 GB, and so may Spark's JVM. The last day is also
counted alone, after the six days before it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench import Options
from bench.archives import generate
from bench.contenders import CONTENDERS
from bench.plot import panels
from bench.report import RESULTS, Report, Table

SIZES = (500_000, 5_000_000)
LARGE = 50_000_000
"""An additional size if QMODEL_BENCH_LARGE is set. It takes half an hour and ten gigabytes of disk."""

FOLDED = 5_000_000
"""The largest archive for the fold, which keeps all events in memory."""

COLOURS = {"DuckDB": "#2a6fb0", "Polars": "#7f8c8d", "Spark": "#c0392b", "Fold": "#27ae60"}
HEADS = ["", "CPU seconds", "events a CPU second", "memory, MB"]


class Measured(NamedTuple):
    """The CPU seconds and megabytes of a contender, and its output."""

    cpu: float
    most: float
    said: dict[str, Any]

    def show(self, table: Table, name: str, events: int) -> None:
        """Add a row to a table, and print it at once, because the next one may take long."""
        table.add(name, self.cpu, f"{events / self.cpu:,.0f}", f"{self.most:,.0f}")
        print(f"{table.title}, {name}: {self.cpu:.1f} CPU s, {self.most:,.0f} MB", file=sys.stderr)


def measure(name: str, root: Path, out: Path) -> Measured:
    """Run a contender on an archive, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.contenders", name, str(root), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    most, cpu = 0.0, dict[int, float]()
    while process.poll() is None:
        found = _group(process.pid)
        most = max(most, sum(memory for memory, _ in found.values()))
        cpu |= {pid: seconds for pid, (_, seconds) in found.items()}
        time.sleep(0.05)
    said, errors = process.communicate()
    if process.returncode:
        raise SystemExit(errors[-2000:])
    return Measured(sum(cpu.values()), most, json.loads(said))


def _group(group: int) -> dict[int, tuple[float, float]]:
    """Give the resident megabytes and the CPU seconds of each process of a group."""
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


def agree(found: dict[str, Measured]) -> None:
    """Check that all contenders counted the same. Raises AssertionError."""
    for what in ("jobs", "counts", "figures"):
        said = {name: one.said[what] for name, one in found.items() if what in one.said}
        assert len(set(said.values())) == 1, (what, said)


def run(options: Options) -> Report:
    """Make the archives, and count them with each contender."""
    sizes = SIZES[:1] if options.quick else SIZES + ((LARGE,) if os.environ.get("QMODEL_BENCH_LARGE") else ())
    tables, cpu, memory = list[Table](), dict[str, list[float]](), dict[str, list[float]]()
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="qmodel-bench-") as folder:
            tables += _size(Path(folder), size, cpu, memory)
    if not options.quick:
        found = {"CPU seconds": cpu, "memory, MB": memory}
        page = panels(found, [f"{size / 1e6:g} M" for size in sizes], "By the number of events", COLOURS)
        (RESULTS / "statistics.svg").write_text(page, encoding="utf-8")
    method = " ".join(str(__doc__).split()) + "\n\n![CPU and memory by the number of events](statistics.svg)"
    return Report("statistics", "python -m bench statistics", method, tables, [], _versions())


def _size(folder: Path, size: int, cpu: dict[str, list[float]], memory: dict[str, list[float]]) -> list[Table]:
    """Count an archive of one size: first without its last day, then the whole."""
    root, before = folder / "archive", folder / "before"
    *_, six, events = _with_six(generate(root, size), root, before, wanted=size <= FOLDED)
    table, found = Table(f"{events:,} events", HEADS), {}
    for name in CONTENDERS:
        if name == "Fold" and size > FOLDED:
            continue
        found[name] = measure(name, root, folder / name)
        found[name].show(table, name, events)
        cpu.setdefault(name, []).append(found[name].cpu)
        memory.setdefault(name, []).append(found[name].most)
    agree(found)
    if not before.exists():
        return [table]
    new = Table(f"The last {events - six:,} of them, with what was kept of those before", HEADS)
    for name in ("DuckDB", "Spark"):
        shutil.copytree(before, folder / "next", dirs_exist_ok=False)
        one = measure(name, root, folder / "next")
        one.show(new, name, events - six)
        agree({"whole": found[name], "in parts": one})
        shutil.rmtree(folder / "next")
    return [table, new]


def _with_six(days: Any, root: Path, before: Path, *, wanted: bool) -> list[int]:
    """Give the number of events after each day; those before the last day are counted as soon as they exist."""
    counts = list[int]()
    for count in days:
        counts.append(count)
        if wanted and len(counts) == 6:
            measure("DuckDB", root, before)
    return counts


def _versions() -> list[str]:
    import duckdb
    import polars
    import pyspark

    return [f"{one.__name__} {one.__version__}" for one in (duckdb, polars, pyspark)]
