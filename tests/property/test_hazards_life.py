"""The life of a job: more faults of other queues; each test claims that qmodel does not have one.

Every scene is played on the model and, if lupa is installed, on the Lua library in this process; both must agree.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from qmodel.conformance.compare.agree import agree
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.by_url import open_subject
from qmodel.contract import operations as ops
from qmodel.model import engine
from qmodel.model.state.store import Store
from tests.property.test_quirks import DAY, Scene


class Played(Scene):
    """A scene that records its operations."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def __call__(self, op: Any, after: int = 0) -> Any:
        reply = super().__call__(op, after)
        self.steps.append(Step(self.now, op))
        return reply

    def order(self, count: int = 9) -> list[str]:
        """Pop up to `count` jobs, after checking that peek shows the same ones."""
        shown = [job.jid for job in self(ops.Peek("q", count))]
        given = [job.jid for job in self.pop(count=count)]
        assert given == shown
        return given

    def causes(self) -> list[Any]:
        """Give the causes of lost leases."""
        return [event.named["cause"] for event in self.events("lock_lost")]


@pytest.fixture
def scene() -> Iterator[Played]:
    played = Played()
    yield played
    if importlib.util.find_spec("lupa") is not None:
        agree(open_subject("embedded://"), played.steps)


# ---- last in, first out


def test_the_last_lifo_job_comes_first_and_the_others_after_all_of_them(scene: Played) -> None:
    for jid in "ab":
        scene.put(jid)
    for jid in "cde":
        scene.put(jid, lifo=True)
    assert scene.order() == ["e", "d", "c", "a", "b"]


def test_lifo_jobs_of_other_moments_come_newest_first(scene: Played) -> None:
    for jid in "abcdefghijkl":
        scene.now += 7
        scene.put(jid, lifo=True)
    assert scene.order(12) == list("lkjihgfedcba")


def test_a_priority_beats_lifo(scene: Played) -> None:
    scene.put("low", lifo=True, priority=1)
    scene.put("high", priority=-1)
    scene.put("middle")
    scene.put("new", lifo=True)
    assert scene.order() == ["high", "new", "middle", "low"]


def test_a_lifo_job_with_a_priority_keeps_both(scene: Played) -> None:
    scene.put("a", lifo=True, priority=3, delay_ms=10)
    scene.put("b", priority=3)
    scene.put("c", priority=2)
    scene.now += 10
    assert scene.order() == ["c", "a", "b"]


@pytest.mark.parametrize("how", ["retry", "release", "delayed"])
def test_a_lifo_job_that_is_given_back_is_on_top_again(scene: Played, how: str) -> None:
    token = scene.running("a", lifo=True)
    scene.put("b", lifo=True)
    scene.now += 5
    if how == "retry":
        scene(ops.Retry("a", token))
    elif how == "release":
        scene(ops.Release("a", token))
    else:
        scene(ops.Retry("a", token, delay_ms=50))
        scene.now += 50
    assert scene.order() == ["a", "b"]


def test_a_lifo_job_may_be_delayed_promoted_prioritized_and_drained(scene: Played) -> None:
    for jid in "abc":
        scene.put(jid, lifo=True)
    assert scene(ops.Delay("c", 1000)) == "scheduled"
    assert scene(ops.Promote("c")) == "waiting"
    scene(ops.Priority("a", -1))
    assert scene(ops.Waiting("q")).jids == ("a", "c", "b")
    assert scene(ops.Drain("q")).canceled == 3
    assert scene(ops.Length("q")) == 0


def test_a_put_without_lifo_makes_the_job_fifo(scene: Played) -> None:
    scene.put("a", lifo=True)
    scene.put("b")
    assert scene.get().lifo and not scene.get("b").lifo
    scene.put("a")
    assert not scene.get().lifo
    assert scene.order() == ["b", "a"]


def test_a_stalled_job_of_a_low_priority_keeps_its_place_at_the_head(scene: Played) -> None:
    scene.running("a", priority=9)
    scene.put("b", priority=-9, lifo=True)
    scene.now += 70_000
    assert scene.order() == ["a", "b"]


def test_a_lifo_job_of_the_first_and_of_the_last_moment_stands_in_order(scene: Played) -> None:
    scene.now = 0
    scene.put("a", lifo=True)
    scene.now = 9 * 10**13 - 1
    scene.put("b", lifo=True)
    assert scene.order() == ["b", "a"]


