"""Faults of other queues in administration; each test claims that qmodel does not have one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.model import engine, snapshot
from qmodel.model.state.store import Store


def done(store: Store, now: int, *operations: ops.Operation) -> Any:
    """Execute operations; none may be refused. Give the last reply."""
    reply = None
    for op in operations:
        reply = engine.step(store, now, op)
        assert not isinstance(reply, Refusal), (op, reply)
    return reply


def put(queue: str, *jids: str, **more: Any) -> Iterable[ops.Operation]:
    """Make the puts of some jobs."""
    return (ops.Put(queue, jid, "k", "", **more) for jid in jids)


# ---- several queues


def test_several_queues_are_taken_from_in_the_order_given() -> None:
    store = Store()
    done(store, 1, *put("r", "r1", "r2", priority=-5), *put("q", "q1"))
    popped = done(store, 1, ops.PopAny(("q", "r"), "w", 2, request="n"))

    assert [job.jid for job in popped] == ["q1", "r1"]
    assert [job.jid for job in done(store, 1, ops.PopAny(("q", "r"), "w", 2, request="n"))] == ["q1", "r1"]
    assert [job.jid for job in done(store, 1, ops.PopAny(("q", "r"), "w", 2))] == ["r2"]


def test_a_worker_that_finds_no_job_in_several_queues_is_idle_in_each_once() -> None:
    store = Store()
    assert done(store, 1, ops.PopAny(("q", "r", "q"), "w", wait=True)) == ()
    assert {name: queue.idle for name, queue in store.queues.items()} == {"q": 1, "r": 1}


def test_the_work_of_a_pop_from_several_queues_is_bounded() -> None:
    store = Store()
    names = [f"q{n}" for n in range(3)]
    for name in names:
        done(store, 1, *put(name, *(f"{name}-{n}" for n in range(600)), retries=0), ops.Pop(name, "u", 600))
    before = store.seq
    assert done(store, 10**6, ops.PopAny(tuple(names), "w", 1000)) == ()
    assert store.seq - before == 1000  # 500 are lost and failed for half of the budget, and no further queue is begun


# ---- pauses


def test_a_timed_pause_does_not_end_the_pause_of_a_person() -> None:
    """M6 of Mosquito: a rate limiter's pause overwrote the operator's pause, and the queue resumed by itself."""
    store = Store()
    done(store, 1, *put("q", "a"), ops.Pause(("q",)))
    assert done(store, 2, ops.Pause(("q",), "rate", 1000)) == 0
    assert done(store, 2, ops.Queue("q")).pauses == (("by hand", 0), ("rate", 1002))
    assert done(store, 5000, ops.Queue("q")).pauses == (("by hand", 0),)
    assert done(store, 5000, ops.Pop("q", "w")) == ()
    assert done(store, 5000, ops.Unpause(("q",), "by hand")) == 1
    assert [job.jid for job in done(store, 5000, ops.Pop("q", "w"))] == ["a"]


def test_reads_show_the_end_of_a_timed_pause_before_any_operation_records_it() -> None:
    store = Store()
    done(store, 1, *put("q", "a"), ops.Pause(("q",), "rate", 1000))
    seen = [(one.paused, one.next_at) for one in (done(store, at, ops.Queue("q")) for at in (1000, 1001))]
    assert seen == [(True, 1001), (False, 0)]
    assert [job.jid for job in done(store, 1001, ops.Pop("q", "w"))] == ["a"]
    assert store.queues["q"].pauses == {}


def test_the_end_of_a_pause_wakes_the_idle() -> None:
    store = Store()
    done(store, 1, *put("q", "a", "b"), ops.Pause(("q",), "rate", 1000))
    done(store, 2, ops.Pop("q", "u", wait=True), ops.Pop("q", "v", wait=True))
    assert (store.queues["q"].idle, store.queues["q"].wakes) == (2, 0)
    done(store, 1001, ops.Pop("q", "w"))
    assert (store.queues["q"].idle, store.queues["q"].wakes) == (0, 2)


def test_the_reasons_of_a_queue_are_few() -> None:
    store = Store()
    done(store, 1, *(ops.Pause(("q",), f"r{n}", 1000) for n in range(10)), ops.Pause(("q",), "r3"))
    assert engine.step(store, 2, ops.Pause(("q",), "x")) == Refusal("LIMIT_REACHED", ("pauses of queue q", "10"))
    done(store, 1001, ops.Pause(("q",), "x"))
    assert store.queues["q"].pauses == {"r3": 0, "x": 0}


def test_a_queue_whose_pauses_have_ended_leaves_nothing_behind() -> None:
    store = Store()
    done(store, 1, ops.Pause(("q",)), ops.Pause(("q",), "rate", 5), ops.Pop("q", "w"), ops.Unpause(("q",)))
    assert snapshot.of(store).queues == {}


# ---- searching


def test_a_search_filters_before_it_cuts_the_page() -> None:
    """glide-mq searched only the first hundred jobs, and missed all later matches."""
    store = Store()
    done(store, 1, *put("q", *(f"a{n}" for n in range(300))), ops.Put("q", "b", "rare", ""))
    assert [job.jid for job in done(store, 1, ops.Search("q", klass="rare", count=1)).jobs] == ["b"]


def test_a_search_visits_a_thousand_jobs_and_returns_a_cursor() -> None:
    store = Store()
    for begin in range(0, 1500, 500):
        done(store, 1, *put("q", *(f"a{n}" for n in range(begin, begin + 500))))
    done(store, 1, ops.Put("q", "b", "rare", ""))
    first = done(store, 1, ops.Search("q", klass="rare"))
    assert (first.jobs, first.cursor) == ((), "ready 0 1 1000")
    rest = done(store, 1, ops.Search("q", klass="rare", cursor=first.cursor))
    assert ([job.jid for job in rest.jobs], rest.cursor) == (["b"], "")


def test_jobs_that_stay_are_found_once_even_if_others_are_deleted_meanwhile() -> None:
    store = Store()
    done(store, 1, *put("q", *"abcdef"))
    first = done(store, 1, ops.Search("q", count=2))
    done(store, 1, ops.Cancel(("a", "b", "c")), *put("q", "g"))
    rest = done(store, 1, ops.Search("q", count=9, cursor=first.cursor))
    assert [job.jid for job in (*first.jobs, *rest.jobs)] == ["a", "b", "d", "e", "f", "g"]


def test_a_search_without_a_list_to_walk_through_is_refused() -> None:
    store = Store()
    for op in (ops.Search(klass="k"), ops.Search(state="running"), ops.CancelMany(klass="k")):
        assert engine.step(store, 1, op) == Refusal("TOO_WIDE", (op.spec.name,))
    for cursor in ("x", "tag 5", "ready 1", "ready 0 0 0 "):
        assert engine.step(store, 1, ops.Search("q", cursor=cursor)) == Refusal("BAD_ARGUMENT", ("search", "cursor"))


def test_every_state_is_found_by_its_name() -> None:
    store = Store()
    done(store, 1, *put("q", "c", "f", "r", "t"), ops.Pop("q", "u", 4), ops.Timeout(("t",)))
    done(store, 1, ops.Complete("c", store.jobs["c"].token), ops.Fail("f", store.jobs["f"].token, "g", ""))
    done(store, 1, *put("q", "w"), *put("q", "s", delay_ms=10), *put("q", "d", depends=("w",)))
    known = {"complete": "c", "failed": "f", "running": "r", "stalled": "t", "waiting": "w", "scheduled": "s"}
    for state, jid in {**known, "depends": "d"}.items():
        assert [job.jid for job in done(store, 1, ops.Search("q", state=state)).jobs] == [jid]
    assert [job.jid for job in done(store, 1, ops.Search("q")).jobs] == ["w", "s", "d", "t", "r", "c", "f"]
    assert [job.jid for job in done(store, 11, ops.Search("q", state="waiting")).jobs] == ["w", "s"]
    assert [job.jid for job in done(store, 10**6, ops.Search(worker="u", state="stalled")).jobs] == ["r"]


def test_retry_many_skips_no_job_and_its_preview_changes_nothing() -> None:
    store = Store()
    done(store, 1, *put("q", "a", "b"), *put("r", "c"), ops.Pop("q", "u", 2), ops.Pop("r", "u"))
    done(store, 1, *(ops.Fail(jid, store.jobs[jid].token, f"group {jid}", "") for jid in "abc"))
    before = snapshot.of(store)
    assert done(store, 2, ops.RetryMany(preview=True)) == (3, 0, "")
    assert snapshot.of(store) == before
    assert done(store, 2, ops.RetryMany(queue="r")) == (1, 0, "")
    assert done(store, 2, ops.RetryMany(count=1)) == (1, 0, "group 1 7 group a")
    assert {jid: job.state for jid, job in store.jobs.items()} == {"a": "waiting", "b": "failed", "c": "waiting"}


def test_canceling_many_leaves_those_on_which_others_depend() -> None:
    store = Store()
    done(store, 1, *put("q", "a", "b"), ops.Put("r", "d", "k", "", depends=("a",)))
    assert done(store, 2, ops.CancelMany("q")) == (1, 1, "")
    assert sorted(store.jobs) == ["a", "d"]


def test_cleaning_takes_the_oldest_and_only_those_old_enough() -> None:
    store = Store()
    for at, jid in enumerate("abc"):
        done(store, at, *put("q", jid), ops.Pop("q", "u"))
        done(store, at, ops.Complete(jid, store.jobs[jid].token))
    assert done(store, 100, ops.Clean("complete", 99)).done == 2
    assert sorted(store.jobs) == ["c"]
    assert done(store, 100, ops.Clean("complete", queue="r")) == (0, 0, "", ())


# ---- metadata


def test_unset_metadata_leave_nothing_behind() -> None:
    store = Store()
    done(store, 1, ops.MetadataSet("k", "n", "5"), ops.MetadataIncrement("k", "n", -7), ops.MetadataUnset("k", "n"))
    assert store.metadata == {}


def test_an_increment_without_a_whole_result_is_refused_before_anything_is_written() -> None:
    store = Store()
    done(store, 1, ops.MetadataSet("k", "n", "99999999999999"), ops.MetadataSet("k", "x", "1.0"))
    before = snapshot.of(store)
    for key in ("n", "x"):
        assert engine.step(store, 1, ops.MetadataIncrement("k", key)) == Refusal("NOT_WHOLE", ("k", key))
    assert snapshot.of(store) == before


# ---- metrics


def test_the_counts_of_a_minute_are_the_events_in_it() -> None:
    store, minute = Store(), 60_000
    for jid in "abc":
        done(store, minute - 10, ops.Put("q", jid, "k", ""))
    a, b, c = done(store, minute - 1, ops.Pop("q", "w", 3))
    done(store, minute + 4, ops.Complete("a", a.token), ops.Retry("b", b.token))
    done(store, 3 * minute, ops.Fail("c", c.token, "g", "m"))
    assert done(store, 3 * minute + 7, ops.Metrics("q", count=5)) == (
        (0, 0, 0, 0, 0), (minute, 1, 0, 1, 5), (2 * minute, 0, 0, 0, 0), (3 * minute, 0, 1, 0, 0),
    )  # fmt: skip
    assert done(store, 3 * minute, ops.Metrics("q", minute, 1)) == ((minute, 1, 0, 1, 5),)
    assert done(store, 3 * minute, ops.ConfigSet("metrics-history", 1), ops.Metrics("q"))[0][0] == 2 * minute


def test_old_minutes_are_deleted_when_a_day_begins() -> None:
    store, day = Store(), 86_400_000
    for n in range(4):
        done(store, n * day, ops.Put("q", str(n), "k", ""))
        job = done(store, n * day, ops.Pop("q", "w"))[0]
        done(store, n * day, ops.Complete(str(n), job.token))
    assert [one.swept for one in store.days.values()] == [True, True, False, False]
    assert [len(one.minutes) for one in store.days.values()] == [0, 0, 1, 1]
    assert all(one.run.count == 1 for one in store.days.values())


def test_no_run_is_so_long_that_a_sum_of_its_minute_is_inexact() -> None:
    store = Store()
    done(store, 0, ops.ConfigSet("heartbeat", 366 * 86_400_000), ops.Put("q", "a", "k", ""))
    job = done(store, 0, ops.Pop("q", "w"))[0]
    done(store, 2 * 10**10, ops.Complete("a", job.token))
    assert done(store, 2 * 10**10, ops.Metrics("q", count=1))[0].run_ms == 10**10


# ---- obliterating


def test_a_queue_with_running_jobs_is_deleted_only_by_force() -> None:
    """BullMQ's obliterate deletes keys, and workers of active jobs fail later without a stated reason."""
    store = Store()
    done(store, 1, *put("q", "a", "b"), ops.Pop("q", "w"))
    assert engine.step(store, 2, ops.Obliterate("q")) == Refusal("QUEUE_BUSY", ("q", "1"))
    assert sorted(store.jobs) == ["a", "b"]
    before = store.seq
    assert done(store, 2, ops.Obliterate("q", True)) == (2, 0, "")
    lost = [event.named for event in done(store, 2, ops.Events(before)) if event.event == "lock_lost"]
    assert [(fact["jid"], fact["worker"], fact["cause"]) for fact in lost] == [("a", "w", "cancel")]


