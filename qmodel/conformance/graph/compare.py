"""The Lua library in this process, set to any state of the graph: the corner that every edge is compared with.

A state's keys are loaded once. After each call only the keys that it touched are set back, which costs less than a
tenth of an edge. The keys after an edge are kept as a copy of the touched ones beside the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.backends.embedded.host import ReplyError
from qmodel.backends.redis import raw_keys
from qmodel.conformance.graph.failures import NEXT, Failing, after_failure
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX, LuaSubject
from qmodel.contract.operations import Events, Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import snapshot
from qmodel.model.state.store import Store, events_after

Keys = dict[bytes, Any]

MOST_EVENTS: Final = 1000
"""The most events of an edge."""

_COUNTERS: Final = f"{PREFIX}counters".encode()


def _on_one_line(name: str) -> str:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return re.sub(r"(?m)^--.*$", "", text).replace("\n", " ")


WAYS: Final = f"local watch = (function() {_on_one_line('ways.lua')} end)()"
"""A function of Lua that has the ways noted which operations take."""

_MORE: Final = {
    "state/budget": f"{WAYS} {_on_one_line('setting.lua')}",
    "state/store": "store.meet = function() store.unknown() calm_config = nil end",
    "state/plain_records": "plain_records.meet = function() leased, count = {}, 0 end",
    "ops/plain_pop": "plain_pop.meet = function() shy_key, shy = false, 0 end",
}
"""What is added to which files: setting.lua, and functions by which others forget what they keep from call to call."""

VERB: Final = "verb"
"""The longest way of an operation."""

Cost = tuple[str, int]
"""The ways that operations took, and how many commands they called. A way is `verb`, `plain`, `bare`, `bare-plain`,
which goes on from one to the other, or `group`, of several in one call.
"""


def with_units(texts: dict[str, str] | None, units: int) -> dict[str, str] | None:
    """Give the library's files with another budget of an operation."""
    if not units:
        return texts
    text = (texts or {}).get("state/budget") or bundle.read("state/budget")
    text, found = re.subn(r"^budget\.UNITS = \d+$", f"budget.UNITS = {units}", text, flags=re.M)
    assert found == 1
    return {**(texts or {}), "state/budget": text}


def _with_settings(texts: dict[str, str] | None) -> dict[str, str]:
    """Give the library's files with what is added to them, on the last line of a file: no other line moves."""
    found = dict(texts or {})
    for name, more in _MORE.items():
        found[name] = f"{(found.get(name) or bundle.read(name)).removesuffix(chr(10))} {more}\n"
    return found


def changes_nothing(store: Store, op: Operation, reply: Any) -> bool:
    """Tell whether an operation must leave everything as it is; the journal records refusals too."""
    return op.spec.reads or (isinstance(reply, Refusal) and not store.settings["journal"])


