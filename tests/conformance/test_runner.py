"""The runner finds no difference where there is none, and every planted one."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from qmodel.conformance.campaign import campaign
from qmodel.conformance.compare import report, runner
from qmodel.conformance.histories import json_lines
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.subjects import base
from qmodel.conformance.subjects.base import ModelSubject, Seen, Step
from qmodel.contract import operations as ops
from qmodel.model.state.store import emit
from tests.conformance.faults import FAULTS, Fault, Wrong, WrongVerb

pytestmark = pytest.mark.tester


def test_the_model_does_not_differ_from_itself() -> None:
    summary = campaign.run(60, "itself", ModelSubject())
    assert summary.agrees
    assert (summary.histories, summary.steps) == (60, 3600)
    assert "no difference" in str(summary)


def _shortest(summary: campaign.Summary) -> report.Failure:
    """No step can be removed from a shrunk history; another history may still be shorter."""
    return min(summary.failures, key=lambda failure: len(failure.history))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_and_shown_in_a_few_steps(fault: Fault) -> None:
    failure = _shortest(campaign.run(400, "faults", Wrong(fault), most_failures=4))
    assert len(failure.history) <= fault.steps + 1, str(failure)
    assert runner.first_difference(failure.history, Wrong(fault)) is not None
    assert runner.first_difference(failure.history, ModelSubject()) is None


def test_progress_is_reported_after_every_history() -> None:
    told: list[int] = []
    campaign.run(5, 0, ModelSubject(), lambda summary: told.append(summary.histories), steps=3)
    assert told == [1, 2, 3, 4, 5]


def test_as_many_failures_are_collected_as_asked_for() -> None:
    assert len(campaign.run(200, 0, Wrong(FAULTS[1]), steps=30, most_failures=3).failures) == 3


def test_a_seed_determines_the_campaign() -> None:
    one, other = (runner.draw(RandomChooser("7.3"), 40) for _ in range(2))
    assert one == other
    assert one != runner.draw(RandomChooser("7.4"), 40)


# ---- what is compared


HISTORY = [
    Step(0, ops.Put("q", "a", "k", "")),
    Step(5, ops.Pop("q", "w", 1)),
    Step(9, ops.Pause(("q",))),
    Step(9, ops.Queue("q")),
]


def _difference(name: str, verb: Any) -> runner.Difference:
    found = runner.first_difference(HISTORY, WrongVerb(name, verb))
    assert found is not None
    return found


def test_a_wrong_reply_is_found() -> None:
    found = _difference("pause", lambda verb, *given: verb(*given) + 1)
    assert (found.at, found.what, found.paths) == (2, "reply", ("reply: 1 != 2",))


def test_a_reply_of_another_type_is_found_though_it_is_equal() -> None:
    def flag(verb: Any, *given: Any) -> Any:
        return verb(*given)._replace(paused=1)

    assert _difference("queue", flag).paths == ("reply.paused: True != 1",)
    assert _difference("pause", lambda verb, *given: True).paths == ("reply: 1 != True",)


def test_a_wrong_event_is_found_before_the_state_it_leaves() -> None:
    def twice(verb: Any, store: Any, now: int, op: Any) -> Any:
        emit(store, now, "paused", "q", "x", 0)
        return verb(store, now, op)

    found = _difference("pause", twice)
    assert (found.at, found.what) == (2, "events")


def test_a_wrong_state_is_found_by_its_path() -> None:
    def forget(verb: Any, store: Any, now: int, op: Any) -> Any:
        reply = verb(store, now, op)
        store.queues["q"].first_seen = 7
        return reply

    found = _difference("pause", forget)
    assert found.paths == ("queues['q']['first_seen']: 0 != 7",)


def test_a_crash_is_reported_at_its_step() -> None:
    found = _difference("pop", lambda verb, *given: 1 // 0)
    assert (found.at, found.what) == (1, "reply")
    assert "ZeroDivisionError" in str(found.paths)


def test_the_state_may_be_compared_after_some_steps_only() -> None:
    def forget(verb: Any, store: Any, now: int, op: Any) -> Any:
        reply = verb(store, now, op)
        store.tracked["x"] = 1
        return reply

    subject = WrongVerb("put", forget)
    for every, at in ((1, 0), (2, 1), (3, 2), (99, 3)):
        found = runner.first_difference(HISTORY, subject, every)
        assert found is not None and found.at == at


class Pipelining(ModelSubject):
    """Executes whole histories; single steps are allowed only after a failure."""

    pipelines = True

    def __init__(self, breaks: bool = False) -> None:
        super().__init__()
        self.breaks = breaks
        self.runs = 0

    def run(self, history: base.History, every: int = 1) -> list[Seen]:
        """Execute a history in one round trip."""
        self.runs += 1
        if self.breaks:
            raise ConnectionError
        return base.observe(self, history, every)


def test_a_pipelining_subject_gets_whole_histories() -> None:
    subject = Pipelining()
    assert runner.first_difference(HISTORY, subject) is None
    assert subject.runs == 1


def test_a_history_that_breaks_is_repeated_step_by_step() -> None:
    assert runner.first_difference(HISTORY, Pipelining(breaks=True)) is None


# ---- what a failure looks like


@pytest.fixture(scope="module")
def failure() -> report.Failure:
    return _shortest(campaign.run(400, "faults", Wrong(FAULTS[0]), most_failures=4))


def test_a_transcript_shows_steps_events_outcomes_and_the_difference(failure: report.Failure) -> None:
    text = report.transcript(failure.history, failure.difference, "lua")
    assert "('q', '" in text
    assert " queue=q klass=k state=waiting" in text
    assert "here lua differs in its" in text


def test_a_vector_reads_back_as_the_same_history(failure: report.Failure) -> None:
    assert json_lines.loads(json_lines.dumps(failure.history)) == failure.history


def test_a_snippet_is_a_test_that_fails_on_the_wrong_subject_and_passes_on_the_right_one(
    failure: report.Failure,
) -> None:
    text = report.snippet(failure.history, failure.difference)
    space: dict[str, Any] = {}
    exec(compile(ast.parse(text), "snippet", "exec"), space)
    (test,) = (found for name, found in space.items() if name.startswith("test_"))
    test(ModelSubject())
    with pytest.raises(AssertionError, match="differs in its"):
        test(Wrong(FAULTS[0]))


def test_a_failure_prints_all_three(failure: report.Failure) -> None:
    text = str(failure)
    assert "As a vector:" in text and "As a test:" in text and "seed faults." in text


# ---- the codec


def test_every_drawn_history_survives_the_codec() -> None:
    for seed in range(60):
        history = runner.draw(RandomChooser(seed), 40)
        again = json_lines.loads(json_lines.dumps(history))
        assert list(map(repr, again)) == list(map(repr, history))


def test_defaults_are_left_out_and_comments_are_ignored() -> None:
    text = json_lines.dumps(HISTORY[:1])
    assert json.loads(text) == {"op": "put", "now": 0, "queue": "q", "jid": "a", "klass": "k", "data": ""}
    assert json_lines.loads("# a comment\n\n" + text) == HISTORY[:1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "line 1: "),
        ("[]", "not an object"),
        ('{"op": "put"}', "now must be"),
        ('{"op": "pot", "now": 0}', "there is no operation 'pot'"),
        ('{"op": "get", "now": 0}', "get needs the argument 'jid'"),
        ('{"op": "get", "now": 0, "jid": "a", "x": 1}', "get has no argument 'x'"),
    ],
)
def test_a_bad_line_is_refused_with_the_reason(line: str, says: str) -> None:
    with pytest.raises(ValueError, match="line 1") as caught:
        json_lines.loads(line)
    assert says in str(caught.value)
