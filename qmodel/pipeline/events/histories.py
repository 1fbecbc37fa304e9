"""Where two histories of a namespace part: what a reader has read, and what the server has now.

A number and its epoch identify an event or an entry of the journal among all servers, and with it all before it. So a
reader proves with one pair that what it has read is part of the server's history. `qmodel/model/state/epochs.py` says
how epochs begin.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.errors import Forked, QmodelError, error_of
from qmodel.pipeline.events.gaps import Gap

Table = type[ops.Events] | type[ops.Journal]
"""The read of events, or of entries of the journal."""

Span = tuple[int, int]
"""The first number of an epoch, and the epoch."""


STOP, KEEP = "stop", "keep"
"""What a reader that stores does at a fork: stop, or keep aside what the server lost, and go on."""


class Position(NamedTuple):
    """The last event or entry that was read; the epoch is None if it is not known."""

    number: int
    epoch: int | None


class Common(NamedTuple):
    """The newest common event or entry of two histories; `is_known` is false if the server no longer keeps it."""

    number: int
    epoch: int | None
    is_known: bool


class HistoriesMixed(QmodelError):
    """Raised if an event does not follow the one before it: the two are of different histories."""

    def __init__(self, seq: int, epoch: int, before: int) -> None:
        super().__init__(seq, epoch, before)
        self.seq = seq
        self.epoch = epoch
        self.before = before

    def __str__(self) -> str:
        return (
            f"Event {self.seq} is of epoch {self.epoch}, and the one before it of epoch {self.before}, but no event "
            f"begins epoch {self.epoch} after it: the two are of different histories of a server. Find where they "
            f"part, with client.events(seq, epoch=...), and read on from there."
        )


def follows(event: Event, epoch: int) -> bool:
    """Say whether an event may come after one of an epoch, in one history."""
    return event.epoch == epoch or (event.event == "epoch_begun" and event.facts[1] == epoch)


def forked(number: int, epoch: int, current: int, common: int) -> QmodelError:
    """Make the error that the engine would raise."""
    return error_of(Refusal("FORKED", (str(number), str(epoch), str(current), str(common))))


def check(client: Client, table: Table, at: Position) -> None:
    """Raise Forked if a position is not part of the server's history; one without an epoch is not checked."""
    if at.number and at.epoch is not None:
        client.execute(table(at.number, 1, at.epoch))


def epoch_at(client: Client, table: Table, number: int) -> int | None:
    """Give the epoch of an event or entry of the server; None if it is not kept."""
    found = client.execute(table(number - 1, 1)) if number else ()
    return int(found[0].epoch) if found and found[0][0] == number else None


def epochs_at(client: Client, table: Table, numbers: Sequence[int]) -> list[int | None]:
    """Give the epochs of several events or entries, in one round trip."""
    found = client.execute_many([table(max(number - 1, 0), 1) for number in numbers])
    for one in found:
        if isinstance(one, Exception):
            raise one
    pairs = zip(numbers, found, strict=True)
    return [int(one[0].epoch) if number and one and one[0][0] == number else None for number, one in pairs]


def own(spans: Sequence[Span], number: int) -> Span | None:
    """Give the span that has a number."""
    at = bisect_right(spans, number, key=lambda span: span[0])
    return spans[at - 1] if at else None


def is_gap(client: Client, table: Table, fork: Forked) -> bool:
    """Say whether the server dropped what follows the position: so there is a gap, and nobody can tell of a fork."""
    return int(fork.common) >= int(fork.after) and epoch_at(client, table, int(fork.after) + 1) is None


def gone(client: Client, table: Table, after: int, last: int) -> list[Gap]:
    """Find the rows after a number, up to another, that the server no longer keeps: the oldest ones go first."""
    found = client.execute(table(after, 1)) if after < last else ()
    first = min(found[0][0], last + 1) if found else last + 1
    return [Gap(after + 1, first - 1)] if first > after + 1 else []


def newest_common(client: Client, table: Table, fork: Forked, spans: Sequence[Span]) -> Common:
    """Find the newest event or entry that a reader and the server share.

    The refusal knows only the epoch of the reader's last one; `spans` are all epochs that the reader knows.
    """
    after, at = int(fork.after), int(fork.common)
    while 0 < at < after:
        mine, theirs = own(spans, at), epoch_at(client, table, at)
        if mine is None:  # it has read nothing up to there
            return Common(at, theirs, theirs is not None)
        if theirs is None:
            begins: Any = client.execute(table(at, 1)) if table is ops.Events else ()
            is_known = bool(begins) and begins[0][0] == at + 1 and begins[0].event == "epoch_begun"
            return Common(at, mine[1], is_known and follows(begins[0], mine[1]))
        if mine[1] == theirs:
            return Common(at, theirs, True)
        if mine[1] > theirs:
            at = mine[0] - 1
        else:
            try:
                client.execute(table(at, 1, mine[1]))
            except Forked as later:
                at = min(int(later.common), at - 1)
    return Common(at, 0, at == 0)


def spans_between(client: Client, table: Table, after: Position, last: Position) -> list[Span]:
    """Find the epochs of the server after a position, up to another, with few reads."""
    if after.epoch == last.epoch or after.number >= last.number or last.epoch is None:
        return []
    found: list[Span] = []
    epoch, at = after.epoch, after.number
    while epoch != last.epoch:
        low, high = at, last.number  # the first event with another epoch is after `low`, up to `high`
        while high - low > 1:
            middle = (low + high) // 2
            now = epoch_at(client, table, middle)
            low, high = (middle, high) if now in (epoch, None) else (low, middle)
        later = epoch_at(client, table, high)
        if later is None or later == epoch:
            return found
        found.append((high, later))
        epoch, at = later, high
    return found
