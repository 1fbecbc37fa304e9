"""Record the suite on the Lua library once, and replay it on mutants of the library.

The state is compared after every step. So as long as a mutant is not noticed, its keys equal those of the right
library, and each step can be executed alone, on the keys recorded before it. A mutant then executes only the steps that
run its line, so a thousand mutants take about a minute. The result is the same, to the step, as if the mutant had
executed everything. Mutants of what runs only in a row of plain calls execute the steps before it too: a row is known
to the library alone, and not to its keys.

A step is first compared by bytes: the reply, and the content of every key that either library wrote. If the bytes
differ, the step is compared again as the suite sees it: the decoded reply, and the state that `raw_keys` decodes. If
these are equal, the rest of the history is executed on the mutant's own keys: some keys hold bounds and counts that
only save work, and a wrong one may cause a difference later or never.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

from qmodel.backends.bundle import FILES, function_name, library, read
from qmodel.backends.embedded.host import LuaHost, ReplyError
from qmodel.backends.embedded.keyspace import Keyspace, frozen, same
from qmodel.backends.redis import raw_keys
from qmodel.conformance.histories.script import Named
from qmodel.conformance.histories.wire_calls import CALLS, SERVER_CLOCK, Wire
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store
from qmodel.wire import codec
from tools.mutation import lua
from tools.mutation.mutants import Mutant
from tools.mutation.uses import in_function, uses

PREFIX = "ql:"
LIMIT = 10_000_000
"""The limit of Lua instructions in one step, which stops endless loops: a few times the suite's longest step."""

SILENCES = 25
"""After a mutant has differed only in bytes in this many histories, it is tried on the directed histories alone."""

GENERATED = "mutation "
"""The prefix of the names of generated histories."""

OF_A_ROW = ("ops/bare",)
"""The files whose functions run only in a row of plain calls."""

SMALL = 300
"""The number of keys up to which decoding a state is fast."""

Keys = dict[bytes, Any]


class Recorded(NamedTuple):
    """One step on the right library: the step, its reply, the keys before it, and the keys that it wrote."""

    history: int
    at: int
    step: Step
    args: list[str]
    reply: Any
    before: Keys
    written: Keys


class Together:
    """Stands for the operations of a call of several."""

    spec = SimpleNamespace(name=CALLS, reads=False, reply="")


class Kill(NamedTuple):
    """Where a mutant was noticed: the step's number in the suite, and the kind of difference."""

    step: int
    by: str


@dataclass
class Verdict:
    """The result of executing a mutant."""

    kills: list[Kill] = field(default_factory=list)
    steps: int = 0
    """How many steps it executed."""
    silent: str = ""
    """The first difference in bytes that the suite does not notice."""


