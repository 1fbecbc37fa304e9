"""Measure what a job costs in calls on a deployment of many shards, and how soon an idle worker starts it.

All shards are on one server, so that every call is counted there: calls of the library (FCALL), and the plain EXISTS by
which a worker looks at a shard. Eight worker processes serve one queue with a job that does nothing. Jobs come at a
steady rate, or all at once. What idle workers call (the poll for signals, the list by which they know each other,
looks) is measured before, shown by the second, and taken off.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import Options
from bench.machine import Pinned, candidates, pinned
from bench.report import Report, Table, Verdict
from qmodel import Client

ROOT = Path(__file__).parent.parent
WORKERS = 8
SHARDS = (1, 16, 64)
RATES = (20, 300, 0)
"""Jobs a second; 0 puts all at once."""
IDLE = 10.0
"""Seconds for which idle workers are observed."""


def run(options: Options) -> Report:
    """Measure each number of shards at each rate."""
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        table = Table(
            "", ["shards", "jobs a second", "calls a job", "idle, a second", "start, median", "95th percentile"]
        )
        with pinned(candidate) as server:
            versions.append(server.version)
            table.title = f"Calls and milliseconds on {server.version}, {WORKERS} workers"
            for shards in SHARDS[-1:] if options.quick else SHARDS:
                for rate in RATES:
                    calls, idle, waits = _measured(server, shards, rate, options)
                    late = [f"{waits[len(waits) * part // 100]:.1f} ms" for part in (50, 95)] if rate else ["", ""]
                    table.add(shards, rate or "at once", f"{calls:.2f}", f"{idle[0]:.1f}, {idle[1]:.1f} EXISTS", *late)
                    if shards == SHARDS[-1]:
                        name = f"{server.version}: {shards} shards, {rate or 'all at once'}"
                        verdicts.append(Verdict(f"{name}: calls a job", calls, 3.2))
                        if rate == RATES[0]:
                            verdicts.append(Verdict(f"{name}: put to start, median", waits[len(waits) // 2], 3, "ms"))
                            verdicts.append(
                                Verdict(f"{name}: 95th percentile", waits[len(waits) * 95 // 100], 10, "ms")
                            )
        tables.append(table)
    return Report("shards", "python -m bench shards", " ".join(str(__doc__).split()), tables, verdicts, versions)


def _measured(server: Pinned, shards: int, rate: int, options: Options) -> tuple[float, list[float], list[float]]:
    """Give the calls of the library for a job, calls and EXISTS a second of idle workers, and the milliseconds."""
    from bench.workjobs import app, began
    from qmodel.app.connections import Connection

    with server.server.client() as raw:
        raw.flushall()
        url = f"{server.url}?name=bench&shards={shards}"
        app.connection = Connection(url)
        jobs = max(rate * 5, 500) // (3 if options.quick else 1)
        with _workers(url), Client(url) as client, app:
            while raw.info("clients")["blocked_clients"] < WORKERS * shards:
                time.sleep(0.1)
            time.sleep(2)
            idle = _counted(raw)
            time.sleep(IDLE)
            before = _counted(raw)
            began_at = time.monotonic()
            puts = list(_put(began, rate, jobs))
            handles = puts[-1][1] if not rate else [job for _, job in puts]
            handles[-1].wait(timeout=60)
            time.sleep(1)
            after, took = _counted(raw), time.monotonic() - began_at
            done = [job.wait(timeout=60) for job in handles]
            assert client.queues["watched"].length() == 0
    waits = sorted((end - begun) / 1e6 for end, (begun, _) in zip(done, puts, strict=False))
    a_second = [(late - early) / IDLE for early, late in zip(idle, before, strict=True)]
    return (after[0] - before[0] - a_second[0] * took) / jobs, a_second, waits


def _put(began, rate: int, jobs: int) -> Iterator[tuple[int, object]]:  # type: ignore[no-untyped-def]
    """Put jobs; give the time of each put, and the job, or all of them."""
    if not rate:
        yield time.clock_gettime_ns(time.CLOCK_MONOTONIC), began.put_many([()] * jobs)
        return
    first = time.monotonic()
    for number in range(jobs):
        time.sleep(max(first + number / rate - time.monotonic(), 0))
        yield time.clock_gettime_ns(time.CLOCK_MONOTONIC), began.put()


def _counted(raw) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    found = raw.info("commandstats")
    return tuple(found.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("fcall", "exists"))  # type: ignore[return-value]


@contextmanager
def _workers(url: str) -> Iterator[None]:
    command = [sys.executable, "-m", "qmodel", "worker", "bench.workjobs:app", "-q", "watched", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "QMODEL_URL": url}
    with ExitStack() as stack:
        started = [stack.enter_context(subprocess.Popen(command, env=environment)) for _ in range(WORKERS)]
        try:
            yield
        finally:
            for one in started:
                one.terminate()
