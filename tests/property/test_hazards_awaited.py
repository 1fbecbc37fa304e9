"""Jobs that wait for requests: what may be lost, left behind or blocked when a request ends.

Every scene is played on the model and, if lupa is installed, on the Lua library in this process; both must agree.
"""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from tests.property.test_hazards_life import Played, scene
from tests.property.test_hazards_requests import subs

__all__ = ["scene"]

POLICIES = ("block", "fail", "ignore", "cancel")


def wait(scene: Played, *depends: str, jid: str = "w", **more: Any) -> Any:
    return scene(ops.Put("r", jid, "k", "", depends=depends, **more))


def state(scene: Played, jid: str = "w") -> str:
    job = scene(ops.Get(jid))
    return job.state if job is not None else "gone"


def complete(scene: Played) -> None:
    """Complete all sub-requests that are handed out."""
    while jobs := scene.pop():
        scene(ops.Complete(jobs[0].jid, jobs[0].token))


def code(reply: Any) -> str:
    assert isinstance(reply, Refusal)
    return reply.code


@pytest.mark.parametrize("policy", POLICIES)
def test_a_good_end_lets_a_job_go_on_whatever_its_policy(scene: Played, policy: str) -> None:
    scene(ops.RequestOpen("R", "q", 1))
    scene(ops.RequestAdd("R", subs("R", 2)))
    wait(scene, f"R request {policy}")
    complete(scene)
    assert state(scene) == "depends"  # more may be added
    scene(ops.RequestClose("R"))
    assert state(scene) == "waiting"


@pytest.mark.parametrize("end", ["canceled", "failed", "deleted", "put anew", "deadline", "fail fast"])
def test_a_bad_end_follows_the_policies(scene: Played, end: str) -> None:
    deadline = 1000 if end == "deadline" else None
    scene(ops.RequestOpen("R", "q", 2, deadline_ms=deadline, fail_fast=end == "fail fast"))
    scene(ops.RequestAdd("R", subs("R", 2, retries=0)))
    scene(ops.RequestClose("R"))
    for policy in POLICIES:
        wait(scene, f"R request {policy}", jid=policy)
    first = scene.pop()[0] if end in ("failed", "fail fast") else None
    if end == "canceled":
        scene(ops.RequestCancel("R"))
    elif end == "deleted":
        scene(ops.Cancel(("R:0",)))
    elif end == "put anew":
        scene(ops.Put("q", "R:0", "k", ""))
    elif end == "deadline":
        scene.now += 1000
    elif first is not None:
        scene(ops.Fail(first.jid, first.token, "g", "m"))
    complete(scene)
    assert [state(scene, policy) for policy in POLICIES] == ["depends", "failed", "waiting", "gone"]
    failed = scene(ops.Get("fail"))
    assert (failed.failure.group, failed.failure.message[:14]) == ("failed-dependencies-r", "Its request R ")
    assert [reason.code for reason in scene(ops.Why("block"))] == ["depends", "request_failed"]


def test_a_job_that_failed_with_a_request_may_be_retried(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 1)))
    wait(scene, "R request fail")
    scene(ops.RequestCancel("R"))
    assert state(scene) == "failed"
    scene(ops.RetryMany(queue="r"))
    assert state(scene) == "waiting"


def test_a_blocked_job_waits_until_its_dependency_is_removed(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 1)))
    wait(scene, "R request")
    scene(ops.RequestCancel("R"))
    assert code(scene(ops.RequestForget("R"))) == "HAS_DEPENDENTS"
    assert scene(ops.DependsOff("w", ("R request",))) == ()
    assert state(scene) == "waiting"
    assert scene(ops.RequestForget("R")).left == 0


def test_a_job_waits_for_jobs_and_requests_and_goes_on_once(scene: Played) -> None:
    for id in "RS":
        scene(ops.RequestPut(id, "q", 1, subs(id, 1)))
    scene.put("a")
    wait(scene, "R request", "a", "S request ignore")
    assert scene(ops.Get("w")).dependencies == ("R request", "a", "S request")
    complete(scene)
    assert len(scene.events("unblocked")) == 1
    assert state(scene) == "waiting"


def test_a_request_that_has_ended_is_no_obstacle_or_the_policy_applies_at_once(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 1)))
    complete(scene)
    scene(ops.RequestPut("S", "q", 1, subs("S", 1)))
    scene(ops.RequestCancel("S"))
    for policy in POLICIES:
        wait(scene, f"R request {policy}", jid=f"R{policy}")
        wait(scene, f"S request {policy}", jid=f"S{policy}", request="n")
        assert wait(scene, f"S request {policy}", jid=f"S{policy}", request="n") == f"S{policy}"
    assert {state(scene, f"R{policy}") for policy in POLICIES} == {"waiting"}
    assert [state(scene, f"S{policy}") for policy in POLICIES] == ["depends", "failed", "waiting", "failed"]
    assert code(wait(scene, "T request")) == "DEPENDENCY_NOT_FOUND"


