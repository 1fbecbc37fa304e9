"""Figures of durations and outcomes that can be added to, and merged.

Folded in the order of the events, mean and squares equal the engine's to the last bit: it is the same recurrence
(Welford, Technometrics 4, 1962) over the same numbers. Merged from parts (Chan, Golub and LeVeque, COMPSTAT 1982), they
are equal but for rounding. Counts and bins are exact in both cases.
"""

from __future__ import annotations

from collections import Counter

from qmodel.contract.replies import Sample as Shown
from qmodel.model.state import records, stats


class Sample(records.Sample):
    """Count, mean, sum of squared deviations and histogram of some durations in milliseconds: the engine's own."""

    __slots__ = ()
    bins: Counter[int]

    def __init__(self) -> None:
        super().__init__()
        self.bins = Counter()

    def add(self, duration: int) -> None:
        """Count one duration."""
        stats.fold(self, duration)

    def merge(self, other: Sample) -> None:
        """Add another sample."""
        count = self.count + other.count
        if self.count and other.count:
            delta = other.mean - self.mean
            self.mean += delta * other.count / count
            self.squares += other.squares + delta * delta * self.count * other.count / count
        elif other.count:
            self.mean, self.squares = other.mean, other.squares
        self.count = count
        self.bins.update(other.bins)

    def shown(self) -> Shown:
        """Give the sample in the engine's form, with each bin (qmodel.present.histogram.bin_starts)."""
        return Shown(self.count, self.mean, self.squares, tuple(self.bins[index] for index in range(stats.BINS)))


class Tally:
    """The outcomes of the jobs of a queue, klass, worker or tag on a day.

    `failures` counts jobs that failed that day, also by group, and `failed` those that are still failed.
    """

    __slots__ = ("failed", "failures", "groups", "retries", "run", "wait")

    def __init__(self) -> None:
        self.wait = Sample()
        self.run = Sample()
        self.failures = self.failed = self.retries = 0
        self.groups: Counter[str] = Counter()

    def count(self, measure: str, group: str, count: int) -> None:
        """Count failures of a group, recoveries, or retries."""
        if measure == "failed":
            self.failures += count
            self.failed += count
            self.groups[group] += count
        elif measure == "recovered":
            self.failed -= count
        else:
            self.retries += count

    def merge(self, other: Tally) -> None:
        """Add another tally."""
        self.wait.merge(other.wait)
        self.run.merge(other.run)
        self.failures += other.failures
        self.failed += other.failed
        self.retries += other.retries
        self.groups.update(other.groups)
