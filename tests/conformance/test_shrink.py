"""Shrinking keeps only the steps that the failure needs, and the result still fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmodel.conformance.compare import runner
from qmodel.conformance.compare.shrink import shrink
from qmodel.conformance.histories.choose import EnumeratingChooser, HypothesisChooser, RandomChooser
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state.store import Store, events_after
from tests.conformance.faults import FAULTS, Wrong

pytestmark = pytest.mark.tester


def outcomes(history: list[Step]) -> list[object]:
    store = Store()
    return [engine.step(store, *step) for step in history]


def completes(history: list[Step]) -> bool:
    """Whether some job is put and completed."""
    put = {step.op.jid for step in history if isinstance(step.op, ops.Put)}
    return any(
        isinstance(step.op, ops.Complete) and outcome == "complete" and step.op.jid in put
        for step, outcome in zip(history, outcomes(history), strict=True)
    )


def drawn_until(fails: object, steps: int = 60) -> list[Step]:
    for seed in range(1000):
        history = runner.draw(RandomChooser(f"shrink.{seed}"), steps)
        if fails(history):  # type: ignore[operator]
            return history
    raise AssertionError("nothing found")


def test_a_long_history_shrinks_to_the_shortest_and_simplest() -> None:
    short = shrink(drawn_until(completes), completes)
    assert short == [
        Step(0, ops.Put("q", "a", "k", "")),
        Step(0, ops.Pop("q", "u")),
        Step(0, ops.Complete("a", 2)),
    ]


def test_tokens_follow_their_leases_when_steps_before_them_go() -> None:
    noise = [Step(n, ops.Log("a", str(n))) for n in range(20)]
    history = [
        Step(0, ops.Put("q", "a", "k", "")),
        *noise,
        Step(50, ops.Pop("q", "w")),
        Step(50, ops.Retry("a", 22)),
        *[Step(60, step.op) for step in noise],
        Step(70, ops.Pop("q", "w")),
        Step(80, ops.Complete("a", 44)),
    ]
    assert completes(history)
    short = shrink(history, completes)
    assert len(short) == 3


def test_a_stale_token_stays_stale() -> None:
    def late(history: list[Step]) -> bool:
        return any(
            isinstance(outcome, Refusal)
            and outcome.code == "LOCK_LOST"
            and outcome.facts[2] == "running"
            and ":" not in outcome.facts[0]  # a job that was put, not one of a schedule or a request
            for outcome in outcomes(history)
        )

    short = shrink(drawn_until(late), late)
    assert len(short) == 3
    assert late(short)


def test_names_arguments_and_times_are_lowered() -> None:
    history = [
        Step(1_700_000_000_123, ops.Put("\U0001f600", "0x1", "nan", "data", 5, 60_000, 3, ("ü",), request="r")),
        Step(1_700_000_099_999, ops.Pop("\U0001f600", "true", 25, True, "n1")),
    ]

    def pops(candidate: list[Step]) -> bool:
        return any(s.op.spec.name == "pop" and o for s, o in zip(candidate, outcomes(candidate), strict=True))

    assert shrink(history, pops) == [Step(0, ops.Put("q", "a", "k", "")), Step(0, ops.Pop("q", "u"))]


def test_steps_that_the_failure_needs_are_kept() -> None:
    def due(history: list[Step]) -> bool:
        """A pop gives a job that had to wait for its time."""
        store = Store()
        for step in history:
            seq = store.seq
            outcome = engine.step(store, *step)
            new = {event.event for event in events_after(store, seq, store.seq - seq)}
            if step.op.spec.name == "pop" and outcome and "promoted" in new:
                return True
        return False

    history = [
        Step(5000, ops.Put("r", "b", "k", "", delay_ms=777)),
        Step(6000, ops.Put("q", "a", "k", "")),
        Step(9000, ops.Pop("r", "w", 3)),
    ]
    short = shrink(history, due)
    assert short == [Step(0, ops.Put("q", "a", "k", "", delay_ms=1)), Step(1, ops.Pop("q", "u"))]


def test_a_history_that_does_not_fail_is_given_back() -> None:
    history = runner.draw(RandomChooser(1), 5)
    assert shrink(history, lambda candidate: False) == history


def test_tries_are_bounded() -> None:
    tries = 0

    def fails(candidate: list[Step]) -> bool:
        nonlocal tries
        tries += 1
        return completes(candidate)

    shrink(drawn_until(completes), fails, most=20)
    assert tries <= 20


def test_shrinking_takes_few_tries() -> None:
    tries = 0
    subject = Wrong(FAULTS[0])

    def fails(candidate: list[Step]) -> bool:
        nonlocal tries
        tries += 1
        return runner.first_difference(candidate, subject) is not None

    assert len(shrink(drawn_until(fails), fails)) <= 4
    assert tries < 1000


# ---- Hypothesis and the enumerator, behind the same interface


def test_hypothesis_shrinks_to_the_few_steps_that_matter() -> None:
    found: list[list[Step]] = []

    @settings(max_examples=300, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def nothing_is_ever_completed(data: st.DataObject) -> None:
        history = runner.draw(HypothesisChooser(data.draw), 12)
        if completes(history):
            found.append(history)
            raise AssertionError

    with pytest.raises(AssertionError):
        nothing_is_ever_completed()
    assert len(found[-1]) <= 6
    assert len(shrink(found[-1], completes)) == 3


def test_hypothesis_draws_the_empty_history_first() -> None:
    lengths: list[int] = []

    @settings(max_examples=5, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def note(data: st.DataObject) -> None:
        lengths.append(len(runner.draw(HypothesisChooser(data.draw), 10)))

    note()
    assert 0 in lengths


def test_the_enumerator_makes_every_choice_once() -> None:
    seen = []
    for chooser in EnumeratingChooser.all():
        first = chooser.below(3)
        seen.append((first, chooser.below(2) if first == 1 else None, chooser.below(2)))
    assert len(seen) == len(set(seen)) == 2 + 4 + 2
    assert seen == sorted(seen, key=str) or len(seen) == 8


def test_the_enumerator_notices_a_generator_that_depends_on_more_than_its_choices() -> None:
    calls = iter((2, 2, 3, 2))
    with pytest.raises(AssertionError, match="choices alone"):
        for chooser in EnumeratingChooser.all():
            chooser.below(next(calls))
            chooser.below(2)


def test_a_shrunk_operation_is_as_its_constructor_makes_it() -> None:
    """The derived field `named` must match the arguments; otherwise the model takes a wrong shortcut."""
    history = drawn_until(lambda found: any(isinstance(step.op, ops.RequestPut) for step in found))
    tried: list[Step] = []

    def requests(candidate: list[Step]) -> bool:
        tried.extend(candidate)
        return any(isinstance(step.op, ops.RequestPut) and step.op.jobs for step in candidate)

    shrink(history, requests)
    inner = [one for step in tried for one in (getattr(step.op, "jobs", ()) or ()) if isinstance(one, ops.Put)]
    assert inner and len(tried) > 100
    for op in (*(step.op for step in tried), *inner):
        assert all(getattr(op, name) == getattr(replace(op), name) for name in ops.Operation.__slots__), op
