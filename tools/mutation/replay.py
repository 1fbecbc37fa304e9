"""Record the suite on the Lua library once, and replay it on mutants of the library.

The state is compared after every step. So as long as a mutant is not noticed, its keys equal those of the right
library, and each step can be executed alone, on the keys recorded before it. A mutant executes only the steps that run
its line, and is one chunk of a loaded library (`parts.py`): a step of a mutant takes about a millisecond.

What a library keeps from call to call is not in its keys. So the library begins anew before every second step of a
history, and in a row of plain calls only at its start; a mutant executes the steps since then too. Each step so finds
what it found when it was recorded, whichever was tried before: with a limit of work, steps that go other ways through
the changed function come first (`novelty.py`).

A step is first compared by bytes: the reply, and the content of every key that either library wrote. If the bytes
differ, the step is compared again as the suite sees it: the decoded reply, and the state that `raw_keys` decodes. If
these are equal, the rest of the history is executed on the mutant's own keys: some keys hold bounds and counts that
only save work, and a wrong one may cause a difference later or never. In histories whose commands are on record
(`tools/commands.py`), another number of commands is a difference too.
"""

from __future__ import annotations

import contextlib
import time
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple
from zlib import crc32

from qmodel.backends.bundle import FILES, read
from qmodel.backends.embedded.host import ReplyError
from qmodel.backends.embedded.keyspace import Keyspace, same
from qmodel.backends.redis import raw_keys
from qmodel.conformance.histories.script import Named
from qmodel.conformance.histories.wire_calls import CALLS, Wire
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store
from qmodel.wire import codec
from tools.mutation import faults, lua
from tools.mutation.faults import NONE_FAILS, PREFIX, Call, Scene, Together
from tools.mutation.loaded import Keys, Loaded, Recorded, after, made
from tools.mutation.mutants import Mutant
from tools.mutation.novelty import Novelty
from tools.mutation.scenes import Choice, scenes
from tools.mutation.uses import in_function, uses

SILENCES = 25
"""After a mutant has differed only in bytes in this many histories, it is tried on the directed histories alone."""

GENERATED = "mutation "
"""The prefix of the names of generated histories."""

PLAIN = frozenset(("put", "pop", "complete", "complete_and_pop"))
"""The operations that lua/ops/plain.lua does."""

PAIR, ROW, SHORT_ROW = 2, 750, 15
"""Before every second step the library begins anew; in a row of plain calls, up to this length, only at its start; and
before every 15th step where most calls are plain."""

PLAIN_ROW = "plain row "
"""The prefix of the names of drawn rows in which most calls are plain."""

UNIT = 0.0001
"""Work is counted in units of so many seconds of the processor on the right library, with its coverage."""

ANEW, STEP, SEEING = 15, 3, 3
"""The work of a beginning, what a step is at least, and how much more it is if the state is decoded after it."""

WORK = 10_000
"""The work after which `./dev mutate` gives up on a mutant of the library."""

GATHERED = 12
"""So many of the first histories, and rows of plain calls, are recorded with several operations in a call, too."""

MANY = 250
"""Rows with so many steps are not."""

NO_LIMIT = 1 << 60

SMALL = 300
"""The number of keys up to which decoding a state is fast."""


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
    work: int = 0
    given_up: bool = False
    """Whether the limit was met before all steps had been executed."""
    alike: bool = False
    """Whether what it changes has the right value in each step (probes.py)."""
    silent: str = ""
    """The first difference in bytes that the suite does not notice."""


