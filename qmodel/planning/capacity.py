"""Estimate how long jobs wait at each point of a grid, and how certain the estimate is.

A point is simulated in several runs with independent random numbers. Each run gives a number, such as the wait that 99
of 100 jobs do not exceed. The estimate of the point is the mean of these numbers, and its interval follows from their
differences (replications with the beginning deleted; Law and Kelton, Simulation Modeling and Analysis, chapter 9).
Waits within a run depend on each other; the method assumes nothing about how.

The kernel is `measure`: a point and a run. It can be called in this process, in several, or on Spark's executors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from qmodel.planning.confidence import Estimate, estimate, quantile
from qmodel.planning.grids import Grid, Point
from qmodel.planning.simulate import Served, Simulated, simulate
from qmodel.processes import spread

ALL = "all"
"""The name of all streams together, if there are several."""

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
METRICS = (
    *(f"wait_{name}" for name in ("mean", *SHARES)),
    *(f"total_{name}" for name in ("mean", *SHARES)),
    "completed",
    "drift",
)
"""The measures of each stream: the wait of a job until an attempt begins, and the time until it is complete, in ms; the
share of completed jobs; and how much longer the later half waited than the earlier half, in ms.
"""


class Measured(NamedTuple):
    """The result of a run of a point: values by stream and metric, the share of busy workers, attempts by jobs."""

    point: int
    run: int
    values: tuple[tuple[str, tuple[float, ...]], ...]
    busy: float
    attempts: int
    lost: int


class Row(NamedTuple):
    """An estimate of a metric of a stream at a point."""

    point: int
    stream: str
    metric: str
    value: Estimate


class Outcome(NamedTuple):
    """The result of a point: estimates by stream and metric, the share of busy workers, and whether it is settled.

    If `settled` is false, waits were still growing when the run ended: there is too much work for the workers or for a
    throttle, or the warm-up is too short. Then the figures depend on the length of the run only.
    """

    point: Point
    streams: dict[str, dict[str, Estimate]]
    busy: Estimate
    again: Estimate
    lost: Estimate
    settled: bool
    runs: tuple[Measured, ...]


def tasks(grid: Grid) -> list[tuple[int, int]]:
    """List all runs of all points, the slowest first: those with many workers that are nearly all busy."""
    by_cost = sorted(range(len(grid.points)), key=lambda number: -grid.points[number].offered)
    return [(number, run) for number in by_cost for run in range(grid.runs)]


def measure(grid: Grid, point: int, run: int) -> Measured:
    """Simulate a run of a point, and measure it."""
    found = simulate(grid.points[point].setup, run)
    several = len(grid.points[point].setup.streams) > 1
    return Measured(point, run, tuple(_values(found, several)), found.busy, found.attempts, found.lost)


def _values(found: Simulated, several: bool) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield the metrics of all jobs together, if there are several streams, and of each stream that had jobs."""
    if several:
        yield ALL, _metrics(found.served)
    for name in sorted({one.stream for one in found.served}):
        yield name, _metrics([one for one in found.served if one.stream == name])


def _metrics(served: Sequence[Served]) -> tuple[float, ...]:
    waits = [one.wait_ms for one in served if one.wait_ms >= 0]
    totals = sorted(one.total_ms for one in served if one.total_ms >= 0)
    half = len(waits) // 2
    drift = fmean(waits[half:]) - fmean(waits[:half]) if half else 0.0
    waits.sort()
    return (*_spread(waits), *_spread(totals), len(totals) / len(served), drift)


def _spread(ordered: Sequence[int]) -> Iterator[float]:
    yield fmean(ordered) if ordered else 0.0
    for share in SHARES.values():
        yield quantile(ordered, share)


class _Work:
    """A point and a run, by their numbers."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    def __call__(self, task: tuple[int, int]) -> Measured:
        return measure(self.grid, *task)


def run(grid: Grid, processes: int = 1, progress: Callable[[Measured], None] = lambda measured: None) -> list[Outcome]:
    """Simulate all points in so many processes of this machine; `progress` is called after each run."""

    def told() -> Iterator[Measured]:
        for measured in spread(_Work(grid), tasks(grid), processes):
            progress(measured)
            yield measured

    return outcomes(grid, told())


def outcomes(grid: Grid, found: Iterable[Measured]) -> list[Outcome]:
    """Combine all runs, in any order, into points."""
    by: dict[int, list[Measured]] = {number: [] for number in range(len(grid.points))}
    for one in found:
        by[one.point].append(one)
    return [_outcome(grid.points[number], sorted(runs, key=lambda one: one.run)) for number, runs in sorted(by.items())]


def _outcome(point: Point, runs: list[Measured]) -> Outcome:
    names = list(dict.fromkeys(name for one in runs for name, _ in one.values))
    streams: dict[str, dict[str, Estimate]] = {}
    for name in names:
        columns = zip(*(dict(one.values)[name] for one in runs if name in dict(one.values)), strict=True)
        streams[name] = {
            metric: estimate(column) if len(column) > 1 else Estimate(column[0], float("inf"))
            for metric, column in zip(METRICS, map(list, columns), strict=True)
        }
    jobs = point.setup.jobs + 2 * point.setup.warmup
    again = estimate([one.attempts / jobs - 1 for one in runs])
    lost = estimate([one.lost / one.attempts for one in runs])
    settled = all(not _grows(values) for values in streams.values())
    busy = estimate([one.busy for one in runs])
    return Outcome(point, streams, busy, again, lost, settled and point.offered < 1, tuple(runs))


def difference(one: Outcome, other: Outcome, stream: str, metric: str) -> Estimate:
    """Estimate how much higher a metric of a stream is at one point than at another.

    Runs of the same number face the same jobs at both points, so they are compared run by run. This interval is
    narrower, often by far, than the intervals of the two points would suggest.
    """
    at = METRICS.index(metric)
    pairs = zip(one.runs, other.runs, strict=True)
    return estimate([dict(a.values)[stream][at] - dict(b.values)[stream][at] for a, b in pairs])


def _grows(values: dict[str, Estimate]) -> bool:
    """Say whether the later half of the jobs waited longer: by at least a quarter of the mean, and beyond chance.

    If waits grow from the first job to the last, the difference is about the mean itself.
    """
    return values["drift"].low > values["wait_mean"].mean / 4


def table(grid: Grid, found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Give a row for each point and stream: the grid's values, then each metric with the bounds of its interval.

    The bounds are None if only one run had jobs of the stream.
    """
    rows = []
    for outcome in found:
        for stream, values in outcome.streams.items():
            row: dict[str, Any] = dict(outcome.point.values)
            row |= {"stream": stream, "settled": outcome.settled, "offered": outcome.point.offered}
            for name, one in (
                *values.items(),
                ("busy", outcome.busy),
                ("again", outcome.again),
                ("lost", outcome.lost),
            ):
                known = math.isfinite(one.half)
                row |= {name: one.mean, f"{name}_low": one.low if known else None}
                row[f"{name}_high"] = one.high if known else None
            rows.append(row)
    return rows
