"""Requests and sub-requests: the faults F1 to F18 of an earlier queue; each test claims that qmodel does not have one.

Every scene is played on the model and, if lupa is installed, on the Lua library in this process; both must agree.
"""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.model import snapshot
from tests.property.test_hazards_life import Played, scene

__all__ = ["scene"]


def subs(id: str, count: int, **more: Any) -> tuple[ops.Put, ...]:
    """Make the sub-requests `<id>:0` and so on."""
    return tuple(ops.Put("q", f"{id}:{n}", "k", "", **more) for n in range(count))


def request(scene: Played, id: str = "R") -> Any:
    return scene(ops.RequestGet(id))


def served(scene: Played, most: int = 100) -> str:
    """Let one worker complete sub-requests; give the letter of each one's request, in order."""
    found = ""
    while len(found) < most and (jobs := scene.pop()):
        found += jobs[0].jid[0]
        scene(ops.Complete(jobs[0].jid, jobs[0].token))
    return found


def dones(scene: Played) -> list[Any]:
    return scene.events("request_done")


# ---- order


def test_requests_of_a_priority_take_turns_in_shares_of_their_limits(scene: Played) -> None:
    scene(ops.RequestPut("P", "q", 3, subs("P", 9)))
    scene(ops.RequestPut("Q", "q", 1, subs("Q", 4)))
    assert served(scene) == "PPPQPPPQPPPQQ"


def test_a_request_of_a_lower_priority_number_comes_first_and_may_be_tuned(scene: Played) -> None:
    scene(ops.RequestPut("P", "q", 1, subs("P", 4), 5))
    scene(ops.RequestPut("Q", "q", 1, subs("Q", 4), 1))
    assert served(scene, 2) == "QQ"
    scene(ops.RequestTune("Q", priority=9))
    assert served(scene) == "PPPPQQ"


def test_a_sub_request_in_backoff_leaves_its_place_and_returns_by_readiness(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 3, retry_delay_ms=1000)))
    first = scene.pop()[0]
    scene(ops.Retry(first.jid, first.token))
    second = scene.pop()[0]
    assert (first.jid, second.jid, scene.pop()) == ("R:0", "R:1", ())
    scene.now += 1000
    assert scene.pop() == ()
    assert scene(ops.Get("R:0")).state == "throttled"
    scene(ops.Complete(second.jid, second.token))
    third = scene.pop()[0]
    scene(ops.Complete(third.jid, third.token))
    assert (third.jid, scene.pop()[0].jid) == ("R:2", "R:0")


def test_a_sub_request_keeps_its_place_if_its_request_says_so(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 2, retry_delay_ms=1000), keep_places=True))
    first = scene.pop()[0]
    scene(ops.Retry(first.jid, first.token))
    assert scene.pop() == ()
    scene.now += 1000
    assert scene.pop()[0].jid == "R:0"
    refused = scene(ops.RequestOpen("R", "q", 1))
    assert isinstance(refused, Refusal)
    assert refused.facts == ("R", "keep_places", "1")
    assert request(scene).keep_places


def test_a_lapse_that_waits_gives_its_place_away_in_the_same_pop(scene: Played) -> None:
    scene(ops.ConfigSet("grace-period", 0))
    scene(ops.RequestPut("R", "q", 1, subs("R", 2, retry_delay_ms=5000, lease_ms=1000)))
    assert scene.order() == ["R:0"]
    scene.now += 1000
    assert scene.order() == ["R:1"]
    assert (request(scene).pending, request(scene).running) == (1, 1)


def test_no_more_sub_requests_run_than_the_limit_even_if_it_changes(scene: Played) -> None:
    scene(ops.RequestPut("P", "q", 3, subs("P", 9)))
    first = scene.pop(count=9)
    assert len(first) == 3
    scene(ops.RequestTune("P", limit=1))
    for job in first[:2]:
        scene(ops.Complete(job.jid, job.token))
    assert scene.pop(count=9) == ()
    scene(ops.RequestTune("P", limit=5))
    assert len(scene.pop(count=9)) == 4
    assert request(scene, "P").running == 5