class Recording:
    """The suite on the right library, and the steps that run each of its lines."""

    def __init__(
        self, suite: Sequence[Named], calls: Sequence[Wire] = (), pinned: Container[str] = (), *, more: bool = False
    ) -> None:
        """Record histories and `calls`; calls are written by hand, and their replies are checked here.

        In histories with a `pinned` name a step with another number of commands counts as noticed. With `more`, some
        histories are recorded with several operations in a call, and with failing writes and wrong keys, too.
        """
        self.texts = {name: read(name) for name in FILES}
        """The texts of the files at this time; they may be edited meanwhile."""
        self.names = [named.name for named in suite]
        self._on_record = pinned
        self.pinned = {number for number, name in enumerate(self.names) if name in pinned}
        self.steps: list[Recorded] = []
        self.first: list[int] = []
        """For each history, its first step."""
        self._states: dict[tuple[int, int], Snapshot | None] = {}
        self.running: dict[int, array[int]] = {}
        """For each line of the bundle, the steps that run it."""
        self.loaded = Loaded(self.texts)
        self.firsts = self.loaded.parts.firsts
        self.novelty = Novelty(self.texts, self.firsts)
        self._works: list[int] = []
        """How much work each step is: a step that runs many lines is tried late."""
        self._choice = Choice(self.texts, self.firsts)
        self._apart: set[int] = set()
        """The histories in which the library turns to another namespace instead of beginning anew."""
        for number, named in enumerate(suite):
            self.first.append(len(self.steps))
            self._record(number, named)
        if calls:
            self.names.append("wire")
            self.first.append(len(self.steps))
            self._record_calls(len(suite), calls)
        if more:
            for number, named in enumerate(suite):
                if number < GATHERED or is_gathered(named):
                    self._record_gathered(named)
            for scene in list(scenes(self._choice, self.steps, self.names, self._recorded, self.loaded)):
                self._record_scene(scene)
        self.loaded.host.coverage(False)
        self.first.append(len(self.steps))
        self._done = [0, *accumulate(self._works)]

    def _record(self, number: int, named: Named) -> None:
        length, apart = rhythm(named)
        if apart:
            self._apart.add(number)
        keys: Keys = {}
        for step in named.steps:
            try:
                args = codec.encode(step.op, step.now)
            except codec.Unencodable:
                continue
            keys = self._record_one(number, Call(step, args, 0), keys, length)

    def _record_calls(self, number: int, calls: Sequence[Wire]) -> None:
        keys: Keys = {}
        store = Store()
        for operation, args, expected in calls:
            op: Any = Together if operation == CALLS else CATALOGUE[operation].cls  # nothing but its spec is asked for
            keys = self._record_one(number, Call(Step(0, op), args, 0), keys, 1)
            raw, right = self.steps[-1].reply, expected
            if isinstance(expected, list):
                reply = [codec.decode(getattr(each, "op", op), one) for each, one in zip(expected, raw, strict=True)]
                right = [engine.step(store, *each) if isinstance(each, Step) else each for each in expected]
            else:
                reply = codec.decode(op, raw)
                if not isinstance(expected, Refusal):
                    right = engine.step(store, *expected)
            assert reply == right, f"{operation} {args[:9]}: {reply!r}, not {right!r}"

    def _record_gathered(self, named: Named) -> None:
        """Record a history with several operations in a call, where they write."""
        self._record_scene(Scene(f"gathered {named.name}", {}, list(faults.gathered(named.steps)), PAIR))

    def _recorded(self, number: int) -> range:
        return range(self.first[number], [*self.first, len(self.steps)][number + 1])

    def _record_scene(self, scene: Scene) -> None:
        self.first.append(len(self.steps))
        self.names.append(scene.name)
        if scene.name in self._on_record:
            self.pinned.add(len(self.names) - 1)
        keys = scene.keys
        for call in scene.calls:
            keys = self._record_one(len(self.names) - 1, call, keys, scene.length)

    def _record_one(self, number: int, call: Call, keys: Keys, length: int) -> Keys:
        """Execute and record one step; the library begins anew before every `length` steps. Give the keys after it."""
        loaded, index = self.loaded, len(self.steps)
        at = index - self.first[-1]
        first = index - at % length
        loaded.set(keys)
        loaded.host.coverage(False)
        loaded.prepare(first == index, number in self._apart)
        loaded.host.coverage(True)
        loaded.keyspace.touched.clear()
        began = time.process_time()
        reply = made(loaded, call)
        self._works.append(STEP + round((time.process_time() - began) / UNIT))
        cost, written = loaded.cost(), loaded.keyspace.changed()
        self.steps.append(Recorded(number, at, call, reply, keys, written, cost, first))
        lines = loaded.lines()
        if call.denied == 0:
            self._choice.note(index, self.steps[-1], self.names[number], lines, loaded)
        self.novelty.note(index, lines, _word(call.step, reply))
        for line in lines:
            self.running.setdefault(line, array("I")).append(index)
        return after(keys, written)

    def _prepare(self, loaded: Loaded, index: int) -> None:
        """Bring the library to where it was before a step was recorded."""
        recorded = self.steps[index]
        loaded.prepare(recorded.first == index, recorded.history in self._apart)

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

    def judge(
        self, mutant: Mutant, *, most: int = 1, steps: Sequence[int] | None = None, limit: int | None = None
    ) -> Verdict:
        """Execute a mutant until `most` histories have noticed it, or to the end of the suite.

        With a limit, execute the steps that differ most from each other first, until that much work is done.
        """
        verdict = Verdict()
        chosen = self.steps_of(mutant) if steps is None else steps
        if not chosen:
            return verdict
        try:
            self.loaded.parts.use(mutant.file, mutant.apply(self.texts[mutant.file]))
            self.loaded.parts.begin()
        except ReplyError as error:
            verdict.kills.append(Kill(0, "compile" if "compiling" in str(error) else "load"))
            return verdict
        if limit is not None:
            chosen = self.novelty.ordered(chosen, self.lines_of(mutant), self._work)
        self._execute(self.loaded, self._units(chosen), most, limit or NO_LIMIT, verdict)
        return verdict

    def judge_replies(self, mutant: Mutant) -> Verdict:
        """Execute a mutant and compare only replies: history by history, each from the beginning."""
        verdict = Verdict()
        steps = self.steps_of(mutant)
        if not steps:
            return verdict
        loaded = self.loaded
        loaded.parts.use(mutant.file, mutant.apply(self.texts[mutant.file]))
        for number in sorted({self.steps[index].history for index in steps}):
            loaded.set({})
            for index in range(self.first[number], self.first[number + 1]):
                recorded = self.steps[index]
                verdict.steps += 1
                try:
                    self._prepare(loaded, index)
                    reply = loaded.call(recorded.call.step, recorded.call.args)
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
        self._execute(Loaded({**self.texts, **texts}), self._units(range(len(self.steps))), most, NO_LIMIT, verdict)
        return verdict

    def _units(self, steps: Iterable[int]) -> dict[int, int]:
        """Group steps by where the library begins anew, in the order of the first of each; give the last of each."""
        units: dict[int, int] = {}
        for index in steps:
            first = self.steps[index].first
            units[first] = max(index, units.get(first, index))
        return units

    def _work(self, index: int) -> int:
        """Estimate the work of executing a step, with those since the library began anew."""
        return ANEW + self._done[index + 1] - self._done[self.steps[index].first]

    def executed(self, loaded: Loaded, steps: Iterable[int]) -> Iterator[int]:
        """Execute steps, and those since the library began anew before each; give each step after it was executed."""
        for first, last in self._units(steps).items():
            loaded.set(self.steps[first].before)
            for index in range(first, last + 1):
                self._prepare(loaded, index)
                with contextlib.suppress(ReplyError):
                    made(loaded, self.steps[index].call)
                yield index

    def with_next(self, steps: Iterable[int]) -> list[int]:
        """Add to steps the next one of each, which meets what the library keeps."""
        found = {*steps}
        more = {index + 1 for index in found if index + 1 < len(self.steps)}
        return sorted(found | {index for index in more if self.steps[index].first < index})

    def _execute(self, loaded: Loaded, units: Mapping[int, int], most: int, limit: int, verdict: Verdict) -> None:
        over: dict[int, int] = {}  # history -> the step from which on it needs no further one
        silences = 0
        for first, last in units.items():
            history = self.steps[first].history
            if first >= over.get(history, NO_LIMIT) or (
                silences > SILENCES and self.names[history].startswith(GENERATED)
            ):
                continue
            if verdict.work > limit:
                verdict.given_up = True
                return
            loaded.set(self.steps[first].before)
            at, found = self._unit(loaded, first, last, verdict)
            if found is None:
                continue
            over[history] = 0
            if found == "":
                verdict.silent = verdict.silent or _silence(loaded, self.steps[at])
                silences += 1
                over[history] = at
                at, found = self._go_on(loaded, at, verdict)
            if found:
                verdict.kills.append(Kill(at, found))
                if len(verdict.kills) >= most or (found in ("limit", "error") and len(verdict.kills) >= 2):
                    return

    def _unit(self, loaded: Loaded, first: int, last: int, verdict: Verdict) -> tuple[int, str | None]:
        """Execute steps from where the library begins anew until one differs."""
        for index in range(first, last + 1):
            verdict.steps += 1
            verdict.work += self._works[index]
            with contextlib.suppress(Exception):  # the step itself will show what is wrong
                self._prepare(loaded, index)
            found = self._compare(loaded, self.steps[index])
            if found is not None:
                return index, found
        return last, None

    def _compare(self, loaded: Loaded, recorded: Recorded) -> str | None:
        """Name the kind of difference of a step: `""` if only bytes differ, None if nothing does."""
        loaded.keyspace.touched.clear()
        try:
            reply = made(loaded, recorded.call)
        except ReplyError as error:
            return "limit" if "instruction limit" in str(error) else "error"
        except Exception:
            return "error"
        cost = loaded.cost() if recorded.history in self.pinned else recorded.cost
        equal = reply == recorded.reply
        seen: str | None = None
        if not equal or not _same_keys(loaded, recorded):
            if not equal and (recorded.call.denied or not _reads_same(recorded, reply)):
                return "reply"
            seen = "" if recorded.call.denied not in (0, NONE_FAILS) else self._seen(loaded, recorded)
        if seen == "" and recorded.cost.ways and recorded.call.denied == 0:
            seen = "bytes"  # a shorter way leaves what the verb leaves, byte for byte (tests/property/test_plain.py)
        return seen or recorded.cost.difference(cost) or self._kept_differs(loaded, recorded) or seen

    def _kept_differs(self, loaded: Loaded, recorded: Recorded) -> str:
        """Tell whether a step of a history whose commands are on record left another number of old events."""
        after = recorded.written.get(EVENTS)
        if recorded.history not in self.pinned or after is None:
            return ""
        found = loaded.content(EVENTS)
        return "" if found is not None and len(found.entries) == len(after.entries) else "old events"

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
            verdict.work += SEEING * self._works[later]
            with contextlib.suppress(Exception):
                self._prepare(loaded, later)
            try:
                reply = made(loaded, recorded.call)
            except ReplyError as error:
                return later, "limit" if "instruction limit" in str(error) else "error"
            except Exception:
                return later, "error"
            if reply != recorded.reply and (recorded.call.denied or not _reads_same(recorded, reply)):
                return later, "reply"
            dearer = history in self.pinned and recorded.cost.difference(loaded.cost())
            if dearer:
                return later, dearer
            if len(recorded.before) < SMALL or later == self.first[history + 1] - 1:
                seen = self._seen(loaded, recorded)
                if seen:
                    return later, seen
        return index, ""

    def _state_differs(self, loaded: Loaded, recorded: Recorded) -> bool:
        key = recorded.history, recorded.at
        if key in self._states:
            expected = self._states[key]
        else:
            expected = snapshot_or_none(after(recorded.before, recorded.written))
            if len(recorded.before) < SMALL and len(self._states) < 5000:
                self._states[key] = expected
        return snapshot_or_none(loaded.keyspace._data) != expected


