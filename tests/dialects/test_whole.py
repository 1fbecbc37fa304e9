"""A call is executed completely or not at all, although it may execute several operations; and odd texts."""

from __future__ import annotations

import json

import pytest

from qmodel.contract import operations as ops
from qmodel.dialects import qless
from qmodel.model import engine
from qmodel.model.state.store import Store
from tests.dialects.test_quirks import Ask, Refused, ask, put

__all__ = ["ask"]

MOST = 1000


def lease_of(ask: Ask, now: int) -> int:
    """How many seconds a new lease lasts."""
    put(ask, f"j{now}", now=now)
    end: int = ask("pop", now, "q", "w", 1)[0]["expires"]
    return end - now


@pytest.mark.parametrize("option", ["heartbeat", "q-heartbeat"])
def test_a_refused_value_of_an_option_leaves_the_one_before(ask: Ask, option: str) -> None:
    ask("config.set", 0, option, 30)
    with pytest.raises(Refused, match="not a number: soon"):
        ask("config.set", 1, option, "soon")
    assert ask("config.get", 2, option) in (30, "30")
    assert lease_of(ask, 3) == 30


def test_an_option_that_finds_no_room_is_not_set(ask: Ask) -> None:
    for number in range(MOST):
        ask("config.set", 0, f"own{number}", "x")
    with pytest.raises(Refused, match="limit of 1000"):
        ask("config.set", 1, "heartbeat", 30)
    assert lease_of(ask, 2) == 60


def test_a_throttle_that_finds_no_room_is_not_set(ask: Ask) -> None:
    for number in range(MOST):
        ask("throttle.set", 0, f"t{number}", 5)
    with pytest.raises(Refused, match="limit of 1000"):
        ask("throttle.set", 1, "late", 1)
    for jid in "ab":
        ask("queue.put", 2, "me", "q", jid, "k", "{}", 0, "throttles", '["late"]')
    assert len(ask("queue.pop", 3, "q", "w", 2)) == 2
    assert ask("throttle.get", 4, "late")["maximum"] == 0


def test_a_throttle_whose_maximum_cannot_be_noted_is_not_set() -> None:
    store = Store()
    with pytest.raises(qless.QlessError, match="control characters"):
        qless.call(store, ["throttle.set", "0", "*\n", "1"])
    assert engine.step(store, 1, ops.Throttles()) == ()


def test_no_queue_is_forgotten_if_one_name_is_none(ask: Ask) -> None:
    put(ask, "a")
    with pytest.raises(Refused, match='"queue"'):
        ask("queue.forget", 1, "q", "")
    assert [one["name"] for one in ask("queues", 2)] == ["q"]


def test_no_job_is_released_if_one_id_is_none(ask: Ask) -> None:
    ask("throttle.set", 0, "t", 1)
    ask("queue.put", 1, "me", "q", "a", "k", "{}", 0, "throttles", '["t"]')
    ask("queue.pop", 2, "q", "w", 1)
    with pytest.raises(Refused, match='"jid"'):
        ask("throttle.release", 3, "t", "a", "b c")
    assert ask("throttle.locks", 4, "t") == ["a"]


def test_refused_patterns_leave_those_before(ask: Ask) -> None:
    ask("queueIdentifierPatterns.setAll", 0, "x", '["a"]')
    with pytest.raises(Refused, match='"key"'):
        ask("queueIdentifierPatterns.setAll", 1, "y", '["a"]', "z" * 129, '["b"]')
    assert set(ask("queueIdentifierPatterns.getAll", 2)) == {"default", "x"}
    ask("queuePriorityPatterns.setAll", 3, '{"pattern":["x"]}')
    before = ask("queuePriorityPatterns.getAll", 4)
    with pytest.raises(Refused, match='"value"'):
        ask("queuePriorityPatterns.setAll", 5, "z" * 1025)
    with pytest.raises(Refused, match="limit of 1000"):
        ask("queuePriorityPatterns.setAll", 6, *(f'{{"pattern":["x{at}"]}}' for at in range(MOST)))
    assert ask("queuePriorityPatterns.getAll", 7) == before


@pytest.mark.parametrize("command", ["cancel", "job.cancel", "job.timeout"])
def test_a_text_that_names_another_key_of_a_job_is_no_id(ask: Ask, command: str) -> None:
    put(ask, "a")
    put(ask, "b", "depends", '["a"]')
    with pytest.raises(Refused, match='"jid" must be'):
        ask(command, 1, "a-dependents")
    for name in ("put", "queue.put"):
        with pytest.raises(Refused, match='"jid" must be'):
            ask(name, 2, "me", "q", "b-dependencies", "k", "{}", 0)
    with pytest.raises(Refused, match="does not exist"):
        ask("track", 3, "untrack", "a-dependents")


@pytest.mark.parametrize("message", ["one", "one\ntwo", "{\n{", 'a\n{"b":'])
@pytest.mark.parametrize("data", ['{"k":{"n":1}}', ' \n{\n"k":\n{"n":1}\n}\n'])
def test_a_log_line_of_several_lines_has_its_data(ask: Ask, message: str, data: str) -> None:
    put(ask, "a")
    ask("log", 1, "a", message, data)
    assert ask("get", 2, "a")["history"][1] == {"what": message, "k": {"n": 1}, "when": 1}


def test_the_counts_of_all_queues_make_no_more_due_jobs_ready_than_one_call_may(ask: Ask) -> None:
    for queue in ("q", "r"):
        for number in range(600):
            put(ask, f"{queue}{number}", queue=queue, delay=1)
    assert [one["waiting"] for one in ask("queues", 2)] == [600, 600]
    states = [ask("get", 2, f"{queue}{number}")["state"] for queue in ("q", "r") for number in range(600)]
    assert states.count("waiting") == MOST
    assert len(ask("pop", 3, "r", "w", MOST)) == 600


def test_the_statistics_before_1970_of_a_tag_are_those_of_a_part(ask: Ask) -> None:
    assert set(ask("stats", 0, "q", -5, "tag", "")) == {"wait", "run"}


def test_the_log_says_why_a_native_job_failed_in_a_pop() -> None:
    store = Store()
    engine.step(store, 1000, ops.Put("q", "a", "k", "{}", ttl_ms=1000))
    published = qless.call(store, ["pop", "50", "q", "w", "1"]).published
    messages = [json.loads(message)["message"] for channel, message in published if channel == "log"]
    assert messages == ["It did not begin within its time to live."]


def test_throttles_of_native_jobs_may_have_any_names() -> None:
    store = Store()
    engine.step(store, 1000, ops.Put("q", "a", "k", "{}", throttles=("ql:t:%FF", "ql:q:a%2d")))
    found = json.loads(str(qless.call(store, ["job.get", "2", "a"]).reply))
    assert found["throttles"] == ["�", "ql:q:a%2d"]