# ---- F1 to F18


def test_a_completion_counts_once_and_only_for_what_was_delivered(scene: Played) -> None:
    """F1, F2."""
    scene(ops.RequestPut("R", "q", 2, subs("R", 3)))
    job = scene.pop()[0]
    for _ in range(3):
        scene(ops.Complete(job.jid, job.token))
    assert isinstance(scene(ops.Complete("R:1", 0)), Refusal)
    assert isinstance(scene(ops.Complete("R:2", 999)), Refusal)
    assert (request(scene).done, request(scene).pending, dones(scene)) == (1, 2, [])


def test_a_resend_neither_opens_a_request_nor_puts_a_job_again(scene: Played) -> None:
    """F3, F4, F5: a resend is one step, and is recognised by its id even after its job was deleted."""
    scene(ops.ConfigSet("jobs-history", 0))
    for _ in range(2):
        assert scene(ops.RequestOpen("R", "q", 2)) == "open"
        scene(ops.RequestAdd("R", subs("R", 3)))
        assert request(scene).total == 3
    served(scene)
    assert scene.get("R:0") is None
    assert scene(ops.RequestAdd("R", subs("R", 4))) == 1
    assert served(scene) == "R"


def test_opening_a_request_again_with_other_arguments_is_refused_even_after_tuning(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 2))
    scene(ops.RequestTune("R", limit=7, priority=3))
    assert scene(ops.RequestOpen("R", "q", 2)) == "open"
    assert scene(ops.RequestOpen("R", "q", 7)) == Refusal("REQUEST_CONFLICT", ("R", "limit", "2"))
    assert scene(ops.RequestOpen("R", "r", 2)).facts == ("R", "queue", "q")
    assert scene(ops.RequestPut("R", "q", 2, subs("R", 1), 3)).facts == ("R", "priority", "0")


def test_a_worker_that_dies_takes_no_place_with_it(scene: Played) -> None:
    """F6, F7: with a limit of one, at any moment."""
    scene(ops.RequestPut("R", "q", 1, subs("R", 3, retries=1)))
    for _ in range(6):
        scene.pop(worker="dying", after=10**6)
    scene.now += 10**6
    while jobs := scene.pop():
        scene(ops.Complete(jobs[0].jid, jobs[0].token))
        scene.now += 10**6
    assert request(scene).state == "done"
    assert request(scene).failed + request(scene).done == 3


def test_an_ended_request_leaves_no_place_behind_and_its_id_may_be_used_again(scene: Played) -> None:
    """F8, F9."""
    scene(ops.RequestPut("R", "q", 3, subs("R", 3)))
    served(scene)
    assert scene.store.concurrency_keys == {}
    assert scene(ops.RequestForget("R")).left == 0
    scene(ops.ConfigSet("jobs-history", 0))
    scene.put("x")
    scene(ops.Complete("x", scene.pop()[0].token))
    scene(ops.RequestPut("R", "q", 1, subs("R", 3)))
    assert len(scene.pop(count=9)) == 1


def test_a_slow_producer_and_a_limit_above_the_ready_jobs_lose_no_sub_request(scene: Played) -> None:
    """F10, T-S19."""
    scene(ops.RequestOpen("R", "q", 3))
    for n in range(5):
        assert scene.pop() == ()
        scene(ops.RequestAdd("R", subs("R", n + 1)))
        assert served(scene) == "R"
    assert dones(scene) == []
    assert scene(ops.RequestClose("R")) == "done"
    assert len(dones(scene)) == 1


def test_a_request_without_sub_requests_ends_when_it_is_closed(scene: Played) -> None:
    """F11."""
    scene(ops.RequestOpen("R", "q", 1))
    assert scene(ops.RequestClose("R")) == "done"
    assert scene(ops.RequestClose("R")) == "done"
    assert len(dones(scene)) == 1


