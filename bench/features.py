"""Measure what a job with a feature costs the server, in microseconds of CPU and in commands, beside a plain job.

It also measures pops while jobs are parked at a full throttle. A pop in such a queue is not a plain one: it looks at
the throttle. But how many jobs are parked costs it nothing. The variants take turns within every run, each in a
namespace of its own. A ratio is the median of the ratios within the runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from bench import Options
from bench.commands import per_job
from bench.lifecycle import DATA, KLASS, QUEUE, SPAN, WORKER, Caller, Single, Stages, jid, request
from bench.machine import Pinned, on_this_cpu
from bench.report import Report, Table, Verdict, median, ratio
from bench.server import in_turns
from qmodel.contract.operations import (
    ConfigSet,
    Operation,
    Pop,
    Publish,
    Put,
    PutMany,
    Recur,
    RequestAdd,
    RequestOpen,
    Subscribe,
    ThrottleSet,
)

FEW, PARKED = 10, 100_000
WIDE = 1000
_NUMBERS = itertools.count()


class Featured(Single):
    """Jobs with additional arguments, in a namespace that some operations have prepared."""

    def __init__(self, url: str, prefix: str, *before: Operation, **more: Callable[[], Any]) -> None:
        super().__init__(Caller(url, prefix))
        self.caller.execute([ConfigSet("jobs-history-count", 10**9), *before])
        self.more = more

    def put(self) -> None:
        self._execute([self._new(request()) for _ in range(SPAN)])

    def _new(self, asked: str) -> Put:
        more = {name: value() for name, value in self.more.items()}
        return Put(QUEUE, jid(), KLASS, DATA, request=asked, **more)


class Requested(Featured):
    """Jobs that are added to an open request one by one."""

    def put(self) -> None:
        self._execute([RequestAdd("r", (self._new(""),), request()) for _ in range(SPAN)])


class Published(Featured):
    """Messages that match one of a hundred subscriptions; each message makes a job."""

    def put(self) -> None:
        self._execute([Publish("topic.7", DATA, request=request()) for _ in range(SPAN)])


def _key() -> str:
    return f"k{next(_NUMBERS)}"


def _ways(url: str) -> dict[str, Single]:
    limit = ThrottleSet("t", WIDE)
    limits = [ThrottleSet(name, WIDE) for name in ("t", "u", "v")]
    window = ThrottleSet("t", rate=WIDE, rate_ms=1)
    bucket = ThrottleSet("t", capacity=WIDE, refill=WIDE, refill_ms=1)
    subscriptions = [Subscribe(f"s{n}", (f"topic.{n}",), QUEUE, KLASS) for n in range(100)]
    return {
        "plain": Featured(url, "plain:"),
        "where another job recurs": Featured(url, "recur:", Recur(QUEUE, "r", KLASS, DATA, 10**9, 10**9)),
        "where others are throttled": Featured(url, "others:", limit),
        "a throttle: concurrency": Featured(url, "limit:", limit, throttles=lambda: ("t",)),
        "a throttle: rate": Featured(url, "rate:", window, throttles=lambda: ("t",)),
        "a throttle: bucket": Featured(url, "bucket:", bucket, throttles=lambda: ("t",)),
        "three throttles": Featured(url, "three:", *limits, throttles=lambda: ("t", "u", "v")),
        "the queue's own throttle": Featured(url, "own:", ThrottleSet(f"queue/{QUEUE}", WIDE)),
        "ordered, each its key": Featured(url, "ordered:", ordered=_key),
        "unique": Featured(url, "unique:", unique=_key),
        "time to live": Featured(url, "ttl:", ttl_ms=lambda: 10**6),
        "last in, first out": Featured(url, "lifo:", lifo=lambda: True),
        "a sub-request": Requested(url, "request:", RequestOpen("r", QUEUE, WIDE)),
        "a message to 1 of 100": Published(url, "topic:", *subscriptions),
    }


def run(options: Options) -> Report:
    """Measure on each requested server."""
    tables, verdicts, versions = [], [], []
    for server in on_this_cpu(options.server):
        Caller(server.url).load()
        table, ratios = _beside_a_plain_one(server, options)
        more, deep = _behind_a_full_one(server, options)
        tables += [table, more]
        versions.append(server.version)
        for name, most in (("where another job recurs", 1.05), ("where others are throttled", 1.05),
                           ("a throttle: concurrency", 2.0)):  # fmt: skip
            verdicts.append(Verdict(f"{server.version}: {name} / plain", ratios[name], most))
        verdicts.append(Verdict(f"{server.version}: {PARKED:,} parked / {FEW}", deep, 1.05))
    return Report("features", "python -m bench features", " ".join(str(__doc__).split()), tables, verdicts, versions)


def _beside_a_plain_one(server: Pinned, options: Options) -> tuple[Table, dict[str, float]]:
    ways = _ways(server.url)
    found = dict(zip(ways, in_turns(server.cpu_us, options, *ways.values()), strict=True))
    table = Table(
        f"Microseconds of {server.version} a job, one a call",
        ["", "put", "pop", "complete", "all", "beside a plain one", "commands"],
    )
    ratios = {}
    for name, way in ways.items():
        ratios[name] = ratio(_totals(found[name]), _totals(found["plain"]))
        commands = sum(per_job(way.caller.connection, way).values())
        table.add(name, *_medians(found[name]), f"{ratios[name]:.2f}", f"{commands:.1f}")
    return table, ratios


def _behind_a_full_one(server: Pinned, options: Options) -> tuple[Table, float]:
    """Measure plain jobs in a queue without parked jobs, with a few and with 100,000."""
    ways = [_parked(server, prefix, count) for prefix, count in (("none:", 0), ("few:", FEW), ("many:", PARKED))]
    none, few, many = in_turns(server.cpu_us, options, *ways)
    deep = ratio(_totals(many), _totals(few))
    table = Table(
        f"Microseconds of {server.version} a plain job",
        ["", "put", "pop", "complete", "all", "beside none", f"beside {FEW}"],
    )
    table.add("none parked", *_medians(none), "", "")
    table.add(f"{FEW} parked behind a full throttle", *_medians(few), f"{ratio(_totals(few), _totals(none)):.2f}", "")
    table.add(f"{PARKED:,} parked", *_medians(many), f"{ratio(_totals(many), _totals(none)):.2f}", f"{deep:.2f}")
    return table, deep


def _parked(server: Pinned, prefix: str, count: int) -> Featured:
    made = Featured(server.url, prefix, ThrottleSet("t", 1))
    for first in range(0, count, SPAN):
        jobs = tuple(Put(QUEUE, jid(), KLASS, DATA, throttles=("t",)) for _ in range(min(SPAN, count - first)))
        made.caller.execute([PutMany(jobs, request())])
        made.caller.execute([Pop(QUEUE, WORKER, SPAN, request=request())])
    return made


def _totals(runs: list[Stages]) -> list[float]:
    return [one.total for one in runs]


def _medians(runs: list[Stages]) -> list[float]:
    return [*(median(stage) for stage in zip(*runs, strict=True)), median(_totals(runs))]
