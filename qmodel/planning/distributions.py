"""How long it takes until the next job comes, and how long a job takes: laws by which durations are drawn.

- `constant`: always `mean_ms`.
- `exponential` with `mean_ms`: arrivals that know nothing of each other (a Poisson process).
- `lognormal` with `mean_ms` and `cv` (standard deviation by mean): how long most work takes, with a long tail.
- `observed`: one of the durations that were seen, each as likely, and without regard to the one before.
- `recorded`: the durations that were seen in their order, from one on that each run draws, and again from the first:
  so bursts and the hours of a day stay what they were.

Durations that were seen come from `observing`; `times` makes them longer or shorter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

KINDS = ("constant", "exponential", "lognormal", "observed", "recorded")
SEEN = ("observed", "recorded")


class Law(NamedTuple):
    """A law. `values` are durations in milliseconds that were seen."""

    kind: str
    mean_ms: float = 0.0
    cv: float = 0.0
    values: Sequence[int] = ()

    @property
    def mean(self) -> float:
        """The mean duration, in milliseconds."""
        return sum(self.values) / len(self.values) if self.kind in SEEN else self.mean_ms

    def draws(self, random: Random, times: float = 1.0) -> Iterator[float]:
        """Durations without end, in milliseconds, each `times` as long. One random number is used for each."""
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
