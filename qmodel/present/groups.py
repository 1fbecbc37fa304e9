"""Failure groups, the largest first: the engine lists them by name, 1000 at a time, and these are sorted."""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.contract.operations import FailedGroups
from qmodel.contract.replies import Tally

MANY = 1000


def asking(offset: int) -> FailedGroups:
    """Make the operation that lists the 1000 groups around `offset`."""
    return FailedGroups(offset // MANY * MANY, MANY)


def shown(found: Iterable[Tally], offset: int, count: int) -> tuple[list[Tally], bool]:
    """Give up to `count` listed groups from `offset` on, and whether there may be more.

    >>> shown([Tally("a", 1), Tally("b", 3), Tally("c", 1)], 0, 2)
    ([Tally(name='b', jobs=3), Tally(name='a', jobs=1)], True)
    """
    ordered = sorted(found, key=lambda one: -one.jobs)
    begin = offset % MANY
    return ordered[begin : begin + count], begin + count < len(ordered) or len(ordered) == MANY
