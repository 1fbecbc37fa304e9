"""The library in this process, with a keyspace that is set to recorded keys, and what is recorded of its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from qmodel.backends.bundle import function_name
from qmodel.backends.embedded.host import LuaHost, LuaTimeout, ReplyError
from qmodel.backends.embedded.keyspace import COMMANDS
from qmodel.conformance.histories.wire_calls import SERVER_CLOCK
from qmodel.conformance.subjects.base import Step
from tools.mutation import faults
from tools.mutation.faults import NONE_FAILS, PREFIX, Call, Denied
from tools.mutation.parts import Parts, Shared

LIMIT = 10_000_000
"""The limit of Lua instructions in one step, which stops endless loops: a few times the suite's longest step."""

Keys = dict[bytes, Any]


class Cost(NamedTuple):
    """What a call costs the server."""

    commands: int
    """How many commands the library called."""
    ways: str
    """The shorter ways that did its operations: b, p, both (B), or g for each of a group; verbs have no letter."""

    def difference(self, other: Cost) -> str | None:
        """Name what is different, if anything is."""
        if self.commands != other.commands:
            return "commands"
        return "ways" if self.ways != other.ways else None


class Recorded(NamedTuple):
    """One call on the right library: its reply, the keys before it, and the keys that it wrote."""

    history: int
    at: int
    call: Call
    """Commands that fail in it have their error as its reply."""
    reply: Any
    before: Keys
    written: Keys
    cost: Cost
    first: int
    """The step before which the library began anew."""


class Loaded:
    """A loaded library, right or mutated, with a keyspace that can be set to any recorded state."""

    def __init__(self, texts: Mapping[str, str], keyspace: Shared | None = None) -> None:
        self.keyspace = keyspace or Shared(lambda: SERVER_CLOCK)
        self.keyspace.run_id = faults.RUN_ID
        self.host = LuaHost(lambda: SERVER_CLOCK, limit=LIMIT, keyspace=self.keyspace)
        self.parts = Parts(texts, self.host)
        self._state = next(iter(self.host._libraries.values()))
        self._other: Loaded | None = None

    def set(self, keys: Keys) -> None:
        """Replace the content of the keyspace by these keys."""
        self.keyspace.load(keys)

    def prepare(self, anew: bool, apart: bool) -> None:
        """Before a step: let the library begin anew, or else turn to another namespace if a history is `apart`."""
        if anew:
            self.parts.begin()
        elif apart:
            self.host.fcall(function_name("length"), ["other:"], ["0", "", "q"])

    def cost(self) -> Cost:
        """Give what the last call cost."""
        return Cost(self.keyspace.calls.total(), self.parts.ways())

    def lines(self) -> frozenset[int]:
        """Give the lines that ran since coverage was turned on."""
        return frozenset(self._state.lines())

    def within(self, units: int, step: Step, args: list[str]) -> Any:
        """Execute one step with another budget."""
        self.parts.within(units)
        try:
            return self.call(step, args)
        finally:
            self.parts.within()

    def call(self, step: Step, args: list[str], denied: Denied = 0, prefix: str = PREFIX) -> Any:
        """Execute one step; `keyspace.calls` counts its commands. If one of its writes fails, give the error."""
        self.keyspace.calls.clear()
        self.parts.ways()
        if not denied:
            return self.host.fcall(function_name(step.op.spec.name), [prefix], args)
        self.keyspace.failing = None if denied == NONE_FAILS else faults.denying(denied)
        try:
            reply = self.call(step, args, 0, prefix)
            if type(reply) is list:  # a call of several operations has an error for each that fails
                return [faults.said(one) if isinstance(one, ReplyError) else one for one in reply]
            return reply
        except LuaTimeout:
            raise
        except ReplyError as error:
            return faults.said(error)
        finally:
            self.keyspace.failing = None

    def elsewhere(self, step: Step, args: list[str]) -> Any:
        """Let another library, which is right and begins anew, execute a step on the same keys; or spoil a key."""
        self.keyspace.calls.clear()
        if step.op.spec.name == "lost":
            self.keyspace.lose(args[0].encode(), *args[1:])
            return b""
        if self._other is None:
            self._other = Loaded({}, self.keyspace)
        self._other.parts.begin()
        return self._other.call(step, args, NONE_FAILS)

    def writes(self) -> Counter[str]:
        """Count the writes of the last step, by their names."""
        return Counter({name: times for name, times in self.keyspace.calls.items() if COMMANDS[name].writes})

    def content(self, key: bytes) -> Any:
        """Give the content of a key, or None."""
        return self.keyspace._data.get(key)


def made(loaded: Loaded, call: Call) -> Any:
    """Execute a call, and give its reply."""
    if call.units is not None:
        return loaded.within(call.units, call.step, call.args)
    if call.elsewhere:
        return loaded.elsewhere(call.step, call.args)
    return loaded.call(call.step, call.args, call.denied, call.prefix)


def after(keys: Keys, written: Keys) -> Keys:
    """Give the keys after a step that wrote some."""
    keys = {**keys, **written}
    for key, value in written.items():
        if value is None:
            del keys[key]
    return keys
