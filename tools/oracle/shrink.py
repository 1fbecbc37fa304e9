"""Removes from a history the steps that a difference does not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Step = TypeVar("Step")


def shrink(history: Sequence[Step], differs: Callable[[Sequence[Step]], int | None]) -> list[Step]:
    """Give a small part of a history that still differs; `differs` gives the index of the first different step.

    Steps are removed in halves, then in smaller parts, as long as a difference remains.
    """
    at = differs(history)
    found = list(history if at is None else history[: at + 1])
    size = max(len(found) // 2, 1)
    while size:
        begin = 0
        while begin < len(found):
            less = [*found[:begin], *found[begin + size :]]
            where = differs(less) if less else None
            if where is None:
                begin += size
            else:
                found = less[: where + 1]
        size //= 2
    return found
