"""The client, method by method, on every backend, synchronous and asynchronous (see conftest.py)."""

from __future__ import annotations

import inspect
import threading
import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

import qmodel
from qmodel.client import build, cron, flows, sync, sync_executor, sync_requests
from qmodel.client.convert import milliseconds
from qmodel.client.defaults import KEEP
from qmodel.contract import operations
from qmodel.errors import (
    BadArgument,
    BadValue,
    DependencyNotFound,
    EpochPassed,
    Forked,
    HasDependents,
    JobNotFound,
    LockLost,
    NotLoadedError,
    QueueBusy,
    QueueNotEmpty,
    RefusedError,
    UnknownOption,
    WrongState,
)

Client = qmodel.Client


def got(job: Any) -> Any:
    assert job is not None
    return job


# ---- putting


def test_a_put_gives_a_job_whose_id_is_known(client: Client) -> None:
    job = client.queues["emails"].put("Send", {"to": 1})

    assert len(job.jid) == 32
    assert (job.klass, job.queue, job.data) == ("Send", "emails", {"to": 1})
    assert client.jobs[job.jid].state == "waiting"


def test_a_put_takes_every_option(client: Client) -> None:
    queue = client.queues["q"]
    first = queue.put("A", jid="first")
    job = queue.put(
        "B",
        ["é", None, 1.5],
        priority=-3,
        delay=timedelta(minutes=2),
        retries=1,
        tags=["x", "y"],
        depends=[first],
        jid="second",
    ).refresh()

    assert job.text == '["é",null,1.5]'
    assert job.data == ["é", None, 1.5]
    assert (job.priority, job.retries, job.remaining, job.tags) == (-3, 1, 1, ("x", "y"))
    assert (job.state, job.dependencies) == ("depends", ("first",))
    assert got(job.ready_at) - got(job.put_at) == timedelta(minutes=2)
    assert client.jobs["first"].dependents == ("second",)


def test_text_is_stored_as_it_is(client: Client) -> None:
    job = client.queues["q"].put("A", text="<xml/>")

    assert got(client.queues["q"].pop()).text == "<xml/>"
    with pytest.raises(qmodel.DataError, match=r"read job\.text|Read job\.text"):
        _ = job.data
    with pytest.raises(TypeError, match="either data"):
        client.queues["q"].put("A", {"a": 1}, text="x")


@pytest.mark.parametrize("data", [{1, 2}, float("nan"), object()])
def test_what_is_not_json_is_not_put(client: Client, data: object) -> None:
    with pytest.raises(qmodel.DataError, match="cannot be stored as JSON"):
        client.queues["q"].put("A", data)
    assert client.queues["q"].length() == 0


def test_a_lone_surrogate_survives(client: Client) -> None:
    job = client.queues["q"].put("A", "\udce9")

    assert client.jobs[job.jid].data == "\udce9"


def test_many_are_put_in_one_step(client: Client) -> None:
    queue = client.queues["q"]
    a = queue.new("A", 1, priority=5)
    jobs = queue.put_many([a, queue.new("B", 2, depends=[a]), ("C", 3)])

    assert [job.klass for job in jobs] == ["A", "B", "C"]
    assert client.jobs[jobs[1].jid].dependencies == (a.jid,)
    assert queue.put_many([]) == []


def test_many_may_go_to_different_queues_or_none_does(client: Client) -> None:
    p, q = client.queues["p"], client.queues["q"]
    client.put_many([p.new("A"), q.new("A")])
    with pytest.raises(DependencyNotFound) as refused:
        client.put_many([p.new("A"), q.new("A", depends="nobody")])

    assert (p.length(), q.length()) == (1, 1)
    assert refused.value.dependency == "nobody"


def test_what_is_loaded_twice_is_there_once(client: Client) -> None:
    queue = client.queues["q"]
    rows = [queue.new("Load", number, jid=f"row-{number}") for number in range(5)]

    assert (client.put_new(rows[:3]), client.put_new(rows), client.put_new(rows), client.put_new([])) == (3, 2, 0, 0)
    queue.pop().complete()
    assert client.put_new(rows) == 0
    assert queue.length() == 4


def test_a_put_of_an_existing_job_moves_it(client: Client) -> None:
    job = client.queues["p"].put("A", 1, priority=7)
    client.queues["q"].put("A", 2, jid=job.jid)

    assert client.queues["p"].length() == 0
    moved = client.jobs[job.jid]
    assert (moved.queue, moved.data, moved.priority) == ("q", 2, 7)


# ---- popping


def test_a_pop_leases_the_next_job(client: Client) -> None:
    queue = client.queues["q"]
    queue.put("Later", priority=1)
    queue.put("Sooner")

    job = got(queue.pop(worker="me"))
    assert (job.klass, job.state, job.worker) == ("Sooner", "running", "me")
    assert job.token > 0
    assert got(job.expires_at) - got(job.popped_at) == timedelta(seconds=60)
    assert [one.klass for one in queue.pop(5)] == ["Later"]
    assert queue.pop() is None
    assert queue.pop(5) == []


def test_the_worker_is_named_after_host_process_and_thread(client: Client) -> None:
    import os

    client.queues["q"].put("A")
    worker = got(client.queues["q"].pop()).worker

    assert worker == client.worker == f"{os.uname().nodename}-{os.getpid()}-MainThread"


