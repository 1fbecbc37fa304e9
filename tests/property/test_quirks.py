"""The quirks of the original qless, numbered Q0 to Q36; each test claims that qmodel does not have one.

Other files test the quirks of Lua, the wire, keys and JSON (Q0, Q27, Q28 in part, Q29, Q30, Q35, Q36), of recurring
jobs (Q17 to Q19), and of limits on concurrency (Q16).
"""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import WorkerJobs
from qmodel.model import engine, snapshot
from qmodel.model.state.store import Store, events_after

DAY = 86_400_000


class Scene:
    """A store and a clock, with the few operations that scenes begin with."""

    def __init__(self) -> None:
        self.store = Store()
        self.now = 10 * DAY

    def __call__(self, op: Any, after: int = 0) -> Any:
        self.now += after
        return engine.step(self.store, self.now, op)

    def put(self, jid: str = "a", queue: str = "q", **arguments: Any) -> Any:
        return self(ops.Put(queue, jid, "k", "{}", **arguments))

    def pop(self, queue: str = "q", worker: str = "w", count: int = 1, after: int = 0) -> Any:
        return self(ops.Pop(queue, worker, count), after)

    def running(self, jid: str = "a", **arguments: Any) -> int:
        """Put a job and pop it; give its token."""
        self.put(jid, **arguments)
        return int(self.pop()[0].token)

    def failed(self, jid: str = "a", **arguments: Any) -> None:
        self(ops.Fail(jid, self.running(jid, **arguments), "g", "m"))

    def get(self, jid: str = "a") -> Any:
        return self(ops.Get(jid))

    def stats(self, queue: str = "q") -> Any:
        return self(ops.Stats(queue))

    def events(self, *kinds: str) -> list[Any]:
        return [event for event in events_after(self.store, 0, self.store.seq) if event.event in kinds]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_q1_a_refused_put_keeps_the_tags_and_a_refused_timeout_keeps_the_leases(scene: Scene) -> None:
    scene.running("a", tags=("x",))
    before = snapshot.of(scene.store)
    assert scene.put("a", tags=("y",), depends=("nobody",)).code == "DEPENDENCY_NOT_FOUND"
    assert scene(ops.Timeout(("a", "ghost"))).code == "JOB_NOT_FOUND"
    assert snapshot.of(scene.store) == before


def test_q2_a_retried_job_has_no_worker_and_nobody_innocent_is_told(scene: Scene) -> None:
    scene(ops.Retry("a", scene.running()))
    assert (scene.get().worker, scene.get().expires_at) == ("", 0)
    scene.put("a")
    scene(ops.Cancel(("a",)))
    assert scene.events("lock_lost") == []


def test_q3_a_timed_out_job_is_held_by_nobody(scene: Scene) -> None:
    scene.running()
    scene(ops.Timeout(("a",)))
    assert scene(ops.Worker("w")) == WorkerJobs((), ())
    scene.pop(worker="v")
    assert scene(ops.Worker("w")) == WorkerJobs((), ())
    assert scene(ops.Worker("v")) == WorkerJobs(("a",), ())


def test_q4_a_retry_stays_in_the_queue_of_the_job(scene: Scene) -> None:
    scene(ops.Retry("a", scene.running(queue="q")))
    assert scene(ops.Waiting("q")).jids == ("a",)
    scene(ops.Retry("a", scene.pop()[0].token))
    assert scene(ops.Queues())[0].name == "q"


def test_q5_putting_a_failed_job_elsewhere_counts_in_its_old_queue(scene: Scene) -> None:
    scene.failed()
    assert scene.stats("q").failed == 1
    scene.put("a", "other")
    assert (scene.stats("q").failed, scene.stats("other").failed) == (0, 0)


def test_q6_a_job_sent_on_with_a_delay_says_that_it_is_scheduled(scene: Scene) -> None:
    assert scene(ops.Complete("a", scene.running(), next="r", delay_ms=5)) == "scheduled"
    assert scene.get().state == "scheduled"
    assert scene(ops.Scheduled("r")).jids == ("a",)