def rhythm(named: Named) -> tuple[int, bool]:
    """Tell after how many steps of a history the library begins anew, and whether it turns elsewhere in between.

    So what it keeps from call to call, and of other namespaces, is neither always there nor never.
    """
    if is_row(named.steps):
        return ROW, False
    if named.name.startswith(PLAIN_ROW):
        return SHORT_ROW, False
    return PAIR, crc32(named.name.encode()) % 2 == 1


def is_gathered(named: Named) -> bool:
    """Tell whether a history is recorded with several operations in a call, too."""
    return (
        named.name in faults.TOGETHER
        or named.name.startswith(PLAIN_ROW)
        or (len(named.steps) < MANY and is_row(named.steps))
    )


def is_row(steps: Sequence[Step]) -> bool:
    """Tell whether a history is a row of plain calls, with reads between them."""
    plain = sum(step.op.spec.name in PLAIN for step in steps)
    reads = sum(step.op.spec.reads for step in steps)
    return len(steps) <= ROW and plain >= 0.3 * len(steps) and plain + reads >= 0.95 * len(steps)


def _word(step: Step, reply: Any) -> str:
    """Name an operation, and the code of its refusal if it is refused."""
    code = reply[0] if type(reply) is list and reply and type(reply[0]) is bytes else b""
    return f"{step.op.spec.name} {code!r}"


def snapshot_or_none(keys: Keys) -> Snapshot | None:
    """Decode the state from these keys; None if they are no state."""
    try:
        return snapshot(keys)
    except Exception:
        return None


def snapshot(keys: Keys) -> Snapshot:
    """Decode the state from these keys."""
    keyspace = Keyspace()
    keyspace._data = keys
    return raw_keys.decode(keyspace.dump(), PREFIX)


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
    op = recorded.call.step.op
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
    return f"{recorded.call.step.op.spec.name}: {sorted(differ)[:3] or 'reply'}"


def histories(recording: Recording) -> Iterator[tuple[str, list[Recorded]]]:
    """Give each history with its recorded steps."""
    for number, name in enumerate(recording.names):
        yield name, recording.steps[recording.first[number] : recording.first[number + 1]]
