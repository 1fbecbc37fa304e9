"""Cursors: reading a list of jobs in bounded parts.

A cursor is the position of the job that was examined last: its list, and the numbers that order it there. So a search
continues after that position, whatever has been added or removed since; an index would skip jobs when earlier ones are
removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from qmodel.model.state import failures, queues, workers
from qmodel.model.state.store import Store

Key = tuple[float, ...]

NUMBERS: Final = {
    "held": 1, "tag": 1, "ready": 3, "scheduled": 2, "throttled": 2, "depends": 2, "locks": 2, "completed": 2,
    "group": 2,
}  # fmt: skip
"""Every kind of list, and how many numbers order its jobs."""

_NUMBER = re.compile("0|-?[1-9][0-9]{0,14}|-inf")


class Cursor(NamedTuple):
    """A position: the kind of the list, its name if it is a group, and the numbers of the job."""

    kind: str
    name: str
    key: Key


def write(kind: str, name: str, key: Key) -> str:
    """Write a cursor as text."""
    numbers = ("-inf" if number == queues.FIRST else str(int(number)) for number in key)
    return " ".join([kind, *numbers, *([name] if kind == "group" else ())])


def read(text: str) -> Cursor | None:
    """Read a cursor from text; None if the text is not one."""
    kind, *words = text.split(" ")
    count = NUMBERS.get(kind, 0)
    name = " ".join(words[count:])
    if not count or len(words) < count or (kind == "group") is not (name != ""):
        return None
    if (kind != "group" and len(words) > count) or not all(map(_NUMBER.fullmatch, words[:count])):
        return None
    return Cursor(kind, name, tuple(map(float, words[:count])))


def page(store: Store, kind: str, name: str, after: Key | None, most: int, latest: int | None) -> list[tuple[Key, str]]:
    """The first jobs of a list after a position: the numbers of each, and its id; none that comes after a moment, if
    one is given.
    """
    places = _places(store, kind, name)
    size = NUMBERS[kind]
    first, last = 0, len(places)
    while after is not None and first < last:
        middle = (first + last) // 2
        if places[middle][:size] > after:
            last = middle
        else:
            first = middle + 1
    found = places[first : first + most]
    return [(place[:size], place[-1]) for place in found if latest is None or place[0] <= latest]


def _places(store: Store, kind: str, name: str) -> Sequence[Any]:
    if kind == "held":
        held = store.workers[name].held if name in store.workers else {}
        return [(held[jid], jid) for jid in workers.held(store, name)]
    if kind == "tag":
        return store.tags.get(name) or ()  # type: ignore[return-value]
    if kind == "group":
        return failures.of(store, name)  # type: ignore[return-value]
    if kind == "completed":
        return store.completed  # type: ignore[return-value]
    return getattr(queues.of(store, name), kind)  # type: ignore[no-any-return]
