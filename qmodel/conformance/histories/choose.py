"""Choosers: where a generator's decisions come from.

Generators are written once against `below`, and everything else is made of it. Zero is the simplest
choice where there is one.

- RandomChooser: a random.Random; a fraction of a microsecond a choice. For bulk, soak and mutation.
- HypothesisChooser: one draw a step, from which all its choices are made; the simplest leaves the
  step out. So every step shrinks away on its own, without moving what the other steps draw. Drawing
  each choice by itself, or as digits of one number, takes ten times as long to shrink, to histories
  that are longer; what is left to simplify our own shrinker does better.
- EnumeratingChooser: every combination of choices once, in order (TigerBeetle's exhaustigen).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """The source of a generator's decisions."""

    def begin(self) -> bool:
        """Begin a step; False leaves it out."""

    def below(self, n: int) -> int:
        """Choose a whole number from 0 to n - 1."""


def pick(chooser: Chooser, options: Sequence[T]) -> T:
    """Choose one of several options; the first is the simplest."""
    return options[chooser.below(len(options))]


class RandomChooser:
    """Choices from a seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = Random(seed).random

    def begin(self) -> bool:
        """Every step happens."""
        return True

    def below(self, n: int) -> int:
        """Not the last bit uniform, for n is small, and five times as fast as randrange."""
        return int(self._random() * n)


class HypothesisChooser:
    """Choices from Hypothesis: `draw` is `data.draw` of `st.data()`, or a composite's `draw`."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        from hypothesis import strategies as st

        self._draw = draw
        self._seeds = st.integers(0, 2047)
        self._steps = 0
        self._random = Random(0).random

    def begin(self) -> bool:
        """Draw all that a step will choose; 0 leaves it out.

        Few seeds, each another one in every step: lowering them is of no use, so it must not take long.
        """
        seed: int = self._draw(self._seeds)
        self._steps += 1
        self._random = Random(seed << 16 | self._steps).random
        return seed > 0

    def below(self, n: int) -> int:
        """Make the next choice."""
        return int(self._random() * n)


class EnumeratingChooser:
    """Every combination of choices.

    >>> ["ab"[chooser.below(2)] + str(chooser.below(2)) for chooser in EnumeratingChooser.all()]
    ['a0', 'a1', 'b0', 'b1']
    """

    def __init__(self) -> None:
        self._chosen: list[int] = []
        self._limits: list[int] = []
        self._at = 0

    @classmethod
    def all(cls) -> Iterator[EnumeratingChooser]:
        """Give the chooser again and again, until it has made every combination of choices."""
        chooser = cls()
        while True:
            chooser._at = 0
            yield chooser
            if not chooser._advance():
                return

    def begin(self) -> bool:
        """Every step happens."""
        return True

    def below(self, n: int) -> int:
        """Make the next choice of this combination."""
        if self._at == len(self._chosen):
            self._chosen.append(0)
            self._limits.append(n)
        assert self._limits[self._at] == n, "a generator must depend on its choices alone"
        self._at += 1
        return self._chosen[self._at - 1]

    def _advance(self) -> bool:
        """Go to the next combination; False after the last."""
        del self._chosen[self._at :], self._limits[self._at :]
        while self._chosen:
            if self._chosen[-1] + 1 < self._limits[-1]:
                self._chosen[-1] += 1
                return True
            self._chosen.pop()
            self._limits.pop()
        return False