class Loaded:
    """A loaded library, right or mutated, with a keyspace that can be set to any recorded state."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.host = LuaHost(lambda: SERVER_CLOCK, limit=LIMIT)
        self.host.load(library(texts))
        self.keyspace: Keyspace = self.host.keyspace

    def set(self, keys: Keys) -> None:
        """Replace the content of the keyspace by these keys."""
        self.keyspace.load(keys)

    def forget(self, index: int) -> None:
        """Clear the library's cache of a namespace before every other step, by a read in another namespace.

        Otherwise the code that runs with an empty cache would hardly ever run.
        """
        if index % 2 == 0:
            self.host.fcall(function_name("length"), ["other:"], ["0", "", "q"])

    def call(self, step: Step, args: list[str]) -> Any:
        """Execute one step."""
        return self.host.fcall(function_name(step.op.spec.name), [PREFIX], args)

    def content(self, key: bytes) -> Any:
        """Give the content of a key, or None."""
        return self.keyspace._data.get(key)


class Recording:
    """The suite on the right library, and the steps that run each of its lines."""

    def __init__(self, suite: Sequence[Named], calls: Sequence[Wire] = ()) -> None:
        """Record histories and `calls`; calls are written by hand, and their replies are checked here."""
        self.texts = {name: read(name) for name in FILES}
        """The texts of the files at this time; they may be edited meanwhile."""
        self.names = [named.name for named in suite]
        self.steps: list[Recorded] = []
        self.first: list[int] = []
        """For each history, its first step."""
        self._states: dict[tuple[int, int], Snapshot] = {}
        self.running: dict[int, list[int]] = {}
        """For each line of the bundle, the steps that run it."""
        loaded = Loaded(self.texts)
        loaded.host.coverage(True)
        for number, named in enumerate(suite):
            self.first.append(len(self.steps))
            self._record(loaded, number, named)
        if calls:
            self.names.append("wire")
            self.first.append(len(self.steps))
            self._record_calls(loaded, len(suite), calls)
        self.first.append(len(self.steps))
        self.firsts = first_lines(self.texts)

    def _record(self, loaded: Loaded, number: int, named: Named) -> None:
        loaded.set({})
        keys: Keys = {}
        for step in named.steps:
            try:
                args = codec.encode(step.op, step.now)
            except codec.Unencodable:
                continue
            keys = self._record_one(loaded, number, step, args, keys)

    def _record_calls(self, loaded: Loaded, number: int, calls: Sequence[Wire]) -> None:
        loaded.set({})
        keys: Keys = {}
        store = Store()
        for operation, args, expected in calls:
            op: Any = Together if operation == CALLS else CATALOGUE[operation].cls  # nothing but its spec is asked for
            keys = self._record_one(loaded, number, Step(0, op), args, keys)
            raw, right = self.steps[-1].reply, expected
            if isinstance(expected, list):
                reply = [codec.decode(step.op, one) for step, one in zip(expected, raw, strict=True)]
                right = [engine.step(store, *step) for step in expected]
            else:
                reply = codec.decode(op, raw)
                if not isinstance(expected, Refusal):
                    right = engine.step(store, *expected)
            assert reply == right, f"{operation} {args[:9]}: {reply!r}, not {right!r}"
            if args[:1] == [""] and not op.spec.reads:
                self._forget_last()

    def _forget_last(self) -> None:
        """Forget a step at the moment of the clock: it begins an epoch, another one with each execution."""
        self.steps.pop()
        for indexes in self.running.values():
            if indexes[-1:] == [len(self.steps)]:
                indexes.pop()

    def _record_one(self, loaded: Loaded, number: int, step: Step, args: list[str], keys: Keys) -> Keys:
        """Execute and record one step; give the keys after it."""
        state = next(iter(loaded.host._libraries.values()))
        index = len(self.steps)
        loaded.forget(index)
        loaded.keyspace.touched.clear()
        state.forget()
        reply = loaded.call(step, args)
        written = {}
        for key in loaded.keyspace.touched:
            value = loaded.content(key)
            written[key] = None if value is None else frozen(value)
        self.steps.append(Recorded(number, index - self.first[-1], step, args, reply, keys, written))
        for line in state.lines():
            self.running.setdefault(line, []).append(index)
        return _after(keys, written)

    def lines(self) -> set[int]:
        """Give the lines of the bundle that ran."""
        return set(self.running)

    def place(self, line: int) -> tuple[str, int]:
        """Give the file and its line for a line of the bundle."""
        file = [name for name in FILES if self.firsts[name] < line][-1]
        return file, line - self.firsts[file]

    def steps_of(self, mutant: Mutant) -> Sequence[int]:
        """List the steps that run a mutant's statement, in the suite's order; only these can change."""
        first = self.firsts[mutant.file]
        found: set[int] = set()
        for line in range(first + mutant.first, first + mutant.last + 1):
            found.update(self.running.get(line, ()))
        if found:
            return sorted(found)
        lines = self.lines_of(mutant)
        if lines is None:
            return range(len(self.steps))
        return sorted({index for line in lines for index in self.running.get(line, ())})

    def lines_of(self, mutant: Mutant) -> set[int] | None:
        """List the lines of the bundle where a mutant can differ from the right library; None means any line."""
        first, text = self.firsts[mutant.file], self.texts[mutant.file]
        if in_function(lua.tree(text).named_descendant_for_byte_range(mutant.start, mutant.end)):
            return set(range(first + mutant.first, first + mutant.last + 1))
        lines = uses(self.texts, mutant.file, mutant.start, mutant.end)
        return None if lines is None else {self.firsts[file] + line for file, line in lines}

    def judge(self, mutant: Mutant, *, most: int = 1, steps: Iterable[int] | None = None) -> Verdict:
        """Execute a mutant until `most` histories have noticed it, or to the end of the suite."""
        verdict = Verdict()
        if steps is None and not self.steps_of(mutant):
            return verdict
        loaded = self._load(mutant, verdict)
        if loaded is None:
            return verdict
        chosen = self.steps_of(mutant) if steps is None else steps
        if mutant.file in OF_A_ROW:
            chosen = self._from_the_first(chosen)
        self._execute(loaded, chosen, most, verdict)
        return verdict

    def _from_the_first(self, steps: Iterable[int]) -> list[int]:
        """Add the steps that come before these in their histories."""
        last = {self.steps[index].history: index for index in steps}
        return [index for history, end in last.items() for index in range(self.first[history], end + 1)]

    def _load(self, mutant: Mutant, verdict: Verdict) -> Loaded | None:
        """Load the library with a mutant; if it cannot be loaded, count this as noticed and return None."""
        try:
            return Loaded({**self.texts, mutant.file: mutant.apply(self.texts[mutant.file])})
        except ReplyError as error:
            verdict.kills.append(Kill(0, "compile" if "compiling" in str(error) else "load"))
            return None

    def judge_replies(self, mutant: Mutant) -> Verdict:
        """Execute a mutant and compare only replies: history by history, each from the beginning."""
        verdict = Verdict()
        steps = self.steps_of(mutant)
        if not steps:
            return verdict
        loaded = self._load(mutant, verdict)
        if loaded is None:
            return verdict
        for number in sorted({self.steps[index].history for index in steps}):
            loaded.set({})
            for index in range(self.first[number], self.first[number + 1]):
                recorded = self.steps[index]
                verdict.steps += 1
                try:
                    reply = loaded.call(recorded.step, recorded.args)
                    if reply == recorded.reply or _reads_same(recorded, reply):
                        continue
                except Exception:
                    pass
                verdict.kills.append(Kill(index, "reply"))
                return verdict
        return verdict

    def judge_texts(self, texts: dict[str, str], *, most: int = 1) -> Verdict:
        """Judge a library with any files replaced: execute every step."""
        verdict = Verdict()
        self._execute(Loaded({**self.texts, **texts}), range(len(self.steps)), most, verdict)
        return verdict

    def _execute(self, loaded: Loaded, steps: Iterable[int], most: int, verdict: Verdict) -> None:
        skip = -1  # the history that needs no further step
        silences = 0
        for index in steps:
            recorded = self.steps[index]
            if recorded.history == skip or (silences > SILENCES and self.names[recorded.history].startswith(GENERATED)):
                continue
            loaded.set(recorded.before)
            verdict.steps += 1
            with contextlib.suppress(Exception):  # the step itself will show what is wrong
                loaded.forget(index)
            at, found = index, self._compare(loaded, recorded)
            if found is None:
                continue
            if found == "":
                verdict.silent = verdict.silent or _silence(loaded, recorded)
                silences += 1
                at, found = self._go_on(loaded, index, verdict)
                skip = recorded.history
            if found:
                skip = recorded.history
                verdict.kills.append(Kill(at, found))
                if len(verdict.kills) >= most or (found in ("limit", "error") and len(verdict.kills) >= 2):
                    return

    def _compare(self, loaded: Loaded, recorded: Recorded) -> str | None:
        """Name the kind of difference of a step: `""` if only bytes differ, None if nothing does."""
        try:
            reply = loaded.call(recorded.step, recorded.args)
        except ReplyError as error:
            return "limit" if "instruction limit" in str(error) else "error"
        except Exception:
            return "error"
        equal = reply == recorded.reply
        if equal and _same_keys(loaded, recorded):
            return None
        if not equal and not _reads_same(recorded, reply):
            return "reply"
        return self._seen(loaded, recorded)

    def _seen(self, loaded: Loaded, recorded: Recorded) -> str:
        """Tell whether the suite notices that a step left other events or another state."""
        if _events_differ(loaded, recorded):
            return "events"
        return "state" if self._state_differs(loaded, recorded) else ""

    def _go_on(self, loaded: Loaded, index: int, verdict: Verdict) -> tuple[int, str]:
        """Execute the rest of a history on the mutant's own keys."""
        history = self.steps[index].history
        for later in range(index + 1, self.first[history + 1]):
            recorded = self.steps[later]
            verdict.steps += 1
            with contextlib.suppress(Exception):
                loaded.forget(later)
            try:
                reply = loaded.call(recorded.step, recorded.args)
            except ReplyError as error:
                return later, "limit" if "instruction limit" in str(error) else "error"
            except Exception:
                return later, "error"
            if reply != recorded.reply and not _reads_same(recorded, reply):
                return later, "reply"
            if len(recorded.before) < SMALL or later == self.first[history + 1] - 1:
                seen = self._seen(loaded, recorded)
                if seen:
                    return later, seen
        return index, ""

    def _state_differs(self, loaded: Loaded, recorded: Recorded) -> bool:
        key = recorded.history, recorded.at
        expected = self._states.get(key)
        if expected is None:
            expected = snapshot(_after(recorded.before, recorded.written))
            if len(recorded.before) < SMALL and len(self._states) < 5000:
                self._states[key] = expected
        try:
            return snapshot(loaded.keyspace._data) != expected
        except Exception:
            return True


