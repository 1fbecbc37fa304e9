"""Choosers: where a generator's decisions come from.

Generators are written once against `below`, and everything else is made of it. Zero is always the
simplest choice, so that whatever lowers the numbers makes the history simpler.

- RandomChooser: a random.Random; a fraction of a microsecond a choice. For bulk, soak and mutation.
- HypothesisChooser: two draws a step, whatever the step chooses. The first says whether the step
  happens at all, and its simplest value is no; the choices are then digits of the second. So every
  step shrinks away on its own, without moving what the other steps draw. Drawing each choice by
  itself costs ten times as much and shrinks to histories several times as long.
- EnumeratingChooser: every combination of choices once, in order (TigerBeetle's exhaustigen).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """What a generator needs."""

    def begin(self) -> bool:
        """Begin a step; False leaves it out."""

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1."""


def pick(chooser: Chooser, options: Sequence[T]) -> T:
    """One of several; the first is the simplest."""
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
        self._happens = st.integers(0, 31)
        self._digits = st.binary(min_size=24, max_size=24)
        self._left = 0

    def begin(self) -> bool:
        """Draw whether the step happens, and all that it will choose."""
        happens = bool(self._draw(self._happens) > 0)
        self._left = int.from_bytes(self._draw(self._digits), "little")
        return happens

    def below(self, n: int) -> int:
        """The next digit; zeros when they are used up."""
        self._left, digit = divmod(self._left, n)
        return digit


class EnumeratingChooser:
    """Every combination of choices.

    >>> for chooser in EnumeratingChooser.all():
    ...     print("ab"[chooser.below(2)] + str(chooser.below(2)), end=" ")
    a0 a1 b0 b1
    """

    def __init__(self) -> None:
        self._chosen: list[int] = []
        self._limits: list[int] = []
        self._at = 0

    @classmethod
    def all(cls) -> Iterator[EnumeratingChooser]:
        """A chooser again and again, until it has made every choice."""
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
        """The choice whose turn it is."""
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