# ---- the lease of one job


def test_a_job_may_have_a_lease_of_its_own(scene: Played) -> None:
    token = scene.running("a", lease_ms=1000)
    assert scene.get().expires_at == scene.now + 1000
    scene.now += 600
    assert scene(ops.Heartbeat("a", token)).expires_at == scene.now + 1000
    scene.put("b")
    scene.now += 11_000
    assert scene.order() == ["a", "b"]
    assert scene.causes() == ["lapsed"]


def test_no_heartbeat_carries_a_job_over_its_timeout(scene: Played) -> None:
    token = scene.running("a", timeout_ms=70_000, retries=0)
    begun = scene.now
    assert scene.get().expires_at == begun + 60_000
    scene.now += 30_000
    assert scene(ops.Heartbeat("a", token)).expires_at == begun + 70_000
    scene.now += 39_000
    assert scene(ops.Heartbeat("a", token)).expires_at == begun + 70_000
    scene.now = begun + 80_000
    assert scene.order() == []
    job = scene.get()
    assert (job.state, job.failure.group) == ("failed", "failed-retries-q")
    assert job.failure.message == "It ran for longer than its timeout, and no retries remained."
    assert scene.causes() == ["timeout"]


def test_a_timeout_counts_from_each_claim_and_as_a_retry(scene: Played) -> None:
    token = scene.running("a", timeout_ms=1000)
    assert scene.get().expires_at == scene.now + 1000
    scene.now += 11_000
    again = scene.pop()[0]
    assert (again.remaining, again.expires_at) == (4, scene.now + 1000)
    assert scene(ops.Complete("a", token)).code == "LOCK_LOST"
    assert [stage.what for stage in again.history] == ["put", "popped", "timed_out", "popped"]


@pytest.mark.parametrize("behind", [1, 99, 100, 101, 230])
def test_a_job_whose_lease_ended_is_found_behind_those_that_fail(scene: Played, behind: int) -> None:
    for at in range(behind):
        scene.put(f"gone-{at}", retries=0)
    scene.put("kept", retries=1)
    assert len(scene.pop(count=1000)) == behind + 1
    scene.put("ready", priority=-1)
    scene.now += DAY
    assert scene.order(1) == ["kept"]
    assert len(scene.events("failed")) == behind
    assert scene.order(1) == ["ready"]


def test_a_job_whose_lease_ended_is_found_behind_one_that_a_throttle_parks(scene: Played) -> None:
    scene(ops.ThrottleSet("t", rate=2, rate_ms=10 * DAY))
    scene.put("a", throttles=("t",))
    scene.put("b", throttles=("t",))
    scene.put("c")
    assert len(scene.pop(count=3)) == 3
    scene.now += DAY
    assert [job.jid for job in scene.pop()] == ["c"]
    assert {scene.get(jid).state for jid in "ab"} == {"throttled"}


def test_a_lease_that_lapses_before_the_timeout_has_lapsed(scene: Played) -> None:
    scene.running("a", timeout_ms=DAY, lease_ms=500, retries=0)
    scene.now += 20_000
    scene.pop()
    assert scene.causes() == ["lapsed"]
    assert scene.get().failure.message == "Its lease ran out, and no retries remained."


# ---- steps


def test_a_step_job_in_any_lane_comes_back_later_uncounted_with_its_data(scene: Played) -> None:
    for jid, arguments in (("a", {}), ("b", {"lifo": True}), ("c", {"priority": 5}), ("d", {"lease_ms": 5000})):
        token = scene.running(jid, **arguments)
        assert scene(ops.Release(jid, token, 60_000, "step 2")) == "scheduled"
        scene.now += 60_000
        again = scene.pop()[0]
        assert (again.jid, again.remaining, again.data, again.option("lifo")) == (
            jid, 5, "step 2", "1" if jid == "b" else None,
        )  # fmt: skip
        scene(ops.Complete(jid, again.token))


def test_a_new_delay_leaves_no_second_place_behind_in_any_lane(scene: Played) -> None:
    for jid, arguments in (("a", {}), ("b", {"lifo": True}), ("c", {"priority": 5, "delay_ms": 5})):
        scene.put(jid, **arguments)
        for delay in (1000, 0, 2000):
            assert scene(ops.Delay(jid, delay)) == ("scheduled" if delay else "waiting")
    assert scene(ops.Queue("q")).scheduled == 3
    scene.now += 2000
    assert scene.order() == ["b", "a", "c"]
    for jid in "abc":
        assert scene(ops.Delay(jid, 0)).code == "WRONG_STATE"