def snapshot(keys: Keys) -> Snapshot:
    """Decode the state from these keys."""
    keyspace = Keyspace()
    keyspace._data = keys
    return raw_keys.decode(keyspace.dump(), PREFIX)


def _after(keys: Keys, written: Keys) -> Keys:
    keys = {**keys, **written}
    for key, value in written.items():
        if value is None:
            del keys[key]
    return keys


def _same_keys(loaded: Loaded, recorded: Recorded) -> bool:
    data, written = loaded.keyspace._data, recorded.written
    for key, value in written.items():
        if not same(data.get(key), value):
            return False
    for key in loaded.keyspace.touched:
        if key not in written and not same(data.get(key), recorded.before.get(key)):
            return False
    return True


def _reads_same(recorded: Recorded, reply: Any) -> bool:
    op = recorded.step.op
    try:
        one, other = codec.decode(op, recorded.reply), codec.decode(op, reply)
        return bool(one == other and repr(one) == repr(other))
    except Exception:
        return False


EVENTS = f"{PREFIX}events".encode()


def _events_differ(loaded: Loaded, recorded: Recorded) -> bool:
    after: Any = recorded.written.get(EVENTS)
    found = loaded.content(EVENTS)
    if after is None or found is None:
        return after is not None or (found is not None and EVENTS not in recorded.before)
    if same(after, found):
        return False
    old = recorded.before.get(EVENTS)
    last = old.last if old is not None else (0, 0)
    try:
        return _told(after, last) != _told(found, last)
    except Exception:
        return True


