"""The order in which a mutant's steps are tried: first one of each way through the functions that it changes.

Most steps do what others do. Two steps go the same way if they are of one operation, end with the same code, and run
the same lines of the changed functions. The order takes one step of each way, the cheap ones first, then a second one
of each, and so on: so it holds all steps, and may be broken off anywhere.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

_BEGINS: Final = re.compile(r"^(?:local )?function ", re.M)


class Novelty:
    """The ways of all steps. Lines are those of the library."""

    def __init__(self, texts: Mapping[str, str], firsts: Mapping[str, int]) -> None:
        self._functions = sorted(
            firsts[file] + text.count("\n", 0, found.start()) + 1
            for file, text in texts.items()
            for found in _BEGINS.finditer(text)
        )
        """The lines on which functions begin."""
        self._sets: dict[int, int] = {}
        """The sets of lines that steps ran, by their hashes."""
        self._parts: list[dict[int, int]] = []
        """For each set of lines, what ran of each function."""
        self._steps: list[tuple[int, str]] = []
        """For each step, its set of lines, and its operation and how that ended."""

    def note(self, index: int, lines: Iterable[int], word: str) -> None:
        """Note which lines a step runs, in place of what was noted of it and of later ones."""
        found = frozenset(lines)
        number = self._sets.setdefault(hash(found), len(self._sets))
        if number == len(self._parts):
            parts = groupby(sorted(found), self._function)
            self._parts.append({function: hash(tuple(ran)) for function, ran in parts})
        self._steps[index:] = [(number, word)]

    def _function(self, line: int) -> int:
        return bisect(self._functions, line)

    def ordered(self, steps: Sequence[int], lines: Iterable[int] | None, work: Callable[[int], int]) -> list[int]:
        """Order steps for a change of these lines."""
        functions = sorted({self._function(line) for line in lines or ()})
        met: dict[object, int] = {}
        ranked = []
        for cost, index in sorted((work(index), index) for index in steps):
            number, word = self._steps[index]
            way = word, *map(self._parts[number].get, functions)
            met[way] = rank = met.get(way, 0) + 1
            ranked.append((rank, cost, index))
        return [index for _, _, index in sorted(ranked)]
