"""Measure the audit of a journal of a million operations, with one planted fault of the server's library.

The audit runs in one process, in two, and on Spark with two cores. A second journal has a tenth of the size and no
fault. It is audited by one process alone, and together with the first one.

Each audit runs in a process of its own, over the same files. `a second` is the rate by the clock. `two CPUs` is the
rate that two CPUs would reach if they did nothing else. It is computed from the CPU time of all processes, including
Java. The times do not include imports and the start of Spark's session and of the processes. Memory is the maximum of
one Python process. "The model alone" executes the same operations, read in advance, and compares nothing: no audit can
be faster. One process audits the journal in one piece. The others audit two pieces, because a state was taken from the
server in the middle. The picture is `docs/pipeline/audit.svg`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import Options
from bench.audited import Bar, picture
from bench.journals import Journal, drawn, plain
from bench.machine import candidates, pinned
from bench.report import Report, Table, Verdict, median
from bench.runners import tree

ENTRIES, FEWER, MIXED = 1_000_000, 100_000, 50_000
STATES = 1
PICTURE = Path(__file__).parents[1] / "docs" / "pipeline" / "audit.svg"
TARGET, TIMES = 200_000, 1.25

HEAD = """
import json, time
from bench.spark_read import all_cpu
from qmodel.pipeline.audit import findings
from qmodel.pipeline.journal import archive, compare
def ready(*_):
    import qmodel.pipeline.audit.findings
    time.sleep(1)  # so that another one takes the other
    return []
def told(began, cpu, rows):
    numbers = [row["number"] for row in rows if row["kind"] != "end"]
    entries = sum(row["entries"] for row in rows if row["kind"] == "end")
    print(json.dumps([entries, time.monotonic() - began, all_cpu() - cpu, numbers]))
"""
MODEL = """
from qmodel.model import engine
from qmodel.pipeline.audit.replay import without_collection
from qmodel.model.state.store import Store
entries = [compare.read_call(one.call) for one in archive.read(ROOT, SPACE, 0, 100_000)]
store = Store()
began, cpu = time.monotonic(), all_cpu()
with without_collection():
    for now, op in entries:
        engine.step(store, now, op)
print(json.dumps([len(entries), time.monotonic() - began, all_cpu() - cpu, []]))
"""
ONE = """
began, cpu = time.monotonic(), all_cpu()
told(began, cpu, findings.audited(ROOT, archive.Segment(SPACE, 0, 0)))
"""
TWO = """
from functools import partial
from qmodel.processes import processes
if __name__ == "__main__":
    with processes(2) as run:
        list(run(ready, [1, 2]))
        began, cpu = time.monotonic(), all_cpu()
        rows = [row for found in run(partial(findings.audited, ROOT), archive.all_segments(ROOT)) for row in found]
        told(began, cpu, rows)
"""
SPARK = """
from pyspark.sql import SparkSession
from qmodel.pipeline.spark import session
from qmodel.pipeline.spark.audit import audit
SparkSession.builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
spark = session("bench", "local[2]")
from qmodel.pipeline.spark.tasks import on
on(spark)(ready, [1, 2])
began, cpu = time.monotonic(), all_cpu()
told(began, cpu, [row.asDict() for row in audit(spark, ROOT).collect()])
spark.stop()
"""


BARS = """
import os
from functools import partial
from pyspark.sql import SparkSession
from qmodel.pipeline.spark import session
from qmodel.pipeline.spark.tasks import on
def timed(segment):
    began = time.time()
    rows = findings.audited(ROOT, segment)
    wrong = [row["number"] for row in rows if row["kind"] != "end"]
    return [segment.namespace, segment.after, rows[-1]["entries"], os.getpid(), began, time.time(), wrong]
