"""Backoff: the delay before a job is tried again. The worker computes it and sends it with the operation.

A backoff is called with the number of failures so far, from 1, and returns seconds. `jitter` is the random part of the
delay: with 0.2 a delay of 10 seconds becomes 8 to 12, so that jobs that failed together are not tried again together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from qmodel import runtime
from qmodel.app.errors import DeclarationError
from qmodel.client.convert import Duration, seconds_of
from qmodel.contract.arguments import LONGEST_MS
from qmodel.errors import hint


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same delay each time."""

    seconds: float = 30.0
    jitter: float = 0.0

    def __call__(self, failures: int) -> float:
        return _spread(self.seconds, self.jitter)


@dataclass(frozen=True, slots=True)
class Exponential:
    """`first` seconds, then `factor` times as long each time, up to `longest`: 5, 10, 20, 40, 80 seconds."""

    first: float = 5.0
    factor: float = 2.0
    longest: float = 3600.0
    jitter: float = 0.2

    def __call__(self, failures: int) -> float:
        try:
            seconds = min(self.first * self.factor ** (failures - 1), self.longest)
        except OverflowError:
            seconds = self.longest
        return _spread(seconds, self.jitter)


@dataclass(frozen=True, slots=True)
class Polynomial:
    """`first` seconds plus the number of failures to the `power`, up to `longest`: 16, 31, 96, 271, 640 seconds."""

    first: float = 15.0
    power: float = 4.0
    longest: float = 86_400.0
    jitter: float = 0.2

    def __call__(self, failures: int) -> float:
        try:
            seconds = min(self.first + failures**self.power, self.longest)
        except OverflowError:
            seconds = self.longest
        return _spread(seconds, self.jitter)


@dataclass(frozen=True, slots=True)
class Steps:
    """A list of delays, one after the other. The last one is repeated."""

    seconds: tuple[float, ...]
    jitter: float = 0.0

    def __call__(self, failures: int) -> float:
        return _spread(self.seconds[min(failures, len(self.seconds)) - 1], self.jitter)


fixed, exponential, polynomial = Fixed, Exponential, Polynomial
NAMED: dict[str, Callable[[int], float]] = {
    "fixed": Fixed(),
    "exponential": Exponential(),
    "polynomial": Polynomial(),
    "none": Fixed(0),
}
Named = Literal["fixed", "exponential", "polynomial", "none"]
Backoff = Named | Duration | Sequence[Duration] | Callable[[int], Duration] | Callable[[int, BaseException], Duration]
"""The ways to declare a backoff: a name, a delay, a list of delays, or a function of the failures so far (from 1) and,
if it takes two arguments, of the exception.
"""

Delay = Callable[[int, BaseException | None], int]
"""Returns milliseconds for the number of failures so far and the exception."""


def delay_of(declared: Any) -> Delay:
    """Make the function for a declared backoff. Raises DeclarationError if it is not a backoff.

    >>> [delay_of([1, 10])(failures, None) for failures in (1, 2, 3)]
    [1000, 10000, 10000]
    """
    if isinstance(declared, str):
        if declared not in NAMED:
            raise DeclarationError(f"{declared!r} is no backoff.", hint(declared, NAMED, "There are"))
        declared = NAMED[declared]
    elif declared in (Fixed, Exponential, Polynomial):
        declared = declared()
    elif isinstance(declared, Sequence) and declared:
        declared = Steps(tuple(map(_checked, declared)))
    elif not callable(declared):
        declared = Fixed(_checked(declared))
    function = _of_two(declared)

    def delay(failures: int, error: BaseException | None) -> int:
        seconds = seconds_of(function(failures, error))
        return min(max(round(seconds * 1000), 0), LONGEST_MS)

    return delay


def _of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of failures and exception from one that may take the failures alone."""
    try:
        inspect.signature(function).bind(1, None)
    except (TypeError, ValueError):
        return lambda failures, error: function(failures)
    return function


def _checked(delay: Any) -> float:
    try:
        seconds = float(seconds_of(delay))
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds * 1000 <= LONGEST_MS:
        raise DeclarationError(
            f"{delay!r} is no backoff.",
            "Give seconds (0 to ten years), several of them, a name (exponential) or a function of the failures.",
        )
    return seconds


def _spread(seconds: float, jitter: float) -> float:
    return seconds * runtime.uniform(1 - jitter, 1 + jitter) if jitter else seconds
