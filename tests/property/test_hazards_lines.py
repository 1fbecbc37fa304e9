"""Concurrency keys: faults of other queues; each test claims that qmodel does not have one.

Every scene is played on the model and, if lupa is installed, on the Lua library in this process; both must agree.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qmodel.contract import operations as ops
from tests.property.test_hazards_life import Played, scene

__all__ = ["scene"]


def state(scene: Played, *jids: str) -> list[str]:
    """Give the states of jobs."""
    return [scene.get(jid).state for jid in jids]


def running(scene: Played, jid: str, worker: str = "w", queue: str = "q") -> int:
    """Pop a job, which must be the next one, and give its token."""
    (job,) = scene.pop(queue, worker)
    assert job.jid == jid
    return int(job.token)


# ---- order


def test_jobs_of_a_key_start_one_after_the_other_in_the_order_in_which_they_became_ready(scene: Played) -> None:
    scene.put("a", ordered="k", priority=5)
    scene.put("b", "r", ordered="k", priority=9)
    scene.put("c", ordered="k", priority=-9)
    scene.put("d", ordered="other")
    assert state(scene, "a", "b", "c", "d") == ["waiting", "throttled", "throttled", "waiting"]
    assert scene.order() == ["d", "a"]
    assert scene.pop("r") == ()
    scene(ops.Complete("a", scene.get("a").token))
    assert [scene.order(), [job.jid for job in scene.pop("r")]] == [[], ["b"]]
    scene(ops.Complete("b", scene.get("b").token))
    assert scene.order() == ["c"]


def test_a_delayed_job_keeps_nobody_waiting_and_joins_when_it_is_due(scene: Played) -> None:
    scene.put("a", ordered="k", delay_ms=1000)
    scene.put("b", ordered="k")
    token = running(scene, "b")
    scene.now += 1000
    assert scene.order() == []
    assert state(scene, "a") == ["throttled"]
    scene(ops.Complete("b", token))
    assert scene.order() == ["a"]


def test_a_parent_may_have_the_key_of_its_children(scene: Played) -> None:
    scene(
        ops.PutMany(
            (
                ops.Put("q", "parent", "k", "", depends=("one", "two"), ordered="k"),
                ops.Put("q", "one", "k", "", ordered="k"),
                ops.Put("q", "two", "k", "", ordered="k"),
            )
        )
    )
    for jid in ("one", "two", "parent"):
        scene(ops.Complete(jid, running(scene, jid)))
    assert scene.store.concurrency_keys == {}


def test_a_job_that_comes_to_depend_on_a_later_one_of_its_key_lets_it_go_first(scene: Played) -> None:
    scene.put("a", ordered="k")
    scene.put("b", ordered="k")
    assert scene(ops.Complete("a", running(scene, "a"), next="q", depends=("b",))) == "depends"
    scene(ops.Complete("b", running(scene, "b")))
    assert scene.order() == ["a"]


# ---- the place is held


def test_a_place_is_held_through_retries_steps_lapses_and_a_move_to_a_next_queue(scene: Played) -> None:
    scene.put("a", ordered="k")
    scene.put("b", ordered="k")
    scene(ops.Retry("a", running(scene, "a"), delay_ms=1000))
    assert [state(scene, "a", "b"), scene.order()] == [["scheduled", "throttled"], []]
    scene.now += 1000
    scene(ops.Release("a", running(scene, "a")))
    scene(ops.Timeout((scene.pop()[0].jid,)))
    assert running(scene, "a")
    scene.now += 10**6
    assert scene(ops.Complete("a", running(scene, "a"), next="r")) == "waiting"
    assert [state(scene, "b"), scene.order()] == [["throttled"], []]
    scene(ops.Complete("a", running(scene, "a", queue="r")))
    assert scene.order() == ["b"]


def test_a_job_that_is_delayed_keeps_its_place_only_if_it_has_begun(scene: Played) -> None:
    scene.put("a", ordered="k")
    scene.put("b", ordered="k")
    assert scene(ops.Delay("a", 1000)) == "scheduled"
    scene(ops.Release("b", running(scene, "b")))
    scene(ops.Delay("b", 5000))
    scene.now += 1000
    assert [scene.order(), state(scene, "a", "b")] == [[], ["throttled", "scheduled"]]


# ---- the place is let go

ENDS: dict[str, Callable[[Played, int], object]] = {
    "complete": lambda scene, token: scene(ops.Complete("a", token)),
    "complete, not kept": lambda scene, token: (
        scene(ops.ConfigSet("jobs-history", 0)),
        scene(ops.Complete("a", token)),
    ),
    "complete_many": lambda scene, token: scene(ops.CompleteMany((ops.Complete("a", token),))),
    "fail": lambda scene, token: scene(ops.Fail("a", token, "g", "")),
    "retry": lambda scene, token: scene(ops.Retry("a", token)),
    "lapse": lambda scene, token: scene(ops.Pop("q", "v"), 10**6),
    "cancel": lambda scene, token: scene(ops.Cancel(("a",))),
    "put": lambda scene, token: scene.put("a"),
    "put with the same key": lambda scene, token: scene.put("a", ordered="k"),
    "put elsewhere with another": lambda scene, token: scene.put("a", "r", ordered="l"),
}


@pytest.mark.parametrize("way", ENDS)
def test_every_end_of_a_job_admits_the_next_one_of_its_key(scene: Played, way: str) -> None:
    for jid in "abc":
        scene.put(jid, ordered="k", retries=0)
    ENDS[way](scene, running(scene, "a"))
    assert state(scene, "c") == ["throttled"]
    assert scene.get("b").state in ("waiting", "running")
    assert set(scene.store.concurrency_keys["ordered:k"].active) == {"b"}


REMOVALS: dict[str, Callable[[Played], object]] = {
    "cancel": lambda scene: scene(ops.Cancel(("b",))),
    "cancel all": lambda scene: scene(ops.Cancel(("a", "b"))),
    "drain": lambda scene: scene(ops.Drain("r")),
    "put without the key": lambda scene: scene.put("b"),
    "delay": lambda scene: scene(ops.Delay("b", 10**9)),
}


@pytest.mark.parametrize("way", REMOVALS)
def test_a_parked_job_that_leaves_does_not_block_its_key(scene: Played, way: str) -> None:
    scene.put("a", ordered="k")
    scene.put("b", "r", ordered="k")
    scene.put("c", "s", ordered="k")
    REMOVALS[way](scene)
    if scene.get("a"):
        scene(ops.Complete("a", running(scene, "a")))
    scene(ops.Complete("c", running(scene, "c", queue="s")))
    assert scene.store.concurrency_keys == {}


def test_a_worker_that_dies_holds_no_place_for_ever(scene: Played) -> None:
    scene.put("a", ordered="k", retries=1)
    scene.put("b", ordered="k")
    scene.pop(worker="dead")
    assert [job.jid for job in scene.pop(after=10**6, worker="dying")] == ["a"]
    assert [job.jid for job in scene.pop(after=10**6)] == ["b"]


def test_a_job_that_is_unfailed_joins_anew(scene: Played) -> None:
    scene.put("a", ordered="k")
    scene(ops.Fail("a", running(scene, "a"), "g", ""))
    scene.put("b", ordered="k")
    scene(ops.RetryMany(group="g", to="q"))
    assert state(scene, "a", "b") == ["throttled", "waiting"]


def test_an_admitted_job_comes_last_of_its_priority_and_wakes_a_worker(scene: Played) -> None:
    scene.put("a", "r", ordered="k")
    scene.put("b", ordered="k")
    assert scene(ops.Pop("q", "idle", wait=True)) == ()
    scene(ops.Complete("a", running(scene, "a", queue="r")))
    assert scene.store.queues["q"].wakes == 1
    scene.put("c")
    assert scene.order() == ["b", "c"]


def test_a_thousand_jobs_of_a_key_may_be_canceled_at_once(scene: Played) -> None:
    jids = tuple(f"j{n}" for n in range(1000))
    scene(ops.PutMany(tuple(ops.Put("q", jid, "k", "", ordered="k") for jid in jids)))
    assert scene(ops.Cancel(jids)) == jids
    assert scene.store.concurrency_keys == {}
    assert scene(ops.Length("q")) == 0


def test_events_show_which_jobs_wait_and_which_are_admitted(scene: Played) -> None:
    scene.put("a", ordered="k")
    scene.put("b", ordered="k")
    scene(ops.Cancel(("a",)))
    told = [(event.event, event.named["jid"], event.facts[2]) for event in scene.events("throttled", "unthrottled")]
    assert told == [("throttled", "b", "ordered:k"), ("unthrottled", "b", "ordered:k")]