def test_an_obliterated_queue_leaves_nothing_behind() -> None:
    store = Store()
    done(store, 1, *put("q", *"abcdef"), *put("r", "x"))
    for name in "ab":
        popped = done(store, 2, ops.Pop("q", "w"))
        done(store, 2, ops.Complete(name, popped[0].token))
    popped = done(store, 2, ops.Pop("q", "w"))
    done(store, 2, ops.Fail("c", popped[0].token, "g", "no"))
    done(store, 2, *put("q", "later", delay_ms=10**6), *put("q", "g", depends=("d",)))
    done(store, 3, ops.Recur("q", "daily", "k", "", 1000), ops.ThrottleSet("queue/q", 1), ops.Pause(("q",)))
    assert done(store, 3, ops.Obliterate("q")) == (8, 0, "")
    assert sorted(store.jobs) == ["x"]
    seen = snapshot.of(store)
    assert (sorted(seen.queues), seen.schedules, seen.throttles) == (["r"], {}, {})
    assert [queue.name for queue in done(store, 3, ops.Queues())] == ["r"]


def test_no_job_waits_for_a_job_of_an_obliterated_queue() -> None:
    store = Store()
    done(store, 1, *put("q", "a", "b"), *put("r", "x", depends=("b",)))
    for force in (False, True):
        assert engine.step(store, 2, ops.Obliterate("q", force)) == Refusal("HAS_DEPENDENTS", ("b", "x"))
    assert sorted(store.jobs) == ["a", "b", "x"]
    assert done(store, 2, ops.Cancel(("x",)), ops.Obliterate("q")) == (2, 0, "")