def test_the_end_of_a_request_is_one_event_of_its_last_step_and_stays_readable(scene: Played) -> None:
    """F12."""
    scene(ops.RequestPut("R", "q", 2, subs("R", 2)))
    first, last = scene.pop(count=2)
    scene(ops.Complete(first.jid, first.token))
    scene(ops.Fail(last.jid, last.token, "g", ""))
    (event,) = dones(scene)
    assert event.facts == ("R", "q", "done", 1, 1, 0)
    assert request(scene).ended_at == event.at == scene.now
    assert request(scene, "never") is None


@pytest.mark.parametrize("limit", [0, -3, 1.5, float("nan"), 1001, 3_000_000, "0x10", " 2 ", "1e3"])
def test_a_limit_is_a_whole_number_from_1_to_1000(scene: Played, limit: Any) -> None:
    """F13."""
    assert scene(ops.RequestOpen("R", "q", limit)) == Refusal("BAD_ARGUMENT", ("request_open", "limit"))
    scene.steps.clear()  # some of these have no form on the wire


@pytest.mark.parametrize("id", ["", "{x}y", "x}y", "{}z", "victim\x00evil", "x" * 65, "x" * 513, "a b", "é"])
def test_an_id_has_few_allowed_characters_and_others_are_refused(scene: Played, id: str) -> None:
    """F14, F15, T-S21."""
    before = snapshot.of(scene.store)
    assert scene(ops.RequestOpen(id, "q", 1)) == Refusal("BAD_ARGUMENT", ("request_open", "id"))
    assert snapshot.of(scene.store) == before


def test_a_full_server_accepts_operations_that_drain_a_request() -> None:
    """F16."""
    for op in (ops.RequestClose, ops.RequestCancel, ops.RequestForget, ops.Complete):
        assert op.spec.finishes


def test_a_sub_request_that_fails_or_goes_away_is_counted_once(scene: Played) -> None:
    """F17: failures, cancels, and sub-requests that become jobs outside the request."""
    scene(ops.RequestPut("R", "q", 1, subs("R", 4, retries=0)))
    job = scene.pop()[0]
    scene(ops.Retry(job.jid, job.token))
    assert (request(scene).failed, request(scene).pending) == (1, 3)
    scene(ops.RetryMany(group="failed-retries-q", to="q"))
    scene(ops.Cancel(("R:3", job.jid)))
    scene.put("R:2")
    assert (request(scene).failed, request(scene).canceled, request(scene).pending) == (1, 2, 1)
    served(scene)
    (event,) = dones(scene)
    assert event.facts[2:] == ("done", 1, 1, 2)


def test_a_failed_sub_request_that_is_tried_again_is_a_job_of_its_own(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 1)))
    job = scene.pop()[0]
    scene(ops.Fail(job.jid, job.token, "g", ""))
    before = request(scene)
    scene(ops.RetryMany(group="g", to="q"))
    assert scene.get("R:0").request is None
    served(scene)
    assert request(scene) == before


def test_a_canceled_request_leases_no_more_jobs_and_waits_for_running_ones(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 2, subs("R", 5)))
    first, second = scene.pop(count=2)
    scene(ops.Release(second.jid, second.token))
    assert scene(ops.RequestCancel("R")) == 0
    assert (request(scene).state, scene.pop(count=9)) == ("canceling", ())
    assert scene(ops.Heartbeat(first.jid, first.token)).revoked
    scene(ops.Complete(first.jid, first.token))
    (event,) = dones(scene)
    assert event.facts[2:] == ("canceled", 0, 0, 5)
    assert isinstance(scene(ops.RequestAdd("R", subs("R", 6))), Refusal)
    assert scene(ops.RequestCancel("R")) == 0