def test_several_queues_are_popped_in_order_or_in_turn(client: Client) -> None:
    for name in "ab":
        client.queues[name].put_many([("A", 0)] * 4)

    ordered = [got(client.pop(["a", "b"])).queue for _ in range(2)]
    turns = [got(client.pop(["a", "b"], order="round-robin")).queue for _ in range(4)]
    rest = [job.queue for job in client.pop(["a", "b"], 5)]

    assert ordered == ["a", "a"]
    assert turns == ["a", "b", "a", "b"]
    assert rest == ["b", "b"]
    assert client.pop([]) is None


def test_several_queues_are_drawn_by_weight(client: Client) -> None:
    for name in "ab":
        client.queues[name].put_many([("A", 0)] * 100)

    drawn = [got(client.pop(["b", "a"], order="weighted", weights={"a": 10**9})).queue for _ in range(20)]

    assert drawn == ["a"] * 20
    assert client.queues["a"].length() == 100
    with pytest.raises(ValueError, match="weights are numbers above 0 of queues that are named"):
        client.pop(["a"], order="weighted", weights={"c": 1})


def test_a_pop_with_a_timeout_gives_up_after_it(client: Client) -> None:
    began = time.monotonic()

    assert client.pop(["q"], timeout=0.1) is None
    assert time.monotonic() - began > 0.09


