"""Choosers: the sources of a generator's decisions.

A generator uses a single method, `below`, so it works with every chooser. Where one choice is the simplest, it is 0.

- RandomChooser: a random.Random; a choice takes a fraction of a microsecond. For bulk, soak and mutation tests.
- HypothesisChooser: one Hypothesis draw for each step seeds all choices of the step; the simplest draw omits the step.
  So Hypothesis can remove each step without changing what the other steps draw. One draw for each choice, or for each
  digit of a number, takes ten times as long to shrink and ends with longer histories; our own shrinker simplifies the
  rest better.
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
        """Begin a step; False means to leave the step out."""

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
        """Choose by scaling a float: not exactly uniform, but n is small, and 5 times as fast as randrange."""
        return int(self._random() * n)


class HypothesisChooser:
    """Choices from Hypothesis; `draw` is `data.draw` of `st.data()`, or the `draw` of a composite strategy."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        from hypothesis import strategies as st

        self._draw = draw
        self._seeds = st.integers(0, 2047)
        self._steps = 0
        self._random = Random(0).random

    def begin(self) -> bool:
        """Draw the seed of all choices of a step; 0 leaves the step out.

        There are few seeds, and the same seed means other choices in each step: a lower seed is not simpler, so
        Hypothesis must not spend long on lowering it.
        """
        seed: int = self._draw(self._seeds)
        self._steps += 1
        self._random = Random(seed << 16 | self._steps).random
        return seed > 0

    def below(self, n: int) -> int:
        """Make the next choice."""
        return int(self._random() * n)


class EnumeratingChooser:
    """Makes every combination of choices once.

    >>> ["ab"[chooser.below(2)] + str(chooser.below(2)) for chooser in EnumeratingChooser.all()]
    ['a0', 'a1', 'b0', 'b1']
    """

    def __init__(self) -> None:
        self._chosen: list[int] = []
        self._limits: list[int] = []
        self._at = 0

    @classmethod
    def all(cls) -> Iterator[EnumeratingChooser]:
        """Yield the chooser once for each combination of choices."""
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
        """Go to the next combination; return False after the last."""
        del self._chosen[self._at :], self._limits[self._at :]
        while self._chosen:
            if self._chosen[-1] + 1 < self._limits[-1]:
                self._chosen[-1] += 1
                return True
            self._chosen.pop()
            self._limits.pop()
        return False