# ---- times to live


def test_a_job_begins_at_the_last_moment_of_its_life_and_expires_after_it(scene: Played) -> None:
    scene.put("a", ttl_ms=1000)
    scene.put("b", ttl_ms=1000)
    scene.now += 1000
    assert [job.jid for job in scene.pop()] == ["a"]
    scene.now += 1
    assert scene.order() == []
    job = scene.get("b")
    assert (job.state, job.failure.group, job.failure.at) == ("failed", "expired-q", scene.now)
    assert job.failure.message == "It did not begin within its time to live."
    assert scene.stats().failures == 1


def test_no_heartbeat_and_no_lapse_makes_a_job_expire_that_has_begun(scene: Played) -> None:
    token = scene.running("a", ttl_ms=1000)
    assert scene.get().ttl_ms is None
    scene.now += 30_000
    scene.pop()
    assert scene(ops.Heartbeat("a", token)).expires_at == scene.now + 60_000
    scene(ops.Retry("a", token, 1000))
    scene.now += 5000
    assert scene.order() == ["a"]
    scene.now += 80_000
    assert scene.order() == ["a"]


def test_an_expired_job_does_not_block_those_behind_it(scene: Played) -> None:
    scene.put("a", priority=-9, ttl_ms=10)
    scene.put("b", lifo=True, ttl_ms=10)
    scene.put("c")
    scene.now += 11
    assert scene.order(1) == ["c"]
    assert scene(ops.Failed("expired-q")).jids == ("b", "a")


def test_a_delay_a_dependency_and_a_pause_do_not_lengthen_a_life(scene: Played) -> None:
    scene.put("b", "other")
    scene.put("delayed", delay_ms=5000, ttl_ms=100)
    scene.put("depends", depends=("b",), ttl_ms=100)
    scene(ops.Pause(("q",)))
    scene.put("paused", ttl_ms=100)
    scene.now += 101
    assert (scene.pop(), scene(ops.Length("q"))) == ((), 3)
    assert scene.get("depends").state == "depends"
    scene(ops.Unpause(("q",)))
    assert scene.order() == []
    assert scene(ops.Failed("expired-q")).jids == ("paused", "depends", "delayed")
    assert (scene.get("b").dependents, scene.get("depends").dependencies) == ((), ())


def test_fire_makes_jobs_expire_without_taking_any(scene: Played) -> None:
    scene.put("a", ttl_ms=1)
    scene.put("b")
    scene(ops.Pause(("q",)))
    scene.now += 2
    assert scene(ops.Fire("q")) == 0
    assert (scene.get("a").state, scene.get("b").state) == ("failed", "waiting")


def test_a_new_delay_a_new_priority_and_a_promotion_keep_the_life(scene: Played) -> None:
    for jid in "abc":
        scene.put(jid, ttl_ms=100, delay_ms=50)
    scene(ops.Delay("a", 5000))
    scene(ops.Promote("b"))
    scene(ops.Priority("b", -1))
    scene.now += 60
    assert scene.order(1) == ["b"]
    scene.now += 60
    assert scene.order() == []
    assert [event.facts[0] for event in scene.events("failed")] == ["c", "a"]


def test_a_put_without_a_time_to_live_ends_it_and_one_with_it_begins_it_anew(scene: Played) -> None:
    for jid in "ab":
        scene.put(jid, ttl_ms=100)
    scene.now += 90
    scene.put("a")
    scene.put("b", "r", ttl_ms=100)
    scene.now += 90
    assert scene.order() == ["a"]
    assert [job.jid for job in scene.pop("r")] == ["b"]


def test_an_expired_job_that_is_tried_again_lives_for_ever(scene: Played) -> None:
    scene.put("a", ttl_ms=100)
    scene.now += DAY
    scene.pop()
    assert scene(ops.RetryMany(group="expired-q", to="q")).done == 1
    scene.now += DAY
    assert scene.order() == ["a"]