def _told(stream: Any, last: tuple[int, int]) -> list[Any]:
    """Decode the events after a sequence number, as a client does."""
    return [codec.event((at[0], fields[1], at[1])) for at, fields in stream.entries if at > last]


def _silence(loaded: Loaded, recorded: Recorded) -> str:
    data = loaded.keyspace._data
    keys = {*recorded.written, *loaded.keyspace.touched}
    differ = [
        key.decode("utf-8", "replace")
        for key in keys
        if not same(data.get(key), recorded.written.get(key, recorded.before.get(key)))
    ]
    return f"{recorded.step.op.spec.name}: {sorted(differ)[:3] or 'reply'}"


def first_lines(texts: dict[str, str]) -> dict[str, int]:
    """Count the lines of the loaded library before each file; each file is closed by an `end` on its own line."""
    source = library(texts)
    before, line = {}, source[: source.index(texts[FILES[0]].split("\n", 1)[0])].count("\n")
    for name in FILES:
        before[name] = line
        line += texts[name].count("\n") + 1
    return before


def histories(recording: Recording) -> Iterator[tuple[str, list[Recorded]]]:
    """Give each history with its recorded steps."""
    for number, name in enumerate(recording.names):
        yield name, recording.steps[recording.first[number] : recording.first[number + 1]]
