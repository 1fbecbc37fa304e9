"""Read the events of a client page by page, and prove that each page follows the one before, in one history."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.errors import Forked, error_of
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack, prove
from qmodel.pipeline.events.histories import Position, check, forked, is_gap
from qmodel.wire.codec import decode

T = TypeVar("T")
Page = tuple[Sequence[int], Sequence[int], Sequence[T]]
"""Sequences, epochs, and what belongs to each."""

Ask = Callable[[int, int, int | None], Page[T]]
"""Reads a page after a sequence: so many events, checked with an epoch."""


def pages(
    client: Client,
    after: int = 0,
    last: int | None = None,
    *,
    epoch: int | None = None,
    last_epoch: int | None = None,
    gaps: list[Gap] | None = None,
) -> Iterator[Sequence[Event]]:
    """Yield the events after a sequence in pages, up to `last` or to the newest event; it is proved that none is
    missing, and that all are of one history.

    To go on after earlier pages, pass the sequence and the epoch of the last event. `last_epoch` is that of the event
    `last`, if it is known. Raises Forked if the server lost one of the two, or loses events during the read.

    Raises EventsGone before a page that follows missing events; with a list for `gaps`, adds them to that list instead.
    Raises SequenceWentBack if the newest event is older than `after`, but of the same epoch.
    """

    def ask(after: int, count: int, epoch: int | None) -> Page[Event]:
        page: Sequence[Event] = client.execute(ops.Events(after, count, epoch))
        return [one.seq for one in page], [one.epoch for one in page], page

    for _, _, page in _proved(client, ask, Position(after, epoch), last, last_epoch, gaps):
        yield page


def has_texts(client: Client) -> bool:
    """Say whether the backend of a client gives events as texts, as a server does."""
    return bool(getattr(client.backend, "reads", False))


def texts(
    client: Client,
    after: int = 0,
    last: int | None = None,
    *,
    epoch: int | None = None,
    last_epoch: int | None = None,
    gaps: list[Gap] | None = None,
) -> Iterator[Page[bytes]]:
    """Yield the same as a server sends them: sequences, epochs and the text of each event, for decoding in bulk."""
    backend: Any = client.backend

    def ask(after: int, count: int, epoch: int | None) -> Page[bytes]:
        reply = backend.execute(ops.Events(after, count, epoch), None, _undecoded)
        if type(reply) is Refusal:
            raise error_of(reply)
        return [int(one[0]) for one in reply], [int(one[2]) for one in reply], [one[1] for one in reply]

    return _proved(client, ask, Position(after, epoch), last, last_epoch, gaps)


def _undecoded(op: ops.Operation, raw: Any) -> Any:
    return raw[1] if raw[0] == b"OK" else decode(op, raw)


def _proved(
    client: Client, ask: Ask[T], begin: Position, last: int | None, last_epoch: int | None, gaps: list[Gap] | None
) -> Iterator[Page[T]]:
    after, epoch = begin
    newest = client.newest()
    if newest < after:
        check(client, ops.Events, begin)
        raise SequenceWentBack(after, newest)
    last = newest if last is None else min(last, newest)
    if after == last:
        check(client, ops.Events, begin)
    while after < last:
        count = min(MOST, last - after)
        try:
            seqs, epochs, page = ask(after, count, epoch)
        except Forked as fork:
            if not is_gap(client, ops.Events, fork):
                raise
            seqs, epochs, page = ask(after, count, None)
        if seqs and seqs[-1] > last:  # because some before it are gone
            count = bisect_right(seqs, last)
            seqs, epochs, page = seqs[:count], epochs[:count], page[:count]
        until = seqs[-1] if seqs else last
        missing = () if list(seqs) == list(range(after + 1, until + 1)) else prove(seqs, after, until)
        if missing and gaps is None:
            raise EventsGone(missing)
        if gaps is not None:
            gaps.extend(missing)
        after, epoch = until, epochs[-1] if seqs else None
        if after == last and None not in (epoch, last_epoch) and epoch != last_epoch:
            raise forked(last, last_epoch or 0, epoch or 0, begin.number)
        if seqs:
            yield seqs, epochs, page
