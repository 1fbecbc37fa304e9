"""Measure jobs per second of one worker process with a job that does nothing, and of workers of other libraries.

It also measures how soon an idle worker starts a job, what an idle worker costs, and whether its memory grows.

Each worker runs in a process of its own (`bench.drain`) in a Python that has the library (`--peers`), all with hiredis,
with server and worker on one CPU and on two; the better median counts. The time is from the start of the first job to
the end of the last. The other libraries do less for a job: only qmodel keeps history, statistics or a stream of events;
huey neither acknowledges nor retries here. RQ's workers do not fork for each job here, and ten at a time are its worker
pool of ten processes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import Options
from bench.drain import WORKERS
from bench.machine import Pinned, candidates, favour, pin, pinned, spare_cpu
from bench.report import Report, Table, Verdict, median
from bench.throughput import _free_port, _pythons, _run, _version

ROOT = Path(__file__).parent.parent
JOBS: dict[object, int] = {("rq", 10): 3000, "rq": 600, "celery": 1500, "arq": 1500, "taskiq": 3000}
MANY = 6000
AT_A_TIME = (1, 10)


def run(options: Options) -> Report:
    """Measure all libraries that are installed, in turns."""
    pythons = _pythons(options)
    rates: dict[tuple[str, int], list[float]] = {}
    tables, verdicts, versions = [], [], []
    for candidate in candidates("redis" if options.server == "all" else options.server):
        port = _free_port()
        with pinned(candidate, spare_cpu(), "--port", str(port)) as server:
            versions.append(server.version)
            url = f"redis://127.0.0.1:{port}"
            for _ in range(options.runs):
                for library in WORKERS:
                    if (home := library.partition(",")[0]) in pythons:
                        for most in AT_A_TIME:
                            for cpus in (1, 2):
                                rate = _rate(pythons[home], library, most, cpus, server, url, options)
                                rates.setdefault((library, most, cpus), []).append(rate)  # type: ignore[arg-type]
            best = _best({way: median(found) for way, found in rates.items()})  # type: ignore[misc]
            tables.append(_table(server.version, best))
            verdicts += _verdicts(best)
            watched, kept = _watched(server, url, options)
            tables.append(watched)
            verdicts += kept
    versions += [f"{library} {_version(python, library)}" for library, python in pythons.items() if library != "qmodel"]
    return Report("worker", "python -m bench worker --peers PYTHONS", " ".join(str(__doc__).split()), tables, verdicts,
                  versions)  # fmt: skip


def _rate(python: str, library: str, most: int, cpus: int, server: Pinned, url: str, options: Options) -> float:
    with server.server.client() as client:
        client.flushall()
    mine = os.sched_getaffinity(0)
    pin(os.getpid(), *({spare_cpu()} if cpus == 1 else mine - {spare_cpu()} or mine))
    try:
        jobs = JOBS.get((library, most), JOBS.get(library, MANY)) // (3 if options.quick else 1)
        done = _run(python, "-m", "bench.drain", library, str(most), url, str(jobs))
    finally:
        pin(os.getpid(), *mine)
    if done.returncode:
        raise RuntimeError(f"{library}, {most} at a time:\n{done.stderr}")
    return jobs / float(done.stdout.split()[-1])


def _best(medians: dict[tuple[str, int, int], float]) -> dict[tuple[str, int], tuple[float, int]]:
    """Choose the better placement of each worker."""
    best: dict[tuple[str, int], tuple[float, int]] = {}
    for (library, most, cpus), rate in medians.items():
        best[library, most] = max(best.get((library, most), (0.0, 0)), (rate, cpus))
    return best


def _table(version: str, best: dict[tuple[str, int], tuple[float, int]]) -> Table:
    table = Table(f"Jobs a second of one worker process on {version}", ["", "at a time", "jobs/s", "CPUs"])
    for (library, most), (rate, cpus) in sorted(best.items(), key=lambda item: (item[0][1], -item[1][0])):
        table.add(library, most, f"{rate:,.0f}", cpus)
    return table


def _verdicts(best: dict[tuple[str, int], tuple[float, int]]) -> Iterator[Verdict]:
    for most in AT_A_TIME:
        others = [rate for (name, at), (rate, _) in best.items() if at == most and not name.startswith("qmodel")]
        if others:
            ratio = best["qmodel", most][0] / max(others)
            yield Verdict(f"{most} at a time, in threads, times the best other", ratio, 1, at_least=True)


# ---- a worker that is observed from outside


@contextmanager
def _worker(url: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "qmodel", "worker", "bench.workjobs:app", "-q", "watched", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "QMODEL_URL": url}
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def _watched(server: Pinned, url: str, options: Options) -> tuple[Table, list[Verdict]]:
    """Measure how soon a worker starts a job, its cost when idle, and its memory over time."""
    from bench.workjobs import app, began
    from qmodel.app.connections import Connection

    with server.server.client() as client:
        client.flushall()
    app.connection = Connection(url)
    with _worker(url) as process, app:
        began.put().wait(timeout=30)
        favour(process.pid)
        favour(os.getpid())
        waits = sorted(_latencies(100 if options.quick else 1000))
        time.sleep(1)
        idle = _idle(process.pid, 5 if options.quick else 30)
        first, last = _sizes()
    middle, late = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    table = Table("A worker that is watched", ["", "figure"])
    table.add("from put to the begin of the job, median", f"{middle:.2f} ms")
    table.add("the same, 99th percentile", f"{late:.2f} ms")
    table.add("an idle worker, of a core", f"{idle:.3f} %")
    table.add("memory after 1,000 jobs", f"{first / 1e6:.1f} MB")
    table.add("memory after 10,000 jobs more", f"{last / 1e6:.1f} MB")
    return table, [
        Verdict("put to start on an idle worker, median", middle, 2, "ms"),
        Verdict("put to start on an idle worker, 99th percentile", late, 10, "ms"),
        Verdict("an idle worker", idle, 0.5, "% of a core"),
        Verdict("memory after 11,000 jobs, times that after 1,000", last / first, 1.05),
    ]


def _latencies(count: int) -> Iterator[float]:
    """Measure the milliseconds from before a put to the start of its job; the worker is idle before each put."""
    from bench.workjobs import began

    for _ in range(count):
        time.sleep(random.uniform(0.01, 0.02))
        put = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        yield (began.put().wait(timeout=30) - put) / 1e6


def _idle(pid: int, seconds: float) -> float:
    """Measure the share of a core that a process uses, in per cent."""
    clock = (~pid << 3) | 2
    before = time.clock_gettime_ns(clock)
    time.sleep(seconds)
    return (time.clock_gettime_ns(clock) - before) / 1e7 / seconds


def _sizes() -> tuple[int, int]:
    """Measure the memory of the worker after 1,000 jobs, and after 10,000 more."""
    from bench.workjobs import nothing, size

    nothing.put_many([("x" * 1000,)] * 1000)
    first = size.options(priority=1).put().wait(timeout=120)
    nothing.put_many([("x" * 1000,)] * 10_000)
    return first, size.options(priority=1).put().wait(timeout=300)
