"""How far a reader has come in the events of a deployment: each shard numbers its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol, Self, TypeVar

from qmodel.contract.events import Event

_TEXT = re.compile(r"(\d+)\.(\d+)?")


class Place(NamedTuple):
    """The last event that was read in a shard; its epoch is None if it is not known."""

    seq: int = 0
    epoch: int | None = None


class Cursor:
    """A place in each shard. `client.follow(cursor)` moves it with each event; `str(cursor)` is to be kept.

    >>> cursor = Cursor.read("17.3,0.,5.3")
    >>> cursor.places[0].seq, str(cursor)
    (17, '17.3,0.,5.3')
    """

    def __init__(self, places: Iterable[tuple[int, int | None]] = ()) -> None:
        self.places = [Place(*one) for one in places]

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `str` has written. Raises ValueError if it is something else."""
        found = [_TEXT.fullmatch(one) for one in text.split(",")] if text else []
        if None in found:
            raise ValueError(f"'{text}' is not a cursor: write a number and an epoch for each shard, as in 17.3,0.")
        return cls((int(one[1]), int(one[2]) if one[2] else None) for one in found if one is not None)

    def __str__(self) -> str:
        return ",".join(f"{place.seq}.{'' if place.epoch is None else place.epoch}" for place in self.places)

    def __repr__(self) -> str:
        return f"<Cursor {self}>"

    def begin(self, shards: int) -> None:
        """Begin at the first event of each shard, unless there are places. Raises ValueError for another number."""
        if not self.places:
            self.places = [Place()] * shards
        if len(self.places) != shards:
            raise ValueError(f"The cursor is of a deployment of {len(self.places)} shards; this one has {shards}.")

    def move(self, shard: int, event: Event) -> None:
        """Go on to an event of a shard."""
        self.places[shard] = Place(event.seq, event.epoch)


class Timed(Protocol):
    """What has a moment: an event, or a message."""

    @property
    def at(self) -> int: ...


T = TypeVar("T", bound=Timed)


def merged(pages: Iterable[Iterable[T]]) -> list[tuple[int, T]]:
    """Merge the events of shards by moment, then by shard; the events of a shard keep their order."""
    every = [(shard, event) for shard, page in enumerate(pages) for event in page]
    latest = dict.fromkeys((shard for shard, _ in every), 0)
    keyed = []
    for shard, event in every:
        latest[shard] = max(latest[shard], event.at)  # a clock that was set back does not turn the order round
        keyed.append((latest[shard], shard, event))
    return [(shard, event) for _, shard, event in sorted(keyed, key=lambda one: one[:2])]


def cursor_of(after: int | Cursor) -> Cursor:
    """Give the cursor that a reader of a deployment begins with."""
    if isinstance(after, Cursor):
        return after
    if after:
        raise TypeError("Each shard of a deployment numbers its own events: pass a Cursor in place of a number.")
    return Cursor()


def number_of(after: int | Cursor) -> int:
    """Give the number that a reader of one namespace begins with."""
    if isinstance(after, Cursor):
        raise TypeError("A Cursor is for a deployment; a namespace has one sequence: pass a number.")
    return after