def test_q7_a_delay_is_kept_when_all_dependencies_are_met(scene: Scene) -> None:
    scene(ops.Complete("done", scene.running("done")))
    token = scene.running()
    assert scene(ops.Complete("a", token, next="r", delay_ms=5, depends=("done",))) == "scheduled"


def test_q8_an_empty_list_of_dependencies_clears_them(scene: Scene) -> None:
    scene.put("b")
    scene.put("a", depends=("b",))
    scene.put("a")
    assert scene.get().dependencies == ("b",)
    scene.put("a", depends=())
    assert (scene.get().state, scene.get().dependencies) == ("waiting", ())


def test_q9_the_due_time_of_a_dependent_job_is_honoured_once(scene: Scene) -> None:
    scene.put("b")
    scene.put("a", depends=("b",), delay_ms=1000)
    scene(ops.DependsOff("a", all=True))
    assert scene.get().state == "scheduled"
    scene.put("a", depends=("b",))
    scene(ops.DependsOff("a", all=True))
    assert scene.get().state == "waiting"


def test_q10_unfail_counts_tells_registers_and_keeps_the_order(scene: Scene) -> None:
    for jid in ("b", "a", "c"):
        scene.failed(jid)
        scene.now += 10
    assert scene(ops.RetryMany(group="g", to="new", count=2)).done == 2
    assert scene.stats().failed == 1
    assert [queue.name for queue in scene(ops.Queues())] == ["q", "new"]
    assert [event.facts[0] for event in scene.events("unfailed")] == ["b", "a"]
    assert [job.jid for job in scene.pop("new", count=5, after=7)] == ["b", "a"]
    assert scene.stats("new").wait.mean == 7.0
    assert scene(ops.RetryMany(group="g", to="new", count=0)).code == "BAD_ARGUMENT"
    assert scene(ops.RetryMany(group="g", to="new", count=-1)).code == "BAD_ARGUMENT"


def test_q11_a_tag_counts_the_jobs_that_have_it(scene: Scene) -> None:
    scene.put("a", tags=("x", "x"))
    scene.put("b", tags=("x",))
    scene(ops.TagAdd("a", ("x",)))
    assert scene(ops.TopTags())[0] == ("x", 2)
    assert scene(ops.Tagged("x")).jids == ("a", "b")  # the place among them did not move
    scene(ops.TagRemove("a", ("y", "x", "x")))
    assert scene(ops.Tagged("x")).total == 1
    scene(ops.Cancel(("b",)))
    assert scene.store.tags == {}


def test_q12_every_lapse_has_its_own_grace(scene: Scene) -> None:
    token = scene.running()
    scene.now += 60_000  # lapsed, within grace
    assert scene.pop() == ()
    assert scene(ops.Heartbeat("a", token)).expires_at == scene.now + 60_000
    scene.now += 60_000  # lapsed again
    assert scene.pop() == ()
    assert scene.pop(after=10_000)[0].jid == "a"


def test_q13_a_lease_at_its_expiry_is_stalled_and_nothing_else(scene: Scene) -> None:
    scene.running()
    scene.now += 60_000
    assert (scene(ops.Running("q")).total, scene(ops.Stalled("q")).total) == (0, 1)
    assert (scene(ops.Workers())[0].jobs, scene(ops.Workers())[0].stalled) == (0, 1)
    assert scene.get().state == "stalled"
    assert scene(ops.Queue("q"))[:8] == ("q", 0, 0, 0, 0, 1, False, scene.now + 10_000)


def test_q13_a_lease_of_a_year_is_seen(scene: Scene) -> None:
    scene(ops.ConfigSet("heartbeat", 366 * DAY))
    scene.running()
    assert scene(ops.Worker("w")).jobs == ("a",)


