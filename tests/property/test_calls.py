"""Several operations in one call do what the same operations do one by one: replies, refusals and all keys.

The library runs twice in this process. One executes histories operation by operation, the other in calls of a random
number of operations (`qmodel_v1_calls`, lua/wire/register.lua).
"""

from __future__ import annotations

import pickle
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost, LuaTimeout
from qmodel.conformance.histories.plain_rows import JOURNALED, Drawer, drawn
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX, LuaSubject
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.snapshot import Snapshot
from qmodel.model.state import budget
from qmodel.model.state.store import Store
from qmodel.serve.functions import calls_of
from qmodel.wire import codec
from tests.property.support import bulk, state_of
from tests.property.test_inner_errors import NEXT, Denying
from tests.tester import share

REFUSED = [b"BAD_ARGUMENT", b"calls", b"operations"]


def words_of(steps: Iterable[Step]) -> list[str]:
    """The strings of a call of several operations."""
    words = []
    for now, op in steps:
        args = codec.encode(op, now)
        words += [op.spec.name, str(len(args)), *args]
    return words


def call(subject: LuaSubject, words: Sequence[str]) -> Any:
    """The raw reply to a call of several operations."""
    return subject.host.fcall(bundle.CALLS, (PREFIX,), words)


def execute(subject: LuaSubject, steps: Sequence[Step]) -> list[Any]:
    """Execute operations that write in as few calls as possible; give the replies."""
    replies: list[Any] = []
    while len(replies) < len(steps):
        found = call(subject, words_of(steps[len(replies) :]))
        assert found
        replies += [codec.decode(step.op, raw) for step, raw in zip(steps[len(replies) :], found, strict=False)]
    return replies


def parts(history: Iterable[Step], chance: random.Random) -> Iterator[list[Step]]:
    """Cut a history into what one call can have: operations that write, or one that reads."""
    for reads, steps in groupby(history, lambda step: step.op.spec.reads):
        left = list(steps)
        while left:
            count = 1 if reads else chance.randrange(1, 30)
            yield left[:count]
            del left[:count]


EVENTS = f"{PREFIX}events".encode()


def events_of(key: Any) -> list[tuple[int, bytes, bytes]]:
    """The events of a stream, each with its sequence and epoch."""
    found = []
    for id, (_, said) in key[1][0]:
        last, _, epoch = id.partition(b"-")
        lines = said.split(b"\n")
        found += [(int(last) - len(lines) + i, epoch, line) for i, line in enumerate(lines, 1)]
    return found


def same_keys(one: dict[bytes, Any], other: dict[bytes, Any]) -> bool:
    """Whether all keys are the same. Operations that share a call share entries of the stream, and a trim removes whole
    entries: so of the events, the newest are compared.
    """
    found = [events_of(keys.pop(EVENTS, ("", ((), b"")))) for keys in (one, other)]
    least = min(map(len, found))
    return one == other and found[0][len(found[0]) - least :] == found[1][len(found[1]) - least :]


@pytest.mark.parametrize("source", ["plain", "suite"])
def test_operations_in_one_call_do_what_they_do_one_by_one(source: str) -> None:
    chance = random.Random("calls")
    one, several = LuaSubject(), LuaSubject()
    histories = (drawn(seed, 90) for seed in range(40)) if source == "plain" else bulk(40)
    for history in histories:
        one.reset()
        several.reset()
        for steps in parts((Step(*step) for step in history), chance):
            expected = [one.step(*step) for step in steps]
            if steps[0].op.spec.reads or not all(encodable(step) for step in steps):
                assert [several.step(*step) for step in steps] == expected
            else:
                assert execute(several, steps) == expected
            assert same_keys(several.host.keyspace.dump(), one.host.keyspace.dump()), steps


def encodable(step: Step) -> bool:
    """Whether a step can be sent."""
    try:
        return bool(codec.encode(step.op, step.now))
    except codec.Unencodable:
        return False


