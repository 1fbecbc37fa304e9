"""Several operations in one call do what the same operations do one by one: replies, refusals and all keys.

The library runs twice in this process. One executes histories operation by operation, the other in calls of a random
number of operations (`qmodel_v1_calls`, lua/wire/register.lua).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX, LuaSubject
from qmodel.contract import operations as ops
from qmodel.model.state import budget
from qmodel.serve.functions import calls_of
from qmodel.wire import codec
from tests.property.support import bulk
from tests.property.test_inner_errors import Denying
from tests.property.test_plain import drawn

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
            assert several.host.keyspace.dump() == one.host.keyspace.dump(), steps


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


def test_a_command_that_fails_inside_ends_one_operation_and_not_those_after_it() -> None:
    subject = LuaSubject()
    puts = [Step(1, ops.Put("q", f"j{i}", "K", "{}")) for i in range(4)]
    assert execute(subject, puts[:1]) == ["j0"]
    subject.host.keyspace.failing = Denying(4)  # the first write of the second operation
    first, second, third = call(subject, words_of(puts[1:]))
    subject.host.keyspace.failing = None
    assert (first, third) == ([b"OK", b"j1"], [b"OK", b"j3"])
    assert "NOPERM" in str(second)
    assert [job.jid for job in subject.step(2, ops.Peek("q", 9))] == ["j0", "j1", "j3"]