def test_three_thousand_sub_requests_are_canceled_a_thousand_at_a_time(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 1))
    for start in range(0, 2500, 500):
        scene(ops.RequestAdd("R", tuple(ops.Put("q", f"R:{n}", "k", "") for n in range(start, start + 500))))
    assert [scene(ops.RequestCancel("R")) for _ in range(3)] == [1500, 500, 0]
    assert scene.pop() == ()
    assert request(scene).canceled == 2500
    assert [scene(ops.RequestForget("R")).left for _ in range(3)] == [1500, 500, 0]
    assert (scene.store.requested, scene.store.concurrency_keys, scene.store.jobs) == ({}, {}, {})


def test_a_sub_request_with_a_dependent_job_is_not_canceled_without_it(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 2)))
    scene.put("x", depends=("R:1",))
    assert scene(ops.RequestCancel("R")) == Refusal("HAS_DEPENDENTS", ("R:1", "x"))
    assert request(scene).state == "closed"


def test_requests_that_ended_long_ago_are_forgotten_when_others_are_opened(scene: Played) -> None:
    scene(ops.ConfigSet("requests-history", 1000))
    scene(ops.RequestPut("R", "q", 5, subs("R", 3)))
    served(scene)
    scene.now += 1000
    scene(ops.RequestOpen("S", "q", 1))
    assert (request(scene), request(scene, "S").state) == (None, "open")
    assert [event.facts for event in scene.events("request_forgotten")] == [("R",)]


def test_a_sub_request_may_not_be_somebody_elses_job(scene: Played) -> None:
    scene.put("R:0")
    scene(ops.RequestOpen("R", "q", 1))
    assert scene(ops.RequestAdd("R", subs("R", 2))) == Refusal("JOB_EXISTS", ("R:0",))
    assert request(scene).total == 0
    for one in (
        ops.Put("r", "R:5", "k", ""),
        ops.Put("q", "R:5", "k", "", priority=1),
        ops.Put("q", "R:5", "k", "", ordered="o"),
    ):
        assert scene(ops.RequestAdd("R", (one,))) == Refusal("BAD_ARGUMENT", ("request_add", "jobs"))


def test_sub_requests_may_wait_for_each_other_and_for_their_time(scene: Played) -> None:
    puts = (ops.Put("q", "R:b", "k", "", depends=("R:a",)), ops.Put("q", "R:a", "k", "", delay_ms=1000))
    scene(ops.RequestPut("R", "q", 1, puts))
    assert scene.pop() == ()
    scene.now += 1000
    assert served(scene) == "RR"
    assert request(scene).state == "done"


def test_a_sub_request_that_is_sent_on_is_still_one(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 2)))
    job = scene.pop()[0]
    scene(ops.Complete(job.jid, job.token, next="r"))
    assert (scene.pop(), request(scene).pending) == ((), 2)
    job = scene.pop("r")[0]
    scene(ops.Complete(job.jid, job.token))
    assert served(scene) == "R"


# ---- ending by itself


def test_a_request_past_its_deadline_is_canceled_by_the_next_pop(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 2, subs("R", 4), deadline_ms=1000))
    running = scene.pop()[0]
    scene.now += 999
    assert [job.jid for job in scene(ops.Peek("q", 9))] == ["R:1"]
    scene.now += 1
    assert scene(ops.Peek("q", 9)) == ()
    assert (request(scene).state, request(scene).deadline_at) == ("closed", request(scene).opened_at + 1000)
    assert scene.pop() == ()
    assert (request(scene).state, request(scene).reason, request(scene).canceled) == ("canceling", "deadline", 3)
    assert scene(ops.Heartbeat(running.jid, running.token)).revoked
    assert isinstance(scene(ops.Complete(running.jid, running.token)), str)
    assert (request(scene).state, request(scene).canceled) == ("canceled", 4)
    assert scene.pop() == ()