@pytest.mark.parametrize(
    "words",
    [[], ["get", "3", "", "", "a"], ["put"], ["put", "1", ""], ["put", "x", "", ""], ["put", "7", "", "", "q"],
     ["nothing", "2", "", ""], ["config_unset", "3", "", "", "heartbeat", "length"], ["put", "02", "", ""]],
)  # fmt: skip
def test_what_are_no_operations_that_write_are_refused_as_a_whole(words: list[str]) -> None:
    subject = LuaSubject()
    good = words_of([Step(1, ops.Put("q", "a", "K", "{}"))])
    assert call(subject, [*good, *words] if words else []) == REFUSED
    assert not subject.host.keyspace.dump()
    assert calls_of([*good, *words] if words else [], 0) is None


def test_operations_that_cost_much_are_left_to_the_next_call() -> None:
    subject = LuaSubject()
    jobs = [ops.Put("q", f"j{i}", "K", "{}", tags=tuple(f"t{j}" for j in range(20))) for i in range(300)]
    steps = [Step(1, job) for job in jobs]
    first = call(subject, words_of(steps))
    assert 8 < len(first) < 300
    assert len(first) * 2 * 10 < budget.UNITS
    assert execute(subject, steps[len(first) :]) == [job.jid for job in jobs[len(first) :]]
    assert len(call(subject, words_of([Step(2, ops.Pop("q", "w", 300, request="r")), Step(2, ops.Pop("q", "w"))]))) == 1


def rows(seed: int, count: int, before: Sequence[Operation] = ()) -> list[list[Step]]:
    """Rows of operations of one kind at one moment, most of them plain, with others between them and some before."""
    drawer, store, found = Drawer(seed), Store(), []

    def play(row: list[Operation]) -> None:
        found.append([])
        for op in row:
            drawer.last = op
            found[-1].append(Step(drawer.now, op))
            drawer.hear(engine.step(store, drawer.now, op))

    play([*before, ops.ConfigSet("jobs-history-count", drawer.chance.choice((3, 33, 1000)))])
    play([ops.Put(queue, f"first-{queue}", "K", "{}") for queue in ("q", "r")])
    for _ in range(count):
        drawer.steps += 1
        drawer.now += drawer.chance.choice((0, 1, 7, 300, 1500))
        if drawer.rarely(8):
            other = drawer.other()
            if not other.spec.reads:
                play([other])
            continue
        draw = drawer.chance.choice([drawer.put, drawer.pop, drawer.complete])
        row: list[Operation] = [draw() for _ in range(drawer.chance.choice((1, 2, 5, 40, 130)))]
        if drawer.chance.randrange(4):  # into one queue, for one worker
            row = [replace(op, **shared) for op in row for shared in [ONE.get(op.spec.name, {})]]
        play(row)
    return found


ONE: dict[str, dict[str, Any]] = {"put": {"queue": "q"}, "pop": {"queue": "q", "worker": "w", "count": 1}}
FOLDED = re.compile(rb"ql:s(:(wait|run|minutes)|$)")
"""Statistics: a row folds them once."""


def but_statistics(subject: LuaSubject) -> dict[bytes, Any]:
    return {key: value for key, value in subject.host.keyspace.dump().items() if not FOLDED.match(key)}


def test_rows_of_plain_operations_do_what_they_do_one_by_one() -> None:
    one, several = LuaSubject(), LuaSubject()
    for seed in range(share(40)):
        one.reset()
        several.reset()
        for row in rows(seed, 20, JOURNALED if seed % 2 else ()):
            assert execute(several, row) == [one.step(*step) for step in row]
            assert same_keys(but_statistics(several), but_statistics(one)), row
            assert several.snapshot() == one.snapshot()


def in_group(subject: LuaSubject, steps: Sequence[Step]) -> bool:
    """Whether a call does operations together."""
    line = next(
        i for i, line in enumerate(bundle.library().split("\n"), 1) if "replies[#replies + 1] = found[i]" in line
    )
    subject.host.coverage(True)
    execute(subject, steps)
    (lines,) = subject.host.lines().values()
    subject.host.coverage(False)
    return line in lines