def test_jobs_that_depend_on_each_other_are_obliterated_together() -> None:
    store = Store()
    done(store, 1, *put("q", "a", "z"), *put("q", "b", depends=("a",)), *put("q", "c", depends=("b",)))
    first = done(store, 2, ops.Obliterate("q", count=1, request="n"))
    assert (first.done, first.passed, sorted(store.jobs)) == (3, 1, ["z"])
    assert done(store, 2, ops.Obliterate("q", count=1, request="n")) == first
    done(store, 2, *put("q", "sooner", priority=-1))
    assert done(store, 2, ops.Obliterate("q", cursor=first.cursor)) == (1, 1, "")
    assert done(store, 2, ops.Obliterate("q")) == (1, 0, "")


def test_a_queue_is_deleted_a_thousand_jobs_at_a_time() -> None:
    store = Store()
    for begin in range(0, 1200, 400):
        for n in range(begin, begin + 400):
            done(store, 1, *put("q", f"a{n}"), *put("q", f"b{n}", depends=(f"a{n}",)))
    gone, cursor, steps = 0, "", 0
    while steps == 0 or cursor:
        part = done(store, 2, ops.Obliterate("q", cursor=cursor))
        assert part.done <= 1000
        gone, cursor, steps = gone + part.done, part.cursor, steps + 1
    assert (gone, steps, store.jobs, store.queues) == (2400, 3, {}, {})