@pytest.mark.parametrize("noticed", [False, True])
def test_a_sub_request_that_was_sent_on_is_handed_out_until_the_deadline_is_noticed(
    scene: Played, noticed: bool
) -> None:
    scene(ops.RequestPut("R", "q", 2, subs("R", 2), deadline_ms=1000))
    first = scene.pop()[0]
    scene(ops.Complete(first.jid, first.token, next="r"))
    scene.now += 1000
    if noticed:
        assert scene.pop() == ()
        assert (request(scene).state, request(scene).canceled) == ("canceled", 2)
    shown = [job.jid for job in scene(ops.Peek("r", 9))]
    assert shown == [job.jid for job in scene(ops.Pop("r", "w"))] == ([] if noticed else ["R:0"])


def test_fire_ends_a_late_request_too(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 2, deadline_ms=1000))
    scene.now += 1000
    assert scene(ops.Fire("q")) == 0
    assert request(scene).state == "canceled"


def test_the_first_failure_cancels_those_that_have_not_begun(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 3, subs("R", 6, retries=1), fail_fast=True))
    first, second = scene(ops.Pop("q", "w", 2))
    scene(ops.Retry(second.jid, second.token))
    scene(ops.Fail(first.jid, first.token, "g", "m"))
    assert (request(scene).state, request(scene).reason, request(scene).failed) == ("canceling", "failed", 1)
    again = scene(ops.Pop("q", "w", 9))
    assert [job.jid for job in again] == [second.jid]
    assert request(scene).canceled == 4
    scene(ops.Fail(second.jid, again[0].token, "g", "m"))
    known = request(scene)
    assert (known.state, known.done, known.failed, known.canceled) == ("canceled", 0, 2, 4)


def test_after_a_failure_those_in_backoff_go_on_within_the_limit(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 5, retries=3), fail_fast=True))
    for _ in range(3):
        job = scene.pop()[0]
        scene(ops.Retry(job.jid, job.token, 1000))
    failing = scene.pop()[0]
    scene.now += 1000
    assert scene.pop() == ()
    scene(ops.Fail(failing.jid, failing.token, "g", "m"))
    served_: list[str] = []
    while jobs := scene.pop(count=9):
        assert len(jobs) == 1
        served_.append(jobs[0].jid)
        scene(ops.Complete(jobs[0].jid, jobs[0].token))
    assert served_ == ["R:0", "R:1", "R:2"]
    known = request(scene)
    assert (known.state, known.done, known.failed, known.canceled) == ("canceled", 3, 1, 1)


def test_what_others_depend_on_fails_instead_of_being_deleted(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, (*subs("R", 2), ops.Put("q", "R:2", "k", "", depends=("R:1",))), deadline_ms=5))
    scene(
        ops.PutMany(
            (ops.Put("r", "block", "k", "", depends=("R:1",)), ops.Put("r", "last", "k", "", depends=("R:0 cancel",)))
        )
    )
    scene.now += 5
    assert scene.pop() == ()
    assert scene(ops.Get("R:0")).failure.group == scene(ops.Get("R:1")).failure.group == "revoked-q"
    assert [scene(ops.Get(jid)) for jid in ("R:2", "last")] == [None, None]
    assert scene(ops.Get("block")).state == "depends"
    assert (request(scene).state, request(scene).canceled) == ("canceled", 3)


def test_a_lease_on_openness_is_renewed_by_its_producer_and_closes_the_request(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 2, lease_ms=1000))
    for renewal in (
        ops.RequestAdd("R", subs("R", 1)),
        ops.RequestTouch("R"),
        ops.RequestOpen("R", "q", 2, lease_ms=1000),
    ):
        scene.now += 999
        scene(renewal)
        assert request(scene).open_until == scene.now + 1000
    scene.now += 1000
    job = scene.pop()[0]
    assert (request(scene).state, request(scene).reason, request(scene).open_until) == ("closed", "lapsed", 0)
    assert scene(ops.RequestTouch("R")).code == scene(ops.RequestAdd("R", subs("R", 2))).code == "REQUEST_STATE"
    scene(ops.Complete(job.jid, job.token))
    assert request(scene).state == "done"
    assert scene(ops.RequestOpen("S", "q", 2)) == "open"
    assert scene(ops.RequestTouch("S")) == 0


