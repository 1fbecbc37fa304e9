"""The figures of a queue, job type, worker or tag on a day."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from qmodel.model.state.stats import BINS
from qmodel.pipeline.statistics.cells import fine_range
from qmodel.pipeline.statistics.sql import SHARES
from qmodel.present.histogram import bin_starts


def date_of(day: int) -> str:
    """Write a day (ms) as 2026-11-21."""
    return (datetime(1970, 1, 1) + timedelta(milliseconds=day)).strftime("%Y-%m-%d")


class Name(NamedTuple):
    """The subject of figures: namespace, start of a UTC day (ms), kind (queue, klass, worker, tag) and name."""

    namespace: str
    day: int
    kind: str
    name: str

    @property
    def date(self) -> str:
        """The day, as 2026-11-21."""
        return date_of(self.day)


@dataclass
class Durations:
    """The times that jobs waited or ran, in milliseconds.

    Count, sums, minimum, maximum and bins are exact; mean and deviations are exact but for the last rounding.
    Percentiles are exact below 64 ms and at most 1/64 off above.
    """

    count: int = 0
    total: int = 0
    squared: int = 0  # the sum of the squares
    low: int = 0
    high: int = 0
    percentiles: dict[int, int] = field(default_factory=dict)
    bins: Counter[int] = field(default_factory=Counter)

    @property
    def mean(self) -> float:
        """The mean; 0 if there are none."""
        return self.total / self.count if self.count else 0.0

    @property
    def squares(self) -> float:
        """The sum of squared deviations."""
        return (self.count * self.squared - self.total**2) / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """The sample variance; 0 below two values."""
        return self.squares / (self.count - 1) if self.count > 1 else 0.0

    @property
    def std(self) -> float:
        """The sample standard deviation."""
        return math.sqrt(self.variance)

    @property
    def histogram(self) -> tuple[int, ...]:
        """The count of each bin of `qmodel.present.histogram`."""
        return tuple(self.bins[index] for index in range(BINS))

    def shown(self) -> dict[str, float]:
        """The figures by name."""
        found = {"count": self.count, "mean": self.mean, "variance": self.variance, "min": self.low}
        return found | {f"p{share}": self.percentiles.get(share, 0) for share in SHARES} | {"max": self.high}


@dataclass
class Figures:
    """The outcomes of the jobs of a name on a day.

    `failures` counts jobs that failed, and `failed` those that are still failed. `hours` counts completed jobs by the
    hour of the day.
    """

    wait: Durations = field(default_factory=Durations)
    run: Durations = field(default_factory=Durations)
    failures: int = 0
    failed: int = 0
    retries: int = 0
    groups: Counter[str] = field(default_factory=Counter)
    hours: Counter[int] = field(default_factory=Counter)

    @property
    def busiest(self) -> int:
        """The number of jobs completed in the busiest hour."""
        return max(self.hours.values(), default=0)

    def shown(self, name: Name) -> dict[str, Any]:
        """Give a row of a table, with plain values only."""
        head = {**name._asdict(), "day": name.date}
        for what, durations in (("wait", self.wait), ("run", self.run)):
            head |= {f"{what}_{figure}": value for figure, value in durations.shown().items()}
        counts = {one: getattr(self, one) for one in ("failures", "failed", "retries")}
        return head | counts | {"busiest_hour": self.busiest}


def figures(measured: Iterable[Sequence[Any]], tallied: Iterable[Sequence[Any]]) -> dict[Name, Figures]:
    """Make the figures of all names from the rows of `sql.measured` and `sql.tallied`, sorted by name."""
    found: dict[Name, Figures] = {}
    for *name, measure, count, total, squared, low, high, p50, p90, p95, p99 in measured:
        told = dict(zip(SHARES, (_middle(fine, low, high) for fine in (p50, p90, p95, p99)), strict=True))
        one = Durations(count, int(total), int(squared), low, high, told)
        setattr(found.setdefault(Name(*name), Figures()), measure, one)
    for *name, measure, detail, count in tallied:
        _tally(found.setdefault(Name(*name), Figures()), measure, detail, count)
    return dict(sorted(found.items()))


def _middle(fine: int, low: int, high: int) -> int:
    """Choose the duration that represents a fine cell: its middle, within the minimum and the maximum."""
    return min(max(sum(fine_range(fine)) // 2, low), high)


def _tally(one: Figures, measure: str, detail: str, count: int) -> None:
    if measure == "failed":
        one.failures += count
        one.failed += count
        one.groups[detail] += count
    elif measure == "recovered":
        one.failed -= count
    elif measure == "retries":
        one.retries += count
    else:
        one.hours[int(detail)] += count


def add_bins(found: dict[Name, Figures], binned: Iterable[Sequence[Any]]) -> None:
    """Add the histograms, from the rows of `sql.binned`."""
    for *name, measure, index, count in binned:
        durations: Durations = getattr(found[Name(*name)], measure)
        durations.bins[index] += count


def histogram_rows(found: dict[Name, Figures]) -> list[dict[str, Any]]:
    """Give the histograms as rows of a table: each bin that is not empty, with its lower bound in seconds."""
    starts = bin_starts()
    return [
        {
            **name._asdict(),
            "day": name.date,
            "measure": what,
            "from_s": starts[index],
            "count": count,
        }
        for name, one in found.items()
        for what, durations in (("wait", one.wait), ("run", one.run))
        for index, count in sorted(durations.bins.items())
    ]


def group_rows(found: dict[Name, Figures]) -> list[dict[str, Any]]:
    """Give the failures by group as rows of a table."""
    return [
        {**name._asdict(), "day": name.date, "failure_group": group, "failures": count}
        for name, one in found.items()
        for group, count in sorted(one.groups.items())
    ]
