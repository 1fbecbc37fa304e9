"""Generated histories: the model, the Lua library in this process and on a server are equal."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmodel.conformance.campaign import campaign
from qmodel.conformance.compare import report, runner
from qmodel.conformance.compare.agree import agree
from qmodel.conformance.compare.shrink import shrink
from qmodel.conformance.histories.choose import HypothesisChooser
from qmodel.conformance.subjects.base import Step, Subject
from qmodel.conformance.subjects.lua import LuaSubject
from qmodel.contract import operations as ops
from tests.tester import share

EXAMPLES = int(os.environ.get("QMODEL_CONFORMANCE_EXAMPLES", share(80)))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_subject_agrees_with_the_model_on_every_history(subject: Subject, seed: int) -> None:
    summary = campaign.run(EXAMPLES, seed, subject)
    assert summary.agrees, f"{summary}\n{summary.failures[0]}"


def test_the_lua_agrees_with_the_model_on_histories_of_hypothesis() -> None:
    subject = LuaSubject()

    @settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        history = runner.draw(HypothesisChooser(data.draw), 30)
        difference = runner.first_difference(history, subject)
        if difference is not None:
            short = shrink(history, lambda found: runner.first_difference(found, subject) is not None)
            agree(subject, short)

    holds()


WRONG = {
    "a lapse that is not counted": ("ops/pop", "job.remaining = job.remaining - 1", "job.remaining = job.remaining"),
    "no event of a pause": ("ops/administer", "store.emit(now, 'paused', name, op.reason, till)", "do end"),
    "a key that stays": ("state/jobs", "tags.drop(job)", "do end"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_fault_planted_in_the_lua_is_found(fault: str) -> None:
    from qmodel.backends import bundle

    file, right, wrong = WRONG[fault]
    text = bundle.read(file)
    assert right in text, "the Lua has changed: plant the fault elsewhere"
    summary = campaign.run(300, "planted", LuaSubject({file: text.replace(right, wrong)}))
    (failure,) = summary.failures
    assert len(failure.history) <= 6, str(failure)


# ---- what takes a thousand of something, which chance does not meet


def _many(count: int, **more: Any) -> list[Step]:
    jobs = [ops.Put("q", f"j{n:04}", "k", "", **more) for n in range(count)]
    return [Step(0, ops.PutMany(tuple(jobs[first : first + 1000]))) for first in range(0, count, 1000)]


LIMITS: dict[str, list[Step]] = {
    "a thousand dependents and no more": [
        Step(0, ops.Put("q", "root", "k", "", priority=-1)),
        *_many(1000, depends=("root",)),
        Step(0, ops.Put("q", "more", "k", "", depends=("root",))),
        Step(0, ops.Cancel(("root",), cascade=True)),
        Step(1, ops.Pop("q", "w")),
        Step(2, ops.Complete("root", 1002)),
        Step(3, ops.Length("q")),
    ],
    "what is due beyond a thousand waits for the next pop": [
        *_many(1500, delay_ms=5),
        Step(5, ops.Pop("q", "w", 1)),
        Step(5, ops.Waiting("q", 990, 20)),
        Step(5, ops.Pop("q", "w", 1000)),
    ],
    "a thousand leases lapse, and are buried": [
        *_many(1200, retries=0),
        Step(0, ops.Pop("q", "w", 1000)),
        Step(10**6, ops.Pop("q", "v", 1000)),
        Step(10**6, ops.Failed("failed-retries-q", 5, 5)),
        Step(10**6, ops.RetryMany(group="failed-retries-q", to="r", count=1000)),
    ],
    "a drain ends after a thousand": [*_many(1100), Step(0, ops.Drain("q")), Step(0, ops.Queue("q"))],
    "a thousand events at once among few that are kept": [
        Step(0, ops.ConfigSet("max-events", 10)),
        *_many(1000),
        Step(0, ops.Events(995)),
    ],
    "of a thousand requests the oldest is forgotten": [
        Step(0, ops.Put("q", "a", "k", "")),
        *[Step(0, ops.Update("a", str(n), f"r{n}")) for n in range(1002)],
        Step(0, ops.Update("a", "x", "r0")),
        Step(0, ops.Update("a", "x", "r1001")),
    ],
    "a job waits for more than can be ended at once": [
        *_many(1100),
        Step(0, ops.Put("q", "far", "k", "", depends=tuple(f"j{n:04}" for n in range(1000)))),
        Step(0, ops.DependsOn("far", tuple(f"j{n:04}" for n in range(1000, 1100)))),
        Step(0, ops.DependsOff("far", all=True)),
        Step(0, ops.Put("q", "far", "k", "", depends=())),
        Step(0, ops.Cancel(("far",))),
        Step(0, ops.DependsOff("far", tuple(f"j{n:04}" for n in range(200)))),
        Step(0, ops.DependsOff("far", all=True)),
    ],
    "a long text lies apart from the record and goes with it": [
        Step(0, ops.Put("q", "a", "k", "x" * (1 << 20))),
        Step(0, ops.Pop("q", "w")),
        Step(0, ops.Heartbeat("a", 2, "short")),
        Step(0, ops.Update("a", "é" * (1 << 19))),
        Step(0, ops.Complete("a", 2, "y" * (1 << 20))),
        Step(0, ops.Get("a")),
    ],
    "more complete jobs are retired than one completion makes": [
        *_many(300),
        Step(0, ops.Pop("q", "w", 300)),
        Step(0, ops.CompleteMany(tuple(ops.Complete(f"j{n:04}", 301 + n) for n in range(250)))),
        Step(0, ops.ConfigSet("jobs-history-count", 3)),
        Step(9, ops.Complete("j0250", 551)),
        Step(9, ops.Complete("j0251", 552)),
        Step(9, ops.Complete("j0252", 553)),
        Step(9, ops.Completed()),
    ],
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_subject_agrees_with_the_model_at_limits(name: str, subject: Subject) -> None:
    found = runner.first_difference(LIMITS[name], subject, every=max(len(LIMITS[name]) // 10, 1))
    assert found is None, report.transcript(LIMITS[name], found, subject.name)
