"""The laws hold on every history, and notice rules that are wrong in the model alone, without the Lua."""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qmodel.conformance import laws
from qmodel.conformance.compare import runner
from qmodel.conformance.dialects import runner as dialect_runner
from qmodel.conformance.dialects.subjects import operations
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.directed import load
from qmodel.conformance.subjects.base import History, ModelSubject, Step, observe
from qmodel.contract import operations as ops
from tests.property.support import bulk
from tests.property.wrong_rules import WRONG, Wrong
from tools.mutation import model, python

ROOT = Path(__file__).parents[2]
LIGHT = 2000
"""A directed history is light if its states have together at most so many jobs: each is read whole."""

MISSED = 3
"""How many of 36 wrong rules the laws may miss; of more, as many more."""


@functools.cache
def _light() -> dict[str, History]:
    """The directed histories that are light, those of the rules first."""
    found = {}
    for named in sorted(load.directed(), key=lambda one: load.theme(one.name) != "rules"):
        subject, weight = ModelSubject(), 0
        for step in named.steps:
            subject.step(*step)
            weight += len(subject.store.jobs) + len(subject.store.schedules)
            if weight > LIGHT:
                break
        else:
            found[named.name] = named.steps
    return found


@functools.cache
def _by_qless() -> list[list[Step]]:
    """Drawn histories with calls by the rules of qless."""
    return [runner.draw(RandomChooser(f"laws by qless.{number}"), 60, qless=True) for number in range(60)]


def _broken(history: History) -> tuple[int, laws.Broken] | None:
    """The first law that the model breaks on a history, and the step."""
    return next(laws.observe(history, observe(ModelSubject(), history)), None)


def test_every_law_holds_on_the_directed_histories() -> None:
    assert {name: found for name, history in _light().items() if (found := _broken(history))} == {}


def test_every_law_holds_on_drawn_histories() -> None:
    count = 250 if "QMODEL_TEST_ALL" in os.environ else 100
    assert {number: found for number, history in enumerate(bulk(count)) if (found := _broken(history))} == {}


def test_every_law_holds_or_differs_as_it_says_by_the_rules_of_qless() -> None:
    assert {number: found for number, history in enumerate(_by_qless()) if (found := _broken(history))} == {}
    assert any(getattr(step.op, "qless", False) for history in _by_qless() for step in history)
    assert laws.DIFFERS.keys() <= laws.LAWS.keys()


def test_every_law_holds_on_the_operations_of_drawn_calls_of_qless() -> None:
    drawn = (dialect_runner.draw(RandomChooser(f"laws of calls.{n}"), 60, documents=n % 2 == 0) for n in range(100))
    histories = [operations(history) for history in drawn]
    assert {number: found for number, history in enumerate(histories) if (found := _broken(history))} == {}
    assert {"pop", "delay", "throttle_set", "retry"} <= {step.op.spec.name for one in histories for step in one}


def _notices(wrong: Wrong) -> str:
    """The law that notices a wrong rule, or empty. The scenes of the rules come first, then drawn histories."""
    text = python.read(wrong.file)
    assert text.count(wrong.right) == 1, wrong.name
    scenes = [history for name, history in _light().items() if load.theme(name) == "rules"]
    with model.planted(wrong.file, text.replace(wrong.right, wrong.wrong)) as failure:
        assert not failure, wrong.name
        for history in (*scenes, *bulk(60), *_by_qless()[:20]):
            found = _broken(history)
            if found is not None:
                return found[1].name
    return ""


@pytest.mark.tester
def test_laws_notice_rules_that_are_wrong_on_both_sides() -> None:
    missed = [wrong.name for wrong in WRONG if not _notices(wrong)]
    assert len(missed) <= MISSED * len(WRONG) // 36, missed
    assert len(WRONG) >= 36


def test_each_wrong_rule_names_the_sentence_that_it_breaks() -> None:
    page = " ".join((ROOT / "docs/semantics.md").read_text(encoding="utf-8").split())
    assert [wrong.name for wrong in WRONG if " ".join(wrong.sentence.split()) not in page] == []
    assert len({wrong.name for wrong in WRONG}) == len(WRONG)


# ---- the observer


def _steps(history: History) -> list[tuple[Any, ...]]:
    """The arguments of `Observer.step` for each step of a history."""
    from qmodel.conformance.laws.law import empty

    before, found = empty(), []
    for step, seen in zip(history, observe(ModelSubject(), history), strict=True):
        assert seen.snapshot is not None
        found.append((before, step, seen.outcome, seen.events, seen.snapshot))
        before = seen.snapshot
    return found


def test_a_copy_of_an_observer_goes_on_alone() -> None:
    one, steps = laws.Observer(), _steps(_light()["retries_that_are_left"])
    for step in steps[:5]:
        assert one.step(*step) == []
    other = one.copy()
    assert other.key() == one.key()
    for step in steps[5:]:
        assert other.step(*step) == []
    assert hash(other.key()) != hash(one.key())
    for step in steps[5:]:
        assert one.step(*step) == []
    assert one.key() == other.key()


def test_a_law_of_single_steps_needs_no_observer() -> None:
    for step in _steps(_light()["retries_that_are_left"]):
        assert laws.check(*step) == []
    before, step, outcome, events, after = _steps((Step(0, ops.Put("q", "a", "k", "")),))[0]
    after.jobs["a"]["ready_at"] += 1
    assert {one.name for one in laws.check(before, step, outcome, events, after)} >= {
        "readiness_changes_by_events_alone"
    }


def test_an_observer_that_has_missed_events_goes_on() -> None:
    history = _light()["pages_in_order"]
    cut = [*history[:3], history[0]._replace(op=ops.ConfigSet("max-events", 1), now=history[2].now), *history[3:]]
    assert _broken(cut) is None


def test_who_holds_a_key_is_known_to_an_observer_that_has_missed_events() -> None:
    history = (
        Step(0, ops.ConfigSet("max-events", 1)),
        Step(0, ops.Put("q", "a", "k", "", unique="key")),
        Step(0, ops.Pop("q", "w")),
        Step(0, ops.CompleteAndPop("a", 3, "q", "w", next="q")),  # two events, of which one is kept
        Step(0, ops.Put("q", "b", "k", "", unique="key", unique_mode="again")),
        Step(0, ops.Put("q", "c", "k", "", unique="key")),
    )
    assert _broken(history) is None
    seen = observe(ModelSubject(), history)
    assert seen[-1].outcome == "b"
    before, last = seen[-2].snapshot, seen[-1].snapshot
    assert before is not None and last is not None
    late = laws.Observer()
    late.step(before, Step(0, ops.Get("a")), None, (), replace(before, seq=before.seq + 1))
    event = seen[-1].events[0]
    wrong = event._replace(facts=("a", *event.facts[1:]))
    assert {one.name for one in late.step(before, history[-1], "a", (wrong,), last)} >= {"a_key_has_one_holder"}


@pytest.mark.parametrize("name", sorted(laws.LAWS))
def test_every_law_is_a_sentence(name: str) -> None:
    sentence = laws.LAWS[name].sentence
    assert sentence[0].isupper() or sentence[0] == "`"
    assert sentence.endswith(".")