def test_of_very_many_expired_jobs_none_is_handed_out(scene: Played) -> None:
    for start in (0, 600):
        scene(ops.PutMany(tuple(ops.Put("q", f"a{start + i}", "k", "", ttl_ms=5) for i in range(600))))
    scene.put("b")
    scene.now += 6
    given = [job.jid for _ in range(3) for job in scene.pop(count=150)]
    assert given == ["b"]
    assert scene(ops.Failed("expired-q")).total == 1200


def test_nothing_is_left_of_a_job_that_could_have_expired(scene: Played) -> None:
    for jid in "abcd":
        scene.put(jid, ttl_ms=1000)
    token = scene.pop()[0].token
    scene(ops.Cancel(("b",)))
    scene(ops.Drain("q", 1))
    scene.put("d", "r")
    assert not scene.store.queues["q"].expires
    scene(ops.Complete("a", token))
    scene.now += DAY
    assert (scene.order(), scene.get("a").state) == ([], "complete")


# ---- calling off


def test_a_pending_job_that_is_revoked_fails_at_once_wherever_it_stands(scene: Played) -> None:
    scene.put("far", "r")
    scene.put("waiting", lifo=True)
    scene.put("scheduled", delay_ms=1000, ttl_ms=5)
    scene.put("depends", depends=("far",))
    jids = ("waiting", "scheduled", "depends")
    assert scene(ops.Revoke((*jids, "waiting"))) == ("failed",) * 3
    assert scene(ops.Revoke(jids)) == ("failed",) * 3
    assert scene(ops.Failed("revoked-q")).total == 3
    assert len(scene.events("revoked")) == len(scene.events("failed")) == 3
    assert (scene(ops.Length("q")), scene.order()) == (0, [])
    scene.now += DAY
    assert scene.order() == []
    assert (scene.get("far").dependents, scene.get("depends").dependencies) == ((), ())
    assert scene.get("waiting").failure.message == "It was revoked."


def test_a_stalled_job_that_is_revoked_fails_at_once(scene: Played) -> None:
    scene.running("a")
    scene(ops.Timeout(("a",)))
    assert scene(ops.Revoke(("a",))) == ("failed",)
    assert scene.order() == []


def test_a_worker_learns_by_its_heartbeat_that_the_job_was_revoked(scene: Played) -> None:
    token = scene.running("a")
    assert not scene(ops.Heartbeat("a", token)).revoked
    assert scene(ops.Revoke(("a",))) == ("running",)
    assert scene(ops.Revoke(("a",))) == ("running",)
    assert scene(ops.Heartbeat("a", token)) == (scene.now + 60_000, True)
    assert [event.facts for event in scene.events("revoked")] == [("a", "q", "w", token)]
    assert scene.get().revoked


ENDS: dict[str, Any] = {
    "complete": lambda token: ops.Complete("a", token, "half", "kept"),
    "complete_many": lambda token: ops.CompleteMany((ops.Complete("a", token, "half", "kept"),)),
    "complete_and_pop": lambda token: ops.CompleteAndPop("a", token, "r", "w", result="half", data="kept"),
    "advance": lambda token: ops.Complete("a", token, "half", "kept", "r"),
    "fail": lambda token: ops.Fail("a", token, "other", "why", "kept"),
    "retry": lambda token: ops.Retry("a", token, 0, "other", "why"),
    "release": lambda token: ops.Release("a", token, 1000, "kept"),
    "timeout": lambda token: ops.Timeout(("a",)),
    "lapse": lambda token: ops.Pop("q", "v"),
}
REPLIES: dict[str, Any] = {
    "complete": "failed", "complete_many": ("failed",), "complete_and_pop": ("failed", ()), "advance": "failed",
    "fail": "a", "retry": -1, "release": "failed", "timeout": ("a",), "lapse": (),
}  # fmt: skip


@pytest.mark.parametrize("how", ENDS)
def test_however_the_lease_of_a_revoked_job_ends_it_fails_and_is_not_tried_again(scene: Played, how: str) -> None:
    token = scene.running("a")
    scene.put("b", "r", depends=("a",))
    scene(ops.Revoke(("a",)))
    scene.now += 70_000 if how == "lapse" else 5
    assert scene.order() == [] if how == "lapse" else True
    end = ENDS[how](token)
    for _ in range(2):
        if how != "timeout" or scene.get().state == "running":
            assert scene(end) == REPLIES[how]
    job = scene.get()
    assert (job.state, job.failure.group, job.remaining, job.revoked) == ("failed", "revoked-q", 5, False)
    assert job.failure.message == ("why" if how in ("fail", "retry") else "It was revoked.")
    assert job.result == ("half" if how in ("complete", "complete_many", "complete_and_pop", "advance") else "")
    assert job.data == ("{}" if how in ("retry", "timeout", "lapse") else "kept")
    assert scene.get("b").state == "depends"
    assert scene.stats().run.count == 0
    scene.now += DAY
    assert scene.order() == []