def test_q14_a_new_priority_keeps_the_place_in_time(scene: Scene) -> None:
    for jid in ("a", "b", "c"):
        scene.put(jid)
    scene(ops.Priority("b", 0))
    scene(ops.Priority("c", 1))
    scene(ops.Priority("c", 0))
    assert scene(ops.Waiting("q")).jids == ("a", "b", "c")


def test_q14_a_timed_out_job_stays_at_the_head(scene: Scene) -> None:
    scene.running("a")
    scene.put("b", priority=-5)
    scene(ops.Timeout(("a",)))
    scene(ops.Priority("a", 9))
    assert [job.jid for job in scene.pop(count=2)] == ["a", "b"]


def test_q15_equals_come_in_the_order_in_which_they_were_put(scene: Scene) -> None:
    for jid in ("b", "c", "a"):
        scene.put(jid)
    assert [job.jid for job in scene.pop(count=3)] == ["b", "c", "a"]


@pytest.mark.parametrize("level", [2**31 - 2, -(2**31)])
def test_q15_priorities_never_mix_with_times(scene: Scene, level: int) -> None:
    scene.put("late", priority=level + 1)
    scene.put("b", priority=level)
    scene.now += 4000 * DAY
    scene.put("c", priority=level)
    assert [job.jid for job in scene.pop(count=3)] == ["b", "c", "late"]


@pytest.mark.parametrize(("kept", "allowed"), [(1, False), (2, False), (3, False), (4, True)])
def test_q20_a_history_keeps_as_many_stages_as_it_says(scene: Scene, kept: int, allowed: bool) -> None:
    answer = scene(ops.ConfigSet("max-job-history", kept))
    assert (answer == kept) is allowed
    scene.put()
    for number in range(9):
        scene(ops.Log("a", str(number)))
    history = scene.get().history
    assert len(history) == (kept if allowed else 10)
    assert history[0].what == "put" and history[-1].facts == ("8",)


def test_q21_a_log_line_is_text_whatever_it_looks_like(scene: Scene) -> None:
    scene.put()
    for line in ("1", "[1, 2]", "null", '{"what": "popped"}'):
        scene(ops.Log("a", line))
        assert scene.get().history[-1].named == {"message": line}


def test_q22_canceling_unknown_or_repeated_jobs_tells_nothing_untrue(scene: Scene) -> None:
    scene.put()
    assert scene(ops.Cancel(("ghost", "a", "a"))) == ("a",)
    assert [event.facts for event in scene.events("canceled")] == [("a", "q", "waiting")]


def test_q23_a_tracked_job_that_is_gone_can_be_untracked(scene: Scene) -> None:
    scene.put()
    scene(ops.Track("a"))
    scene(ops.Cancel(("a",)))
    assert scene(ops.Tracked()).expired == ("a",)
    assert scene(ops.Untrack("a")) == 1
    assert scene(ops.Tracked()) == ((), ())


@pytest.mark.parametrize("count", [-1, 0, 1.5, "1", None, 1001])
def test_q24_a_count_is_a_whole_number_from_1_to_1000(scene: Scene, count: Any) -> None:
    scene.put()
    before = snapshot.of(scene.store)
    for op in (ops.Pop("q", "w", count), ops.Peek("q", count), ops.RetryMany(group="g", to="q", count=count)):
        assert scene(op) == Refusal("BAD_ARGUMENT", (op.spec.name, "count"))
    assert snapshot.of(scene.store) == before


def test_q25_nobody_waits_for_itself(scene: Scene) -> None:
    token = scene.running("a")
    scene.put("b", depends=("a",))
    ring = ops.PutMany((ops.Put("q", "x", "k", "", depends=("y",)), ops.Put("q", "y", "k", "", depends=("x",))))
    for op in (
        ops.Put("q", "a", "k", "", depends=("a",)),
        ops.Put("q", "a", "k", "", depends=("b",)),
        ops.DependsOn("b", ("b",)),
        ops.Complete("a", token, next="q", depends=("b",)),
        ring,
    ):
        assert scene(op).code == "DEPENDENCY_CYCLE", op
    assert scene(ops.DependsOn("b", ("b",))).named == {"path": "b > b"}