class LuaCorner:
    """The library, and its keys in the state at hand. `texts` replaces some of its files (faults)."""

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self._subject = LuaSubject(_with_settings(texts))
        self.keyspace = self._subject.host.keyspace
        self._keys: Keys = {}
        self.names: Sequence[bytes] = ()
        self.ways = VERB
        """The ways of the operations whose cost was asked for last."""
        self._with_ways = {name.decode() for name in self._subject.host.fcall("watch")}

    def limit(self, instructions: int) -> None:
        """Break off an operation that takes more instructions: it loops for ever."""
        self._subject.host.limit(instructions)

    def within(self, units: int) -> None:
        """Set the budget of an operation."""
        self._subject.host.fcall("within", (), (str(units),))

    def begin(self) -> None:
        """Begin with a state without keys, and without a name that was accepted in a search before."""
        self._subject.host.fcall("forget")
        self.load({})

    def load(self, keys: Keys, names: Sequence[bytes] = ()) -> None:
        """Set the state at hand. Of others the library keeps only the names that it has accepted; it gets these too."""
        self._keys = keys
        self.keyspace.load(keys)
        self.meet(names)

    def meet(self, names: Sequence[bytes] = ()) -> None:
        """Let the library forget what it knows of the state at hand, and accept these names too."""
        self.names = self._subject.host.fcall("meet", (), names)
        self.keyspace.calls.clear()

    def step(self, now: int, op: Operation) -> Any:
        """Execute an operation in the state at hand; `undo` must follow."""
        return self._subject.step(now, op)

    def undo(self) -> None:
        """Return to the state at hand. The library notices by the counters; if these were not written, it forgets."""
        touched = self.keyspace.touched
        if touched and _COUNTERS not in touched:
            self.meet()
        self.keyspace.undo(self._keys)
        self.keyspace.calls.clear()

    def cost(self, *names: str) -> Cost:
        """Give the ways and the number of commands of these operations, executed in the state at hand."""
        ways = self._subject.host.fcall("took") if not self._with_ways.isdisjoint(names) else ()
        self.ways = "+".join(way.decode() for way in ways) or VERB
        return self.ways, self.keyspace.calls.total()

    def keys(self) -> Keys:
        """Give the keys as they are now, those that no operation touched shared with the state at hand."""
        changed = self.keyspace.changed()
        keys = {**self._keys, **changed}
        for key, value in changed.items():
            if value is None:
                del keys[key]
        return keys

    def differences(self, now: int, op: Operation, reply: Any, before: Store, after: Store) -> list[str]:
        """Execute an operation, and list how reply, events and whole state differ from the model's."""
        found = self.step(now, op)
        lines = [] if reply == found else list(snapshot.compare("reply", reply, found))
        if changes_nothing(before, op, reply):
            if not self.keyspace.equals(self._keys):
                lines.append(f"written although nothing changes: {sorted(self.keyspace.touched)}")
            return lines
        return [*lines, *self._differences_of_state(before, after)]

    def differences_of_call(self, steps: Sequence[Step], replies: list[Any], before: Store, after: Store) -> list[str]:
        """Execute operations in one call, and list how replies, events and whole state differ from the model's."""
        return self._differences_of_several(self._subject.steps(steps), replies, before, after)

    def differences_of_row(self, steps: Sequence[Step], replies: list[Any], before: Store, after: Store) -> list[str]:
        """Execute operations one after the other, and list the same differences."""
        return self._differences_of_several([self._subject.step(*step) for step in steps], replies, before, after)

    def differences_of_failure(
        self, steps: Sequence[Step], failing: Failing, first: Store, before: Store, after: Store
    ) -> list[str]:
        """Execute operations in a row, the last one with a command that fails, and then a call that repairs.

        List how the state differs from the one that must be there: `first` is at hand, `before` and `after` are around
        the last operation.
        """
        for step in steps[:-1]:
            self._subject.step(*step)
        now, error = steps[-1].now, None
        self.keyspace.failing = failing
        try:
            self._subject.step(*steps[-1])
        except ReplyError as found:
            error = found
        finally:
            self.keyspace.failing = None
        self._subject.step(now, NEXT)
        return self._differences_of_state(first, after_failure(error, now, before, after))

    def _differences_of_several(self, found: list[Any], replies: list[Any], before: Store, after: Store) -> list[str]:
        lines = [] if replies == found else list(snapshot.compare("replies", replies, found))
        return [*lines, *self._differences_of_state(before, after)]

    def _differences_of_state(self, before: Store, after: Store) -> list[str]:
        raw = self.keyspace.dump()
        try:
            state = raw_keys.decode(raw, PREFIX)
        except raw_keys.Corrupt as corrupt:
            return [f"corrupt: {corrupt}"]
        lines = list(snapshot.difference(snapshot.of(after), state))
        if after.seq != before.seq:
            told = events_after(after, before.seq, MOST_EVENTS)
            found = raw_keys.events(raw, PREFIX, len(told))
            lines += [] if told == found else snapshot.compare("events", told, found)
        return lines

    def differences_of_events(self, seq: int, store: Store) -> list[str]:
        """Read the events after a sequence in the state at hand, and list how they differ from the model's."""
        found = self.step(0, Events(seq, MOST_EVENTS))
        self.undo()
        return list(snapshot.compare("events", events_after(store, seq, MOST_EVENTS), found))
