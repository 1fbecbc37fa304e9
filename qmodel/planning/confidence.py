"""Compute means of few independent runs with confidence intervals (Student, Biometrika 6, 1908)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

SURE = 0.95
"""The confidence level of the intervals."""

_T = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
"""Student's t of 0.975, for 1 to 10 degrees of freedom."""


class Estimate(NamedTuple):
    """A mean with the half-width of its confidence interval, at the level SURE."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half


def students_t(freedom: int) -> float:
    """Compute Student's t of 0.975: from the table, then by the expansion of Cornish and Fisher (1937).

    >>> round(students_t(1), 2), round(students_t(11), 3), round(students_t(30), 3), round(students_t(1000), 3)
    (12.71, 2.201, 2.042, 1.962)
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = NormalDist().inv_cdf(0.5 + SURE / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def estimate(values: Sequence[float]) -> Estimate:
    """Compute the mean of at least two independent runs, and its interval.

    >>> estimate([1.0, 3.0]).mean, round(estimate([1.0, 3.0]).half, 1)
    (2.0, 12.7)
    """
    return Estimate(fmean(values), students_t(len(values) - 1) * stdev(values) / math.sqrt(len(values)))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Give the smallest of sorted values that at least a share of them does not exceed; 0 if there are none.

    >>> quantile([1, 2, 3, 4], 0.5), quantile([1, 2, 3, 4], 0.99), quantile([], 0.5)
    (2, 4, 0.0)
    """
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else 0.0
