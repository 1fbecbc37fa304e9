"""What the library keeps of a namespace from call to call is not mistaken for that of another one.

Histories of several namespaces are executed in turn by one library, and each alone by a library of its own. Both give
the same replies and leave the same keys.
"""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost, ReplyError
from qmodel.backends.redis import raw_keys
from qmodel.conformance.histories.plain_rows import drawn
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import LuaSubject
from qmodel.contract import operations as ops
from qmodel.model import invariants
from qmodel.wire import codec
from tests.property.support import bulk
from tests.property.test_calls import encodable, words_of
from tests.property.test_inner_errors import NEXT

NAMES = ("{shop:0}:", "{shop:1}:", "ql:", "ql:ql:")


def library(**numbers: int) -> dict[str, str]:
    """The library with other limits: `NAMESPACES` of state/keys.lua, or `MOST` of state/queues.lua."""
    files = {"NAMESPACES": "state/keys", "MOST": "state/queues"}
    texts = {}
    for name, number in numbers.items():
        before = bundle.read(files[name])
        head, mark, rest = before.partition(f"local {name} = ")
        assert mark
        texts[files[name]] = f"{head}{mark}{number} --{rest}"
    return texts


def call(host: LuaHost, prefix: str, steps: list[Step]) -> Any:
    """Execute steps in one call; give the raw replies. It may leave the last ones out."""
    if len(steps) == 1:
        (step,) = steps
        return [host.fcall(bundle.function_name(step.op.spec.name), (prefix,), codec.encode(step.op, step.now))]
    return host.fcall(bundle.CALLS, (prefix,), words_of(steps))


def keys_of(host: LuaHost, prefix: str) -> dict[bytes, Any]:
    """The keys of a namespace, without its prefix."""
    others = [name for name in NAMES if name != prefix and name.startswith(prefix)]
    return {
        key[len(prefix) :]: value
        for key, value in host.keyspace.dump().items()
        if key.startswith(prefix.encode()) and not any(key.startswith(other.encode()) for other in others)
    }


def with_lines(keys: dict[bytes, Any]) -> dict[bytes, Any]:
    """The keys, with the lines of the event stream: what is known of a namespace decides which share an entry."""
    if b"events" not in keys:
        return keys
    kind, (entries, *rest) = keys[b"events"]
    lines = [line for _, (_, text) in entries for line in text.split(b"\n")]
    return {**keys, b"events": (kind, lines, *rest)}


def take(left: list[Step], most: int) -> list[Step]:
    """The next steps that one call can have."""
    count = 1
    while count < min(most, len(left)) and not any(step.op.spec.reads for step in left[: count + 1]):
        count += 1
    return left[:count]


@pytest.mark.parametrize("numbers", [{}, {"NAMESPACES": 2}, {"MOST": 3}], ids=["kept", "few namespaces", "few queues"])
@pytest.mark.parametrize("source", ["plain", "suite"])
def test_namespaces_in_turn_do_what_each_does_alone(source: str, numbers: dict[str, int]) -> None:
    chance = random.Random(f"{source}.{numbers}")
    together, alone = LuaSubject(library(**numbers)), {prefix: LuaSubject() for prefix in NAMES}
    for turn in range(6):
        histories = [drawn(4 * turn + n, 90) for n in range(4)] if source == "plain" else bulk(4 * turn + 4)[4 * turn :]
        left = {
            prefix: [step for step in map(lambda one: Step(*one), history) if encodable(step)]
            for prefix, history in zip(NAMES, histories, strict=True)
        }
        for subject in (together, *alone.values()):
            subject.reset()
        while any(left.values()):
            prefix = chance.choice([name for name in NAMES if left[name]])
            steps = take(left[prefix], chance.choice((1, 1, 1, 9)))
            replies = call(together.host, prefix, steps)
            assert replies == call(alone[prefix].host, prefix, steps)
            del left[prefix][: len(replies)]
            assert with_lines(keys_of(together.host, prefix)) == with_lines(keys_of(alone[prefix].host, prefix)), steps


def life_in_turn(texts: dict[str, str] | None) -> dict[str, Any]:
    """Put jobs in each namespace in turn, twice; give the keys of each."""
    host = LuaSubject(texts).host
    for number, prefix in enumerate((*NAMES, *NAMES)):
        call(host, prefix, [Step(1, ops.Put("q", f"j{number}", "K", "{}"))])
    return {prefix: keys_of(host, prefix) for prefix in NAMES}


def test_what_is_mistaken_is_noticed() -> None:
    """The negative twin: a library that uses the queues of one namespace for the next one."""
    wrong = bundle.read("state/keys").replace("  queues.recall(namespace)\n", "")
    assert life_in_turn({"state/keys": wrong}) != life_in_turn(None)


