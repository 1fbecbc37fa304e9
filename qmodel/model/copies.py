"""Copies of the model's state, and fingerprints that tell two states apart.

A search tries operations that turn out wrong, so it works on copies. A store is a tree of few types: objects with
slots, dictionaries and lists, and immutable values, which copies share. So a copy is made type by type; an unknown type
is refused rather than shared by mistake.
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
"""The immutable types. Copies share them, and all tuples: tuples in a store and remembered replies hold only such
values.
"""


def _same(value: Any) -> Any:
    return value


def _dictionary(value: dict[Any, Any]) -> dict[Any, Any]:
    copied = value.copy()
    for key, one in value.items():
        copier = COPIERS[type(one)]
        if copier is _same:
            continue
        copied[key] = copier(one)
    return copied


def _sorted(value: SortedDict[Any, Any]) -> SortedDict[Any, Any]:
    return SortedDict(_dictionary(dict(value))) if value else SortedDict()


SHALLOW = ("requests", "config", "settings", "tracked")
"""The parts of a store that hold only immutable values: a thousand replies need not be copied one by one."""


def _object(cls: type[Any]) -> Copier:
    """Make the function that copies the objects of a class. It is written out slot by slot and compiled, which halves
    its time.
    """
    lines = ["def copy(given):", " made = new(cls)"]
    for slot in cls.__slots__:
        shallow = cls is Store and slot in SHALLOW
        copied = "value.copy()" if shallow else "value if copier is same else copier(value)"
        found = "" if shallow else "copier = copiers[type(value)]; "
        lines.append(f" value = given.{slot}; {found}made.{slot} = {copied}")
    known: dict[str, Any] = {"cls": cls, "new": object.__new__, "copiers": COPIERS, "same": _same}
    exec("\n".join([*lines, " return made"]), known)
    made: Copier = known["copy"]
    return made


class _Copiers(dict[type[Any], Copier]):
    """The copying function of each type; those of tuples and of the model's own classes are made on first use."""

    def __missing__(self, kind: type[Any]) -> Copier:
        if issubclass(kind, tuple):
            self[kind] = _same
        elif kind.__module__.startswith("qmodel.model.state.") and hasattr(kind, "__slots__"):
            self[kind] = _object(kind)
        else:
            raise TypeError(f"a store holds a {kind.__name__}: say in copies.py how it is copied")
        return self[kind]


COPIERS = _Copiers(dict.fromkeys(UNCHANGING, _same))
COPIERS[dict] = _dictionary
COPIERS[SortedDict] = _sorted
COPIERS[Nothing] = COPIERS[Put] = _same
for _list in (list, set, deque, Ordered):
    COPIERS[_list] = _list.copy


def copy(store: Store) -> Store:
    """Copy a store; later steps on one do not change the other."""
    copied: Store = COPIERS[Store](store)
    return copied


# ---- what did not change

REFILLED = ("room", "cut")
"""The parts of a store that each operation sets before it uses them."""

Comparer = Callable[[Any, Any], bool]


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _equal_lists(one: Ordered[Any], other: Ordered[Any]) -> bool:
    return one.size == other.size and list(one) == list(other)


def _equal_dictionaries(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    if not one and not other:
        return True
    if list(one) != list(other):
        return False
    for key, value in one.items():
        found = other[key]
        if value is not found and not COMPARERS[type(value)](value, found):
            return False
    return True


def _equal_objects(cls: type[Any]) -> Comparer:
    """Make the function that compares two objects of a class, written out as `_object` writes the copying."""
    lines = ["def equal(one, other):", " if type(other) is not cls: return False"]
    for slot in cls.__slots__:
        if cls is not Store or slot not in REFILLED:
            lines.append(f" a, b = one.{slot}, other.{slot}")
            lines.append(" if a is not b and not comparers[type(a)](a, b): return False")
    known: dict[str, Any] = {"cls": cls, "comparers": COMPARERS}
    exec("\n".join([*lines, " return True"]), known)
    made: Comparer = known["equal"]
    return made


class _Comparers(dict[type[Any], Comparer]):
    """The comparing function of each type; those of the model's own classes are made on first use."""

    def __missing__(self, kind: type[Any]) -> Comparer:
        own = COPIERS[kind] is not _same and kind.__module__.startswith("qmodel.model.state.")
        self[kind] = _equal_objects(kind) if own else _equal
        return self[kind]


COMPARERS = _Comparers({dict: _equal_dictionaries, SortedDict: _equal_dictionaries, Ordered: _equal_lists})


def are_equal(store: Store, copied: Store) -> bool:
    """Tell whether a store and a changed copy of it are still equal. What they share costs nothing, so this is much
    faster than to compare their snapshots. What each operation sets anew (`REFILLED`) does not count.
    """
    return COMPARERS[Store](store, copied)


# ---- telling apart

UNSEEN = {"days": ("stats", "metrics"), "events": ("events",), "journal": ("journal",)}
"""The parts of a store that only some operations show: no other reply or effect depends on them. So they distinguish no
two states unless one of these operations is asked.
"""


class Fingerprints:
    """Gives each state a fingerprint: equal for equal states, and almost certainly different for different ones.

    `asked` lists every operation that is asked, with repetitions. Events are added as they come, because there may be
    thousands: the `events` of a state are computed from those of the state before it. A remembered reply to a request
    that is made only once counts only by its position in the order of forgetting.
    """

    def __init__(self, asked: Iterable[Operation]) -> None:
        often = Counter(f"{op.spec.name} {getattr(op, 'request', '')}" for op in asked)
        self._once = {request for request, times in often.items() if times == 1}
        names = {request.partition(" ")[0] for request in often}
        self._unseen = {field for field, operations in UNSEEN.items() if names.isdisjoint(operations)}
        self._keeps_events = "events" not in self._unseen

    def events(self, before: bytes, seq: int, store: Store) -> bytes:
        """The fingerprint of the events, from that at an earlier sequence number."""
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
    """Make a value whose text depends only on its content."""
    if type(value) is dict:
        return sorted((key, _ordered(one)) for key, one in value.items())
    return value


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=16).digest()
