"""Faults of other queues with dependencies between jobs; each test claims that qmodel does not have one."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.arguments import POLICIES, Edge
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Result
from qmodel.model import engine, snapshot
from qmodel.model.invariants import check
from qmodel.model.state.history import stages
from qmodel.model.state.store import Store


def do(store: Store, op: ops.Operation, now: int = 1) -> Any:
    """Execute an operation; it must not be refused."""
    reply = engine.step(store, now, op)
    assert not isinstance(reply, Refusal), (op, reply)
    assert not check(snapshot.of(store))
    return reply


def put(store: Store, jid: str, *depends: str, queue: str = "q", **more: Any) -> None:
    """Put a job."""
    do(store, ops.Put(queue, jid, "k", "", depends=depends, **more))


def take(store: Store, jid: str, now: int = 1) -> int:
    """Lease a job and give its token; jobs before it are released."""
    queue = store.jobs[jid].queue
    taken = {job.jid: job.token for job in do(store, ops.Pop(queue, "w", 1000), now)}
    token: int = taken.pop(jid)
    for other, other_token in taken.items():
        do(store, ops.Release(other, other_token), now)
    return token


def fail(store: Store, jid: str) -> None:
    """Lease a job and fail it."""
    do(store, ops.Fail(jid, take(store, jid), "g", f"{jid} broke"))


def complete(store: Store, jid: str, result: str = "") -> None:
    """Lease a job and complete it."""
    do(store, ops.Complete(jid, take(store, jid), result))


def state(store: Store, jid: str) -> str:
    """Give a job's state; empty if the job does not exist."""
    return store.jobs[jid].state if jid in store.jobs else ""


# ---- failures


@pytest.mark.parametrize(
    ("policy", "becomes"), [("block", "depends"), ("fail", "failed"), ("ignore", "waiting"), ("cancel", "")]
)
def test_a_failed_dependency_is_handled_by_the_edges_policy(policy: str, becomes: str) -> None:
    store = Store()
    put(store, "child")
    put(store, "parent", f"child {policy}", queue="r")
    fail(store, "child")
    assert state(store, "parent") == becomes


def test_a_blocked_job_is_released_when_its_failed_dependency_completes_later() -> None:
    store = Store()
    put(store, "child")
    put(store, "parent", "child")
    fail(store, "child")
    do(store, ops.RetryMany(group="g", to="q"))
    complete(store, "child")
    assert state(store, "parent") == "waiting"


def test_a_job_that_fails_with_its_dependency_names_it() -> None:
    store = Store()
    put(store, "child")
    put(store, "parent", "child fail", queue="r")
    fail(store, "child")
    failure = store.jobs["parent"].failure
    assert failure is not None
    assert (failure.group, failure.message) == ("failed-dependencies-r", "Its dependency child failed.")


@pytest.mark.parametrize("how", ["exhausted", "lapsed", "expired", "put on a failed one"])
def test_every_way_to_fail_is_followed(how: str) -> None:
    store = Store()
    put(store, "child", retries=0, ttl_ms=10 if how == "expired" else None)
    put(store, "parent", "child fail", queue="r")
    if how == "exhausted":
        do(store, ops.Retry("child", take(store, "child")))
    elif how == "lapsed":
        take(store, "child")
        do(store, ops.Pop("q", "w"), 10**6)
    elif how == "expired":
        do(store, ops.Pop("q", "w"), 100)
    else:
        put(store, "bad", queue="z")
        fail(store, "bad")
        put(store, "child", "bad fail")
    assert state(store, "parent") == "failed"


def test_a_failure_is_followed_through_the_tree() -> None:
    store = Store()
    put(store, "a")
    put(store, "b", "a cancel")
    put(store, "c", "b fail")
    put(store, "d", "c ignore")
    put(store, "e", "b ignore", "d")
    fail(store, "a")
    assert [state(store, jid) for jid in "abcde"] == ["failed", "", "failed", "waiting", "depends"]


def test_a_job_with_blocked_dependents_is_not_canceled() -> None:
    store = Store()
    put(store, "a")
    put(store, "b", "a cancel")
    put(store, "c", "b")
    fail(store, "a")
    assert (state(store, "b"), state(store, "c")) == ("failed", "depends")
    do(store, ops.RetryMany(group="failed-dependencies-q", to="q"))
    assert state(store, "b") == "depends"
    do(store, ops.RetryMany(group="g", to="q"))
    complete(store, "a")
    complete(store, "b")
    assert state(store, "c") == "waiting"


@pytest.mark.parametrize("policies", [(a, b) for a in POLICIES for b in POLICIES])
def test_the_order_of_failures_does_not_change_the_outcome(policies: tuple[str, str]) -> None:
    ends = set()
    for order in permutations("ab"):
        store = Store()
        put(store, "a")
        put(store, "b")
        put(store, "w", *(f"{jid} {policy} {jid}" for jid, policy in zip("ab", policies, strict=True)))
        put(store, "x", "w ignore")
        for jid in order:
            fail(store, jid)
        kept = do(store, ops.Results("w")) if "w" in store.jobs else ()
        ends.add((state(store, "w"), state(store, "x"), kept))
    assert len(ends) == 1


def test_an_edge_to_a_job_that_has_failed_follows_at_once() -> None:
    store = Store()
    put(store, "bad")
    fail(store, "bad")
    for policy, becomes in (("block", "depends"), ("fail", "failed"), ("ignore", "waiting"), ("cancel", "failed")):
        put(store, policy, f"bad {policy}", queue="r")
        assert state(store, policy) == becomes