def life(count: int) -> list[list[Step]]:
    """The rows of the lives of some jobs, after the first operations of their kinds."""
    store = Store()

    def play(row: Iterable[Operation]) -> tuple[list[Step], list[Any]]:
        steps = [Step(10**12, op) for op in row]
        return steps, [engine.step(store, *step) for step in steps]

    found = [play([ops.Put("q", "first", "K", "{}")])]
    found += [play([ops.Pop("q", "w", request="first")])]
    found += [play([ops.Complete("first", found[-1][1][0][0].token)])]
    found += [play(ops.Put("q", f"j{i}", "K", "{}", request="" if i % 3 else f"p{i}") for i in range(count))]
    found += [play(ops.Pop("q", "w", request=f"r{i}") for i in range(count))]
    found += [
        play(ops.Complete(jobs[0].jid, jobs[0].token, result="x" * (i % 2)) for i, jobs in enumerate(found[-1][1]))
    ]
    return [steps for steps, _ in found]


def test_rows_of_plain_operations_are_done_together() -> None:
    subject = LuaSubject()
    *first, puts, pops, completions = life(7)
    assert not any(in_group(subject, row) for row in first)
    assert all(in_group(subject, row) for row in (puts, pops, completions))
    assert not in_group(subject, [Step(10**12, ops.Put("q", jid, "K", "{}", tags=("t",))) for jid in "ab"])


def states_within(before: Snapshot, row: Sequence[Step], store: Store) -> list[Snapshot]:
    """The state before a row, and that after each of its operations."""
    found = [before]
    for step in row:
        engine.step(store, *step)
        found.append(state_of(store))
    return found


@pytest.mark.parametrize("name", ["", "MSET", "XADD", "ZADD", "ZREM", "HSET", "HDEL", "RPUSH", "ZPOPMIN", "HMGET"])
def test_a_write_that_fails_in_a_row_leaves_each_of_its_operations_whole_or_undone(name: str) -> None:
    subject, store = LuaSubject(), Store()
    for row in life(4):
        data, before = pickle.dumps(subject.host.keyspace._data), state_of(store)
        states = states_within(before, row, store)
        for nth in range(1, 2 if name else 40):
            subject.host.keyspace._data = pickle.loads(data)
            subject.host.keyspace.failing = denying = Denying(-1 if name else nth, name)
            replies = call(subject, words_of(row))
            subject.host.keyspace.failing = None
            subject.step(10**12, NEXT)
            done = states.index(replace(subject.snapshot(), journal=(), journaled=0))
            assert done >= sum(type(reply) is list for reply in replies)
            if not name and denying.writes < nth:
                break
        subject.host.keyspace._data = pickle.loads(data)
        execute(subject, row)


def test_a_command_that_fails_inside_ends_one_operation_and_not_those_after_it() -> None:
    subject = LuaSubject()
    puts = [Step(1, ops.Put("q" if i % 2 else "r", f"j{i}", "K", "{}")) for i in range(5)]
    assert execute(subject, puts[:2]) == ["j0", "j1"]
    subject.host.keyspace.failing = Denying(4)  # the first write of the second operation
    first, second, third = call(subject, words_of(puts[2:]))
    subject.host.keyspace.failing = None
    assert (first, third) == (b"j2", b"j4")
    assert "NOPERM" in str(second)
    assert [job.jid for job in subject.step(2, ops.Peek("r", 9))] == ["j0", "j2", "j4"]


def test_a_killed_call_does_not_stop_the_clock_of_those_behind_it() -> None:
    moments = [1000.0]
    host = LuaHost(lambda: moments[0], limit=30_000)
    host.load(bundle.library())
    many = codec.encode(ops.Cancel(tuple(f"j{at}" for at in range(900))), None)
    with pytest.raises(LuaTimeout):
        host.fcall(bundle.CALLS, (PREFIX,), ["cancel", str(len(many)), *many])
    for moments[0] in (1000.0, 1060.0, 1120.0):
        host.fcall(f"{bundle.LIBRARY}_put", (PREFIX,), codec.encode(ops.Put("q", f"a{moments[0]}", "k", "{}"), None))
    told = host.fcall(f"{bundle.LIBRARY}_events", (PREFIX,), codec.encode(ops.Events(), None))[1]
    assert [line.split(b"\t")[0] for _, line, _ in told[-3:]] == [b"1000000", b"1060000", b"1120000"]