def test_circles_through_a_request_are_refused_with_their_path(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 9))
    scene(ops.RequestAdd("R", subs("R", 1)))
    own = scene(ops.RequestAdd("R", (ops.Put("q", "s", "k", "", depends=("R request",)),)))
    assert own.facts == ("s > R request > s",)
    wait(scene, "R request")
    wait(scene, "w", jid="v")
    assert scene(ops.RequestAdd("R", (ops.Put("q", "s", "k", "", depends=("v",)),))).facts == (
        "s > v > w > R request > s",
    )
    (job,) = scene.pop()
    assert code(scene(ops.Release("R:0", job.token, depends=("v",)))) == "DEPENDENCY_CYCLE"
    assert code(scene(ops.Complete("R:0", job.token, next="q", depends=("R request",)))) == "DEPENDENCY_CYCLE"
    assert scene(ops.Put("q", "R:0", "k", "", depends=("R request",))) == "R:0"  # it is no sub-request any more


def test_a_sub_request_that_waits_for_its_request_when_it_leaves_ends_it(scene: Played) -> None:
    """The put ends the request before the edge to it exists."""
    for policy, found in zip(POLICIES, ("depends", "failed", "waiting", "failed"), strict=True):
        scene(ops.RequestPut(policy, "q", 1, (ops.Put("q", f"{policy}:1", "k", ""),)))
        scene(ops.Put("q", f"{policy}:1", "k", "", depends=(f"{policy} request {policy}",)))
        assert state(scene, f"{policy}:1") == found


def test_a_circle_is_found_in_a_large_request_whose_sub_requests_wait_for_nothing(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 9))
    for part in range(5):
        scene(ops.RequestAdd("R", tuple(ops.Put("q", f"{part}-{n}", "k", "") for n in range(1000))))
    jobs = (ops.Put("r", "w", "k", "", depends=("R request",)), ops.Put("r", "v", "k", "", depends=("w",)))
    assert scene(ops.PutMany(jobs)) == ("w", "v")
    assert code(scene(ops.RequestAdd("R", (ops.Put("q", "s", "k", "", depends=("v",)),)))) == "DEPENDENCY_CYCLE"


def test_a_thousand_jobs_go_on_in_the_step_that_ends_their_request(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 1)))
    scene(ops.PutMany(tuple(ops.Put("r", f"w{n}", "k", "", depends=("R request",)) for n in range(1000))))
    assert code(wait(scene, "R request")) == "DEPENDENCY_LIMIT"
    complete(scene)
    assert len(scene.events("unblocked")) == 1000
    assert scene(ops.RequestGet("R")).dependents == 0


def test_heavy_jobs_go_on_in_later_operations(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, subs("R", 1)))
    for part in range(10):
        tags = tuple(f"t{n}" for n in range(100))
        puts = (ops.Put("r", f"w{part}-{n}", "k", "", depends=("R request",), tags=tags) for n in range(10))
        scene(ops.PutMany(tuple(puts)))
    complete(scene)
    assert 0 < scene(ops.RequestGet("R")).dependents < 100
    for _ in range(4):
        scene(ops.Pop("nothing", "u"))
    assert scene(ops.RequestGet("R")).dependents == 0
    assert len(scene.events("unblocked")) == 100


def test_each_way_to_end_a_job_ends_its_edge(scene: Played) -> None:
    scene(ops.RequestOpen("R", "q", 1))
    for jid in ("canceled", "moved", "revoked", "expired", "drained"):
        wait(scene, "R request", jid=jid, ttl_ms=5 if jid == "expired" else None)
    assert scene(ops.RequestGet("R")).dependents == 5
    scene(ops.Cancel(("canceled",)))
    scene(ops.Put("s", "moved", "k", "", depends=()))
    scene(ops.Revoke(("revoked",)))
    scene.now += 10
    scene(ops.Pop("r", "u"))
    scene(ops.Drain("r"))
    assert scene(ops.RequestGet("R")).dependents == 0
    wait(scene, "R request")
    scene(ops.Obliterate("r"))
    assert scene(ops.RequestGet("R")).dependents == 0


def test_retention_keeps_a_request_while_a_blocked_job_waits_for_it(scene: Played) -> None:
    scene(ops.ConfigSet("requests-history", 1000))
    scene(ops.RequestPut("R", "q", 1, subs("R", 1)))
    wait(scene, "R request")
    scene(ops.RequestCancel("R"))
    for _ in range(3):
        scene.now += 1001
        scene(ops.RequestOpen("S", "q", 1))
        scene(ops.RequestAdd("S", (ops.Put("q", f"s{scene.now}", "k", ""),)))
        assert scene(ops.RequestGet("R")) is not None
    scene(ops.DependsOff("w", all=True))
    scene.now += 1001
    scene(ops.RequestAdd("S", (ops.Put("q", "last", "k", ""),)))
    assert scene(ops.RequestGet("R")) is None
