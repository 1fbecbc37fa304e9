"""The functions for plain jobs leave the same keys as the verbs, byte for byte, and give the same replies.

The library runs twice in this process, once with these functions (lua/ops/plain.lua) and once without. Both execute the
same histories: those of the conformance suite, and others in which most calls are plain and some are nearly so.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter
from importlib import resources
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.backends.embedded.host import ReplyError
from qmodel.conformance.compare import runner
from qmodel.conformance.histories import directed
from qmodel.conformance.histories.directed import notation
from qmodel.conformance.histories.plain_rows import JOURNALED, drawn
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX, LuaSubject
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.state.store import Store
from qmodel.wire import codec
from tests.property.support import NOT_BARE, VERBS_ALONE, bulk, state_of
from tests.property.test_inner_errors import Denying, Trial, trials_of
from tests.tester import share

HISTORIES, STEPS = 84, 120


SOON = {"ops/plain_pop": bundle.read("ops/plain_pop").replace("SHY = 16", "SHY = 1")}
"""A text of the library by which few pops are left to the verb after a job that was not plain."""


@pytest.fixture(scope="module")
def both() -> tuple[LuaSubject, LuaSubject]:
    """The library with the functions for plain jobs, and without."""
    return LuaSubject(SOON), LuaSubject(VERBS_ALONE)


def alike(both: tuple[LuaSubject, LuaSubject], now: int, op: Operation) -> Any:
    """Execute a step on both; give the reply."""
    replies = [subject.step(now, op) for subject in both]
    assert replies[0] == replies[1], op
    ours, theirs = (subject.host.keyspace.dump() for subject in both)
    assert ours == theirs, (now, op, [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)])
    return replies[0]


def test_plain_calls_leave_the_same_keys(both: tuple[LuaSubject, LuaSubject]) -> None:
    for seed in range(share(HISTORIES)):
        for subject in both:
            subject.reset()
        for step in drawn(seed, STEPS):
            alike(both, *step)


def test_plain_calls_are_recorded_as_the_verbs_record_them(both: tuple[LuaSubject, LuaSubject]) -> None:
    for seed in range(share(HISTORIES)):
        for subject in both:
            subject.reset()
        for step in drawn(seed, STEPS, JOURNALED):
            alike(both, *step)


def test_the_entries_of_calls_without_moments_are_numbered_without_gaps() -> None:
    subject = LuaSubject()

    def call(op: Operation) -> Any:
        return subject.host.fcall(bundle.function_name(op.spec.name), (PREFIX,), codec.encode(op))

    def numbers() -> list[int]:
        return [entry.number for entry in subject.step(10**12, ops.Journal(0, 100))]

    call(ops.ConfigSet("journal", 1))
    for i in range(3):
        call(ops.Put("q", f"a{i}", "K", "{}"))
    call(ops.Complete("nobody", 1))
    call(ops.Put("q", "b", "K", "{}"))
    call(ops.Put("q", "c", "K", "{}"))
    subject.host.keyspace.failing = Denying(-1, "MSET")
    with pytest.raises(ReplyError, match="NOPERM"):
        call(ops.Put("q", "undone", "K", "{}"))
    subject.host.keyspace.failing = None
    call(ops.Put("q", "d", "K", "{}"))
    assert numbers() == list(range(1, 9))
    subject.reset()
    for _ in range(2):
        call(ops.ConfigSet("journal", 1))
        call(ops.Put("q", "first", "K", "{}"))
        call(ops.Put("q", "second", "K", "{}"))
        assert numbers() == [1, 2, 3]
        subject.reset()


def test_a_script_between_calls_of_the_functions_takes_the_next_number() -> None:
    subject, script = LuaSubject(), bundle.script()

    def call(op: Operation) -> Any:
        return codec.decode(op, subject.host.fcall(bundle.function_name(op.spec.name), (PREFIX,), codec.encode(op)))

    def evaluate(op: Operation) -> Any:
        return codec.decode(op, subject.host.eval(script, (PREFIX,), [op.spec.name, *codec.encode(op)]))

    def held(count: int) -> list[Any]:
        for i in range(2):
            call(ops.Put("q", f"{count}-{i}", "K", "{}"))
        return [call(ops.Pop("q", "w", request=f"{count}-{i}"))[0] for i in range(2)]

    call(ops.ConfigSet("journal", 1))
    for i in range(9):
        call(ops.Put("q", f"a{i}", "K", "{}"))
    for count in range(6):
        one, two = held(count)
        evaluate(ops.Complete("nobody", 1) if count % 2 else ops.Pop("elsewhere", "v"))
        assert call(ops.Complete(one.jid, one.token)) == "complete"
        assert call(ops.Complete(two.jid, two.token)) == "complete"
    evaluate(ops.Complete("nobody", 1))
    assert call(ops.Put("q", "last", "K", "{}")) == "last"
    entries = call(ops.Journal(0, 100))
    assert [entry.number for entry in entries] == [*range(1, len(entries) + 1)]
    seqs = [entry.seq for entry in entries]
    assert seqs == sorted(seqs)


def test_plain_calls_do_what_the_model_does(both: tuple[LuaSubject, LuaSubject]) -> None:
    for seed in range(0, share(HISTORIES), 4):
        assert runner.first_difference(drawn(seed, STEPS), both[0], 10) is None
        assert runner.first_difference(drawn(seed, STEPS, JOURNALED), both[0], 10) is None


def test_the_histories_of_the_suite_leave_the_same_keys(both: tuple[LuaSubject, LuaSubject]) -> None:
    for history in bulk(share(60)):
        for subject in both:
            subject.reset()
        for now, op in history:
            alike(both, now, op)


def test_directed_rows_leave_the_same_keys(both: tuple[LuaSubject, LuaSubject]) -> None:
    text = resources.files(directed).joinpath("rows.txt").read_text(encoding="utf-8")
    for written in notation.read("rows", text):
        for subject in both:
            subject.reset()
        *steps, last = notation.steps(written)
        for step in steps:
            assert both[0].step(*step) == both[1].step(*step), (written.name, step)
        alike(both, *last)


def test_a_server_that_takes_over_knows_nothing_of_what_another_one_wrote(both: tuple[LuaSubject, LuaSubject]) -> None:
    """But for when a worker was seen, if the other one told no event: a pop of nothing writes only that."""
    verbs, servers = both[1], (both[0], LuaSubject())
    for seed in range(share(HISTORIES)):
        for subject in (*servers, verbs):
            subject.reset()
        servers[1].host.keyspace = servers[0].host.keyspace
        chance, left, at = random.Random(f"turns.{seed}"), [b"", b""], 0
        for step in drawn(seed, STEPS, JOURNALED if seed % 2 else ()):
            left[at] = verbs.host.keyspace._data.get(b"ql:counters")
            other = chance.randrange(4) // 3
            at = other if left[other] != left[at] else at
            alike((servers[at], verbs), *step)


def test_a_batch_after_the_step_of_another_server_knows_nothing_of_before(both: tuple[LuaSubject, LuaSubject]) -> None:
    one, verbs = both
    two = LuaSubject()
    for subject in (one, two, verbs):
        subject.reset()
    two.host.keyspace = one.host.keyspace
    for op in (
        ops.Put("q", "first", "K", "{}"),
        ops.Put("q", "a", "K", "{}", request="a", unique="a"),
        ops.Pop("q", "w", request="1"),
        ops.Put("q", "b", "K", "{}", request="b", unique="b"),
        ops.Pop("q", "w", request="2"),
        ops.Deregister(("w",), "elsewhere"),
        ops.PutMany((ops.Put("q", "c", "K", "{}"), ops.Put("q", "d", "K", "{}")), "c"),
        ops.Put("q", "e", "K", "{}", request="e", unique="e"),
        ops.Pop("q", "w", request="3"),
    ):
        at = two if isinstance(op, ops.Deregister) else one
        alike((at, verbs), 10**12, op)


def test_plain_calls_forget_the_oldest_remembered_request_as_the_verbs_do() -> None:
    few = {"state/idempotency": bundle.read("state/idempotency").replace("KEPT = 1000", "KEPT = 3")}
    both = LuaSubject(few), LuaSubject(few | VERBS_ALONE)
    alike(both, 1, ops.RequestOpen("r", "q", 9))
    for i in range(6):
        alike(both, 2, ops.Put("q", f"j{i}", "K", "{}", request=f"p{i}", unique=f"u{i}"))
        alike(both, 2, ops.RequestAdd("r", (ops.Put("q", f"s{i}", "K", "{}"),), f"a{i}"))
    assert len(both[0].host.keyspace.dump()[b"ql:requests"][1]) == 3
    assert alike(both, 3, ops.RequestAdd("r", (ops.Put("q", "s5", "K", "{}"),), "a5")) == 1


def test_what_a_row_of_plain_calls_knows_ends_with_a_verb(both: tuple[LuaSubject, LuaSubject]) -> None:
    for subject in both:
        subject.reset()
    now = 10**12

    def play(op: Operation) -> Any:
        return alike(both, now, op)

    def life(name: str) -> None:
        play(ops.Put("q", name, "K", "{}", request=name, unique=name))
        (job,) = play(ops.Pop("q", "w", request=f"pop-{name}"))
        play(ops.Complete(job.jid, job.token))
        play(ops.RequestAdd("r", (ops.Put("q", f"{name}-sub", "K", "{}"),), name))
        (job,) = play(ops.Pop("q", "w", request=f"sub-{name}"))
        play(ops.Complete(job.jid, job.token))

    play(ops.RequestOpen("r", "q", 9))
    play(ops.RequestOpen("ended", "q", 9))
    for name in ("first", "second"):
        life(name)
    play(ops.Deregister(("w",)))
    life("third")
    play(ops.Pause(("q",), request="memo"))
    play(ops.Unpause(("q",), request="memo"))
    life("fourth")
    play(ops.RequestClose("ended", "memo"))
    play(ops.ConfigSet("requests-history", 5))
    life("fifth")
    now += 5
    life("sixth")


def steps_of_a_life(count: int, before: tuple[Operation, ...] = ()) -> list[Step]:
    """Plain calls for as many jobs, first one by one and then in batches; most completions delete jobs."""
    store, life = Store(), []

    def play(op: Operation) -> Any:
        life.append(Step(10**12, op))
        return engine.step(store, *life[-1])

    for op in before:
        play(op)
    play(ops.ConfigSet("jobs-history-count", 100))
    play(ops.Put("q", "first", "K", "{}"))
    play(ops.Complete("first", play(ops.Pop("q", "w", request="first"))[0].token))
    for i in range(count):
        play(ops.Put("q", f"a{i}", "K", "{}", request=f"a{i}"))
    held = [play(ops.Pop("q", "w", request=f"b{i}"))[0] for i in range(count)]
    for job in held:
        play(ops.Complete(job.jid, job.token))
    for i in range(count + 1):
        play(ops.Put("q", f"c{i}", "K", "{}", request=f"c{i}"))
    (job,) = play(ops.Pop("q", "w", request="chained"))
    for i in range(count):
        (job,) = play(ops.CompleteAndPop(job.jid, job.token, "q", "w", request=f"d{i}")).jobs
    play(ops.Complete(job.jid, job.token))
    play(ops.RequestOpen("r", "q", count + 1))
    for i in range(count):
        play(ops.RequestAdd("r", (ops.Put("q", f"s{i}", "K", "{}"),), request=f"s{i}"))
        (job,) = play(ops.Pop("q", "w", request=f"t{i}"))
        play(ops.Complete(job.jid, job.token, "done"))
    play(ops.PutMany(tuple(ops.Put("q", f"b{i}", "K", "{}") for i in range(count)), "c"))
    held = play(ops.Pop("q", "w", count, request="d"))
    play(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in held)))
    return life


def tagged_life(count: int) -> list[Step]:
    """Jobs with one to nine of ten tags, one by one and in batches; the number of tags that are counted changes."""
    store, life, chance = Store(), [], random.Random("tags")

    def play(op: Operation) -> Any:
        life.append(Step(10**12 + len(life), op))
        return engine.step(store, *life[-1])

    def new(jid: str) -> ops.Put:
        return ops.Put("q", jid, "K", "{}", tags=tuple(chance.sample("abcdefghij", chance.randrange(1, 10))))

    for i in range(count):
        if i % 60 == 0:
            play(ops.ConfigSet("stats-tags", chance.choice((0, 3, 5, 8))))
        play(new(f"a{i}"))
        if i % 3:
            (job,) = play(ops.Pop("q", "w", request=f"b{i}"))
            play(ops.Complete(job.jid, job.token))
        if i % 20 == 0:
            play(ops.Stats("q", tag=chance.choice("abcdefghij")))
    play(ops.PutMany(tuple(new(f"c{i}") for i in range(count)), "c"))
    held = play(ops.Pop("q", "w", 2 * count, request="d"))
    play(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in held)))
    for tag in "abcdefghij":
        play(ops.Stats("q", tag=tag))
    return life


def test_durations_by_tags_are_counted_in_turn_and_up_to_the_limit_of_their_time(
    both: tuple[LuaSubject, LuaSubject],
) -> None:
    life = tagged_life(400)
    for subject in both:
        subject.reset()
        assert runner.first_difference(life, subject, 7) is None


def lines_of(subject: LuaSubject, steps: list[Step]) -> set[int]:
    """The lines of the library that these steps run."""
    subject.host.coverage(True)
    for now, op in steps:
        subject.step(now, op)
    (lines,) = subject.host.lines().values()
    subject.host.coverage(False)
    return lines


def test_a_call_without_a_job_is_refused_as_the_verbs_refuse_it(both: tuple[LuaSubject, LuaSubject]) -> None:
    for subject in both:
        for name in ("complete", "complete_and_pop"):
            raw = subject.host.fcall(bundle.function_name(name), ("q:",), ["", ""])
            assert raw == [b"BAD_ARGUMENT", name.encode(), b"jid"]


@pytest.mark.parametrize("before", [(), JOURNALED])
def test_a_plain_life_does_not_reach_the_verbs(before: tuple[Operation, ...]) -> None:
    subject = LuaSubject()
    text = bundle.library().split("\n")
    verbs = [
        next(i for i, line in enumerate(text, 1) if line.startswith(head))
        for head in ("function put.put_one(", "function pop.grant(", "function finish.complete(")
    ]
    life, begun = steps_of_a_life(200, before), 4 + len(before)
    first = lines_of(subject, life[:begun])
    assert all(first & set(range(at + 1, at + 9)) for at in verbs)
    later = lines_of(subject, life[begun:])
    assert not any(later & set(range(at + 1, at + 9)) for at in verbs)


@pytest.mark.parametrize("before", [(), JOURNALED])
def test_each_write_of_a_plain_step_that_fails_leaves_the_state_before_or_the_state_after(
    before: tuple[Operation, ...],
) -> None:
    ends: Counter[str] = Counter()
    for trial in trials_of([drawn(seed, 40, before) for seed in range(12)]):
        trial.run(whole := Denying())
        for nth in range(1, whole.writes + 1):
            error = trial.run(Denying(nth))
            end = trial.ends()
            if error is None and trial.before != trial.after:
                assert end == "after", (trial.at, nth)
            assert end != "half", (trial.at, nth)
            ends[end] += 1
    assert min(ends["before"], ends["after"]) > 50


# ---- rows, which lua/ops/bare.lua does


def test_a_row_leaves_the_same_keys_with_its_functions_and_without() -> None:
    both = LuaSubject(), LuaSubject(NOT_BARE)
    for seed in range(share(HISTORIES) // 4):
        for subject in both:
            subject.reset()
        for step in drawn(seed, STEPS):
            alike(both, *step)


def test_a_worker_that_pops_at_moment_0_is_listed(both: tuple[LuaSubject, LuaSubject]) -> None:
    for subject in both:
        subject.reset()
    alike(both, 0, ops.Recur("q", "a", "K", "", 450, offset_ms=1))
    alike(both, 0, ops.Pop("q", "w", request="1"))


def test_what_another_server_wrote_ends_a_row(both: tuple[LuaSubject, LuaSubject]) -> None:
    one, verbs = both
    two = LuaSubject()
    for subject in (one, two, verbs):
        subject.reset()
    two.host.keyspace = one.host.keyspace
    held = row_of(lambda op: alike((one, verbs), 10**12, op))
    for i, op in enumerate((
        ops.Put("q", "new", "K", "{}", request="new"),
        ops.Pop("q", "w", request="late"),
        ops.Complete(held[0].jid, held[0].token),
        ops.CompleteAndPop(held[1].jid, held[1].token, "q", "w", request="later"),
    )):  # fmt: skip
        alike((two, verbs), 10**12, ops.Put("r", f"elsewhere{i}", "K", "{}"))
        alike((one, verbs), 10**12, op)


def row_of(play: Any) -> list[Any]:
    """Let a row begin, in which a worker holds three jobs, and others are ready; give the jobs that it holds."""
    play(ops.Put("q", "first", "K", "{}"))
    (first,) = play(ops.Pop("q", "w", request="first"))
    play(ops.Complete(first.jid, first.token))
    for i in range(9):
        play(ops.Put("q", f"a{i}", "K", "{}", request=f"a{i}"))
    held = [play(ops.Pop("q", "w", request=f"b{i}"))[0] for i in range(5)]
    for job in held[:2]:
        play(ops.Complete(job.jid, job.token))
    return held[2:]


def rows() -> list[list[Step]]:
    """Rows that end with each of the four operations."""
    lives: list[list[Step]] = []
    for last in (
        lambda held: ops.Put("q", "new", "K", "{}", request="new"),
        lambda held: ops.Pop("q", "w", request="new"),
        lambda held: ops.Complete(held[0].jid, held[0].token),
        lambda held: ops.CompleteAndPop(held[0].jid, held[0].token, "q", "w", request="new"),
    ):
        store, life = Store(), []

        def play(op: Operation, store: Store = store, life: list[Step] = life) -> Any:
            life.append(Step(10**12 + len(life), op))
            return engine.step(store, *life[-1])

        play(last(row_of(play)))
        lives.append(life)
    return lives


def failing_steps(subject: LuaSubject, life: list[Step]) -> list[tuple[str, str]]:
    """Let each command of the last step fail once, after the others were executed; give its name and how it ends."""
    model, ends = Store(), []
    for step in life[:-1]:
        engine.step(model, *step)
    before = state_of(model)
    engine.step(model, *life[-1])
    after = state_of(model)
    subject.host.keyspace.failing = None
    for name in ["", *sorted(commands_of(subject, life))]:
        subject.reset()
        for step in life[:-1]:
            subject.step(*step)
        trial = Trial(subject, pickle.dumps(subject.host.keyspace._data), life[-1], before, after)
        trial.run(Denying(name=name))
        ends.append((name, trial.ends()))
    return ends


def commands_of(subject: LuaSubject, life: list[Step]) -> set[str]:
    """The commands that the last step calls."""
    subject.reset()
    for step in life[:-1]:
        subject.step(*step)
    subject.host.keyspace.failing = seen = Denying()
    subject.step(*life[-1])
    subject.host.keyspace.failing = None
    return set(seen.seen)


def test_each_command_of_a_row_that_fails_leaves_the_state_before_or_the_state_after() -> None:
    subject, ends = LuaSubject(), Counter[str]()
    subject.host.coverage(True)
    for life in rows():
        for name, end in failing_steps(subject, life):
            assert end != "half", (name, life[-1])
            assert name or end == "after"
            ends[end] += 1
    (ran,) = subject.host.lines().values()
    first = bundle.library().split("\n").index("function bare.put(args, simulated)") + 1
    assert {at for at in FAILED if first + at not in ran} == set()
    assert min(ends["before"], ends["after"]) >= 10


def lines_with(text: str, name: str = "ops/bare") -> set[int]:
    """Where a text stands in a file of the library, as lines behind its first function."""
    lines = bundle.read(name).split("\n")
    first = lines.index("function bare.put(args, simulated)")
    return {at - first for at, line in enumerate(lines) if text in line}


FAILED = lines_with("writes.check_late(") | lines_with("writes.stop_early(")
"""What a row does where a command has failed."""


def test_rows_by_the_clock_of_a_server_stay_in_one_epoch() -> None:
    subject = LuaSubject()
    subject.host.coverage(True)

    def play(op: Operation) -> Any:
        return codec.decode(op, subject.host.fcall(bundle.function_name(op.spec.name), (PREFIX,), codec.encode(op)))

    held = row_of(play)
    (job,) = play(ops.CompleteAndPop(held[0].jid, held[0].token, "q", "w", request="d")).jobs
    play(ops.Complete(job.jid, job.token))
    play(ops.Cancel(("a8",)))
    (ran,) = subject.host.lines().values()
    first = bundle.library().split("\n").index("function bare.put(args, simulated)") + 1
    assert {at for at in lines_with("store.own[store.epoch] = seq") if first + at not in ran} == set()
    told = subject.step(10**13, ops.Events(0, 100))
    assert [event.event for event in told].count("epoch_begun") == 1
    assert {event.epoch for event in told[1:]} == {told[-1].epoch}