def test_a_large_request_is_canceled_in_parts_and_nothing_of_it_is_handed_out(scene: Played) -> None:
    for start in range(0, 2000, 1000):
        scene(ops.RequestOpen("R", "q", 1000, deadline_ms=1000))
        scene(ops.RequestAdd("R", subs("R", 2000)[start : start + 1000]))
    scene(ops.Put("q", "z", "k", ""))
    scene.now += 1000
    pops = 0
    while (granted := scene(ops.Pop("q", "w", 9))) == ():
        pops += 1
    assert [job.jid for job in granted] == ["z"]
    while request(scene).state != "canceled":
        assert scene.pop() == ()
        pops += 1
    assert (request(scene).canceled, 1 < pops < 20) == (2000, True)


def test_a_queue_with_a_request_that_ends_by_itself_is_not_forgotten(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 2, lease_ms=1000))
    assert scene(ops.Forget(("q",))).code == "QUEUE_NOT_EMPTY"
    scene(ops.Obliterate("q"))
    scene.now += 1000
    scene.pop()
    assert request(scene).state == "done"
    assert scene(ops.Forget(("q",))) == 1


def test_a_tuned_sub_request_that_a_throttle_parks_is_checked_again(scene: Played) -> None:
    """Its place at the throttle was entered anew, and no pop would have looked at it."""
    scene(ops.ThrottleSet("t", concurrency=1))
    scene(ops.Put("q", "a", "k", "", throttles=("t",)))
    scene(ops.RequestPut("R", "q", 1, subs("R", 1, throttles=("t",))))
    assert [job.jid for job in scene(ops.Pop("q", "w", 9))] == ["a"]
    scene(ops.RequestTune("R", priority=-1))
    scene(ops.Complete("a", scene(ops.Get("a")).token))
    assert [job.jid for job in scene(ops.Pop("q", "w", 9))] == ["R:0"]


# ---- the list of sub-requests


def listed(scene: Played, id: str = "R") -> list[tuple[str, str, str, str]]:
    """The sub-requests of a request in their order, read two at a time."""
    found, offset = [], 0
    while True:
        page = scene(ops.RequestJobs(id, offset, 2))
        found += [(one.jid.removeprefix(f"{id}:"), one.outcome, one.state, one.result) for one in page.jobs]
        if not page.next:
            return found
        offset = page.next


def test_sub_requests_are_listed_as_they_were_added_whenever_they_end(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 2))
    for name in ("z", "a", "m", "b", "c"):
        scene(ops.RequestAdd("R", (ops.Put("q", f"R:{name}", "k", "", retries=0),)))
    z, a = scene(ops.Pop("q", "w", 2))
    scene(ops.Complete(a.jid, a.token, result="1"))
    scene(ops.Fail(z.jid, z.token, "g", "why"))
    scene(ops.Cancel(("R:b",)))
    assert listed(scene) == [
        ("z", "failed", "failed", "why"),
        ("a", "done", "complete", "1"),
        ("m", "", "waiting", ""),
        ("b", "canceled", "", ""),
        ("c", "", "waiting", ""),
    ]
    assert scene(ops.RequestJobs("nobody")).code == "REQUEST_NOT_FOUND"


def test_an_outcome_outlives_its_job_and_another_job_with_its_id_is_not_shown(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 9, subs("R", 3, retries=0)))
    for job in scene(ops.Pop("q", "w", 3)):
        scene(
            ops.Complete(job.jid, job.token, result="1") if job.jid != "R:2" else ops.Fail(job.jid, job.token, "g", "m")
        )
    scene(ops.Clean("complete", count=1))
    scene(ops.Put("q", "R:1", "k", ""))
    again = scene(ops.Pop("q", "w"))[0]
    scene(ops.Complete(again.jid, again.token, result="2"))
    scene(ops.RetryMany(queue="q"))
    assert listed(scene) == [("0", "done", "", ""), ("1", "done", "", ""), ("2", "failed", "", "")]


