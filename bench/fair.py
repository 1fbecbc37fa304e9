"""Measure fair queues: what a job costs the server beside one of a plain queue, in microseconds of CPU, and what a
tenant with 10 jobs waits beside one with 100,000.

The ways take turns within every run, each in a namespace of its own; a ratio is the median of those within the runs.
A wait is the number of pops up to that of the job, one job a pop: what a worker's jobs take does not change it.
"""

from __future__ import annotations

import itertools

from bench import Options
from bench.features import Featured
from bench.lifecycle import DATA, KLASS, QUEUE, SPAN, WORKER, Caller, Stages, held, jid, request
from bench.machine import Pinned, on_this_cpu
from bench.report import Report, Table, Verdict, median, ratio
from bench.server import in_turns
from qmodel.contract.operations import ConfigSet, Operation, Pop, Put, PutMany

BIG, SMALL = 100_000, 10
TENANTS = 10
FAIR = ConfigSet(f"fair-{QUEUE}", 1)
_NUMBERS = itertools.count()


def run(options: Options) -> Report:
    """Measure on each requested server."""
    tables, verdicts, versions = [], [], []
    for server in on_this_cpu(options.server):
        Caller(server.url).load()
        table, plain, unfair = _beside_a_plain_one(server, options)
        waits, alone, beside = _waits(server)
        tables += [table, waits]
        versions.append(server.version)
        verdicts.append(Verdict(f"{server.version}: a fair pop / a plain pop", plain, 1.3))
        verdicts.append(Verdict(f"{server.version}: a fair pop / one of the same job, not fair", unfair, 1.3))
        verdicts.append(Verdict(f"{server.version}: 99th percentile of waiting / alone", beside / alone, 2.0))
    return Report("fair", "python -m bench fair", " ".join(str(__doc__).split()), tables, verdicts, versions)


def _tenant() -> str:
    return f"tenant-{next(_NUMBERS) % TENANTS}"


def _beside_a_plain_one(server: Pinned, options: Options) -> tuple[Table, float, float]:
    ways = {
        "plain": Featured(server.url, "plain:"),
        "with a fair key, queue not fair": Featured(server.url, "unfair:", fair_key=_tenant),
        "last in, first out": Featured(server.url, "lifo:", lifo=lambda: True),
        "fair, one key": Featured(server.url, "one:", FAIR, fair_key=lambda: "tenant"),
        f"fair, {TENANTS} keys": Featured(server.url, "ten:", FAIR, fair_key=_tenant),
        "fair, each job its key": Featured(server.url, "each:", FAIR, fair_key=jid),
    }
    found = dict(zip(ways, in_turns(server.cpu_us, options, *ways.values()), strict=True))
    heads = ["", "put", "pop", "complete", "put / plain", "pop / plain", "all / plain"]
    table = Table(f"Microseconds of {server.version} a job, one a call", heads)
    for name in ways:
        table.add(name, *_medians(found[name]), *(f"{one:.2f}" for one in _ratios(found[name], found["plain"])))
    fair, unfair = found[f"fair, {TENANTS} keys"], found["with a fair key, queue not fair"]
    return table, _ratios(fair, found["plain"])[1], _ratios(fair, unfair)[1]


def _medians(runs: list[Stages]) -> list[float]:
    return [median(stage) for stage in zip(*runs, strict=True)]


def _ratios(runs: list[Stages], plain: list[Stages]) -> tuple[float, float, float]:
    put, pop = (ratio([one[at] for one in runs], [one[at] for one in plain]) for at in (0, 1))
    return put, pop, ratio([one.total for one in runs], [one.total for one in plain])


def _waits(server: Pinned) -> tuple[Table, int, int]:
    """Measure the pops before each job of the small tenant: alone, beside the big one, and so without `fair`."""
    table = Table(
        f"Pops up to a job of a tenant with {SMALL}, {server.version}", ["", "first", "median", "99th percentile"]
    )
    found = {}
    for name, before, big in (
        ("alone", (FAIR,), 0),
        (f"beside a tenant with {BIG:,}, fair", (FAIR,), BIG),
        ("beside a tenant with 1,000, not fair", (), 1000),
    ):
        waited = _waited(server.url, f"{len(found)}:", before, big)
        found[name] = waited[-1]
        table.add(name, f"{waited[0]:,}", f"{waited[len(waited) // 2]:,}", f"{waited[-1]:,}")
    alone, beside, _ = found.values()
    return table, alone, beside


def _waited(url: str, prefix: str, before: tuple[Operation, ...], big: int) -> list[int]:
    caller = Caller(url, prefix)
    caller.execute(list(before))
    for _ in range(0, big, SPAN):
        caller.execute([PutMany(tuple(Put(QUEUE, jid(), KLASS, DATA, fair_key="big") for _ in range(SPAN)), request())])
    mine = {jid() for _ in range(SMALL)}
    caller.execute([Put(QUEUE, one, KLASS, DATA, fair_key="small") for one in sorted(mine)])
    waited: list[int] = []
    for number in itertools.count(1):
        (popped,) = caller.execute([Pop(QUEUE, WORKER, request=request())])
        if held(popped[0])[0] in mine:
            waited.append(number)
        if len(waited) == SMALL:
            return waited
    raise AssertionError
