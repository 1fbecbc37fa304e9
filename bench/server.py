"""Measure the CPU time of the server for a lifecycle, in microseconds, and compare it with the lowest possible cost.

Server and client share one CPU, and the clock is the CPU clock of the server's process. Floor and qmodel take turns
within every run; a ratio is the median of the ratios within the runs. "The same commands alone" are qmodel's commands
with keys and texts of the same lengths, called by a Lua function without any decisions: the lowest cost of these
commands. "The least that its promises cost" is a queue with the same commands that knows nothing but plain jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from bench import Options, instructions
from bench.lifecycle import (
    SPAN,
    Batches,
    Caller,
    Chained,
    Floor,
    FloorBatches,
    FloorPacked,
    Least,
    LeastBatches,
    Same,
    SameBatches,
    Single,
    Stages,
    Together,
    Way,
    fill,
    rounds,
)
from bench.machine import Pinned, candidates, pinned, share_cpu
from bench.report import Report, Table, Verdict, median, ratio
from qmodel.contract.operations import ConfigSet

DEPTH = 100_000
CAP = 1_000
Runs = list[Stages]


def run(options: Options) -> Report:
    """Measure on each requested server."""
    cpu = share_cpu()
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        with ExitStack() as stack:
            empty = stack.enter_context(pinned(candidate, cpu))
            table, ratios = _beside_the_floor(empty, options)
            tables.append(table)
            versions.append(empty.version)
            verdicts += _verdicts(empty.version, ratios)
            if not options.quick:
                table, beside = _kinds(empty, options)
                tables.append(table)
                verdicts += [
                    Verdict(f"{empty.version}: {name} / a plain job", beside[name], most)
                    for name, most in instructions.BOUNDS.items()
                    if name in beside
                ]
                table, more = _depths(empty, stack.enter_context(pinned(candidate, cpu)), options)
                tables.append(table)
                verdicts.append(Verdict(f"{empty.version}: {DEPTH:,} waiting / none", more, 1.05))
    return Report("server", "python -m bench server", " ".join(str(__doc__).split()), tables, verdicts, versions)


def _verdicts(version: str, ratios: dict[str, float]) -> list[Verdict]:
    return [
        Verdict(f"{version}: one job a call / floor", ratios["one a call, 100 calls a round trip"], 2.1),
        Verdict(f"{version}: 100 operations a call / floor", ratios["100 operations a call"], 1.7),
        Verdict(f"{version}: batches of 100 / floor", ratios["100 jobs a call"], 1.5),
    ]


def _beside_the_floor(server: Pinned, options: Options) -> tuple[Table, dict[str, float]]:
    url = server.url
    caller, floor = Caller(url).load(), Floor(url).load()
    single = Single(caller)
    pairs: dict[str, tuple[Way, Way]] = {
        "one a call, 100 calls a round trip": (single, floor),
        "- the same commands alone": (Same(url).load(), floor),
        "- the least that its promises cost": (Least(url).load(), floor),
        "100 operations a call": (Together(caller), floor),
        "100 jobs a call": (Batches(caller), FloorBatches(url)),
        "- the same commands alone, of 100 jobs": (SameBatches(url), FloorBatches(url)),
        "- the least that its promises cost, of 100 jobs": (LeastBatches(url), FloorBatches(url)),
    }
    if not options.quick:
        chained = Caller(url, "chained:")
        pairs |= {
            "100 jobs a call, floor packed": (Batches(caller), FloorPacked(url)),
            "one a call, one call a round trip": (Single(caller, 1), Floor(url, 1)),
            "complete_and_pop, 100 calls a round trip": (Chained(chained), floor),
            "complete_and_pop, one call a round trip": (Chained(Caller(url, "chained-1:"), 1), Floor(url, 1)),
        }
    table = Table(
        f"Microseconds of {server.version} a job",
        ["", "put", "pop", "complete", "all", "floor's put", "pop", "complete", "all", "ratio"],
    )
    ratios = {}
    for name, (ours, theirs) in pairs.items():
        caller.connection.call("FLUSHALL", "SYNC")
        a, b = in_turns(server.cpu_us, options, ours, theirs)
        ratios[name] = ratio([one.total for one in a], [one.total for one in b])
        table.add(name, *_medians(a), *_medians(b), f"{ratios[name]:.2f}")
    return table, ratios


def _kinds(server: Pinned, options: Options) -> tuple[Table, dict[str, float]]:
    server_url, found = server.url, {}
    Caller(server_url).load().connection.call("FLUSHALL", "SYNC")
    plain = instructions.Varied(server_url, "plain:")
    table = Table(f"Microseconds of {server.version} a job, beside a plain one",
                  ["", "put", "pop", "complete", "all", "a plain one", "ratio"])  # fmt: skip
    for name, made in instructions.ways(server_url, quick=False).items():
        if name in instructions.BOUNDS and "waiting" not in name:
            theirs, ours = in_turns(server.cpu_us, options, plain, made())
            found[name] = ratio([one.total for one in ours], [one.total for one in theirs])
            table.add(name, *_medians(ours), _medians(theirs)[-1], f"{found[name]:.2f}")
    return table, found


def _depths(empty: Pinned, full: Pinned, options: Options) -> tuple[Table, float]:
    callers = Caller(empty.url).load(), Caller(full.url).load()
    callers[0].connection.call("FLUSHALL", "SYNC")
    for caller in callers:  # more complete jobs than these runs make; their deletion is measured separately
        caller.execute([ConfigSet("jobs-history-count", 10**9)])
    fill(callers[1], DEPTH)
    table = Table(f"Microseconds of {empty.version} a job, beside a queue with none waiting",
                  ["", "put", "pop", "complete", "all", "ratio"])  # fmt: skip
    ratios = []
    for name, way in (("one a call, 100 calls a round trip", Single), ("100 jobs a call", Batches)):
        none, many = _apart(options, (empty, way(callers[0])), (full, way(callers[1])))
        ratios.append(ratio([one.total for one in many], [one.total for one in none]))
        table.add(f"{name}: none waiting", *_medians(none), "")
        table.add(f"{name}: {DEPTH:,} waiting", *_medians(many), f"{ratios[-1]:.2f}")

    callers[1].connection.call("FLUSHALL", "SYNC")
    callers[1].execute([ConfigSet("jobs-history-count", CAP)])
    rounds(Batches(callers[1]), 2 * CAP // SPAN, full.cpu_us)
    for name, way in (("one a call, 100 calls a round trip", Single), ("100 jobs a call", Batches)):
        none, many = _apart(options, (empty, way(callers[0])), (full, way(callers[1])))
        more = ratio([one.total for one in many], [one.total for one in none])
        table.add(f"{name}: each retires one", *_medians(many), f"{more:.2f}")
    return table, ratios[0]


def in_turns(clock: Callable[[], float], options: Options, *ways: Way) -> list[Runs]:
    """Let variants take turns on one server, several times in each run."""
    return _turns(options, *((clock, way) for way in ways))


def _apart(options: Options, *ways: tuple[Pinned, Way]) -> list[Runs]:
    return _turns(options, *((server.cpu_us, way) for server, way in ways))


def _turns(options: Options, *ways: tuple[Callable[[], float], Way]) -> list[Runs]:
    turns, count = (5, 4) if options.quick else (10, 10)
    found: list[Runs] = [[] for _ in ways]
    for clock, way in ways:
        rounds(way, 10, clock)  # warms up
    for _ in range(options.runs):
        spent: list[Runs] = [[] for _ in ways]
        for turn in range(turns):
            for i in range(len(ways)):
                which = (i + turn) % len(ways)
                clock, way = ways[which]
                spent[which].append(rounds(way, count, clock))
        for which, of in enumerate(spent):
            found[which].append(Stages(*(sum(stage) / turns for stage in zip(*of, strict=True))))
    return found


def _medians(runs: Runs) -> list[float]:
    return [*(median(stage) for stage in zip(*runs, strict=True)), median(one.total for one in runs)]
