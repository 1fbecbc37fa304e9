"""Assertions about jobs: what they find, and what they show when they fail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest

from qmodel.testing import Harness


@pytest.fixture
def filled(qm_any: Harness) -> Harness:
    """Make a queue with some jobs."""
    emails = qm_any.client.queues["emails"]
    emails.put("Send", {"to": "ada@example.com", "cc": ["b"]}, tags=["welcome", "eu"], priority=-1)
    emails.put("Send", {"to": "bob@example.com"}, delay=60)
    qm_any.client.queues["sums"].put("Add", [1, 2])
    return qm_any


@pytest.mark.parametrize(
    "wanted",
    [
        {"job_type": "Send"},
        {"job_type": "Send", "args": {"to": "ada@example.com"}},
        {"args": {"cc": ("b",)}},
        {"args": {"to": ANY}, "queue": "emails"},
        {"job_type": "Add", "data": (1, 2)},
        {"tags": "eu"},
        {"priority": -1},
        {"delay": 60, "args": {"to": "bob@example.com"}},
        {"states": "waiting"},
        {"job_type": "Send", "count": 2},
    ],
)
def test_a_job_that_fits_is_found(filled: Harness, wanted: dict[str, Any]) -> None:
    job = filled.assert_enqueued(**wanted)
    assert job.klass in ("Send", "Add")
    wanted.pop("count", None)
    assert job in filled.all_enqueued(**wanted)
    with pytest.raises(AssertionError, match="Enqueued, and should not be"):
        filled.refute_enqueued(**wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"job_type": "Sent"},
        {"job_type": "Send", "args": {"to": "eve@example.com"}},
        {"args": {"bcc": None}},
        {"data": [1, 3]},
        {"data": None},
        {"tags": ["eu", "us"]},
        {"priority": 1},
        {"delay": 61},
        {"states": ["running"]},
        {"queue": "nowhere"},
    ],
)
def test_a_job_that_does_not_fit_is_not(filled: Harness, wanted: dict[str, Any]) -> None:
    filled.refute_enqueued(**wanted)
    assert filled.all_enqueued(**wanted) == []
    with pytest.raises(AssertionError, match="Not enqueued"):
        filled.assert_enqueued(**wanted)


def test_jobs_come_in_the_order_in_which_a_worker_would_get_them(filled: Harness) -> None:
    filled.client.queues["emails"].put("Send", {"to": "first"}, priority=-2)
    found = [job.data["to"] for job in filled.all_enqueued("Send")]
    assert found == ["first", "ada@example.com", "bob@example.com"]


def message(assertion: Callable[[], object]) -> str:
    """Give the message of a failing assertion."""
    with pytest.raises(AssertionError) as failed:
        assertion()
    return str(failed.value)


def test_an_assertion_that_fails_shows_the_jobs_and_the_nearest(filled: Harness) -> None:
    said = message(lambda: filled.assert_enqueued("Send", args={"to": "eve@example.com"}, priority=-1))
    assert said.startswith("Not enqueued: Send args={'to': 'eve@example.com'} priority=-1.")
    assert '{"to":"bob@example.com"}' in said
    assert "due in 0:01:00" in said
    assert said.index("to is 'ada@example.com', not 'eve@example.com'") < said.index("priority is 0, not -1")


def test_a_wrong_count_is_told(filled: Harness) -> None:
    assert "Enqueued 2 times, not 3: Send." in message(lambda: filled.assert_enqueued("Send", count=3))
    assert "Enqueued once, not 3: Add." in message(lambda: filled.assert_enqueued("Add", count=3))
    assert "Enqueued never, not 3: No." in message(lambda: filled.assert_enqueued("No", count=3))
    with pytest.raises(ValueError, match="refute_enqueued"):
        filled.assert_enqueued("No", count=0)


def test_failures_and_results_are_in_the_table(qm: Harness) -> None:
    queue = qm.client.queues["q"]
    for klass in ("Good", "Bad", "Held"):
        queue.put(klass)
    good, bad, _ = queue.pop(3, worker="me")
    good.complete({"n": 1})
    bad.fail("Timeout", "Traceback ...\nTimeoutError: too late")
    shown = qm.table()
    for wanted in ('result {"n":1}', "Timeout: TimeoutError: too late", "held by me, 0:01:00 left"):
        assert wanted in shown


def test_a_job_that_comes_in_time_is_waited_for(qm: Harness) -> None:
    timer = threading.Timer(0.05, lambda: qm.client.queues["q"].put("Late"))
    timer.start()
    qm.assert_enqueued("Late", within=10)
    timer.join()
    with pytest.raises(AssertionError):
        qm.refute_enqueued("Late", within=10)


def test_what_is_no_job_type_and_no_state_is_refused(qm: Harness) -> None:
    with pytest.raises(TypeError, match="is not a job type"):
        qm.all_enqueued(7)
    with pytest.raises(ValueError, match="'ready' is not a state of a job"):
        qm.all_enqueued(states="ready")


def test_an_unknown_criterion_is_refused_with_the_nearest_one(qm: Harness) -> None:
    with pytest.raises(TypeError, match=r"'quee' is not a criterion for jobs\. Did you mean 'queue'\?"):
        qm.refute_enqueued(quee="q")  # type: ignore[call-arg]
