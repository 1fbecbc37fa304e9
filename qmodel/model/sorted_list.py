"""A sorted list for entries that mostly come and go in order, as jobs do.

It consists of sorted blocks of some hundred entries; the last one is the tail, which is empty only if there are no
entries at all. An entry greater than all others is appended to the tail without a search; the first entry is at hand.
Any other is found by bisection: first among the last entries of the blocks before the tail, then within a block.
(`sortedcontainers.SortedList` searches for every entry, and makes a job a sixth more expensive.)

Entries are tuples that begin with two numbers, and no two are equal. Indexes are counted block by block; only reads
need them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T", bound=tuple[Any, ...])

BLOCK = 512
"""The most entries in a block."""


class Ordered(Generic[T]):
    """A sorted list.

    >>> places = Ordered([(20, 1, "b"), (10, 2, "a"), (30, 3, "c")])
    >>> places.remove((20, 1, "b"))
    >>> places.take(1), len(places), places[0]
    ([(10, 2, 'a')], 1, (30, 3, 'c'))
    """

    __slots__ = ("_blocks", "_lasts", "_tail", "size")

    size: int
    """How many entries there are; `len()` takes four times as long to say so."""

    def __init__(self, entries: Iterable[T] = ()) -> None:
        self._tail: list[T] = []
        self._blocks = [self._tail]
        self._lasts: list[T] = []
        self.size = 0
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._blocks)

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> list[T]: ...

    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            start, end, _ = at.indices(self.size)
            return self._between(start, end)
        at = at if at >= 0 else at + self.size
        return self._between(at, at + 1)[0]

    def _between(self, start: int, end: int) -> list[T]:
        found: list[T] = []
        for block in self._blocks:
            if end <= 0:
                break
            if start < len(block):
                found += block[max(start, 0) : end]
            start -= len(block)
            end -= len(block)
        return found

    # ---- changing

    def add(self, entry: T) -> None:
        """Add an entry."""
        tail = self._tail
        if not tail or (entry > tail[-1] and len(tail) < BLOCK):  # only a list without entries has an empty tail
            tail.append(entry)
            self.size += 1
        else:
            self._insert(entry)

    def _insert(self, entry: T) -> None:
        blocks, lasts, tail = self._blocks, self._lasts, self._tail
        self.size += 1
        if len(tail) == BLOCK and entry > tail[-1]:
            self._tail = [entry]
            blocks.append(self._tail)
            lasts.append(tail[-1])
            return
        at = bisect_left(lasts, entry)
        block = blocks[at]
        insort(block, entry)
        if len(block) > BLOCK:
            blocks.insert(at, block[: BLOCK // 2])
            del block[: BLOCK // 2]
            lasts.insert(at, blocks[at][-1])

    def remove(self, entry: T) -> None:
        """Remove an entry; raises ValueError if it is not in the list."""
        first = self._blocks[0]
        if first and first[0] == entry and (len(first) > 1 or not self._lasts):
            del first[0]
        else:
            self._find_and_remove(entry)
        self.size -= 1

    def _find_and_remove(self, entry: T) -> None:
        blocks, lasts = self._blocks, self._lasts
        at = bisect_left(lasts, entry)
        block = blocks[at]
        index = bisect_left(block, entry)
        if index == len(block) or block[index] != entry:
            raise ValueError(f"{entry} is not there")
        del block[index]
        if at < len(lasts) and block:
            lasts[at] = block[-1]
        elif at < len(lasts):
            del blocks[at], lasts[at]
        elif lasts and not block:
            del blocks[at], lasts[-1]
            self._tail = blocks[-1]

    def take(self, most: int) -> list[T]:
        """Remove the first entries, up to `most`, and give them."""
        blocks = self._blocks
        if len(block := blocks[0]) > most or not self._lasts:
            taken = block[:most]
            del block[:most]
            self.size -= len(taken)
            return taken
        taken = self[:most]
        while len(blocks) > 1 and len(blocks[0]) <= most:
            most -= len(blocks[0])
            del blocks[0], self._lasts[0]
        del blocks[0][:most]
        self.size -= len(taken)
        return taken

    def copy(self) -> Ordered[T]:
        """Make another list of the same entries."""
        made: Ordered[T] = Ordered.__new__(Ordered)
        made._blocks = [block[:] for block in self._blocks]
        made._tail, made._lasts, made.size = made._blocks[-1], self._lasts[:], self.size
        return made

    def clear(self) -> None:
        """Remove all entries."""
        self.take(self.size)

    # ---- looking

    def until(self, moment: float, most: int) -> list[T]:
        """The first entries, up to `most`, whose first number is at most `moment`."""
        blocks = self._blocks
        if not blocks[0] or blocks[0][0][0] > moment:
            return []
        found: list[T] = []
        for block in blocks:
            if len(found) >= most or block[0][0] > moment:
                break
            found += block[: bisect_left(block, (moment, math.inf))]
        return found[:most]

    def begins_by(self, moment: float) -> bool:
        """Whether there is an entry whose first number is at most `moment`."""
        first = self._blocks[0]
        return first[0][0] <= moment if first else False

    def count_until(self, moment: float) -> int:
        """How many entries have a first number of at most `moment`."""
        after = (moment, math.inf)
        at = bisect_left(self._lasts, after)
        before = sum(map(len, self._blocks[:at]))
        return before + bisect_left(self._blocks[at], after)
