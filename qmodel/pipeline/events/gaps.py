"""The proof that a reader of the events missed nothing, or which are gone.

Sequences have no gaps, so the numbers prove it: what was read after 41 begins with 42, and each is one more than the
one before. XRANGE and the operation `events` pass over what is kept no longer without a word, so whoever looks only
at the last number of a page notices nothing.
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


class EventsGone(QmodelError):
    """Events that were to be read are kept no longer; `gaps` says which."""

    def __init__(self, gaps: Iterable[Gap]) -> None:
        self.gaps = tuple(gaps)
        super().__init__(self.gaps)

    def __str__(self) -> str:
        which = ", ".join(f"{gap.first} to {gap.last}" if gap.first < gap.last else f"{gap.first}" for gap in self.gaps)
        return (
            f"Events {which} are gone: more came meanwhile than max-events keeps. Read more often, or keep more of "
            f"them; to go on without them, give a list for the gaps."
        )


class SequenceWentBack(QmodelError):
    """The newest event is older than one that was read already: this is not the stream that it was."""

    def __init__(self, after: int, newest: int) -> None:
        super().__init__(after, newest)
        self.after = after
        self.newest = newest

    def __str__(self) -> str:
        return (
            f"Event {self.after} was read already, and the newest is {self.newest} now: the namespace was emptied, or "
            f"an older copy of it restored. See what became of it, then read from 0."
        )


def prove(seqs: Iterable[int], after: int, last: int) -> tuple[Gap, ...]:
    """Which of the events from `after` + 1 to `last` are not among some sequences, which rise; empty is the proof.

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