def test_q26_unknown_dependencies_are_refused_by_name(scene: Scene) -> None:
    scene.put("b")
    scene.put("a", depends=("b",))
    refused = Refusal("DEPENDENCY_NOT_FOUND", ("a", "ghost"))
    assert scene(ops.DependsOn("a", ("b", "ghost"))) == refused
    assert scene.put("a", depends=("ghost",)) == refused


@pytest.mark.parametrize("data", ["[]", "12345678901234567", "1.0", "/", '{"b": 1, "a": 2}', "no JSON", ""])
def test_q28_data_comes_back_as_it_was_given(scene: Scene, data: str) -> None:
    token = scene.running()
    scene(ops.Heartbeat("a", token, data))
    assert scene.get().data == data
    scene(ops.Fail("a", token, "g", "m", data))
    assert scene.get().data == data


@pytest.mark.parametrize("value", [1.5, -1, "x", float("inf")])
def test_q31_retries_and_settings_are_whole_numbers(scene: Scene, value: Any) -> None:
    assert scene.put("a", retries=value).code == "BAD_ARGUMENT"
    assert scene(ops.ConfigSet("heartbeat", value)).code == "BAD_ARGUMENT"
    assert scene(ops.ConfigSet("max-job-history", 0)).code == "BAD_VALUE"


@pytest.mark.parametrize("way", ["fail", "retry", "lapse"])
def test_q32_every_failure_says_when_and_on_which_worker(scene: Scene, way: str) -> None:
    token = scene.running(retries=0)
    if way == "lapse":
        scene.pop(worker="v", after=70_000)
    else:
        scene(ops.Fail("a", token, "g", "m") if way == "fail" else ops.Retry("a", token))
    failure = scene.get().failure
    assert (failure.at, failure.worker) == (scene.now, "w")


@pytest.mark.parametrize("days", [0, 6, 7, 29, 30, 5000])
def test_q33_every_value_is_in_a_bin_and_days_are_struck(scene: Scene, days: int) -> None:
    scene.put()
    scene.pop(after=days * DAY + 5)
    wait = scene.stats().wait
    assert (wait.count, sum(wait.histogram), len(wait.histogram)) == (1, 1, 287)
    scene.put("b")
    scene.pop(after=40 * DAY)
    assert len(scene.store.days) == 1


def test_q33_a_clock_that_goes_back_counts_as_no_time(scene: Scene) -> None:
    scene.put()
    scene.pop(after=-5000)
    assert (scene.stats().wait.mean, scene.stats().wait.histogram[0]) == (0.0, 1)


def test_q34_a_silent_worker_keeps_its_leases(scene: Scene) -> None:
    scene(ops.ConfigSet("heartbeat", 30 * DAY))
    token = scene.running()
    assert [worker.name for worker in scene(ops.Workers(), after=2 * DAY)] == ["w"]
    scene(ops.Deregister(("w",)))
    assert scene(ops.Workers()) == ()
    assert scene(ops.Worker("w")).jobs == ("a",)
    assert scene(ops.Complete("a", token)) == "complete"


@pytest.mark.parametrize("jid", ["x-data", "x-dependents", "x-dependencies"])
def test_q36_a_jid_that_would_be_the_key_of_another_is_refused(scene: Scene, jid: str) -> None:
    assert scene.put(jid).code == "BAD_ARGUMENT"


def test_q37_sets_are_told_in_order(scene: Scene) -> None:
    scene.put("root")
    for jid in ("c", "a", "b"):
        scene.put(jid, depends=("root",))
    assert scene.get("root").dependents == ("a", "b", "c")
    assert scene(ops.Cancel(("root",))) == Refusal("HAS_DEPENDENTS", ("root", "a"))
