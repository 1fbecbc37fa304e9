"""Copies of the model's state, and what tells two states apart.

A search tries operations that turn out wrong, so it works on copies. What a store holds is a tree of few types: objects
with slots, dictionaries and lists of their own, and values that never change, which copies share. So a copy is made
type by type; a type that is not known here is refused rather than shared by mistake.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from sortedcontainers import SortedDict

from qmodel.contract.operations import Operation, Put
from qmodel.model import snapshot
from qmodel.model.sorted_list import Ordered
from qmodel.model.state.records import Nothing
from qmodel.model.state.store import Store

Copier = Callable[[Any], Any]

UNCHANGING = (str, int, float, bool, type(None))
"""What copies share, with all tuples: those in a store, and replies that are remembered, hold only such values."""


def _same(value: Any) -> Any:
    return value


def _dictionary(value: dict[Any, Any]) -> dict[Any, Any]:
    copied = dict(value)
    for key, one in value.items():
        copier = COPIERS[type(one)]
        if copier is _same:
            continue
        copied[key] = copier(one)
    return copied


SHALLOW = ("requests", "config", "settings", "tracked")
"""What of a store holds values only that never change: a thousand replies need not be looked at one by one."""


def _object(cls: type[Any]) -> Copier:
    """What copies the objects of a class. It is written out slot by slot and compiled, which halves its time."""
    lines = ["def copy(given):", " made = new(cls)"]
    for slot in cls.__slots__:
        shallow = cls is Store and slot in SHALLOW
        copied = "value.copy()" if shallow else "copiers[type(value)](value)"
        lines.append(f" value = given.{slot}; made.{slot} = {copied}")
    known: dict[str, Any] = {"cls": cls, "new": object.__new__, "copiers": COPIERS}
    exec("\n".join([*lines, " return made"]), known)
    made: Copier = known["copy"]
    return made


class _Copiers(dict[type[Any], Copier]):
    """What copies the values of each type; those of tuples and of the model's own classes are found when first met."""

    def __missing__(self, kind: type[Any]) -> Copier:
        if issubclass(kind, tuple):
            self[kind] = _same
        elif kind.__module__.startswith("qmodel.model.state.") and hasattr(kind, "__slots__"):
            self[kind] = _object(kind)
        else:
            raise TypeError(f"a store holds a {kind.__name__}: say in copying.py how it is copied")
        return self[kind]


COPIERS = _Copiers(dict.fromkeys(UNCHANGING, _same))
COPIERS[dict] = _dictionary
COPIERS[SortedDict] = lambda value: SortedDict(_dictionary(value))
COPIERS[Nothing] = COPIERS[Put] = _same
for _list in (list, set, deque, Ordered):
    COPIERS[_list] = _list.copy


def copy(store: Store) -> Store:
    """A store that holds the same, and of which no step changes the other."""
    copied: Store = COPIERS[Store](store)
    return copied


# ---- telling apart

UNSEEN = {"days": ("stats", "metrics"), "events": ("events",), "journal": ("journal",)}
"""What a store keeps that some operations only can tell of: neither a reply of another one nor what it does depends on
it. So it tells no two states apart where nobody asks."""


class Fingerprints:
    """Gives each state a fingerprint: equal for equal states, and for others, all but certainly, another one.

    `asked` is every operation that is asked, as often as it is. The events are taken in as they come, for there may be
    thousands: `events` of a state is made of that of the state before it. A reply that is remembered for a request that
    is made only once counts only as one of the row in which all will be forgotten.
    """

    def __init__(self, asked: Iterable[Operation]) -> None:
        often = Counter(f"{op.spec.name} {getattr(op, 'request', '')}" for op in asked)
        self._once = {request for request, times in often.items() if times == 1}
        names = {request.partition(" ")[0] for request in often}
        self._unseen = {field for field, operations in UNSEEN.items() if names.isdisjoint(operations)}
        self._keeps_events = "events" not in self._unseen

    def events(self, before: bytes, seq: int, store: Store) -> bytes:
        """The fingerprint of the events, from that at a sequence number before."""
        if not self._keeps_events or store.seq == seq:
            return before
        new = [store.events[i] for i in range(max(len(store.events) - (store.seq - seq), 0), len(store.events))]
        return _digest((before, store.events.maxlen, tuple(new)))

    def state(self, store: Store, events: bytes) -> bytes:
        """The fingerprint of a state."""
        return _digest((events, [_ordered(one) for one in self._fields(store)]))

    def _fields(self, store: Store) -> list[Any]:
        seen = snapshot.of(store)
        left = [name for name in seen.__slots__ if name not in self._unseen and name != "requests"]
        return [store.events.maxlen, self._requests(seen), *(getattr(seen, name) for name in left)]

    def _requests(self, seen: snapshot.Snapshot) -> tuple[Any, ...]:
        again = [(place, *one) for place, one in enumerate(seen.requests) if one[0] not in self._once]
        return (len(seen.requests), again)


def _ordered(value: Any) -> Any:
    """A value whose text depends on nothing but what it is."""
    if type(value) is dict:
        return sorted((key, _ordered(one)) for key, one in value.items())
    return value


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=16).digest()
