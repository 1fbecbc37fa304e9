"""Draw durations: the time until the next job arrives, and the time that a job takes.

- `constant`: always `mean_ms`.
- `exponential` with `mean_ms`: independent arrivals (a Poisson process).
- `lognormal` with `mean_ms` and `cv` (standard deviation by mean): typical of work, with a long tail.
- `observed`: one of the durations that were observed, each equally likely and independent of the one before.
- `recorded`: the observed durations in their order, from a random start in each run, and from the first again after the
  last. So bursts and daily patterns are kept.

Observed durations come from `qmodel.planning.observations`; `times` makes them longer or shorter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

KINDS = ("constant", "exponential", "lognormal", "observed", "recorded")
SEEN = ("observed", "recorded")


class Law(NamedTuple):
    """A distribution. `values` are observed durations in milliseconds."""

    kind: str
    mean_ms: float = 0.0
    cv: float = 0.0
    values: Sequence[int] = ()

    @property
    def mean(self) -> float:
        """The mean duration, in milliseconds."""
        return sum(self.values) / len(self.values) if self.kind in SEEN else self.mean_ms

    def draws(self, random: Random, times: float = 1.0) -> Iterator[float]:
        """Yield durations without end, in milliseconds, multiplied by `times`. Each takes one random number."""
        if self.kind == "recorded":
            at = int(random.random() * len(self.values))
            while True:
                yield self.values[at] * times
                at = (at + 1) % len(self.values)
        draw = self._draw
        while True:
            yield draw(random) * times

    def _draw(self, random: Random) -> float:
        if self.kind == "exponential":
            return -self.mean_ms * math.log(1.0 - random.random())
        if self.kind == "lognormal":
            variance = math.log1p(self.cv * self.cv)
            return random.lognormvariate(math.log(self.mean_ms) - variance / 2, math.sqrt(variance))
        if self.kind == "observed":
            return self.values[int(random.random() * len(self.values))]
        return self.mean_ms
