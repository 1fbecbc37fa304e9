"""Measure lifecycles per second of the model on one core, without a server: `engine.step`, and making the operation.

It is compared with a bare loop, in turns. In the loop a job is a dictionary, and two SortedLists hold the ready jobs
and the leases; there are no checks, events or history. Ids are made in advance.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from os import getpid
from typing import Any

from sortedcontainers import SortedList

from bench import Options
from bench.lifecycle import DATA, KLASS, QUEUE, SPAN, WORKER
from bench.lifecycle import jid as new_jid
from bench.lifecycle import request as new_request
from bench.machine import favour, pin, spare_cpu
from bench.report import Report, Table, Verdict, median, ratio
from qmodel.contract.operations import Complete, CompleteAndPop, CompleteMany, ConfigSet, Pop, Put, PutMany
from qmodel.model.engine import step
from qmodel.model.state.store import Store

NOW = 1_760_000_000_000
PER_SECOND, TIMES_BARE, TIMES_THOUSAND = 60_000, 6, 1.5
LIFECYCLES = 10_000
Ids = list[tuple[str, str, str]]
Loop = Callable[[Ids], None]


def ids(count: int) -> Ids:
    """Make a job id and two request ids for each job."""
    return [(new_jid(), new_request(), new_request()) for _ in range(count)]


class Model:
    """The loops over the model."""

    def __init__(self) -> None:
        self.store, self.now = Store(), NOW

    def single(self, span: Ids) -> None:
        """Execute one job in each step."""
        store = self.store
        self.now = now = self.now + 1
        for jid, request, _ in span:
            step(store, now, Put(QUEUE, jid, KLASS, DATA, request=request))
        popped = [step(store, now, Pop(QUEUE, WORKER, request=request)) for _, _, request in span]
        for (job,) in popped:
            step(store, now, Complete(job.jid, job.token))

    def chained(self, span: Ids) -> None:
        """Complete a job and pop the next one in one step."""
        store = self.store
        self.now = now = self.now + 1
        for jid, request, _ in span:
            step(store, now, Put(QUEUE, jid, KLASS, DATA, request=request))
        (job,) = step(store, now, Pop(QUEUE, WORKER, request=span[0][2]))
        for _, _, request in span[1:]:
            op = CompleteAndPop(job.jid, job.token, QUEUE, WORKER, request=request)
            (job,) = step(store, now, op).jobs
        step(store, now, Complete(job.jid, job.token))

    def batches(self, span: Ids) -> None:
        """Execute a hundred jobs in each step."""
        store = self.store
        self.now = now = self.now + 1
        step(store, now, PutMany(tuple([Put(QUEUE, jid, KLASS, DATA) for jid, _, _ in span]), span[0][1]))
        jobs = step(store, now, Pop(QUEUE, WORKER, len(span), request=span[0][2]))
        step(store, now, CompleteMany(tuple([Complete(job.jid, job.token) for job in jobs])))

    def fill(self, count: int) -> Model:
        """Put waiting jobs."""
        for _ in range(0, count, 1000):
            step(
                self.store,
                self.now,
                PutMany(tuple(Put(QUEUE, new_jid(), KLASS, DATA) for _ in range(1000)), new_request()),
            )
        return self

    def capped(self) -> Model:
        """Keep so few complete jobs that each completion deletes an old one."""
        step(self.store, self.now, ConfigSet("jobs-history-count", 100))
        return self


class Bare:
    """The bare loop, over a dictionary and two SortedLists."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.ready: SortedList[tuple[int, int, int, str]] = SortedList()
        self.locks: SortedList[tuple[int, int, str]] = SortedList()
        self.seq, self.now = 0, NOW

    def single(self, span: Ids) -> None:
        """Execute one job after the other."""
        jobs, ready, locks = self.jobs, self.ready, self.locks
        self.now = now = self.now + 1
        for jid, _, _ in span:
            self.seq = seq = self.seq + 1
            jobs[jid] = {"klass": KLASS, "data": DATA, "state": "waiting", "priority": 0, "seq": seq}
            ready.add((0, now, seq, jid))
        popped = []
        for _ in span:
            _, _, _, jid = ready.pop(0)
            job = jobs[jid]
            self.seq = seq = self.seq + 1
            job["state"], job["worker"], job["token"], job["expires_at"] = "running", WORKER, seq, now + 60_000
            locks.add((now + 60_000, seq, jid))
            popped.append(jid)
        for jid in popped:
            job = jobs[jid]
            locks.remove((job["expires_at"], job["token"], jid))
            job["state"], job["worker"], job["expires_at"] = "complete", "", 0


def run(options: Options) -> Report:
    """Measure in this process."""
    pin(getpid(), spare_cpu())
    favour(getpid())
    count = LIFECYCLES // (4 if options.quick else 1)
    loops: dict[str, Callable[[], Loop]] = {
        "one job a step": lambda: Model().single,
        "complete_and_pop": lambda: Model().chained,
        "100 jobs a step": lambda: Model().batches,
        "one job a step, each retires one": lambda: Model().capped().single,
        "the bare loop": lambda: Bare().single,
    }
    spent = _in_turns(options.runs, count, loops)
    table = Table("Of the model", ["", "us a lifecycle", "lifecycles/s", "operations/s", "times the bare loop"])
    for name, us in spent.items():
        middle = median(us)
        table.add(
            name, middle, f"{1e6 / middle:,.0f}", f"{3e6 / middle:,.0f}", f"{ratio(us, spent['the bare loop']):.2f}"
        )
    single = spent["one job a step"]
    verdicts = [
        Verdict("lifecycles a second", 1e6 / median(single), PER_SECOND, at_least=True),
        Verdict("times the bare loop", ratio(single, spent["the bare loop"]), TIMES_BARE),
    ]
    tables = [table]
    if not options.quick:
        table, most = _depths(options)
        tables.append(table)
        verdicts.append(Verdict("a million waiting / a thousand", most, TIMES_THOUSAND))
    return Report("model", "python -m bench model", " ".join(str(__doc__).split()), tables, verdicts)


def _depths(options: Options) -> tuple[Table, float]:
    models = {count: Model().fill(count) for count in (1_000, 1_000_000)}
    gc.collect()
    spent = _in_turns(
        options.runs,
        LIFECYCLES,
        {f"{count:,} waiting": partial(getattr, model, "single") for count, model in models.items()},
    )
    few, many = spent.values()
    table = Table("With jobs waiting, one job a step", ["", "us a lifecycle"])
    for name, us in spent.items():
        table.add(name, median(us))
    return table, ratio(many, few)


def _in_turns(runs: int, count: int, loops: dict[str, Callable[[], Loop]]) -> dict[str, list[float]]:
    """Measure the CPU microseconds of a lifecycle in each run; the loops take turns.

    Each loop starts fresh and alone. With the jobs of all loops in one heap, the loop that triggers Python's garbage
    collector would pay for the others.
    """
    spent: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(runs):
        for name, make in loops.items():
            loop = make()
            loop(ids(SPAN))  # warms up
            spans = [ids(SPAN) for _ in range(count // SPAN)]
            gc.collect()
            before = time.process_time_ns()
            for span in spans:
                loop(span)
            spent[name].append((time.process_time_ns() - before) / 1000 / count)
            del loop
    return spent