def test_a_revoked_job_may_be_tried_again_by_whoever_wants_that(scene: Played) -> None:
    token = scene.running("a")
    scene(ops.Revoke(("a",)))
    scene(ops.Complete("a", token))
    assert scene(ops.RetryMany(group="revoked-q", to="q")).done == 1
    again = scene.pop()[0]
    assert scene(ops.Complete("a", again.token)) == "complete"
    assert scene(ops.Revoke(("a",))) == ("complete",)


def test_a_put_of_a_revoked_job_begins_it_anew(scene: Played) -> None:
    scene.running("a")
    scene(ops.Revoke(("a",)))
    token = scene.running("a")
    assert not scene(ops.Heartbeat("a", token)).revoked
    assert scene(ops.Complete("a", token)) == "complete"


def test_revoking_a_job_that_is_not_there_changes_nothing(scene: Played) -> None:
    scene.put("a")
    assert scene(ops.Revoke(("a", "ghost"))).code == "JOB_NOT_FOUND"
    assert scene.get().state == "waiting"


def test_revoking_ends_no_more_than_1000_dependencies(scene: Played) -> None:
    scene(ops.PutMany(tuple(ops.Put("r", f"d{i}", "k", "") for i in range(1000))))
    scene.put("x", "r")
    scene.put("a", depends=tuple(f"d{i}" for i in range(1000)), ttl_ms=5)
    scene.put("b", depends=("x",))
    assert scene(ops.Revoke(("a", "b"))).code == "DEPENDENCY_LIMIT"
    scene(ops.DependsOn("a", ("x",)))
    scene.now += 6
    assert (scene.pop(), len(scene.get().dependencies), scene.get().state) == ((), 1, "depends")
    assert (scene.pop(), scene.get().state) == ((), "failed")


def test_a_job_that_is_freed_and_taken_in_one_step_can_expire_no_more(scene: Played) -> None:
    token = scene.running("a")
    scene.put("b", depends=("a",), ttl_ms=100)
    scene(ops.CompleteAndPop("a", token, "q", "w", 2))
    assert scene.get("b").state == "running"
    assert not scene.store.queues["q"].expires


# ---- dead letters