def test_a_request_is_forgotten_with_its_jobs_but_not_with_those_of_others(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 9, subs("R", 5, retries=0)))
    for job in scene(ops.Pop("q", "w", 5)):
        scene(ops.Complete(job.jid, job.token) if job.jid > "R:1" else ops.Fail(job.jid, job.token, "g", "m"))
    scene(ops.Put("r", "waits", "k", "", depends=("R:0",)))  # R:0 failed: the job is blocked
    scene(ops.Put("r", "R:2", "k", ""))
    scene(ops.RetryMany(queue="q", group="nothing"))
    assert scene(ops.RequestForget("R", delete_jobs=True)) == (0, 3, 2)
    assert [scene(ops.Get(f"R:{n}")) is not None for n in range(5)] == [True, False, True, False, False]
    assert request(scene) is None


def test_a_large_request_is_forgotten_with_its_jobs_in_parts(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 100))
    for start in range(0, 300, 100):
        puts = tuple(
            ops.Put("q", f"R:{n}", "k", "", tags=tuple(map(str, range(30)))) for n in range(start, start + 100)
        )
        scene(ops.RequestAdd("R", puts))
    scene(ops.RequestClose("R"))
    while jobs := scene(ops.Pop("q", "w", 20)):
        scene(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in jobs)))
    parts = [scene(ops.RequestForget("R", delete_jobs=True))]
    while parts[-1].left:
        parts.append(scene(ops.RequestForget("R", delete_jobs=True)))
    assert len(parts) > 2
    assert sum(part.deleted for part in parts) == 300
    assert scene(ops.Completed()).total == 0


# ---- data


def test_a_request_keeps_its_data_apart_until_it_is_forgotten(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 2), data="{\n\t\x00}"))
    assert request(scene).data == "{\n\t\x00}"
    assert served(scene) == "RR"
    assert request(scene).data == "{\n\t\x00}"
    refused = scene(ops.RequestOpen("R", "q", 1, data="other"))
    assert refused == Refusal("REQUEST_CONFLICT", ("R", "data", "5 bytes"))
    scene(ops.RequestForget("R"))
    assert scene(ops.RequestOpen("R", "q", 1)) == "open"
    assert request(scene).data == ""


# ---- more dependencies than one operation ends


def waits_for_many(scene: Played, *more: str) -> None:
    """Add a sub-request with a thousand dependencies, and with some more."""
    scene(ops.PutMany(tuple(ops.Put("d", f"d{n}", "k", "") for n in range(1000))))
    for edge in more:
        scene(ops.Put("d", edge.split(" ")[0], "k", "", priority=-1))
    scene(ops.RequestAdd("R", (ops.Put("q", "R:a", "k", "", depends=tuple(f"d{n}" for n in range(1000))),)))
    scene(ops.DependsOn("R:a", more))


def test_a_deadline_leaves_no_edge_of_a_deleted_sub_request(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 1, deadline_ms=5))
    waits_for_many(scene, "e")
    assert scene(ops.Pop("q", "w"), 5) == ()
    assert request(scene).state == "canceled"
    assert scene.get("R:a").failure.group == "revoked-q"
    dependents = {other for job in scene.store.jobs.values() for other in job.dependents}
    assert dependents <= set(scene.store.jobs)


def test_a_failed_sub_request_with_many_dependencies_stays_when_its_request_is_forgotten(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 1))
    waits_for_many(scene, "e fail", "f")
    scene(ops.Fail("e", scene(ops.Pop("d", "w"))[0].token, "g", "m"))
    scene(ops.RequestClose("R"))
    assert scene(ops.RequestForget("R", delete_jobs=True)) == (0, 0, 1)
    assert scene.get("R:a").state == "failed"