def test_a_job_put_too_late_to_be_canceled_is_there_to_recognise_a_resend() -> None:
    store = Store()
    put(store, "bad")
    fail(store, "bad")
    for _ in range(2):
        put(store, "late", "bad cancel", request="r")
    assert state(store, "late") == "failed"
    assert [what for what, _, _ in stages(store.jobs["late"])] == ["put", "failed"]


def test_more_than_a_thousand_dependents_follow_in_later_operations() -> None:
    store = Store()
    put(store, "root")
    put(store, "left", "root fail")
    put(store, "right", "root fail")
    for side in ("left", "right"):
        do(
            store,
            ops.PutMany(tuple(ops.Put("r", f"{side}{n}", "k", "", depends=(f"{side} fail",)) for n in range(1000))),
        )
    fail(store, "root")
    assert store.cascade
    for _ in range(4):
        do(store, ops.Pop("elsewhere", "w"))
    assert not store.cascade
    assert {job.state for job in store.jobs.values()} == {"failed"}


# ---- who waits


def test_a_dependency_that_completes_twice_counts_once() -> None:
    store = Store()
    put(store, "a")
    put(store, "b")
    put(store, "w", "a", "b")
    complete(store, "a")
    put(store, "a")
    complete(store, "a")
    assert state(store, "w") == "depends"


def test_dependents_of_another_queue_are_released() -> None:
    store = Store()
    put(store, "a")
    put(store, "b", queue="s")
    put(store, "w", "a", "b", queue="r")
    complete(store, "a")
    complete(store, "b")
    assert state(store, "w") == "waiting"


def test_a_dependency_that_completed_before_it_was_named_counts() -> None:
    store = Store()
    put(store, "a")
    complete(store, "a", "1")
    put(store, "w", "a fail name")
    assert state(store, "w") == "waiting"
    assert do(store, ops.Results("w")) == (Result("name", "a", "complete", "1"),)


def test_a_diamond_runs_its_last_job_once() -> None:
    store = Store()
    put(store, "top")
    put(store, "left", "top")
    put(store, "right", "top")
    put(store, "last", "left", "right")
    for jid in ("top", "left", "right", "last"):
        complete(store, jid)
    assert [what for what, _, _ in stages(store.jobs["last"])] == ["put", "popped", "completed"]


def test_removing_a_job_that_waits_leaves_those_that_it_waited_for() -> None:
    store = Store()
    put(store, "child")
    put(store, "parent", "child fail name")
    do(store, ops.Cancel(("parent",)))
    complete(store, "child")
    assert state(store, "child") == "complete"
    assert not store.results
    assert state(store, "parent") == ""


def test_nothing_is_written_when_one_job_of_a_flow_is_refused() -> None:
    store = Store()
    flow = (
        ops.Put("q", "a", "k", ""),
        ops.Put("q", "b", "k", "", depends=("a fail",)),
        ops.Put("q", "c", "k", "", depends=("nobody ignore",)),
    )
    refusal = engine.step(store, 1, ops.PutMany(flow))
    assert refusal == Refusal("DEPENDENCY_NOT_FOUND", ("c", "nobody"))
    assert snapshot.of(store) == snapshot.of(Store())


# ---- results


def test_results_are_kept_after_their_jobs_are_deleted() -> None:
    store = Store()
    do(store, ops.ConfigSet("jobs-history-count", 0))
    put(store, "a")
    put(store, "b")
    put(store, "w", "b ignore second", "a block first")
    complete(store, "a", "1")
    fail(store, "b")
    assert state(store, "a") == ""
    token = take(store, "w")
    assert do(store, ops.Results("w")) == (
        Result("second", "b", "failed", "b broke"),
        Result("first", "a", "complete", "1"),
    )
    do(store, ops.Complete("w", token))
    assert not store.results


def test_results_are_kept_for_a_retry() -> None:
    store = Store()
    put(store, "a")
    put(store, "w", "a block name")
    complete(store, "a", "1")
    fail(store, "w")
    do(store, ops.RetryMany(group="g", to="q"))
    assert do(store, ops.Results("w")) == (Result("name", "a", "complete", "1"),)


# ---- waiting for children


def test_a_running_job_waits_for_its_children_and_loses_no_retry() -> None:
    store = Store()
    put(store, "parent", retries=3)
    token = take(store, "parent")
    put(store, "child", queue="r")
    assert do(store, ops.Release("parent", token, depends=("child block child",))) == "depends"
    complete(store, "child", "1")
    assert (state(store, "parent"), store.jobs["parent"].remaining) == ("waiting", 3)
    token = take(store, "parent")
    assert do(store, ops.Results("parent")) == (Result("child", "child", "complete", "1"),)
    assert do(store, ops.Release("parent", token, depends=("child",))) == "waiting"


@pytest.mark.parametrize("edge", [Edge("a"), Edge("a", "fail"), Edge("a", "ignore", "n"), Edge("a", "block", "n")])
def test_an_edge_is_read_as_it_was_written(edge: Edge) -> None:
    assert Edge.parse(edge.text) == edge


def test_a_job_that_is_released_to_wait_for_others_is_listed_by_the_time_of_its_put() -> None:
    store = Store()
    put(store, "parent")
    token = take(store, "parent", now=5)
    do(store, ops.Put("q", "child", "k", ""), now=7)
    do(store, ops.Put("q", "later", "k", "", depends=("child",)), now=8)
    do(store, ops.Release("parent", token, depends=("child",)), now=9)
    assert do(store, ops.Depending("q"), now=10).jids == ("parent", "later")