CAUSES: dict[str, Any] = {
    "fail": lambda token: ops.Fail("a", token, "g", "why"),
    "retry": lambda token: ops.Retry("a", token, 0, "g", "why"),
    "lapse": lambda token: ops.Pop("q", "v"),
    "revoke": lambda token: ops.Release("a", token),
    "expired": lambda token: ops.Fire("q"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_whatever_the_cause_a_dead_letter_is_written_in_the_same_step(scene: Played, cause: str) -> None:
    more = {"ttl_ms": 5} if cause == "expired" else {}
    scene.put("a", retries=0, priority=3, tags=("t", "u"), dead_queue="dead", lifo=True, **more)
    token = 0 if cause == "expired" else scene.pop()[0].token
    if cause == "revoke":
        scene(ops.Revoke(("a",)))
    scene.now += 70_000 if cause == "lapse" else 6
    scene(CAUSES[cause](token))
    job = scene.get()
    (letter,) = scene(ops.Peek("dead", 5))
    assert job.state == "failed"
    assert (letter.origin, letter.origin_queue, letter.jid[:7]) == ("a", "q", "a-dead-")
    assert (letter.klass, letter.data, letter.priority, letter.retries, letter.tags, letter.failure) == (
        job.klass, job.data, 3, 0, ("t", "u"), job.failure,
    )  # fmt: skip
    assert [event.facts for event in scene.events("dead_lettered")] == [("a", "q", letter.jid, "dead")]
    assert scene(ops.Replay(letter.jid)) == "a"
    again = scene.get()
    assert (again.state, again.queue, again.priority, again.retries, again.tags) == ("waiting", "q", 3, 0, ("t", "u"))
    assert (again.dead_queue, again.lifo, again.ttl_ms) == ("dead", True, None)
    assert (scene.get(letter.jid), scene(ops.Length("dead")), scene.order()) == (None, 0, ["a"])
    assert scene.stats().failed == 0


def dead(scene: Played, jid: str = "a", **arguments: Any) -> str:
    """Fail a job; give the id of its dead letter."""
    scene(ops.Fail(jid, scene.running(jid, dead_queue="dead", **arguments), "g", "why"))
    return str(scene(ops.Peek("dead", 9))[-1].jid)


def test_dead_letters_make_no_dead_letters(scene: Played) -> None:
    scene(ops.Fail("a", scene.running("a", dead_queue="q"), "g", "why"))
    letter = scene(ops.Peek("q"))[0].jid
    scene(ops.Fail(letter, scene.pop()[0].token, "g", "again"))
    assert (scene(ops.Length("q")), scene(ops.Failed("g")).total) == (0, 2)
    assert scene(ops.Replay(letter)) == "a"
    assert scene(ops.Failed("g")).total == 0


def test_the_holder_of_a_dead_letter_may_change_it_before_a_replay(scene: Played) -> None:
    letter = dead(scene)
    token = scene.pop("dead")[0].token
    scene(ops.Update(letter, "mended"))
    scene(ops.Cancel(("a",)))
    assert scene(ops.Replay(letter)) == "a"
    assert scene.get().data == "mended"
    assert scene(ops.Complete(letter, token)).code == "JOB_NOT_FOUND"
    assert scene.causes() == ["cancel"]


def test_a_replay_does_not_disturb_a_job_that_is_not_failed(scene: Played) -> None:
    letter = dead(scene)
    scene(ops.RetryMany(group="g", to="q"))
    assert scene(ops.Replay(letter)).facts == ("a", "waiting")
    assert scene(ops.Replay("a")).code == "NOT_A_DEAD_LETTER"
    assert scene(ops.Replay("ghost")).code == "JOB_NOT_FOUND"
    scene.put("b", depends=(letter,))
    scene(ops.Cancel(("a",)))
    assert scene(ops.Replay(letter)).code == "HAS_DEPENDENTS"
    scene(ops.Cancel(("b",)))
    scene(ops.Complete(letter, scene.pop("dead")[0].token))
    assert scene(ops.Replay(letter)).facts == (letter, "complete")


def test_a_job_that_dies_twice_has_two_letters(scene: Played) -> None:
    first = dead(scene)
    scene.now += 5
    second = dead(scene)
    assert first != second
    assert scene(ops.Length("dead")) == 2


def test_a_letter_of_a_job_with_a_long_id_and_much_data_can_be_asked_for(scene: Played) -> None:
    long = "x" * 128
    scene(ops.Put("q", long, "k", "y" * 5000, dead_queue="dead"))
    scene(ops.Fail(long, scene.pop()[0].token, "g", "m", "z" * 6000))
    (letter,) = scene(ops.Peek("dead"))
    assert len(letter.jid) <= 128
    assert scene.get(letter.jid).data == "z" * 6000
    assert scene(ops.Replay(letter.jid)) == long
    assert scene.get(long).data == "z" * 6000


def test_a_dead_letter_overwrites_no_job(scene: Played) -> None:
    token = scene.running("a", dead_queue="dead")
    scene.put(f"a-dead-{token + 2}", "r")
    scene(ops.Fail("a", token, "g", "why"))
    assert scene.get(f"a-dead-{token + 2}").queue == "r"
    assert scene(ops.Length("dead")) == 0
    assert scene.get().state == "failed"


def test_a_letter_of_a_plain_job_is_not_written(scene: Played) -> None:
    scene.failed()
    assert scene.events("dead_lettered") == []


# ---- how long failed jobs are kept


def failed_jobs(scene: Played) -> list[str]:
    """Give the failed jobs, those that failed first at the beginning."""
    groups = [tally.name for tally in scene(ops.FailedGroups())]
    listed = [jid for name in groups for jid in scene(ops.Failed(name)).jids]
    return [jid for jid, _ in sorted(((jid, scene.get(jid).ended_at) for jid in listed), key=lambda pair: pair[1])]


def test_failed_jobs_are_deleted_only_by_an_option(scene: Played) -> None:
    for jid in "ab":
        scene.failed(jid)
        scene.now += 3000 * DAY
    assert failed_jobs(scene) == ["a", "b"]
    assert (scene(ops.ConfigGet("failed-history")), scene(ops.ConfigGet("failed-history-count"))) == (0, 0)


def test_the_newest_failed_jobs_are_kept_and_of_equals_those_that_failed_last(scene: Played) -> None:
    scene(ops.ConfigSet("failed-history-count", 2))
    for jid in "dcba":
        scene.failed(jid)
    assert scene(ops.Failed("g")).jids == ("a", "b")
    assert [event.facts[0] for event in scene.events("retired")] == ["d", "c"]
    assert (scene.stats().failures, scene.stats().failed) == (4, 2)
    assert (scene.get("d"), scene(ops.Tagged("t")).total) == (None, 0)


def test_failed_jobs_of_all_groups_grow_too_old(scene: Played) -> None:
    for jid, group in (("a", "g"), ("b", "h"), ("c", "i")):
        scene(ops.Fail(jid, scene.running(jid, tags=("t",)), group, "m"))
        scene.now += 10
    scene(ops.ConfigSet("failed-history", 1000))
    scene.now += 980
    scene.failed("d")
    assert failed_jobs(scene) == ["c", "d"] and [one.name for one in scene(ops.FailedGroups())] == ["g", "i"]
    assert scene(ops.Tagged("t")).total == 1


def test_failed_jobs_come_down_to_a_limit_that_was_lowered(scene: Played) -> None:
    for n in range(9):
        scene.failed(f"a{n}")
    scene(ops.ConfigSet("failed-history-count", 1))
    left = []
    for n in range(5):
        scene.failed(f"b{n}")
        left.append(scene(ops.Failed("g")).total)
    assert left == [7, 5, 3, 1, 1]


def test_a_failed_job_on_which_others_depend_is_kept_until_it_is_tried_again(scene: Played) -> None:
    scene(ops.ConfigSet("failed-history-count", 1))
    scene.failed("a")
    scene.put("z", "other", depends=("a",))
    for jid in "bcd":
        scene.failed(jid)
    assert set(failed_jobs(scene)) == {"a", "d"}
    assert scene(ops.RetryMany(group="g", to="q")).done == 2
    scene(ops.Complete("a", scene.pop()[0].token))
    assert scene.get("z").state == "waiting"
    scene(ops.Fail("d", scene.pop()[0].token, "g", "m"))
    scene.failed("e")
    assert failed_jobs(scene) == ["e"]


@pytest.mark.parametrize("end", ["fail", "retry", "release"])
def test_a_failure_that_was_not_kept_may_be_sent_again(scene: Played, end: str) -> None:
    scene(ops.ConfigSet("failed-history-count", 1))
    scene.failed("newer")
    token = scene.running("a", retries=0)
    scene(ops.Revoke(("a",)))
    scene.now -= 1000
    op = {"fail": ops.Fail("a", token, "g", ""), "retry": ops.Retry("a", token), "release": ops.Release("a", token)}[
        end
    ]
    first = scene(op)
    assert scene.get() is None
    assert scene(op) == first == {"fail": "a", "retry": -1, "release": "failed"}[end]


def test_a_pop_shows_what_followed_from_a_job_that_expired_on_the_way() -> None:
    store = Store()
    for op in (ops.Put("q", "x", "k", "", ttl_ms=10), ops.Put("q", "y", "k", "")):
        engine.step(store, 0, op)
    engine.step(store, 0, ops.Put("q", "c", "k", "", depends=("x cancel", "y block")))
    first, again = (engine.step(store, 20, ops.Pop("q", "w", request="r")) for _ in range(2))
    assert [(job.jid, job.dependents) for job in first] == [("y", ())]
    assert again == first


# ---- delays


def test_an_idle_worker_is_woken_for_a_job_that_is_due_before_all_others(scene: Played) -> None:
    for _ in range(3):
        scene(ops.Pop("q", "w", wait=True))
    for delay_ms, woken in ((9000, 1), (300, 2), (5000, 2), (300, 2)):
        scene(ops.Put("q", f"j{delay_ms}-{woken}-{scene.store.seq}", "k", "", delay_ms=delay_ms))
        assert scene.store.queues["q"].wakes == woken
