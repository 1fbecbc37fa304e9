"""The commands that only reqless has: throttles, with what they do to pops, counts and histories."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.test_quirks import Ask, Refused, ask

__all__ = ["ask"]


def put(ask: Ask, jid: str, now: object, *tids: str, queue: str = "q") -> None:
    """Put a job with throttles."""
    assert ask("queue.put", now, "me", queue, jid, "k", "{}", 0, "throttles", json.dumps(tids)) == jid


def pop(ask: Ask, now: object, count: int = 1, queue: str = "q") -> list[str]:
    """Pop, and give the ids."""
    return [job["jid"] for job in ask("queue.pop", now, queue, "w", count)]


def stands(ask: Ask, now: object, tid: str) -> tuple[Any, Any]:
    """The jobs that hold a throttle, and those that wait for it."""
    return ask("throttle.locks", now, tid), ask("throttle.pending", now, tid)


def test_a_full_queue_parks_what_is_popped_and_what_is_put(ask: Ask) -> None:
    ask("queue.throttle.set", 0, "q", 1)
    for jid, now in (("a", 1), ("b", 2)):
        put(ask, jid, now)
    assert pop(ask, 3, 2) == ["a"]
    put(ask, "c", 4)
    assert stands(ask, 5, "ql:q:q") == (["a"], ["b", "c"])
    counts = ask("queue.counts", 6, "q")
    assert (counts["throttled"], counts["waiting"], counts["running"]) == (2, 0, 1)
    assert ask("queue.length", 6, "q") == 1
    assert ask("queue.jobsByState", 7, "throttled", "q") == ["b", "c"]


def test_a_job_that_leaves_lets_the_one_that_has_waited_longest_go_on(ask: Ask) -> None:
    ask("throttle.set", 0, "t", 1)
    for now, jid in enumerate("abc"):
        put(ask, jid, now, "t")
    ask("job.setPriority", 3, "c", 5)
    assert pop(ask, 4, 3) == ["c"]
    ask("job.complete", 5, "c", "w", "q", "{}")
    assert stands(ask, 6, "t") == ([], ["b"])
    job = ask("job.get", 6, "a")
    assert job["state"] == "throttled"
    assert [one["what"] for one in job["history"]] == ["put", "throttled"]
    assert pop(ask, 7) == ["a"]
    assert [one["what"] for one in ask("job.get", 8, "a")["history"]] == ["put", "throttled", "popped"]


@pytest.mark.parametrize(("option", "tries", "found"), [(None, 1, ["a"]), ("max-pop-retry", 2, ["a", "c"]),
                                                        ("q-max-pop-retry", 9, ["a", "c"])])  # fmt: skip
def test_max_pop_retry_says_how_often_a_pop_looks_again(ask: Ask, option: str | None, tries: int, found: Any) -> None:
    if option is not None:
        ask("config.set", 0, option, tries)
    for tid in ("t", "s"):
        ask("throttle.set", 0, tid, 1)
    for now, (jid, tid) in enumerate((("a", "t"), ("b", "t"), ("c", "s"), ("d", "s"))):
        put(ask, jid, now, tid)
    assert pop(ask, 9, 2) == found


def test_a_released_job_runs_on_and_leaves_its_place(ask: Ask) -> None:
    ask("throttle.set", 0, "t", 1)
    for now, jid in enumerate("ab"):
        put(ask, jid, now, "t")
    assert pop(ask, 2, 2) == ["a"]
    ask("throttle.release", 3, "t", "a")
    assert stands(ask, 4, "t") == ([], [])
    assert ask("job.get", 4, "a")["state"] == "running"
    assert pop(ask, 5) == ["b"]
    assert ask("job.complete", 6, "a", "w", "q", "{}") == "complete"
    assert stands(ask, 7, "t") == (["b"], [])


def test_a_waiting_job_that_is_released_is_not_lost(ask: Ask) -> None:
    ask("throttle.set", 0, "t", 1)
    for now, jid in enumerate("ab"):
        put(ask, jid, now, "t")
    pop(ask, 2, 2)
    ask("throttle.release", 3, "t", "b")
    assert stands(ask, 4, "t") == (["a"], [])
    assert [job["jid"] for job in ask("queue.peek", 4, "q", 0, 9)] == ["b"]
    assert pop(ask, 5) == []
    assert stands(ask, 6, "t") == (["a"], ["b"])


def test_a_put_of_a_job_frees_its_places(ask: Ask) -> None:
    ask("throttle.set", 0, "t", 1)
    for now, jid in enumerate("ab"):
        put(ask, jid, now, "t")
    pop(ask, 2, 2)
    put(ask, "a", 3, queue="r")
    assert stands(ask, 4, "t") == ([], [])
    assert ask("job.get", 4, "a")["throttles"] == ["ql:q:r"]


def test_a_timeout_frees_the_places_of_the_job(ask: Ask) -> None:
    ask("throttle.set", 0, "t", 1)
    for now, jid in enumerate("ab"):
        put(ask, jid, now, "t")
    pop(ask, 2, 2)
    ask("job.timeout", 3, "a")
    assert stands(ask, 4, "t") == ([], [])
    assert pop(ask, 5, 2) == ["a"]
    assert stands(ask, 6, "t") == (["a"], ["b"])


def test_the_runs_of_a_recurring_job_have_its_throttles(ask: Ask) -> None:
    ask("throttle.set", 0, "t", 1)
    ask("queue.recurAtInterval", 1, "q", "r", "k", "{}", 10, 0, "throttles", '["t"]', "retries", 2)
    assert ask("recurringJob.get", 2, "r")["throttles"] == ["t", "ql:q:q"]
    assert pop(ask, 12, 5) == ["r-1"]
    assert stands(ask, 12, "t") == (["r-1"], ["r-2"])
    ask("recurringJob.update", 13, "r", "queue", "other")
    assert ask("recurringJob.get", 13, "r")["throttles"] == ["t", "ql:q:other"]
    ask("recurringJob.update", 13, "r", "throttles", '["s"]')
    assert ask("recurringJob.get", 13, "r")["throttles"] == ["s"]


@pytest.mark.parametrize("queue", ["two words", "söme", "50%", "x-data"])
def test_a_queue_of_any_name_has_a_throttle(ask: Ask, queue: str) -> None:
    ask("queue.throttle.set", 0, queue, 1)
    for now, jid in enumerate("ab"):
        put(ask, jid, now, queue=queue)
    assert ask("job.get", 2, "a")["throttles"] == [f"ql:q:{queue}"]
    assert pop(ask, 2, 2, queue) == ["a"]
    assert stands(ask, 3, f"ql:q:{queue}") == (["a"], ["b"])
    assert ask("queue.throttle.get", 3, queue) == {"id": f"ql:q:{queue}", "maximum": 1, "ttl": -1}


def test_unfail_refuses_a_count_below_one(ask: Ask) -> None:
    with pytest.raises(Refused, match="must be greater than zero"):
        ask("queue.unfail", 0, "q", "g", 0)


def test_errors_do_not_give_the_job_as_in_reqless(ask: Ask) -> None:
    with pytest.raises(Refused, match=r"Heartbeat\(\): Job does not exist"):
        ask("job.heartbeat", 0, "a", "w")
    put(ask, "a", 0)
    with pytest.raises(Refused, match=r"Fail\(\): Job not currently running: waiting"):
        ask("job.fail", 0, "a", "w", "g", "m")
    with pytest.raises(Refused, match=r"Queue\(\): no queue name provided"):
        ask("job.setPriority", 0, "none", 1)


def test_the_first_versions_of_reqless_have_the_names_of_qless(ask: Ask) -> None:
    ask("reqless.throttle.set", 0, "t", 1, 10)
    assert ask("reqless.throttle.get", 1, "t") == {"id": "t", "maximum": 1, "ttl": 9}
    assert ask("reqless.throttle.ttl", 1, "t") == 9
    for now, jid in enumerate("ab"):
        ask("reqless.put", now, "me", "q", jid, "k", "{}", 0, "throttles", '["t"]')
    assert [job["jid"] for job in ask("reqless.pop", 2, "q", "w", 2)] == ["a"]
    assert ask("reqless.throttle.locks", 3, "t") == ["a"]
    assert ask("reqless.throttle.pending", 3, "t") == ["b"]
    job = ask("reqless.get", 3, "b")
    assert job["throttles"] == ["t", "ql:q:q"]
    assert job["history"] == [{"when": 1, "what": "put", "q": "q"}, {"when": 2, "what": "throttled", "queue": "q"}]
    assert ask("reqless.config.get", 3)["application"] == "qless"
    assert ask("reqless.config.get", 3, "application") == "reqless"
    assert "throttles" not in ask("get", 3, "b")