def test_a_queue_with_more_than_a_thousand_dependents_of_one_job_is_not_obliterated() -> None:
    store = Store()
    done(store, 1, *put("q", "a"), *put("q", "a2", depends=("a",)))
    for n in range(1000):
        done(store, 1, *put("q", f"b{n}", depends=("a" if n < 999 else "a2",)))
    assert engine.step(store, 2, ops.Obliterate("q")) == Refusal("CANCEL_LIMIT", ("a",))
    done(store, 2, ops.Cancel(("b0", "b999")))
    assert done(store, 2, ops.Obliterate("q")).done == 1000
    assert done(store, 2, ops.Obliterate("q")) == (0, 0, "")
    assert store.queues == {}


# ---- draining


def test_a_queue_of_a_large_flow_is_drained() -> None:
    """A drain that looked at the first thousand jobs found none without dependents, and canceled nothing, for ever."""
    store = Store()
    done(store, 1, *put("q", "first"))
    for begin in range(0, 1200, 400):
        names = [f"a{n}" for n in range(begin, begin + 400)]
        done(store, 1, ops.PutMany(tuple(put("q", *names, depends=("first",) if begin else None))))  # type: ignore[arg-type]
    done(store, 1, *put("q", "last", depends=tuple(f"a{n}" for n in range(400))))
    assert done(store, 2, ops.Drain("q")) == (1000, 202)
    assert done(store, 2, ops.Drain("q")) == (202, 0)


