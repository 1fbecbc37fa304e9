"""Read the journal page by page, and prove that each page follows the one before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST, TIME_END
from qmodel.contract.replies import Recorded
from qmodel.errors import Forked, QmodelError
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.histories import Position, check, epoch_at, forked, is_gap

Row = tuple[int, int, str, str, int]
"""An entry: a `Recorded`, or a plain tuple of its fields. To make records of all takes a fortieth of an audit."""


class EntriesGone(QmodelError):
    """Raised when entries of the journal are no longer kept."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__(first, last)
        self.first = first
        self.last = last

    def __str__(self) -> str:
        return (
            f"The entries {self.first} to {self.last} of the journal are gone: more came meanwhile than max-journal "
            f"keeps. Read more often, or keep more of them; an audit can begin anew with a snapshot."
        )


class JournalWentBack(QmodelError):
    """Raised when an entry that was read before no longer exists, nor any after it."""

    def __init__(self, after: int) -> None:
        super().__init__(after)
        self.after = after

    def __str__(self) -> str:
        return (
            f"Entry {self.after} of the journal was read already, and there is none now: the namespace was emptied, an "
            f"older copy of it restored, or max-journal set to 0. Begin anew, with a snapshot."
        )


def position(client: Client) -> Position:
    """Find the number and the epoch of the last kept entry."""
    number = newest(client)
    return Position(number, epoch_at(client, ops.Journal, number) if number else 0)


def newest(client: Client, known: int = 0) -> int:
    """Find the number of the last kept entry by a binary search; 0 if there is none.

    `known` is a number that it had before: then few reads are needed, if few entries came since.
    """
    low = known if known and client.execute(ops.Journal(known - 1, 1)) else 0
    step = 1
    while client.execute(ops.Journal(low + step - 1, 1)):
        low, step = low + step, step * 4
        if low + step >= TIME_END:
            break
    if not low:
        return 0
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if client.execute(ops.Journal(middle - 1, 1)) else (low, middle)
    return low


def pages(
    client: Client,
    after: int = 0,
    last: int | None = None,
    page: int = MOST,
    *,
    epoch: int | None = None,
    last_epoch: int | None = None,
    gaps: list[Gap] | None = None,
) -> Iterator[Sequence[Recorded]]:
    """Yield the entries after a number in pages, up to `last` or to the newest entry; none is missing, and all are of
    one history.

    To go on after earlier pages, pass the number and the epoch of the last entry. Raises Forked if the server lost it,
    or the entry `last` of `last_epoch`, or loses entries during the read. Raises JournalWentBack if `after` is ahead of
    the journal, and EntriesGone if some entries are no longer kept. With a list for `gaps`, missing entries are added
    to that list instead.
    """
    begin = after
    try:
        check(client, ops.Journal, Position(after, epoch))
    except Forked as fork:
        if not is_gap(client, ops.Journal, fork):
            raise
        epoch = None
    if after and not client.execute(ops.Journal(after - 1, 1)):
        raise JournalWentBack(after)
    while last is None or after < last:
        count = page if last is None else min(page, last - after)
        found: Sequence[Recorded] = client.execute(ops.Journal(after, count, epoch))
        if not found:
            return
        if found[0].number != after + 1:
            gone = Gap(after + 1, min(found[0].number - 1, last or TIME_END))
            if gaps is None:
                raise EntriesGone(*gone)
            gaps.append(gone)
        after, epoch = found[-1].number, found[-1].epoch
        if after == last and last_epoch not in (None, epoch):
            raise forked(after, last_epoch or 0, epoch, begin)
        if found := [one for one in found if last is None or one.number <= last]:
            yield found


def entries(client: Client, after: int = 0, last: int | None = None, *, epoch: int | None = None) -> Iterator[Recorded]:
    """Yield the entries one by one, as `pages` does."""
    for page in pages(client, after, last, epoch=epoch):
        yield from page


def head(entry: Recorded) -> tuple[int, str]:
    """Read the beginning of a call: the moment of an entry, and the name of its operation."""
    found = _HEAD.match(entry.call)
    if found is None:
        raise ValueError(f"this is not a call: {entry.call[:100]!r}")
    return int(found[2]), found[1]


_HEAD = re.compile(r'\{"op":"(\w+)","now":(\d+)')
