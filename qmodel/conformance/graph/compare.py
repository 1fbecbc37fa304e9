"""The Lua library in this process, set to any state of the graph: the corner that every edge is compared with.

A state's keys are loaded once. After each call only the keys that it touched are set back, which costs less than a
tenth of an edge. The keys after an edge are kept as a copy of the touched ones beside the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.backends.redis import raw_keys
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX, LuaSubject
from qmodel.contract.operations import Events, Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import snapshot
from qmodel.model.state.store import Store, events_after

Keys = dict[bytes, Any]

MOST_EVENTS: Final = 1000
"""The most events of an edge."""

_WITHIN: Final = "within"
_MEET: Final = "meet"
_SETTING: Final = (
    f"register_function('{_WITHIN}', function(_, args) budget.UNITS = args[1] + 0 end) "
    f"register_function('{_MEET}', function(_, args) if not redis then bound() end store.unknown() "
    "for _, name in ipairs(args) do arguments.names[name] = true end "
    "local found = {} for name in pairs(arguments.names) do found[#found + 1] = name end return found end)"
)
"""What is added to the library: functions that set the budget of an operation, and that let it go on in other keys."""


def with_units(texts: dict[str, str] | None, units: int) -> dict[str, str] | None:
    """Give the library's files with another budget of an operation."""
    if not units:
        return texts
    text = (texts or {}).get("state/budget") or bundle.read("state/budget")
    text, found = re.subn(r"^budget\.UNITS = \d+$", f"budget.UNITS = {units}", text, flags=re.M)
    assert found == 1
    return {**(texts or {}), "state/budget": text}


def _with_setting(texts: dict[str, str] | None) -> str:
    """Give the file of the budget with a function that sets it, on its last line: no other line moves."""
    text = (texts or {}).get("state/budget") or bundle.read("state/budget")
    return text.removesuffix("\n") + f" {_SETTING}\n"


def changes_nothing(store: Store, op: Operation, reply: Any) -> bool:
    """Tell whether an operation must leave everything as it is; the journal records refusals too."""
    return op.spec.reads or (isinstance(reply, Refusal) and not store.settings["journal"])


class LuaCorner:
    """The library, and its keys in the state at hand. `texts` replaces some of its files (faults)."""

    def __init__(self, texts: dict[str, str] | None = None) -> None:
        self._subject = LuaSubject({**(texts or {}), "state/budget": _with_setting(texts)})
        self.keyspace = self._subject.host.keyspace
        self._keys: Keys = {}
        self.names: Sequence[bytes] = ()

    def limit(self, instructions: int) -> None:
        """Break off an operation that takes more instructions: it loops for ever."""
        self._subject.host.limit(instructions)

    def within(self, units: int) -> None:
        """Set the budget of an operation."""
        self._subject.host.fcall(_WITHIN, (), (str(units),))

    def load(self, keys: Keys, names: Sequence[bytes] = ()) -> None:
        """Set the state at hand. Of others the library keeps only the names that it has accepted; it gets these too."""
        self._keys = keys
        self.keyspace.load(keys)
        self.names = self._subject.host.fcall(_MEET, (), names)

    def step(self, now: int, op: Operation) -> Any:
        """Execute an operation in the state at hand; `undo` must follow."""
        return self._subject.step(now, op)

    def undo(self) -> None:
        """Return to the state at hand."""
        self.keyspace.undo(self._keys)

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
