"""Compare runners of a campaign of conformance and of a plan over a grid: this process, a pool of two, and Spark.

All runners do the same parts of the work and get the same result. CPU time is that of all processes, including Spark's.
It does not depend on other programs on the machine; clock times do. Spark's session is started, and has run a task,
before the clock starts.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any

from bench import Options
from bench.report import Report, Table, figure, median
from qmodel.conformance.campaign import parts, processes
from qmodel.conformance.campaign.parts import Campaign, Total
from qmodel.conformance.subjects.named import Opening
from qmodel.errors import ConnectError
from qmodel.planning import capacity
from qmodel.planning.grids import Grid, grid

HISTORIES = 60
SIZE = 5
GRID = """
jobs = 1500
warmup = 250
runs = 4
[streams.a]
queue = "q"
arrivals = { law = "exponential", mean_ms = 500 }
service = { law = "lognormal", mean_ms = 900, cv = 1.5 }
[pools.main]
[grid]
"pools.main.workers" = [2, 3, 4, 8]
load = [0.4, 0.6, 0.8]
"""

Work = Callable[[], object]


def tree(root: int) -> Iterator[int]:
    """List a process and all its descendants."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    yield from found


class CpuTime(Thread):
    """Adds up the CPU time of this process and all its descendants, even those that end meanwhile.

    The processes are sampled ten times a second. The CPU time of a process that has ended is known only to its parent,
    and Spark's workers have another parent. So the last tenth of a second of a process may be missing.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = Event()
        self.first: dict[tuple[int, str], int] = {}
        self.last: dict[tuple[int, str], int] = {}

    def look(self) -> None:
        """Record the CPU time of each process so far."""
        for pid in tree(os.getpid()):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            one = (pid, stat[19])  # a process id may be reused, but not with the same start
            self.last[one] = int(stat[11]) + int(stat[12])

    def run(self) -> None:
        """Take samples until the end."""
        while not self.ended.wait(0.1):
            self.look()

    def __enter__(self) -> CpuTime:
        self.look()
        self.first = dict(self.last)
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.look()
        self.ended.set()
        self.join()

    @property
    def seconds(self) -> float:
        """The CPU time of all processes since the beginning, in seconds."""
        ticks = sum(last - self.first.get(one, 0) for one, last in self.last.items())
        return ticks / os.sysconf("SC_CLK_TCK")


def measured(work: Work) -> tuple[float, float]:
    """Measure the time and the CPU time of some work."""
    with CpuTime() as cpu:
        began = perf_counter()
        work()
        took = perf_counter() - began
    return took, cpu.seconds


def campaigns(spark: Any, subject: str, examples: int) -> dict[str, Work]:
    """List the runners of a campaign."""
    from qmodel.pipeline.spark import campaign

    what = Campaign("bench", Opening(subject))

    def local(count: int) -> Work:
        return lambda: Total(processes.perform(what, examples, count, SIZE))

    def on_spark(tasks: int) -> Work:
        return lambda: campaign.total(campaign.campaign(spark, what, examples, size=SIZE, tasks=tasks))

    return {
        "one process": local(1),
        "two processes": local(2),
        "Spark, 2 tasks": on_spark(2),
        "Spark, 16 tasks": on_spark(16),
    }


def plans(spark: Any, what: Grid) -> dict[str, Work]:
    """List the runners of a plan."""
    from qmodel.planning.spark import measurements, outcomes

    def on_spark(tasks: int) -> Work:
        return lambda: outcomes(what, measurements(spark, what, tasks=tasks))

    return {
        "one process": lambda: capacity.run(what, 1),
        "two processes": lambda: capacity.run(what, 2),
        "Spark, 2 tasks": on_spark(2),
        "Spark, 16 tasks": on_spark(16),
    }


def compared(title: str, unit: str, count: int, runners: dict[str, Work], runs: int) -> Table:
    """Let runners take turns."""
    table = Table(title, ("", f"{unit}/s", f"{unit} a CPU-second", "CPU, times that of one process"))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in runners}
    for _ in range(runs):
        for name, work in runners.items():
            found[name].append(measured(work))
    one = median(cpu for _, cpu in found["one process"])
    for name, pairs in found.items():
        seconds, cpu = (median(column) for column in zip(*pairs, strict=True))
        table.add(name, figure(count / seconds), figure(count / cpu), f"{cpu / one:.2f}")
    return table


def run(options: Options) -> Report:
    """Measure."""
    from qmodel.pipeline.spark import session

    # the tasks import what this process has imported from
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
    spark = session("bench", "local[2]")
    runs, examples = (1, 20) if options.quick else (options.runs, HISTORIES)
    tables = []
    for subject in ("embedded", "valkey", "redis"):
        try:
            Opening(subject).check()
        except ConnectError:
            continue
        runners = campaigns(spark, subject, examples)
        for name in ("two processes", "Spark, 2 tasks"):
            runners[name]()
        tables.append(compared(f"A campaign against {subject}", "histories", examples, runners, runs))
    what = grid(tomllib.loads(GRID))
    tables.append(compared("A plan", "runs", len(what.points) * what.runs, plans(spark, what), runs))
    parts.close()
    spark.stop()
    return Report(
        "runners",
        "python -m bench runners",
        f"The same campaign ({examples} histories of 60 operations, the state compared after each, a server of each "
        f"process's own where it is one) and the same plan ({len(what.points)} points, {what.runs} runs of each, 2,000 "
        "jobs in a run), by this process, by two, and by Spark on two cores of this machine. They take turns. CPU time "
        "is that of all processes; Spark's session is begun before.",
        tables,
    )