@pytest.fixture
def nobody_looks_by_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sleeps and is not woken, or wakes too late, sleeps until the test is over."""
    for module in ("sync", "aio"):
        monkeypatch.setattr(f"qmodel.client.{module}.LONGEST_SLEEP", 3000.0)


@pytest.mark.usefixtures("nobody_looks_by_himself")
def test_a_waiting_pop_gets_a_job_as_soon_as_it_is_put(client_url: str) -> None:
    with qmodel.Client(client_url.replace("memory://", "memory://waiting-pop")) as client:
        for _ in range(3):
            threading.Timer(0.1, lambda: client.queues["b"].put("A")).start()
            job = client.pop(["a", "b"], timeout=3600)
            assert job is not None
            job.complete()


@pytest.mark.usefixtures("nobody_looks_by_himself")
def test_a_waiting_pop_gets_a_delayed_job_when_its_time_comes(client: Client) -> None:
    client.queues["q"].put("A", delay=0.2)
    began = time.monotonic()

    assert client.queues["q"].pop(timeout=3600) is not None
    assert time.monotonic() - began > 0.15


@pytest.mark.usefixtures("nobody_looks_by_himself")
def test_a_waiting_pop_gets_a_job_whose_lease_has_lapsed(client: Client) -> None:
    client.config["heartbeat"] = 0.1
    client.config["grace-period"] = 0.1
    client.queues["q"].put("A")
    first = got(client.queues["q"].pop(worker="first"))
    began = time.monotonic()

    second = got(client.queues["q"].pop(worker="second", timeout=3600))
    assert time.monotonic() - began > 0.15
    assert second.jid == first.jid
    with pytest.raises(LockLost) as lost:
        first.complete()
    assert lost.value.worker == "second"


def test_a_wait_does_not_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    client = qmodel.Client()
    executed: list[object] = []
    execute = client.backend.execute
    monkeypatch.setattr(client.backend, "execute", lambda *a: (executed.append(a), execute(*a))[1])
    client.pop(["q"], timeout=0.5)

    assert len(executed) == 3  # a look, a last look after it was asked until when to sleep, and one at the end


def test_a_peek_shows_without_taking(client: Client) -> None:
    queue = client.queues["q"]
    assert queue.peek() is None
    queue.put_many([("A", 1), ("B", 2)])

    assert got(queue.peek()).klass == "A"
    assert [job.klass for job in queue.peek(5)] == ["A", "B"]
    assert [job.klass for job in client.peek("q", 1)] == ["A"]
    assert queue.counts.waiting == 2


# ---- finishing


def popped(client: Client, queue: str = "q", **options: Any) -> Any:
    client.queues[queue].put("A", {"n": 1}, **options)
    return got(client.queues[queue].pop())


def test_a_job_is_completed_with_a_result(client: Client) -> None:
    job = popped(client)

    assert job.complete({"ok": True}, data={"n": 2}) == "complete"
    assert (job.state, job.result, job.worker) == ("complete", {"ok": True}, "")
    job.refresh()
    assert (job.state, job.result, job.data) == ("complete", {"ok": True}, {"n": 2})
    assert job.ended_at is not None
    assert [one.jid for one in client.jobs.completed()] == [job.jid]


def test_no_result_is_none(client: Client) -> None:
    job = popped(client)
    job.complete()

    assert job.refresh().result is None
    assert job.result_text == ""


def test_a_job_goes_on_to_the_next_queue(client: Client) -> None:
    job = popped(client)

    assert job.complete(next="p", delay=60) == "scheduled"
    assert client.jobs[job.jid].queue == "p"
    with pytest.raises(BadArgument, match="complete was given a bad delay_ms"):
        popped(client).complete(delay=60)


def test_completing_releases_what_depends_on_it(client: Client) -> None:
    job = popped(client)
    waiting = client.queues["q"].put("B", depends=job)
    job.complete()

    assert client.jobs[waiting.jid].state == "waiting"


def test_complete_and_pop_goes_to_the_next_job_in_one_step(client: Client) -> None:
    client.queues["q"].put_many([("A", n) for n in range(4)])
    client.queues["other"].put("B")
    job = got(client.queues["q"].pop())

    second = got(job.complete_and_pop("done"))
    assert (job.state, job.result, second.data) == ("complete", "done", 1)
    more = second.complete_and_pop(count=5)
    assert [one.data for one in more] == [2, 3]
    assert got(more[0].complete_and_pop(queue="other")).klass == "B"
    assert more[1].complete_and_pop() is None


def test_many_are_completed_in_one_step(client: Client) -> None:
    client.queues["q"].put_many([("A", n) for n in range(3)])
    first, second, third = client.queues["q"].pop(3)
    client.complete_many([first, (second, "two")])
    client.complete_many([])

    assert (first.state, first.result) == ("complete", None)
    assert client.jobs[second.jid].result == "two"
    third.complete()
    with pytest.raises(LockLost):
        client.complete_many([client.queues["q"].put("A")])


def test_a_job_fails_into_a_group(client: Client) -> None:
    job = popped(client)
    job.fail("timeouts", "it took too long", data={"n": 2})

    failure = got(client.jobs[job.jid].failure)
    assert (failure.group, failure.message) == ("timeouts", "it took too long")
    assert abs(failure.at - datetime.now(UTC)) < timedelta(minutes=1)
    assert client.failed.groups() == {"timeouts": 1}
    listing = client.failed.jobs("timeouts")
    assert (listing[0].data, listing.total) == ({"n": 2}, 1)


def test_failed_jobs_are_tried_anew(client: Client) -> None:
    for _ in range(3):
        popped(client).fail("g")

    first, *_ = client.failed.jobs("g")
    assert client.failed.retry(jobs=[first, "nobody"]) == 1
    assert client.failed.retry(jobs=[first]) == 0
    assert client.queues["other"].unfail("g") == 0
    assert client.queues["q"].unfail("g") == 2
    assert client.queues["q"].counts.waiting == 3


def test_failed_jobs_are_retried_in_another_queue_on_purpose_only(client: Client) -> None:
    job = popped(client)
    job.fail("g")

    assert client.failed.retry(group="g", to="repaired") == 1
    assert client.jobs[job.jid].queue == "repaired"


def test_a_job_is_retried_until_none_remain(client: Client) -> None:
    job = popped(client, retries=1)

    assert job.retry(60) == 0
    assert job.state == "scheduled"
    job.promote()
    last = got(client.queues["q"].pop())
    assert last.retry(group="gone", message="why") == -1
    assert last.state == "failed"
    assert client.failed.groups() == {"gone": 1}


def test_a_released_job_is_not_counted_as_retried(client: Client) -> None:
    job = popped(client)

    assert job.release(data={"step": 2}) == "waiting"
    again = got(client.queues["q"].pop())
    assert (again.remaining, again.data) == (5, {"step": 2})
    assert again.release(delay=timedelta(hours=1)) == "scheduled"


# ---- as a context manager


def test_a_with_block_completes_its_job(client: Client) -> None:
    with popped(client) as job:
        assert job.state == "running"

    assert job.refresh().state == "complete"


def test_a_with_block_that_raises_fails_its_job_and_raises(client: Client) -> None:
    job = popped(client)
    with pytest.raises(ZeroDivisionError), job:
        _ = 1 / 0

    failure = got(job.refresh().failure)
    assert failure.group == "ZeroDivisionError"
    assert "Traceback" in failure.message
    assert failure.message.strip().endswith("division by zero")


def test_a_traceback_of_any_length_and_content_is_recorded(client: Client) -> None:
    job = popped(client)
    with pytest.raises(ValueError, match="x"), job:
        raise ValueError("x" * 200_000 + "\udce9é")

    assert got(job.refresh().failure).message.strip().endswith("é")


def test_an_exception_with_a_long_name_is_recorded(client: Client) -> None:
    long = type("錯" * 70, (Exception,), {})
    with pytest.raises(long), popped(client) as job:
        raise long

    assert got(job.refresh().failure).group == "錯" * 26


def test_a_job_finished_inside_its_block_is_left_as_it_is(client: Client) -> None:
    for finish in ("fail", "retry", "release", "complete", "cancel"):
        job = popped(client, retries=5)
        with job:
            getattr(job, finish)(*(["why"] if finish == "fail" else []))
        if finish != "cancel":
            expected = {"fail": "failed", "complete": "complete"}.get(finish, "waiting")
            assert job.refresh().state == expected
            job.cancel()
    with pytest.raises(RuntimeError), popped(client) as job:
        job.complete()
        raise RuntimeError
    assert job.refresh().state == "complete"


def test_a_job_moved_inside_its_block_is_left_in_its_new_queue(client: Client) -> None:
    with popped(client) as job:
        job.move("elsewhere")
    assert (job.refresh().state, job.queue) == ("waiting", "elsewhere")


def test_a_block_finishes_its_job_if_nothing_in_it_did(client: Client) -> None:
    """A refused `cancel`, or a `move` that another job stood for, leaves the job with its worker."""
    for leave in ("cancel", "delete"):
        job = popped(client)
        waits = client.queues["q"].put("After", depends=[job])
        with job, pytest.raises(HasDependents):
            getattr(job, leave)()
        assert job.refresh().state == "complete"
        waits.cancel()
    client.queues["elsewhere"].put("K", unique="one")
    with popped(client) as job:
        assert job.move("elsewhere", unique="one").deduplicated
    assert job.refresh().state == "complete"


def test_a_block_that_is_told_to_stop_gives_its_job_back(client: Client) -> None:
    job = popped(client)
    with pytest.raises(KeyboardInterrupt), job:
        raise KeyboardInterrupt

    job.refresh()
    assert (job.state, job.remaining) == ("waiting", 5)


def test_a_block_whose_lease_was_lost_says_so(client: Client) -> None:
    job = popped(client)
    with pytest.raises(LockLost), job:
        client.jobs.timeout(job)

    again = got(client.queues["q"].pop())
    with pytest.raises(RuntimeError) as raised, again:
        again.timeout()
        raise RuntimeError
    assert "the failure was not recorded" in raised.value.__notes__[0]


# ---- leasing and changing


def test_a_heartbeat_renews_the_lease(client: Client) -> None:
    job = popped(client)
    before = job.expires_at_ms
    time.sleep(0.01)
    job.heartbeat(data={"n": 2})

    assert job.expires_at_ms > before
    assert job.refresh().data == {"n": 2}


def test_a_lease_is_taken_away(client: Client) -> None:
    job = popped(client)

    assert client.jobs.timeout(job) == (job.jid,)
    with pytest.raises(LockLost):
        job.heartbeat()
    with pytest.raises(WrongState):
        job.timeout()


def test_progress_and_log_are_remembered(client: Client) -> None:
    job = popped(client)
    job.progress("3 of 7")
    job.log("half way")
    job.refresh()

    assert job.progress_text == "3 of 7"
    assert [stage.what for stage in job.history] == ["put", "popped", "log"]
    assert job.history[-1].facts == {"message": "half way"}
    assert job.history[-1].at.tzinfo is UTC


def test_data_and_priority_are_changed(client: Client) -> None:
    job = client.queues["q"].put("A", 1)
    job.update([2])
    job.prioritize(-9)

    job.refresh()
    assert (job.data, job.priority) == ([2], -9)
    job.update(text="raw")
    assert job.refresh().text == "raw"


def test_a_job_is_delayed_and_promoted(client: Client) -> None:
    job = client.queues["q"].put("A").refresh()

    assert job.delay(60) == "scheduled"
    assert client.queues["q"].scheduled().total == 1
    job.promote()
    assert job.state == job.refresh().state == "waiting"


def test_a_job_is_moved(client: Client) -> None:
    job = client.queues["q"].put("A", {"x": 1})
    moved = job.move("p", priority=4)

    assert moved == job
    assert (moved.refresh().queue, moved.data, moved.priority) == ("p", {"x": 1}, 4)


def test_jobs_are_canceled(client: Client) -> None:
    first = client.queues["q"].put("A", jid="a")
    client.queues["q"].put("A", jid="b", depends=first)
    with pytest.raises(HasDependents, match="b depends on it"):
        first.cancel()

    assert set(first.cancel(cascade=True)) == {"a", "b"}
    client.queues["q"].put("A", jid="c")
    assert client.jobs.cancel("c", "nobody") == ("c",)


# ---- dependencies, tags, tracking


def test_dependencies_are_added_and_removed(client: Client) -> None:
    queue = client.queues["q"]
    a, b = queue.put("A", jid="a"), queue.put("A", jid="b")
    job = queue.put("B", depends=a)

    assert job.depends_on(b) == ("a", "b")
    assert job.depends_off("a") == ("b",)
    assert job.depends_off(all=True) == ()
    assert job.refresh().state == "waiting"
    with pytest.raises(WrongState):
        job.depends_on(a)


def test_jobs_are_tagged(client: Client) -> None:
    a, b = (client.queues["q"].put("A", jid=jid) for jid in "ab")

    assert a.tag("red", "blue") == ("red", "blue")
    assert b.tag("red") == ("red",)
    assert client.tags.top() == {"red": 2}
    assert [job.jid for job in client.tags.jobs("red")] == ["a", "b"]
    assert a.untag("red") == ("blue",)


def test_jobs_are_tracked_beyond_their_end(client: Client) -> None:
    job = client.queues["q"].put("A")

    assert job.track() is True
    assert client.tracked.add(job) is False
    assert client.tracked.jobs().jobs == [job]
    assert job.refresh().tracked is True
    job.cancel()
    assert client.tracked.jobs().expired == (job.jid,)
    assert client.tracked.remove(job.jid) is True
    assert job.untrack() is False


# ---- looking


def test_jobs_are_fetched_one_or_many(client: Client) -> None:
    jobs = client.queues["q"].put_many([("A", n) for n in range(3)])

    assert client.jobs.get(jobs[1].jid) == jobs[1]
    assert client.jobs.get("nobody") is None
    assert client.jobs.get_many([jobs[2], "nobody", jobs[0].jid]) == [jobs[2], jobs[0]]
    assert client.jobs.get_many([]) == []
    with pytest.raises(JobNotFound, match="There is no job nobody"):
        _ = client.jobs["nobody"]


def test_more_than_a_thousand_are_fetched_in_parts(client: Client) -> None:
    for _ in range(2):
        client.queues["q"].put_many([("A", 0)] * 600)
    jids = [job.jid for part in (0, 600) for job in client.queues["q"].waiting(part, 600)]

    assert len(set(jids)) == 1200
    assert [job.jid for job in client.jobs.get_many(jids)] == jids


def test_every_list_of_a_queue_shows_its_jobs_and_its_length(client: Client) -> None:
    queue = client.queues["q"]
    queue.put("A", jid="running")
    queue.put("A", jid="stalled", priority=1)
    for job in queue.pop(2):
        if job.jid == "stalled":
            job.timeout()
    for jid in ("w1", "w2", "w3"):
        queue.put("A", jid=jid)
    queue.put("A", jid="scheduled", delay=60)
    queue.put("A", jid="depends", depends=["w1"])

    for name in ("running", "stalled", "scheduled"):
        assert [job.jid for job in getattr(queue, name)()] == [name]
    assert [job.jid for job in queue.depending()] == ["depends"]
    page = queue.waiting(1, 1)
    assert ([job.jid for job in page], page.total) == (["w2"], 3)
    counts = queue.counts
    assert (counts.waiting, counts.scheduled, counts.depends) == (3, 1, 1)
    assert (counts.running, counts.stalled, queue.length()) == (1, 1, 7)


def test_queues_are_listed_in_the_order_first_seen(client: Client) -> None:
    for name in ("b", "a"):
        client.queues[name].put("A")
        time.sleep(0.002)

    assert [queue.name for queue in client.queues] == ["b", "a"]
    assert [(one.name, one.waiting) for one in client.queues.counts()] == [("b", 1), ("a", 1)]


def test_a_pause_has_a_reason_and_may_end_by_itself(client: Client) -> None:
    queue = client.queues["q"]
    queue.put("A")

    assert queue.pause("deploy") is True
    assert queue.pause("rate", duration=3600) is False
    assert [pause.reason for pause in queue.counts.pauses] == ["deploy", "rate"]
    assert queue.unpause("deploy") is False
    queue.pause("rate", duration=0.05)  # in place of the first
    assert got(queue.pop(timeout=60)).klass == "A"
    assert queue.counts.pauses == ()


def test_queues_are_paused_at_once(client: Client) -> None:
    queue = client.queues["q"]
    queue.put("A")

    assert queue.pause() is True
    assert queue.pause() is False
    assert queue.pop() is None
    assert queue.counts.paused == 1
    assert client.queues.unpause("q", "p") == 1
    assert queue.unpause() is False
    assert client.queues.pause("q", "p") == 2
    queue.unpause()
    assert queue.pop() is not None


def test_a_queue_is_drained_and_forgotten(client: Client) -> None:
    queue = client.queues["q"]
    queue.put("A", jid="a")
    queue.put("A", jid="b", depends="a")
    queue.put("A", jid="c", depends="b", delay=3)
    with pytest.raises(QueueNotEmpty, match="still has jobs: 3"):
        queue.forget()

    assert queue.drain(1).left + 0 in (2, 3)
    assert queue.drain().left == 0
    assert queue.forget() is True
    assert client.queues.forget("q") == 0


def test_statistics_are_of_a_day(client: Client) -> None:
    popped(client).complete()
    popped(client).fail("g")
    today = client.queues["q"].stats()

    assert (today.wait.count, today.run.count, today.failures, today.failed) == (2, 1, 1, 1)
    day = datetime.fromtimestamp(today.day / 1000, UTC)
    assert client.queues["q"].stats(day.date()) == client.queues["q"].stats(day) == today
    assert client.queues["q"].stats(date(2020, 1, 1)).wait.count == 0


def test_statistics_are_shown_by_a_tag_or_a_worker(client: Client) -> None:
    queue = client.queues["q"]
    client.config.set("stats-workers", 2)
    for tags in (["eu"], ["eu", "big"], []):
        queue.put("A", tags=tags)
    for _ in range(3):
        job = queue.pop(worker="w")
        assert job is not None
        job.complete()

    assert [queue.stats(tag=tag).wait.count for tag in ("eu", "big", "us")] == [2, 1, 0]
    assert queue.stats(worker="w").run.count == queue.stats().run.count == 3
    assert sum(queue.stats(tag="eu").run.histogram) == 2
    with pytest.raises(BadArgument):
        queue.stats(tag="eu", worker="w")


def test_minutes_tell_what_became_of_the_jobs(client: Client) -> None:
    popped(client).complete()
    popped(client).fail("g")
    minutes = client.queues["q"].metrics(2)

    assert len(minutes) == 2
    assert [sum(one[i] for one in minutes) for i in (1, 2, 3)] == [1, 1, 0]
    assert client.queues["q"].metrics(5, at=minutes[0].at)[-1] == minutes[0]
    assert client.queues["q"].metrics(at=date(2020, 1, 1)) == ()


def test_workers_are_listed_with_what_they_hold(client: Client) -> None:
    job = popped(client)

    (one,) = client.workers.counts()
    assert (one.name, one.jobs, one.stalled) == (client.worker, 1, 0)
    assert client.workers[client.worker].jobs == (job.jid,)
    assert client.workers.deregister(client.worker) == 1
    assert client.workers.counts() == []


def test_options_are_seconds_where_they_are_durations(client: Client) -> None:
    assert client.config["heartbeat"] == 60
    client.config["heartbeat"] = 90
    client.config["heartbeat-q"] = timedelta(seconds=1.5)
    client.config["max-events"] = 500

    assert client.config["heartbeat"] == 90
    assert client.config["heartbeat-q"] == 1.5
    assert client.config["max-events"] == 500
    assert client.config.set("stats-history", 3) == 3
    assert client.config.unset("stats-history") == 30
    del client.config["heartbeat"]
    settings = {s.option: s for s in client.config.settings()}
    assert settings["heartbeat"] == ("heartbeat", 60_000, False)
    assert client.config.all()["heartbeat-q"] == 1.5
    assert "heartbeat-q" in list(client.config)


def test_a_queue_has_options_of_its_own_before_those_of_the_namespace(client: Client) -> None:
    config = client.queues["default"].config
    assert config.all() == {"heartbeat": 60, "fair": 0, "aging": 0}
    client.config["heartbeat"] = 90
    assert config["heartbeat"] == 90
    config["heartbeat"] = timedelta(seconds=1.5)
    assert (config["heartbeat"], client.config["heartbeat-default"], client.config["heartbeat"]) == (1.5, 1.5, 90)
    assert client.queues["other"].config["heartbeat"] == 90
    assert config.unset("heartbeat") == 90
    for option in ("grace-period", "heartbeats"):
        with pytest.raises(UnknownOption):
            config[option] = 1
        with pytest.raises(UnknownOption):
            config[option]


@pytest.mark.parametrize(("limit", "group"), [({"max_lapses": 1}, "failed-lapses-q"), ({}, "failed-retries-q")])
def test_leases_that_lapse_take_retries_unless_they_have_a_limit(
    client: Client, limit: dict[str, int], group: str
) -> None:
    client.config["grace-period"] = 0
    client.queues["q"].put("A", jid="a", retries=1, lease=0.001, **limit)
    for left in (1, 1 if limit else 0):
        job = client.queues["q"].pop()
        assert job is not None and (job.remaining, job.max_lapses) == (left, limit.get("max_lapses"))
        time.sleep(0.01)
    assert client.queues["q"].pop() is None
    failure = client.jobs["a"].failure
    assert failure is not None and failure.group == group


def test_a_job_waits_longer_with_each_retry_whoever_retries_it(client: Client) -> None:
    queue = client.queues["q"]
    queue.put("A", jid="a", retry_delay=60, retry_delay_max=timedelta(seconds=90))
    for delay, wanted in ((0, 60), (0, 90), (300, 300)):
        (job,) = queue.pop(1)
        assert (job.retry_delay, job.retry_delay_max) == (timedelta(seconds=60), timedelta(seconds=90))
        job.retry(delay=delay)
        waits = client.jobs["a"].ready_at - job.popped_at
        assert wanted <= waits.total_seconds() < wanted + 5
        client.jobs["a"].promote()


def test_a_queue_that_is_fair_lets_the_keys_of_its_jobs_take_turns(client: Client) -> None:
    queue = client.queues["reports"]
    queue.config["fair"] = 1
    for jid, key in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        queue.put("Report", jid=jid, fair_key=key, fair_weight=2)
    queue.put("Report", jid="c1", throttles=["c"])
    popped = queue.pop(4)
    assert [(job.jid, job.fair_key, job.fair_weight) for job in popped] == [
        ("a1", "a", 2), ("b1", "b", 2), ("a2", "a", 2), ("c1", None, 1),
    ]  # fmt: skip
    with pytest.raises(BadArgument):
        queue.put("Report", fair_weight=101)


def test_priorities_of_a_queue_improve_with_age(client: Client) -> None:
    queue = client.queues["reports"]
    queue.config.set("aging", timedelta(seconds=0.02))
    assert (queue.config["aging"], client.config["aging-reports"], client.config["aging"]) == (0.02, 0.02, 0)
    queue.put("Report", jid="low", priority=2)
    time.sleep(0.06)
    for jid, priority in (("even", 0), ("better", -1), ("worse", 3)):
        queue.put("Report", jid=jid, priority=priority)
    shown = [job.jid for job in queue.peek(4)]
    assert shown.index("low") < shown.index("even") < shown.index("worse")
    assert shown.index("better") < shown.index("even")
    client.jobs["worse"].prioritize(-9)
    first = queue.pop()
    assert first is not None and first.jid == "worse"
    with pytest.raises(BadValue):
        queue.config["aging"] = timedelta(days=367)


def test_runs_and_messages_take_turns_in_a_fair_queue(client: Client) -> None:
    recurring = client.queues["reports"].recur("Report", interval=60, jid="hourly", fair_key="a", fair_weight=2)
    assert (recurring.fair_key, recurring.fair_weight) == ("a", 2)
    recurring.update(fair_key="b", fair_weight=3)
    assert (recurring.fair_key, recurring.fair_weight) == ("b", 3)
    client.subscriptions.add("news", "x", "reports", "Report", fair_key="c", fair_weight=4)
    client.publish("x")
    found = {job.klass + str(job.fair_key): job.fair_weight for job in client.queues["reports"].pop(2)}
    assert found == {"Reportb": 3, "Reportc": 4}


def test_unknown_options_and_bad_values_are_refused(client: Client) -> None:
    with pytest.raises(UnknownOption, match="There is no option hartbeat"):
        client.config["hartbeat"] = 1
    with pytest.raises(BadValue, match="whole number from 4 to 1000"):
        client.config["max-job-history"] = 3
    with pytest.raises(UnknownOption):
        _ = client.config["hartbeat"]


def test_events_are_gone_through_to_the_newest(client: Client) -> None:
    client.queues["q"].put_many([("A", 0)] * 700)
    client.queues["q"].put_many([("A", 0)] * 700)

    begun, *events = client.events()
    assert (begun.seq, begun.event) == (1, "epoch_begun")
    assert [event.seq for event in events] == list(range(2, 1402))
    assert {(event.event, event.epoch) for event in events} == {("put", begun.epoch)}
    assert [event.seq for event in client.events(1399, epoch=begun.epoch)] == [1400, 1401]
    assert client.position() == (1401, begun.epoch)


def test_a_reader_of_another_history_is_refused(client: Client) -> None:
    client.queues["q"].put("A")
    seq, epoch = client.position()
    with pytest.raises(Forked, match="not part of this history") as caught:
        list(client.events(seq, epoch=epoch + 1))
    assert caught.value.current == str(epoch)


def test_an_epoch_is_begun_by_hand(client: Client) -> None:
    client.queues["q"].put("A")
    before = client.position()
    begun = client.begin_epoch()
    assert client.position() == (before.seq + 1, begun)
    assert begun > before.epoch
    with pytest.raises(EpochPassed):
        client.begin_epoch(begun - 1)
    job = client.queues["q"].pop()
    assert job is not None and job.token == begun * 10**14 + client.newest()
    job.complete()


# ---- operations and requests


def test_any_operation_can_be_executed(client: Client) -> None:
    assert client.execute(operations.Put("q", "a", "A", ""), now=1000) == "a"
    assert client.jobs["a"].put_at_ms == 1000
    assert client.execute_many([operations.Length("q"), operations.Get("x")]) == [1, None]
    length, refused = client.execute_many([operations.Length("q"), operations.RetryMany(group="g", to="")])
    assert length == 1
    assert isinstance(refused, RefusedError)


def test_every_operation_gets_a_request_id_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    client = qmodel.Client()
    sent: list[Any] = []
    execute = client.backend.execute
    monkeypatch.setattr(client.backend, "execute", lambda o, n=None: (sent.append(o), execute(o))[1])
    op = operations.Put("q", "a", "A", "")
    client.execute(op)
    client.execute(op)
    client.execute(operations.Put("q", "b", "A", "", request="mine"))
    client.execute(operations.Length("q"))

    first, second, third, _ = sent
    assert len(first.request) == len(second.request) == 22
    assert first.request != second.request
    assert third.request == "mine"
    assert op.request == ""


def test_every_operation_of_the_catalogue_is_in_the_client() -> None:
    source = "".join(map(inspect.getsource, (sync, sync_executor, cron, build, sync_requests)))
    missing = [
        cls.__name__ for cls in (spec.cls for spec in operations.CATALOGUE.values()) if f"{cls.__name__}(" not in source
    ]
    assert missing == []


def test_everything_public_is_explained() -> None:
    from qmodel.client import aio, sync

    for module in (sync, aio):
        for name in module.__all__:
            cls = getattr(module, name)
            assert cls.__doc__, name
            for attribute, value in vars(cls).items():
                if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert inspect.getdoc(value), f"{name}.{attribute}"


# ---- small things


def test_an_asynchronous_job_that_is_not_loaded_says_how() -> None:
    import asyncio

    async def main() -> None:
        async with qmodel.AsyncClient() as client:
            job = await client.queues["q"].put("A", 1)
            assert job.data == 1
            with pytest.raises(NotLoadedError, match=r"await job\.refresh\(\)"):
                _ = job.state
            assert (await job.refresh()).state == "waiting"
            assert job.raw.jid == job.jid

    asyncio.run(main())


def test_things_show_what_they_are(client: Client) -> None:
    job = client.queues["q"].put("A", jid="a")

    assert repr(job) == "<Job a: A in q>"
    assert repr(got(client.queues["q"].pop())) == "<Job a: A in q: running>"
    assert repr(client.queues["q"]) == "<Queue q>"
    assert repr(client).startswith("<Client ")
    assert len({job, client.jobs["a"]}) == 1
    assert repr(KEEP) == "KEEP"


def test_durations_are_seconds_or_timedeltas() -> None:
    assert milliseconds(0.0015) == 2
    assert milliseconds(timedelta(days=1)) == 86_400_000


def test_two_clients_of_one_name_share_their_jobs() -> None:
    qmodel.connect("memory://two-clients").queues["q"].put("A")

    assert qmodel.connect("memory://two-clients").queues["q"].length() == 1


def test_a_queue_is_deleted_with_all_that_it_has(client: Client) -> None:
    queue = client.queues["q"]
    for _ in range(3):
        queue.put_many([("A", n) for n in range(500)])
    job = got(queue.pop())
    with pytest.raises(QueueBusy, match="has running or stalled jobs: 1"):
        queue.obliterate()

    job.complete()
    assert queue.obliterate() == 1500
    assert (queue.obliterate(), client.jobs.get(job.jid), queue.forget()) == (0, None, False)


# ---- searching


def test_jobs_are_found_by_what_they_are(client: Client) -> None:
    queue = client.queues["q"]
    queue.put_many([("A", n) for n in range(150)])
    queue.put("B", jid="b", tags=["red"])

    assert len(list(client.jobs.search("q", klass="A"))) == 150
    assert [job.jid for job in client.jobs.search(tag="red")] == ["b"]
    assert [job.jid for job in client.jobs.search("q", state="waiting", klass="B")] == ["b"]
    with pytest.raises(RefusedError, match="needs a narrower filter"):
        list(client.jobs.search(klass="A"))


def test_many_jobs_are_canceled_or_tried_again_by_what_they_are(client: Client) -> None:
    queue = client.queues["q"]
    queue.put_many([("A", n) for n in range(1200 // 2)])
    queue.put_many([("A", n) for n in range(1200 // 2)])
    queue.put("B", jid="b", priority=-1)
    got(queue.pop()).fail("g", "no")

    assert client.failed.retry(klass="B", preview=True) == 1
    assert client.failed.retry(klass="B") == 1
    assert client.jobs.cancel_many("q", klass="A", preview=True).done == 1200
    assert client.jobs.cancel_many("q", klass="A") == (1200, 0, "")
    assert [job.jid for job in queue.waiting()] == ["b"]


def test_finished_jobs_are_deleted_by_age(client: Client) -> None:
    queue = client.queues["q"]
    for _ in range(3):
        queue.put("A")
    for job in queue.pop(2):
        job.complete()
    got(queue.pop()).fail("g", "no")

    assert client.jobs.clean(older=60).done == 0
    assert client.jobs.clean(queue="nowhere").done == 0
    assert client.jobs.clean().done == 2
    assert client.jobs.clean("failed", preview=True).jids == client.jobs.clean("failed").jids != ()


def test_jobs_of_a_klass_share_texts(client: Client) -> None:
    notes = client.metadata["Send"]

    assert notes.set("template", "v2") is True
    assert (notes.increment("sent"), notes.increment("sent", 41)) == (1, 42)
    assert notes.all() == {"sent": "42", "template": "v2"}
    assert notes.unset("template") is True
    assert notes.unset("template") is False
    with pytest.raises(RefusedError, match="whole number"):
        notes.increment("sent", 10**14 - 1)


def test_a_job_is_ready_at_its_moment(client: Client) -> None:
    queue, at = client.queues["q"], datetime(2126, 1, 31, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=1)))
    job = queue.put("A", at=at).refresh()
    assert job.state == "scheduled" and job.ready_at == datetime(2126, 1, 31, 11, 0, 0, 1000, tzinfo=UTC)
    past = queue.put("A", at=datetime(2000, 1, 1, tzinfo=UTC)).refresh()
    assert past.state == "waiting" and past.ready_at == past.put_at
    assert job.move("r", at=at + timedelta(days=1)).refresh().ready_at_ms == job.ready_at_ms + 86_400_000


def test_a_moment_without_a_time_zone_is_refused_with_the_next_step(client: Client) -> None:
    with pytest.raises(ValueError, match=r"has no time zone\. Add one: at\.replace\(tzinfo="):
        client.queues["q"].put("A", at=datetime(2126, 1, 31))
    with pytest.raises(TypeError, match="is not a datetime"):
        client.queues["q"].put("A", at=60)  # type: ignore[arg-type]


def test_a_moment_and_a_delay_are_refused_together(client: Client) -> None:
    moment = datetime(2126, 1, 31, tzinfo=UTC)
    with pytest.raises(BadArgument, match="give at or delay, not both"):
        client.queues["q"].put("A", at=moment, delay=1)
    made = [client.queues["q"].new("A"), client.queues["q"].new("A", at=moment, delay=1)]
    with pytest.raises(BadArgument, match="give at or delay, not both"):
        client.put_flow(flows.chain(*made))
    assert client.queues["q"].length() == 0


def test_a_job_of_a_flow_and_a_sub_request_are_ready_at_their_moments(client: Client) -> None:
    at = datetime(2126, 1, 31, tzinfo=UTC)
    queue = client.queues["q"]
    _, second = client.put_flow(flows.chain(queue.new("A"), queue.new("B", at=at)))
    popped(client).complete()
    assert (second.refresh().state, second.ready_at) == ("scheduled", at)
    request = client.requests.open("R", "q", limit=1)
    piece = request.add("C", at=at)
    assert client.jobs[piece].refresh().ready_at == at


def test_a_job_is_deleted_whatever_its_state(client: Client) -> None:
    queue = client.queues["q"]
    for jid in ("done", "failed", "running"):
        queue.put("A", jid=jid)
    popped(client).complete()
    popped(client).fail("g", "m")
    held = popped(client)
    queue.put("A", jid="waiting")
    assert client.jobs["done"].cancel() == ()
    assert client.jobs["done"].delete() == ("done",)
    assert client.jobs.delete("failed", "running", "waiting", "nobody") == ("failed", "running", "waiting")
    with pytest.raises(JobNotFound):
        held.complete()
