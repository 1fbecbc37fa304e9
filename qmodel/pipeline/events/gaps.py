"""Prove that a reader of the events missed none, or name those that are gone.

Sequences have no gaps, so the numbers are the proof: a read after 41 begins with 42, and each number is one more than
the one before. XRANGE and the operation `events` skip what is no longer kept without saying so. A reader that only
looks at the last number of a page does not notice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from qmodel.errors import QmodelError


class Gap(NamedTuple):
    """Events that are gone, from the first to the last."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


def named(gaps: Iterable[Gap]) -> str:
    """Format gaps for a message.

    >>> named([Gap(1, 1), Gap(4, 9)])
    '1, 4 to 9'
    """
    return ", ".join(f"{gap.first} to {gap.last}" if gap.first < gap.last else f"{gap.first}" for gap in gaps)


def joined(gaps: Iterable[Gap]) -> list[Gap]:
    """Join gaps that touch.

    >>> joined([Gap(1, 4), Gap(5, 9), Gap(11, 12)])
    [Gap(first=1, last=9), Gap(first=11, last=12)]
    """
    found: list[Gap] = []
    for gap in sorted(gaps):
        if found and found[-1].last + 1 >= gap.first:
            found[-1] = Gap(found[-1].first, max(found[-1].last, gap.last))
        else:
            found.append(gap)
    return found


class EventsGone(QmodelError):
    """Raised when events are no longer kept; `gaps` lists them."""

    def __init__(self, gaps: Iterable[Gap]) -> None:
        self.gaps = tuple(gaps)
        super().__init__(self.gaps)

    def __str__(self) -> str:
        return (
            f"Events {named(self.gaps)} are gone: more came meanwhile than max-events keeps. Read more often, or keep "
            f"more of them; to go on without them, give a list for the gaps."
        )


class SequenceWentBack(QmodelError):
    """Raised when the newest event is older than one that was read before: the stream was replaced."""

    def __init__(self, after: int, newest: int) -> None:
        super().__init__(after, newest)
        self.after = after
        self.newest = newest

    def __str__(self) -> str:
        return (
            f"Event {self.after} was read already, and the newest is {self.newest} now: the namespace was emptied, or "
            f"an older copy of it restored. Find the cause, then read from 0."
        )


def prove(seqs: Iterable[int], after: int, last: int) -> tuple[Gap, ...]:
    """Find the events from `after` + 1 to `last` that are not among these rising sequences; empty is the proof.

    >>> prove([42, 43], 41, 43)
    ()
    >>> prove([43, 46], 41, 47)
    (Gap(first=42, last=42), Gap(first=44, last=45), Gap(first=47, last=47))
    """
    gaps = []
    for seq in seqs:
        if seq <= after:
            raise ValueError(f"event {seq} after event {after}: sequences rise")
        if seq != after + 1:
            gaps.append(Gap(after + 1, seq - 1))
        after = seq
    if after < last:
        gaps.append(Gap(after + 1, last))
    return tuple(gaps)