def test_a_chain_is_drained_in_one_step() -> None:
    store = Store()
    done(store, 1, *put("q", "a0"))
    for n in range(1, 9):
        done(store, 1, *put("q", f"a{n}", depends=(f"a{n - 1}",)))
    assert done(store, 2, ops.Drain("q")) == (9, 0)


def test_no_edge_of_a_drained_job_stays() -> None:
    """Only a thousand edges were ended; later the other dependencies could not complete, as a dependent was missing."""
    store = Store()
    done(store, 1, ops.PutMany(tuple(ops.Put("d", f"d{n}", "k", "") for n in range(1000))), *put("d", "e"))
    done(store, 1, *put("q", "a", depends=tuple(f"d{n}" for n in range(1000))), ops.DependsOn("a", ("e",)))
    assert done(store, 2, ops.Drain("q")) == (0, 1)
    done(store, 2, ops.DependsOff("a", ("e",)))
    assert done(store, 2, ops.Drain("q")) == (1, 0)
    assert not any(job.dependents for job in store.jobs.values())


# ---- many groups


def revoked(store: Store, now: int, *jids: str) -> None:
    """Let each job fail in a group of its own."""
    done(store, now, *(ops.Put(f"q-{jid}", jid, "k", "") for jid in jids), ops.Revoke(jids))


def test_a_search_reaches_all_of_many_groups() -> None:
    """The second page listed a thousand groups, found a job in all but the first, and said that this was all."""
    store = Store()
    names = [f"j{n:04}" for n in range(1002)]
    revoked(store, 1, *names[:1000])
    revoked(store, 1, *names[1000:])
    first = done(store, 2, ops.RetryMany(count=1, preview=True))
    second = done(store, 2, ops.RetryMany(cursor=first.cursor, preview=True))
    third = done(store, 2, ops.RetryMany(cursor=second.cursor, preview=True))
    assert [first.done, second.done, third.done] == [1, 999, 2]
    assert third.cursor == ""


def test_cleaning_reaches_an_old_job_behind_many_groups_of_young_ones() -> None:
    store = Store()
    revoked(store, 1, "z")
    revoked(store, 1000, *(f"j{n}" for n in range(1000)))
    op = ops.Clean("failed", older_ms=500)
    part = done(store, 1001, op)
    assert (part.done, part.cursor != "") == (0, True)
    assert done(store, 1001, ops.Clean("failed", older_ms=500, cursor=part.cursor)) == (1, 0, "", ("z",))


def test_jobs_with_many_dependencies_are_canceled_from_cursor_to_cursor() -> None:
    """Those beyond a thousand dependencies were passed over, and also all behind them."""
    store = Store()
    names = tuple(f"d{n}" for n in range(600))
    done(store, 1, *put("d", *names), *put("q", "a", "b", "c", depends=names), *put("q", "e", depends=("d0",)))
    cursor, parts = "", []
    while not parts or cursor:
        part = done(store, 2, ops.CancelMany("q", state="depends", cursor=cursor))
        parts.append((part.done, part.passed))
        cursor = part.cursor
    assert parts == [(1, 0), (1, 0), (2, 0)]
