"""Count the commands that the server executes from a job's put to its end.

The counts are those of `INFO commandstats`, over 1,000 jobs, after 1,000 other jobs.

Commands inside functions and the function calls themselves are included.
"""

from __future__ import annotations

from bench import Options
from bench.lifecycle import (
    SPAN,
    Batches,
    Caller,
    Chained,
    Floor,
    FloorBatches,
    Same,
    SameBatches,
    Single,
    Way,
    rounds,
)
from bench.machine import candidates, pinned
from bench.raw import Connection
from bench.report import Report, Table, Verdict
from qmodel.contract.operations import ConfigSet

ROUNDS = 10
MOST_SINGLE, MOST_BATCHED = 27, 10
_OURS = ("info", "config|resetstat")


def per_job(connection: Connection, way: Way) -> dict[str, float]:
    """Count the executions of each command per job."""
    rounds(way, ROUNDS, lambda: 0.0)
    connection.call("CONFIG", "RESETSTAT")
    rounds(way, ROUNDS, lambda: 0.0)
    lines = connection.call("INFO", "commandstats").decode().split("\r\n")
    calls = {
        line.partition(":")[0].removeprefix("cmdstat_"): int(line.partition("calls=")[2].partition(",")[0])
        for line in lines
        if line.startswith("cmdstat_")
    }
    return {name: count / ROUNDS / SPAN for name, count in calls.items() if name not in _OURS}


def run(options: Options) -> Report:
    """Count on each requested server."""
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        with pinned(candidate) as server:
            url = server.url
            caller, full = Caller(url).load(), Caller(url, "full:")
            full.execute([ConfigSet("jobs-history-count", 100)])
            floor = Floor(url).load()
            ways: dict[str, Way] = {
                "one job a call": Single(caller),
                "100 jobs a call": Batches(caller),
                "complete_and_pop": Chained(Caller(url, "chained:")),
                "one job a call, each retires one": Single(full),
                "100 jobs a call, each retires one": Batches(full),
                "the same commands alone, one job a call": Same(url).load(),
                "the same commands alone, 100 jobs a call": SameBatches(url),
                "floor, one job a call": floor,
                "floor, 100 jobs a call": FloorBatches(url),
            }
            counted = {name: per_job(caller.connection, way) for name, way in ways.items()}
            tables += [_table(server.version, counted), _by_command(server.version, counted)]
            versions.append(server.version)
            for name, most in (("one job a call", MOST_SINGLE), ("100 jobs a call", MOST_BATCHED)):
                verdicts.append(
                    Verdict(f"{server.version}: {name}", sum(counted[name].values()), most, "commands a job")
                )
    return Report("commands", "python -m bench commands", " ".join(str(__doc__).split()), tables, verdicts, versions)


def _table(version: str, counted: dict[str, dict[str, float]]) -> Table:
    table = Table(f"Commands a job on {version}", ["", "commands", "of them FCALL"])
    for name, calls in counted.items():
        table.add(name, f"{sum(calls.values()):.2f}", f"{calls.get('fcall', 0):.2f}")
    return table


def _by_command(version: str, counted: dict[str, dict[str, float]]) -> Table:
    shown = ("one job a call", "100 jobs a call")
    table = Table(f"Which, on {version}", ["", *shown])
    names = sorted({name for way in shown for name in counted[way]})
    for name in names:
        table.add(name, *(f"{counted[way].get(name, 0):.2f}" for way in shown))
    return table