def keys_after_a_loss(texts: dict[str, str] | None, at_once: int) -> dict[bytes, Any]:
    """Put jobs, lose the last ones as a server that restarts does, visit another namespace, and put again."""
    host = LuaSubject(texts).host
    steps = [Step(n, ops.Put("q", f"j{n}", "K", "{}", request=f"r{n}")) for n in range(9)]
    for n, step in enumerate(steps[:6]):
        call(host, NAMES[0], [step])
        if n == 2:
            kept = pickle.dumps(host.keyspace._data)
    host.keyspace._data = pickle.loads(kept)
    call(host, NAMES[1], steps[:1])
    for first in range(6, 8, at_once):
        call(host, NAMES[0], steps[first : first + at_once])
    return keys_of(host, NAMES[0])


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_call_compares_what_is_kept_with_what_is_stored(at_once: int) -> None:
    seq, _, _ = keys_after_a_loss(None, at_once)[b"counters"][1].partition(b"\t")
    assert int(seq) == 3 + 2


def test_a_call_that_compares_nothing_is_noticed() -> None:
    """The negative twin: several operations share a call, and the first one goes on as if it were a later one."""
    wrong = bundle.read("wire/calls").replace("  keys.begin(prefix)\n", "")
    assert keys_after_a_loss({"wire/calls": wrong}, 2) != keys_after_a_loss(None, 2)


def test_a_plain_step_that_cannot_be_undone_keeps_the_counters_of_the_step_before() -> None:
    """The counters are not read again while nothing else has happened, and yet these are the ones to be kept."""
    subject, jobs = LuaSubject(), [ops.Put("q", f"j{n}", "K", "{}") for n in range(4)]
    for op in (*jobs, ops.Pop("q", "w", request="a"), ops.Pop("q", "w", request="b"), ops.Pop("q", "w", request="c")):
        subject.step(1, op)
    before = subject.snapshot()
    subject.host.keyspace.failing = lambda name, _: f"NOPERM {name} is denied" if name in ("GET", "ZADD") else None
    with pytest.raises(ReplyError):
        subject.step(1, ops.Pop("q", "w", request="d"))
    subject.host.keyspace.failing = None
    subject.step(1, NEXT)
    assert subject.snapshot() == before


@pytest.mark.parametrize("at_once", [False, True])
def test_jobs_of_two_namespaces_with_one_text_are_completed_each_in_its_own(at_once: bool) -> None:
    host = LuaHost(lambda: 0.0)
    host.load(bundle.library())

    def execute(prefix: str, now: int, op: ops.Operation) -> Any:
        return codec.decode(op, host.fcall(bundle.function_name(op.spec.name), (prefix,), codec.encode(op, now)))

    tokens = {}
    for prefix, jid in (("a:", "x"), ("b:", "y")):
        for at in range(4):
            execute(prefix, at, ops.Put("q", f"w{at}", "k", ""))
            (job,) = execute(prefix, at, ops.Pop("q", "w", 2, request=f"r{at}"))
            execute(prefix, at, ops.Complete(job.jid, job.token))
        execute(prefix, 9, ops.Put("q", jid, "k", ""))
        tokens[prefix] = execute(prefix, 9, ops.Pop("q", "w", 2, request="r"))[0].token
    for prefix, jid in (("a:", "x"), ("b:", "y")):
        end = ops.Complete(jid, tokens[prefix])
        execute(prefix, 10, ops.CompleteMany((end,)) if at_once else end)
        state = raw_keys.decode(host.keyspace.dump(), prefix)
        assert state.jobs[jid]["state"] == "complete"
        assert list(invariants.check(state)) == []
    assert tokens["a:"] == tokens["b:"]


def test_what_the_options_say_of_queues_is_kept_of_no_more_queues_than_are_known() -> None:
    counted = """function config.count()
  local number = 0
  for _, kept in ipairs({beats, rates, owners}) do
    for _ in pairs(kept) do
      number = number + 1
    end
  end
  return number
end
"""
    texts = library(MOST=20)
    texts["state/config"] = bundle.read("state/config") + counted
    texts["ops/administer"] = bundle.read("ops/administer").replace(
        "return config.get(op.option) or", "return config.count() or"
    )
    subject = LuaSubject(texts)
    subject.step(10**12, ops.ConfigSet("heartbeat", 70000))
    most = 0
    for i in range(200):
        subject.step(10**12, ops.Put(f"q{i}", f"j{i}", "K", "{}"))
        subject.step(10**12, ops.Pop(f"q{i}", "w"))
        most = max(most, subject.step(10**12, ops.ConfigGet("heartbeat")))
    assert 20 < most <= 3 * 20