SparkSession.builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
spark = session("bench", "local[2]")
on(spark)(ready, [1, 2])
began, cpu = time.monotonic(), all_cpu()
bars = on(spark)(timed, archive.all_segments(ROOT))
spark.stop()
print(json.dumps([sum(bar[2] for bar in bars), time.monotonic() - began, all_cpu() - cpu, bars]))
"""


class Measured:
    """The output of an audit, and the memory that it used."""

    def __init__(self, program: str, root: Path, space: str) -> None:
        whole = f"ROOT, SPACE = {str(root)!r}, {space!r}\n{HEAD}{program}"
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:  # what is spawned begins by reading it
            file.write(whole)
            file.flush()
            said, self.memory = _watched(file.name)
        self.entries, self.seconds, self.cpu, self.found = said

    @property
    def a_second(self) -> float:
        """Entries per second, by the clock."""
        return float(self.entries / self.seconds)

    def cpus(self, count: int = 2) -> float:
        """Entries per second that `count` CPUs would reach if they did nothing else."""
        return float(count * self.entries / self.cpu)


def _watched(file: str) -> tuple[Any, float]:
    path = os.pathsep.join((str(Path.cwd()), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, file]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        most = 0.0
        while running.poll() is None:
            most = max([most, *_memories(running.pid)])
            time.sleep(0.05)
        said, errors = running.communicate()
    if running.returncode:
        raise SystemExit(errors[-2000:])
    return json.loads(said.strip().splitlines()[-1]), most


def _memories(root: int) -> Iterator[float]:
    """Give the memory, in megabytes, of a process and of each of its descendants."""
    for pid in tree(root):
        try:
            if (Path(f"/proc/{pid}/comm").read_text()).startswith("python"):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                yield pages * os.sysconf("SC_PAGE_SIZE") / 1e6
        except OSError:
            continue


def run(options: Options) -> Report:
    """Make the journals, and audit them."""
    entries, fewer, mixed = (100_000, 20_000, 5_000) if options.quick else (ENTRIES, FEWER, MIXED)
    runs = 1 if options.quick else options.runs
    with tempfile.TemporaryDirectory(prefix="qmodel-bench-") as folder:
        root = Path(folder)
        with pinned(candidates(options.server)[0]) as server:
            version = server.version
            lapse = _fill(root, server.url, entries, fewer, mixed)
        found = _in_turns(root, runs, [("shop", name) for name in PROGRAMS])
        found |= _in_turns(root, runs, [("every", "the model alone"), *((one, "one process") for one in REST)])
        drawn_as = _picture(Measured(BARS, root / "lives", "")) if not options.quick else ""
    if drawn_as:
        PICTURE.write_text(drawn_as, encoding="utf-8")
    return _report(found, lapse, version)


def _fill(root: Path, url: str, entries: int, fewer: int, mixed: int) -> int:
    """Make the journals; give the number of the entry with the fault."""
    Journal(url, "short:", str(root / "lives")).begin().fill(fewer, plain)
    Journal(url, "every:", str(root / "every")).begin().fill(mixed, drawn)
    wrong = Journal(url, "shop:", str(root / "lives")).begin(wrong=True)
    began = time.monotonic()
    made = wrong.fill(entries, plain, STATES)
    print(f"bench: {made:,} entries were made in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return wrong.lapse


def _picture(done: Measured) -> str:
    bars = [Bar(str(name).rstrip(":"), *rest) for name, *rest in done.found]
    told = [f"entry {number:,} of {bar.namespace} is not what the model says" for bar in bars for number in bar.wrong]
    return picture(bars, "; ".join(told) or "nothing differs")


REST = ("every", "short")
PROGRAMS = {"the model alone": MODEL, "one process": ONE, "two processes": TWO, "Spark, two cores": SPARK}

Found = dict[tuple[str, str], list[Measured]]


def _in_turns(root: Path, runs: int, what: list[tuple[str, str]]) -> Found:
    found: Found = {one: [] for one in what}
    for _ in range(runs):
        for space, name in what:
            folder = root / ("every" if space == "every" else "lives")
            one = Measured(PROGRAMS[name], folder, f"{space}:")
            print(f"bench: {space}, {name}: {one.a_second:,.0f}/s, {one.cpus(1):,.0f} a CPU s", file=sys.stderr)
            found[space, name].append(one)
    return found


def _report(found: Found, lapse: int, version: str) -> Report:
    tables = [_table("Lives of jobs", "shop", found), _table("All operations, as they are drawn", "every", found)]
    memory = Table("Memory of one process", ["entries", "MB"])
    short, long = (found[space, "one process"] for space in ("short", "shop"))
    for many in (short, long):
        memory.add(f"{many[0].entries:,}", median(one.memory for one in many))
    exact = all(one.found == [lapse] for (space, name), many in found.items() for one in many if _audits(space, name))
    quiet = all(one.found == [] for space in ("short", "every") for one in found[space, "one process"])
    grown = median(one.memory for one in long) / median(one.memory for one in short)
    verdicts = [
        Verdict("the fault is found, at its entry and nowhere else", float(exact), 1, at_least=True),
        Verdict("nothing is found where there is no fault", float(quiet), 1, at_least=True),
        *(
            Verdict(
                f"{name}, on two CPUs",
                median(one.cpus() for one in found["shop", name]),
                TARGET,
                "entries/s",
                at_least=True,
            )
            for name in ("two processes", "Spark, two cores")
        ),
        Verdict("memory of ten times the history", grown, TIMES, "times"),
    ]
    method = " ".join(str(__doc__).split())
    return Report("audit", "python -m bench audit", method, [*tables, memory], verdicts, [version])


def _audits(space: str, name: str) -> bool:
    return space == "shop" and name != "the model alone"


def _table(title: str, space: str, found: Found) -> Table:
    heads = ["", "a second", "a CPU second", "two CPUs", "memory, MB"]
    entries = max(one.entries for one in found[space, "one process"])
    table = Table(f"{title}: {entries:,} entries", heads)
    for (where, name), many in found.items():
        if where == space:
            rates = [median(one.a_second for one in many), *(median(one.cpus(n) for one in many) for n in (1, 2))]
            table.add(name, *(f"{rate:,.0f}" for rate in rates), f"{median(one.memory for one in many):,.0f}")
    return table
