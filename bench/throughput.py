"""Measure lifecycles per second of the plain Python client, and of other queue libraries on the same server.

Each mode runs in a process of its own (`bench.peers`) in a Python that has the library (`--peers`), all with hiredis
and, except arq, the same redis-py. "Raw connection" calls qmodel's functions on a socket: what the client itself costs
shows beside it. Every mode runs with server and client on one CPU, and on two; the better median counts. The other
libraries do less for a job: only qmodel keeps history, statistics and a stream of events, and huey neither acknowledges
nor retries jobs here.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench import Options
from bench.machine import Pinned, candidates, pin, pinned, spare_cpu
from bench.peers import MODES, RAW
from bench.report import Report, Table, Verdict, median

ROOT = Path(__file__).parent.parent
JOBS = {"rq": 1000, "qmodel": 5000, "huey": 5000}
ONE_AT_A_TIME = {
    "qmodel": ("one by one", "complete_and_pop"),
    "rq": ("SimpleWorker",),
    "dramatiq": ("1 thread",),
    "arq": ("1 at a time",),
    "huey": ("dequeue and execute in a loop",),
    "taskiq": ("1 at a time",),
    "celery": ("solo",),
}


class Way(NamedTuple):
    """A mode of a library, on an address, with server and client on one CPU or on two."""

    library: str
    mode: str
    by: str
    cpus: int


def run(options: Options) -> Report:
    """Run the modes of all installed libraries, in turns."""
    pythons = _pythons(options)
    ways = [
        Way(library, mode, by, cpus)
        for library in pythons
        for mode in MODES[library]
        for by in (("tcp", "unix") if library == "qmodel" else ("tcp",))
        for cpus in (1, 2)
    ]
    tables, verdicts, versions = [], [], []
    for candidate in candidates("redis" if options.server == "all" else options.server):
        port = _free_port()
        with pinned(candidate, spare_cpu(), "--port", str(port)) as server:
            versions.append(server.version)
            rates: dict[Way, list[float]] = {way: [] for way in ways}
            for _ in range(options.runs):
                for way in ways:
                    rates[way].append(_rate(pythons[way.library], way, server, port, options))
            best = _best({way: median(found) for way, found in rates.items()})
            tables.append(_table(server.version, best))
            verdicts += _verdicts(server.version, best)
    versions += [f"{library} {_version(python, library)}" for library, python in pythons.items() if library != "qmodel"]
    return Report("throughput", "python -m bench throughput --peers PYTHONS", " ".join(str(__doc__).split()), tables,
                  verdicts, versions)  # fmt: skip


def _pythons(options: Options) -> dict[str, str]:
    """Find for each library the first of the Pythons that has it."""
    found = {}
    for library in MODES:
        for python in [*filter(None, options.peers.split(",")), sys.executable]:
            needed = "redis, sortedcontainers, qmodel" if library == "qmodel" else library
            if _run(python, "-c", f"import {needed}").returncode == 0:
                found[library] = python
                break
    return found


def _run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([python, *arguments], capture_output=True, text=True, env=environment, check=False)


def _version(python: str, library: str) -> str:
    return _run(python, "-m", "bench.peers", library, "version").stdout.strip()


def _rate(python: str, way: Way, server: Pinned, port: int, options: Options) -> float:
    with server.server.client() as client:
        client.flushall()
    cpus = os.sched_getaffinity(0)
    pin(os.getpid(), *({spare_cpu()} if way.cpus == 1 else cpus - {spare_cpu()} or cpus))
    try:
        url = f"redis://127.0.0.1:{port}" if way.by == "tcp" else server.url
        jobs = JOBS.get(way.library, 2000) // (5 if options.quick else 1)
        done = _run(python, "-m", "bench.peers", way.library, way.mode, url, str(jobs))
    finally:
        pin(os.getpid(), *cpus)
    if done.returncode:
        raise RuntimeError(f"{way}:\n{done.stderr}")
    return jobs / float(done.stdout.split()[-1])


def _best(medians: dict[Way, float]) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Choose the better placement of each mode."""
    best: dict[tuple[str, str, str], tuple[float, int]] = {}
    for way, rate in medians.items():
        key = (way.library, way.mode, way.by)
        best[key] = max(best.get(key, (0.0, 0)), (rate, way.cpus))
    return best


def _table(version: str, best: dict[tuple[str, str, str], tuple[float, int]]) -> Table:
    table = Table(f"Lifecycles a second on {version}", ["", "mode", "by", "jobs/s", "CPUs"])
    for (library, mode, by), (rate, cpus) in sorted(best.items(), key=lambda item: -item[1][0]):
        table.add(library, mode, by, f"{rate:,.0f}", cpus)
    return table


def _verdicts(version: str, best: dict[tuple[str, str, str], tuple[float, int]]) -> list[Verdict]:
    def top(ours: bool, single: bool) -> float:
        return max(
            (
                rate
                for (library, mode, by), (rate, _) in best.items()
                if (library == "qmodel") is ours
                and by == "tcp"
                and mode != RAW
                and (not single or mode in ONE_AT_A_TIME[library])
            ),
            default=0.0,
        )

    by_itself = best["qmodel", "one by one", "tcp"][0] / best["qmodel", RAW, "tcp"][0]
    return [
        Verdict(f"{version}: one by one, times the functions on a raw connection", by_itself, 0.6, at_least=True),
        *(
            Verdict(
                f"{version}: {what}, times the best other", top(True, single) / top(False, single), 1, at_least=True
            )
            for what, single in (("one at a time", True), ("best mode", False))
            if top(False, single)
        ),
    ]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
