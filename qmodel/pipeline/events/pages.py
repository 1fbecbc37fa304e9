"""Read the events of a client page by page, and prove that each page follows the one before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.errors import error_of
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack, prove
from qmodel.wire.codec import decode

T = TypeVar("T")
Page = tuple[Sequence[int], Sequence[T]]
"""Sequences, and what belongs to each."""


def pages(
    client: Client, after: int = 0, last: int | None = None, *, gaps: list[Gap] | None = None
) -> Iterator[Sequence[Event]]:
    """Yield the events after a sequence in pages, up to `last` or to the newest event; it is proved that none is
    missing.

    Raises EventsGone before a page that follows missing events; with a list for `gaps`, adds them to that list instead.
    Raises SequenceWentBack if the newest event is older than `after`.
    """

    def ask(after: int, count: int) -> Page[Event]:
        page: Sequence[Event] = client.execute(ops.Events(after, count))
        return [one.seq for one in page], page

    for _, page in _proved(client, ask, after, last, gaps):
        yield page


def has_texts(client: Client) -> bool:
    """Say whether the backend of a client gives events as texts, as a server does."""
    return bool(getattr(client.backend, "reads", False))


def texts(
    client: Client, after: int = 0, last: int | None = None, *, gaps: list[Gap] | None = None
) -> Iterator[Page[bytes]]:
    """Yield the same as a server sends them: sequences and the text of each event, for decoding in bulk."""
    backend: Any = client.backend

    def ask(after: int, count: int) -> Page[bytes]:
        reply = backend.execute(ops.Events(after, count), None, _undecoded)
        if type(reply) is Refusal:
            raise error_of(reply)
        return [int(seq) for seq, _, _ in reply], [text for _, text, _ in reply]

    return _proved(client, ask, after, last, gaps)


def _undecoded(op: ops.Operation, raw: Any) -> Any:
    return raw[1] if raw[0] == b"OK" else decode(op, raw)


def _proved(
    client: Client, ask: Callable[[int, int], Page[T]], after: int, last: int | None, gaps: list[Gap] | None
) -> Iterator[Page[T]]:
    newest = client.newest()
    if newest < after:
        raise SequenceWentBack(after, newest)
    last = newest if last is None else min(last, newest)
    while after < last:
        seqs, page = ask(after, min(MOST, last - after))
        if seqs and seqs[-1] > last:  # because some before it are gone
            count = bisect_right(seqs, last)
            seqs, page = seqs[:count], page[:count]
        until = seqs[-1] if seqs else last
        missing = () if list(seqs) == list(range(after + 1, until + 1)) else prove(seqs, after, until)
        if missing and gaps is None:
            raise EventsGone(missing)
        if gaps is not None:
            gaps.extend(missing)
        after = until
        if seqs:
            yield seqs, page
