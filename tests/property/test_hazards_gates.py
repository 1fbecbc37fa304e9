"""Throttles: faults of other queues; each test claims that qmodel does not have one.

Every scene is played on the model and, if lupa is installed, on the Lua library in this process; both must agree.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from typing import Any

import pytest

from qmodel.conformance.compare import runner
from qmodel.conformance.compare.agree import agree
from qmodel.conformance.subjects.by_url import open_subject
from qmodel.contract import operations as ops
from qmodel.model.state import throttles
from tests.property.support import everywhere, fails
from tests.property.test_hazards_life import Played


class Throttled(Played):
    """A scene with the throttle `t`."""

    def limit(self, name: str = "t", **limits: Any) -> Any:
        return self(ops.ThrottleSet(name, **limits))

    def jobs(self, jids: str, **arguments: Any) -> None:
        for jid in jids:
            self.put(jid, **{"throttles": ("t",), **arguments})

    def given(self, count: int = 9, after: int = 0, queue: str = "q") -> str:
        return "".join(job.jid for job in self.pop(queue, count=count, after=after))

    def finish(self, jid: str) -> None:
        assert self(ops.Complete(jid, self.get(jid).token)) == "complete"

    def shown(self, name: str = "t") -> Any:
        return self(ops.ThrottleGet(name))

    def state(self, jid: str) -> str:
        return str(self.get(jid).state)

    def next_in(self, queue: str = "q") -> int:
        """Give the milliseconds until a job of a queue can be popped without another operation."""
        return int(self(ops.Queue(queue)).next_at) - self.now


@pytest.fixture
def scene() -> Iterator[Throttled]:
    played = Throttled()
    yield played
    if importlib.util.find_spec("lupa") is not None:
        agree(open_subject("embedded://"), played.steps)


# ---- checked and taken in one step (M13, W12)


@pytest.mark.parametrize("limits", [{"concurrency": 3}, {"rate": 3, "rate_ms": 1000}])
def test_m13_fifty_pops_at_once_lease_no_more_than_the_limit(scene: Throttled, limits: Any) -> None:
    scene.limit(**limits)
    for n in range(50):
        scene.put(f"j{n}", throttles=("t",))
    assert sum(len(scene.pop(worker=f"w{n}")) for n in range(50)) == 3
    assert scene(ops.Queue("q")).throttled == 47


def test_one_pop_of_many_leases_no_more_than_the_limit(scene: Throttled) -> None:
    scene.limit(concurrency=2)
    scene.jobs("abcd")
    assert scene.given() == "ab"
    scene.finish("a")
    assert scene.given() == "c"


def test_m13_a_window_slides_so_no_edge_lets_twice_as_many_pass(scene: Throttled) -> None:
    scene.limit(rate=2, rate_ms=1000)
    scene.jobs("abcdef")
    assert scene.given() == "ab"
    assert scene.next_in() == 1000
    assert scene.given(after=999) == ""
    assert scene.given(after=1) == "cd"
    assert scene.given(after=999) == ""
    assert scene.given(after=1) == "ef"


def test_claims_leave_the_window_one_by_one(scene: Throttled) -> None:
    scene.limit(rate=2, rate_ms=1000)
    scene.jobs("abcd")
    assert scene.given(1) == "a"
    assert scene.given(1, after=400) == "b"
    assert scene.given(after=599) == ""
    assert scene.given(after=1) == "c"
    assert scene.next_in() == 400
    assert scene.given(after=400) == "d"


def test_w12_a_throttled_job_uses_no_lease_and_no_retry(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("ab", retries=0)
    assert scene.given() == "a"
    job = scene.get("b")
    assert (job.state, job.remaining, job.token, job.gate) == ("throttled", 0, 0, "t")
    assert [stage.what for stage in job.history] == ["put"]


def test_a_closed_throttle_takes_nothing_from_an_open_one(scene: Throttled) -> None:
    scene.limit("s", rate=1, rate_ms=1000)
    scene.limit(concurrency=1)
    scene.jobs("a")
    assert scene.given() == "a"
    scene.jobs("b", throttles=("s", "t"))
    assert scene.given() == ""
    assert (scene.get("b").gate, scene.shown("s").claims) == ("t", 0)
    scene.jobs("c", throttles=("s",))
    assert scene.given() == "c"
    scene.finish("a")
    assert scene.given() == ""
    assert scene.get("b").gate == "s"
    assert scene.given(after=1000) == "b"


# ---- every kind of pop checks the throttles (W6)


def test_w6_a_chained_pop_checks_the_same_throttle(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("abc")
    token = scene.pop()[0].token
    chained = scene(ops.CompleteAndPop("a", token, "q", "w", 9))
    assert [job.jid for job in chained.jobs] == ["b"]
    assert [job.jid for job in scene(ops.PopAny(("q", "r"), "w", 9))] == []


def test_a_lapsed_job_holds_its_place_and_each_claim_of_it_counts(scene: Throttled) -> None:
    scene.limit(concurrency=1, rate=1, rate_ms=100_000)
    scene.jobs("a")
    assert scene.given() == "a"
    assert scene.given(after=70_000) == ""
    job = scene.get("a")
    assert (job.state, job.remaining, scene.shown().running) == ("throttled", 4, 0)
    assert scene.given(after=30_000) == "a"


def test_a_stalled_job_holds_its_place(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("ab")
    scene.pop()
    scene(ops.Timeout(("a",)))
    assert scene.shown().holders == ("a",)
    assert scene.given() == "a"


@pytest.mark.parametrize("end", ["fail", "retry", "release", "advance", "put", "cancel", "lapse"])
def test_a_place_is_given_back_however_a_lease_ends(scene: Throttled, end: str) -> None:
    scene.limit(concurrency=1)
    scene.jobs("a", retries=0)
    scene.jobs("b", queue="r")
    token = scene.pop()[0].token
    assert scene.given(queue="r") == ""
    scene(
        {
            "fail": ops.Fail("a", token, "g", "m"),
            "retry": ops.Retry("a", token),
            "release": ops.Release("a", token, 1000),
            "advance": ops.Complete("a", token, next="s", delay_ms=1000),
            "put": ops.Put("q", "a", "k", "", delay_ms=1000),
            "cancel": ops.Cancel(("a",)),
            "lapse": ops.Pop("q", "w"),
        }[end],
        70_000 if end == "lapse" else 0,
    )
    assert scene.next_in("r") == 0
    assert scene.given(queue="r") == "b"


def test_a_freed_place_wakes_one_idle_worker_of_each_waiting_queue(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("a")
    scene.jobs("bc", queue="r")
    scene.pop()
    for worker in "uv":
        scene(ops.Pop("r", worker, wait=True))
    scene.finish("a")
    assert (scene.store.queues["r"].idle, scene.store.queues["r"].wakes) == (1, 1)


# ---- the order of parked jobs (W5)


def test_a_parked_job_is_not_overtaken_by_a_later_one(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("abc")
    assert scene.given() == "a"
    scene.jobs("d")
    scene.finish("a")
    assert scene.given() == "b"
    scene.jobs("e")
    for now, then in zip("bcd", "cde", strict=True):
        scene.finish(now)
        assert scene.given() == then


def test_jobs_with_two_throttles_never_wait_for_each_other(scene: Throttled) -> None:
    """Each was admitted by one throttle and met the room that the other throttle had reserved for the other job."""
    scene.limit("x", concurrency=1)
    scene.limit("y", concurrency=1)
    scene.jobs("ab", throttles=("x", "y"))
    scene.jobs("c", throttles=("y", "x"))
    assert scene.given(2) == "a"
    scene.jobs("d", throttles=("x", "y"))
    for jid in "abc":
        scene.finish(jid)
        assert scene.given(1) == chr(ord(jid) + 1)


def test_no_turn_at_another_throttle_is_lost(scene: Throttled) -> None:
    """A job that was parked first is claimed first, wherever it and the others are parked."""
    for name in "xy":
        scene.limit(name, concurrency=1)
    scene.put("h", throttles=("x",))
    scene.put("i", throttles=("y",))
    assert scene.given(2) == "hi"
    scene.put("a", throttles=("x", "y"))
    scene.put("b", throttles=("y",))
    scene.put("c", throttles=("y",), priority=-1)
    assert scene.given(3) == ""
    scene.finish("h")
    scene.finish("i")
    assert scene.given(1) == "c"
    scene.finish("c")
    assert scene.given(2) == "a"
    scene.finish("a")
    assert scene.given(2) == "b"


@pytest.mark.parametrize("seed", range(8))
def test_a_queue_without_running_jobs_hands_out_one_that_waits_at_open_throttles(scene: Throttled, seed: int) -> None:
    drawn = random.Random(seed)
    for name in "xy":
        scene.limit(name, concurrency=1)
    held = ""
    for jid in "abcdefghijklmnopqrstuvwxyz":
        scene.put(jid, throttles=drawn.choice((("x", "y"), ("y", "x"), ("x",), ("y",))))
        if held and drawn.random() < 0.7:
            scene.finish(held[0])
            held = held[1:]
        given = scene.given(drawn.choice((1, 2)))
        assert held or given
        held += given


def test_a_job_of_high_cost_is_not_starved_by_cheap_ones(scene: Throttled) -> None:
    scene.limit(capacity=5, refill=1, refill_ms=1000)
    scene.jobs("a", cost=5)
    assert scene.given() == "a"
    scene.jobs("b", cost=3)
    assert scene.given() == ""
    scene.jobs("c", cost=1)
    assert scene.given(after=1000) == ""
    assert scene.given(after=2000) == "b"
    assert scene.given(after=1000) == "c"


def test_a_better_priority_goes_first_and_equal_jobs_keep_their_turn(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("abc")
    assert scene.given() == "a"
    scene.jobs("x", priority=-1)
    assert scene.given() == ""
    scene.finish("a")
    assert scene.given() == "x"
    scene.finish("x")
    assert scene.given() == "b"


@pytest.mark.parametrize("way", ["cancel", "drain", "move", "expire", "revoke", "delay"])
def test_w5_a_parked_job_that_leaves_blocks_no_other_job(scene: Throttled, way: str) -> None:
    scene.limit(concurrency=1)
    scene.jobs("a")
    scene.pop()
    scene.jobs("b", ttl_ms=500)
    scene.jobs("c")
    assert scene.given() == ""
    scene(
        {
            "cancel": ops.Cancel(("b",)),
            "drain": ops.Drain("q", 1),
            "move": ops.Put("r", "b", "k", ""),
            "expire": ops.Pop("q", "w"),
            "revoke": ops.Revoke(("b",)),
            "delay": ops.Delay("b", 10_000),
        }[way],
        501 if way == "expire" else 0,
    )
    scene.finish("a")
    assert scene.given() == "c"
    assert scene.shown().parked == 0


def test_a_paused_queue_reserves_no_place(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("a")
    scene.jobs("b", queue="r")
    scene.jobs("c", queue="s")
    scene.pop()
    assert scene.given(queue="r") + scene.given(queue="s") == ""
    scene(ops.Pause(("r",)))
    scene.finish("a")
    assert scene.given(queue="r") == ""
    assert scene.given(queue="s") == "c"
    scene(ops.Unpause(("r",)))
    scene.finish("c")
    assert scene.given(queue="r") == "b"


def test_m6_a_throttle_pauses_nothing_and_ends_no_pause(scene: Throttled) -> None:
    scene.limit(rate=1, rate_ms=1000)
    scene.jobs("ab")
    scene.put("free")
    scene(ops.Pause(("q",), "by hand"))
    assert scene.given() == ""
    scene.now += 5000
    assert scene.given() == ""
    scene(ops.Unpause(("q",)))
    assert scene(ops.Queue("q")).paused is False
    assert [job.jid for job in scene.pop(count=9)] == ["a", "free"]


# ---- buckets


def test_an_idle_bucket_fills_up_to_its_capacity_and_not_more(scene: Throttled) -> None:
    scene.limit(capacity=2, refill=1, refill_ms=1000)
    scene.jobs("abcdef")
    assert scene.given(after=10**9) == "ab"
    assert scene.given() == ""
    assert scene.next_in() == 1000
    assert scene.given(after=999) == ""
    assert scene.given(after=1) == "c"


def test_no_fraction_of_a_token_is_lost(scene: Throttled) -> None:
    scene.limit(capacity=1, refill=3, refill_ms=1000)
    scene.jobs("abcd")
    assert scene.given() == "a"
    moments: list[int] = []
    while len(moments) < 3:
        if scene.given(after=1):
            moments.append(scene.now - 10 * 86_400_000)
    assert moments == [334, 668, 1002]


def test_a_cost_above_the_capacity_is_refused_and_takes_all_tokens_if_the_capacity_was_lowered_later(
    scene: Throttled,
) -> None:
    scene.limit(capacity=5, refill=1, refill_ms=1000)
    assert scene.put("a", throttles=("t",), cost=6).code == "OVER_CAPACITY"
    assert scene.get("a") is None
    scene.jobs("b", cost=5)
    scene.limit(capacity=2, refill=1, refill_ms=1000)
    assert scene.given() == "b"
    assert scene.shown().tokens == 0


def test_a_lowered_capacity_cuts_the_tokens_and_a_new_refill_time_keeps_them(scene: Throttled) -> None:
    scene.limit(capacity=10, refill=1, refill_ms=1000)
    scene.limit(capacity=4, refill=1, refill_ms=7)
    assert scene.shown().tokens == 4
    scene.limit(capacity=10, refill=1, refill_ms=86_400_000)
    assert scene.shown().tokens == 4


# ---- limits that change (M24)


def test_m24_limits_are_replaced_whole_and_a_bad_one_changes_nothing(scene: Throttled) -> None:
    scene.limit(concurrency=1, rate=5, rate_ms=1000)
    assert scene.limit(rate=5).code == "BAD_ARGUMENT"
    assert scene.shown()[1:7] == (1, 5, 1000, 0, 0, 0)
    scene.limit(capacity=1, refill=1, refill_ms=1)
    assert scene.shown()[1:7] == (0, 0, 0, 1, 1, 1)


def test_a_limit_that_is_set_later_counts_the_running_jobs(scene: Throttled) -> None:
    scene.jobs("abc")
    assert scene.given(2) == "ab"
    scene.limit(concurrency=2)
    assert scene.given() == ""
    scene.limit(concurrency=3)
    assert scene.given() == "c"


def test_a_lowered_limit_revokes_no_lease_and_holds_from_then_on(scene: Throttled) -> None:
    scene.limit(concurrency=3)
    scene.jobs("abcd")
    assert scene.given() == "abc"
    scene.limit(concurrency=1)
    for jid in "ab":
        scene.finish(jid)
        assert scene.given() == ""
    scene.finish("c")
    assert scene.given() == "d"


def test_parked_jobs_are_admitted_when_the_limits_are_removed(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("abc")
    scene.pop()
    scene(ops.Pop("q", "v", wait=True))
    assert scene(ops.ThrottleUnset("t")) == 1
    assert scene.store.queues["q"].wakes == 1
    assert scene.given() == "bc"
    assert scene(ops.ThrottleUnset("t")) == 0


def test_an_unused_throttle_leaves_nothing_behind(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("ab")
    scene.pop()
    scene.given()
    scene(ops.ThrottleUnset("t"))
    scene(ops.Cancel(("a", "b")))
    assert scene.store.throttles == {}
    assert scene.store.queues["q"].parked == {}


# ---- the throttle of a queue


def test_the_throttle_of_a_queue_stops_it_in_order_and_parks_no_job(scene: Throttled) -> None:
    scene.limit("queue/q", concurrency=1)
    for jid in "ab":
        scene.put(jid)
    assert scene.given() == "a"
    assert scene.state("b") == "waiting"
    scene(ops.Pop("q", "v", wait=True))
    scene.finish("a")
    assert scene.store.queues["q"].wakes == 1
    scene.put("c", priority=-1)
    assert scene.given() == "c"


def test_the_throttle_of_a_queue_opens_with_time(scene: Throttled) -> None:
    scene.limit("queue/q", rate=1, rate_ms=1000)
    for jid in "ab":
        scene.put(jid)
    assert scene.given() == "a"
    assert scene.next_in() == 1000
    assert scene.given(after=1000) == "b"


def test_a_job_cannot_name_the_throttle_of_a_queue(scene: Throttled) -> None:
    assert scene.put("a", throttles=("queue/q",)).facts == ("put", "throttles")


# ---- bounds


def test_a_pop_that_meets_a_thousand_closed_throttles_stops_and_the_next_continues_at_once(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.jobs("a")
    scene.pop()
    for first in (0, 700):
        scene(ops.PutMany(tuple(ops.Put("q", f"p{first + n}", "k", "", throttles=("t",)) for n in range(700))))
    scene.put("free")
    assert scene(ops.Pop("q", "w", wait=True)) == ()
    assert scene(ops.Queue("q")).throttled == 800
    assert scene.store.queues["q"].wakes == 1
    assert [job.jid for job in scene(ops.Pop("q", "w", wait=True))] == ["free"]


# ---- why


def test_why_names_the_holders_of_a_throttle_its_opening_time_and_the_next_job(scene: Throttled) -> None:
    scene.limit(concurrency=1)
    scene.limit("s", rate=1, rate_ms=1000)
    scene.jobs("abc")
    scene.jobs("de", throttles=("s",))
    assert scene.given() == "ad"
    assert scene(ops.Why("a"))[0].code == "running"
    assert scene(ops.Why("c")) == (("full", ("t", "1", "1", "a")), ("turn", ("t", "1")))
    assert scene(ops.Why("e")) == (("spent", ("s", str(scene.now + 1000))),)
    assert scene(ops.Why("nobody")).code == "JOB_NOT_FOUND"


def test_why_names_pauses_jobs_ahead_and_missing_workers(scene: Throttled) -> None:
    scene.put("a")
    scene.put("b")
    scene.put("c", delay_ms=500)
    scene.put("d", depends=("a", "c"))
    scene(ops.Pause(("q",), "deploy"))
    codes = {jid: [one.code for one in scene(ops.Why(jid))] for jid in "abcd"}
    assert codes == {
        "a": ["paused", "unattended"],
        "b": ["paused", "behind", "unattended"],
        "c": ["scheduled"],
        "d": ["depends"],
    }
    scene(ops.Unpause(("q",)))
    scene(ops.Pop("r", "w"))
    assert scene(ops.Why("a")) == ()


# ---- laws


def test_no_claim_brings_a_throttle_above_its_limit() -> None:
    claimed = 0
    for moment in everywhere(before=True):
        assert moment.before is not None
        for name, one in moment.store.throttles.items():
            before = moment.before.throttles.get(name, {"held": ()})["held"]
            if one.concurrency and len(one.held) > len(before):
                claimed += 1
                assert len(one.held) <= one.concurrency, (name, moment.step)
            if one.rate and moment.now >= 0:
                inside = [at for at, _ in one.claims if at > moment.now - one.rate_ms]
                new = len(one.claims) > len(moment.before.throttles.get(name, {"claims": ()})["claims"])
                assert not new or len(inside) <= one.rate, (name, moment.step)
    assert claimed > 20


def test_a_claim_above_a_limit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttles, "opens_at", lambda store, now, *rest: now)
    assert fails(test_no_claim_brings_a_throttle_above_its_limit)


def test_why_names_a_queue_that_nobody_serves(scene: Throttled) -> None:
    scene.put("a")
    scene.put("b")
    scene.now += 20_000
    scene(ops.Pop("other", "w"))
    assert scene(ops.Why("a")) == (("unserved", ("q", str(scene.now - 20_000))),)
    assert [one.code for one in scene(ops.Why("b"))] == ["behind", "unserved"]
    scene.now -= 1
    assert scene(ops.Why("a")) == ()


def test_a_queue_is_served_while_a_worker_runs_a_job_of_it_or_has_just_ended_one(scene: Throttled) -> None:
    token = scene.running("a")
    scene.put("b")
    scene.now += 30_000
    assert scene(ops.Why("b")) == ()
    scene(ops.Complete("a", token))
    scene.now += 30_000
    scene(ops.Pop("other", "w"))
    assert scene(ops.Why("b")) == ()
    scene.now += 120_000
    scene(ops.Pop("other", "w"))
    assert [one.code for one in scene(ops.Why("b"))] == ["unserved"]
    scene(ops.Pause(("q",), "deploy"))
    assert [one.code for one in scene(ops.Why("b"))] == ["paused"]


def test_why_names_failed_dependencies_and_their_groups(scene: Throttled) -> None:
    scene(ops.Fail("a", scene.running("a"), "ValueError", "m"))
    scene.put("b")
    scene.put("c", depends=("a", "b"))
    assert scene(ops.Why("c")) == (("depends", ("2", "a b")), ("dependency_failed", ("a", "ValueError")))
    assert "retry that one" in scene(ops.Why("c"))[1].sentence


# ---- families


def test_a_throttle_under_a_family_is_forgotten_when_it_is_idle(scene: Throttled) -> None:
    scene.limit("t*", rate=2, rate_ms=1000, capacity=4, refill=1, refill_ms=1000)
    for number in range(5):
        scene.put(f"j{number}", throttles=(f"t{number}",))
        scene.finish(scene.pop()[0].jid)
    assert sorted(scene.store.throttles) == ["t*", "t0", "t1", "t2", "t3", "t4"]
    for number in range(3):
        scene.put(f"k{number}", throttles=("t5",))
        scene.finish(scene.pop(after=2000)[0].jid)
    assert sorted(scene.store.throttles) == ["t*", "t5"]


def test_another_limit_of_a_family_reaches_jobs_that_are_parked(scene: Throttled) -> None:
    scene.limit("t*", rate=1, rate_ms=3_600_000)
    for number in range(4):
        scene.put(f"j{number}", throttles=(f"t{number % 2}",))
    assert [job.jid for job in scene.pop(count=9)] == ["j0", "j1"]
    scene(ops.Pop("q", "idle", wait=True))
    scene.limit("t*", concurrency=2)
    assert scene(ops.Queue("q")).next_at <= scene.now
    assert [job.jid for job in scene.pop(count=9)] == ["j2", "j3"]


def test_a_family_that_reaches_more_than_a_thousand_parked_jobs_is_bounded() -> None:
    scene = Throttled()
    scene.limit("t*", rate=1, rate_ms=3_600_000)
    for number in range(0, 2200, 100):
        jobs = tuple(ops.Put("q", f"j{n}", "k", "", throttles=(f"t{n % 1100}",)) for n in range(number, number + 100))
        scene(ops.PutMany(jobs))
    while scene(ops.Queue("q")).throttled < 1100:
        scene.pop(count=100)
    scene.limit("t*", concurrency=1000)
    got = [len(scene.pop(count=100)) for _ in range(12)]
    assert sum(got) == 1000
    left = scene(ops.Throttled("q", count=200)).jids
    for jid in left:
        scene.finish(f"j{int(jid[1:]) - 1100}")
    assert sorted(job.jid for job in scene.pop(count=200)) == sorted(left)
    if importlib.util.find_spec("lupa") is not None:
        assert runner.first_difference(scene.steps, open_subject("embedded://"), every=len(scene.steps) // 3) is None
