"""The laws of the model, each with a planted fault that breaks it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from qmodel.conformance.laws import recurring
from qmodel.conformance.laws.told import backoff, is_spent
from qmodel.contract import operations as ops
from qmodel.contract.arguments import TIME_END
from qmodel.contract.events import EVENTS
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.contract.settings import OPTIONS
from qmodel.model import engine, invariants, snapshot
from qmodel.model.snapshot import Snapshot
from qmodel.model.state import dependencies, queues, state_index, store
from qmodel.model.state.history import stages
from qmodel.model.state.store import Store, events_after
from tests.property.support import (
    BULK,
    QUICK,
    Moment,
    bulk,
    drawn,
    everywhere,
    fails,
    last,
    plant,
    state_of,
    walk,
)
from tests.tester import share

FEW = share(BULK)
"""How many histories are enough for a law that has something to say at almost every step."""


def test_invariants_hold_after_every_step() -> None:
    for moment in everywhere(count=FEW):
        assert invariants.check(snapshot.of(moment.store)) == [], moment.step


@QUICK
@given(drawn())
def test_invariants_hold_for_whatever_hypothesis_draws(history: Any) -> None:
    for moment in walk(history):
        assert invariants.check(snapshot.of(moment.store)) == []


def test_a_planted_fault_breaks_an_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "unlink", lambda store, job, others: None)
    assert fails(test_invariants_hold_after_every_step)


def _later(moment: Moment, ms: int) -> int:
    """Give a later moment, within bounds."""
    return min(max(moment.now, 0) + ms, TIME_END - 1)


# ---- 1: one step is atomic


def test_a_refused_operation_changes_nothing() -> None:
    refused = 0
    for moment in everywhere(before=True, count=FEW):
        if moment.refused:
            refused += 1
            assert moment.before == state_of(moment.store), moment.step
    assert refused > 1000


def test_a_refusal_after_a_write_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(verb: Any, store_: Store, now: int, op: ops.Put) -> Any:
        queues.set_pauses(store_, op.queue, {"x": 0})  # as the original took the tags off first (Q1)
        return verb(store_, now, op)

    plant(monkeypatch, "put", late)
    assert fails(test_a_refused_operation_changes_nothing)


def test_a_replay_is_identical() -> None:
    for history in bulk():
        one, other = Store(), Store()
        first = [engine.step(one, *step) for step in history]
        assert first == [engine.step(other, *step) for step in history]
        assert state_of(one) == state_of(other)
        assert one.events == other.events


def test_a_choice_by_chance_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = itertools.count()

    def moody(verb: Any, store_: Store, now: int, op: ops.Put) -> Any:
        return verb(store_, now, replace(op, priority=next(hidden)))

    plant(monkeypatch, "put", moody)
    assert fails(test_a_replay_is_identical)


# ---- 3: whoever finishes must hold the lease


FINISHING = ("complete", "complete_and_pop", "fail", "retry", "release", "heartbeat", "progress")


def test_only_the_holder_of_the_lease_changes_the_job() -> None:
    late = 0
    for moment in everywhere(before=True, count=FEW):
        if moment.name not in FINISHING or not moment.events:
            continue
        assert moment.before is not None
        job = moment.before.jobs.get(moment.op.jid)
        of_jobs = [event for event in moment.events if EVENTS[event.event][0] == "jid"]
        about = [event for event in of_jobs if event.facts[0] == moment.op.jid]
        if job is None or job["state"] != "running" or job["token"] != moment.op.token:
            late += 1  # complete_and_pop again: it may pop, and even the very job that it completed
            assert moment.name == "complete_and_pop"
            assert {event.event for event in about} <= {
                "popped",
                "promoted",
                "lock_lost",
                "failed",
                "throttled",
                "unthrottled",
            }


def test_a_late_worker_that_may_finish_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.model.state import jobs

    def held(store_: Store, jid: str, token: int, what: str = "") -> Any:
        job = jobs.find(store_, jid)
        if job.state != "running":
            raise jobs.refuse("LOCK_LOST", jid, token, job.state, job.worker)
        return job, None

    monkeypatch.setattr(jobs, "held", held)
    assert fails(test_only_the_holder_of_the_lease_changes_the_job)


def test_every_claim_makes_a_new_token() -> None:
    for history in bulk():
        newest: dict[str, int] = {}
        for moment in walk(history):
            for event in moment.events:
                if event.event == "popped":
                    jid = str(event.facts[0])
                    assert event.seq > newest.get(jid, 0)
                    newest[jid] = event.seq
                    assert moment.store.jobs[jid].token == event.seq or moment.store.jobs[jid]


def test_a_valid_lease_is_never_handed_to_another() -> None:
    handed = 0
    for moment in everywhere(before=True):
        assert moment.before is not None
        if len(moment.events) < moment.store.seq - moment.before.seq:
            continue  # of so few events that are kept, some of this step's are gone
        grace = moment.before.config.get("grace-period", OPTIONS["grace-period"].default)
        finished = {e.facts[0] for e in moment.events if e.event in ("advanced", "retired")}
        for event in moment.events:
            job = moment.before.jobs.get(str(event.facts[0]))
            if event.event == "popped" and job is not None and job["state"] == "running":
                handed += 1
                assert event.facts[0] in finished or job["expires_at"] + grace <= moment.now
    assert handed > 100


def test_a_lease_taken_before_its_grace_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = queues.lapsed
    monkeypatch.setattr(queues, "lapsed", lambda s, name, until, n: real(s, name, until + 60_000, n))
    assert fails(test_a_valid_lease_is_never_handed_to_another)


# ---- 4: every operation may be sent twice


def _safe_to_resend(moment: Moment) -> bool:
    """Whether the catalogue promises anything for this step being sent again."""
    resend = CATALOGUE[moment.name].resend
    if moment.refused or resend in ("read", "lease", "same"):
        return True
    if not moment.op.request:
        return False
    if resend == "grant":  # nothing granted is nothing to remember: the next try may find a job
        return bool(moment.outcome.jobs if moment.name == "complete_and_pop" else moment.outcome)
    return True


def _finished_jobs_are_kept(moment: Moment) -> bool:
    """A job that retention deletes at once cannot remember that it was completed."""
    if CATALOGUE[moment.name].resend == "lease" or moment.name == "complete_and_pop":
        finished = moment.op.jobs if moment.name == "complete_many" else (moment.op,)
        return moment.refused or all(one.jid in moment.store.jobs for one in finished)
    return True


def test_an_operation_sent_twice_at_once_answers_the_same_and_changes_nothing_more() -> None:
    seen = set()
    for history in bulk():
        store_ = Store()
        for now, op in history:
            outcome, events = _step(store_, now, op)
            moment = Moment(ops_step(now, op), None, outcome, events, store_)
            if not _safe_to_resend(moment) or not _finished_jobs_are_kept(moment):
                continue
            before = state_of(store_)
            again = engine.step(store_, now, op)
            after = state_of(store_)
            assert again == outcome, op
            assert snapshot.difference(before, after) == [], op
            seen.add((op.spec.name, isinstance(outcome, Refusal)))
    assert {name for name, refused in seen if not refused} == set(CATALOGUE)


def ops_step(now: int, op: Any) -> Any:
    from qmodel.conformance.subjects.base import Step

    return Step(now, op)


def _step(store_: Store, now: int, op: Any) -> tuple[Any, tuple[Any, ...]]:
    seq = store_.seq
    outcome = engine.step(store_, now, op)
    return outcome, events_after(store_, seq, store_.seq - seq)


@pytest.mark.parametrize("resend", ["job", "grant", "lease", "memo"])
def test_a_forgotten_resend_is_noticed(monkeypatch: pytest.MonkeyPatch, resend: str) -> None:
    from qmodel.model.ops import put
    from qmodel.model.state import history, idempotency, workers

    if resend == "job":
        monkeypatch.setattr(put, "_is_resend", lambda store, jid, request: False)
    elif resend == "grant":
        monkeypatch.setattr(workers, "remember", lambda store, name, request, jids: None)
    elif resend == "lease":
        monkeypatch.setattr(history, "outcome", lambda job, token, what: None)
    else:
        monkeypatch.setattr(idempotency, "remember", lambda store, request, reply: None)
    assert fails(test_an_operation_sent_twice_at_once_answers_the_same_and_changes_nothing_more)


def test_a_finished_lease_answers_its_resend_as_long_as_its_history_lasts() -> None:
    answered = 0
    for history in bulk():
        sent: dict[tuple[str, int, str], tuple[Any, Any]] = {}
        store_: Any = None
        for moment in walk(history):
            store_ = moment.store
            finishes = CATALOGUE[moment.name].resend == "lease" and hasattr(moment.op, "token")
            if finishes and moment.events and not moment.refused:
                sent[moment.op.jid, moment.op.token, moment.name] = moment.op, moment.outcome
        for (jid, token, _), (op, outcome) in sent.items():
            job = store_.jobs.get(jid)
            if job is not None and any(token in facts[:1] for what, _, facts in stages(job) if what != "log"):
                before = state_of(store_)
                assert engine.step(store_, _later(moment, 0), op) == outcome, op
                assert before == state_of(store_)
                answered += 1
    assert answered > 200


def test_a_grant_answers_its_resend_as_long_as_all_of_it_is_held() -> None:
    answered = 0
    for history in bulk():
        granted: dict[tuple[str, str], tuple[Any, dict[str, int]]] = {}
        reused = set()  # a request that was granted other jobs before: the end of any of these ends its memory
        for moment in walk(history):
            if moment.name == "pop" and not moment.refused and moment.op.request and moment.outcome:
                leases = {job.jid: job.token for job in moment.outcome}
                key = moment.op.worker, moment.op.request
                if granted.get(key, (None, leases))[1] != leases:
                    reused.add(key)
                granted[key] = moment.op, leases
            elif moment.name == "complete_and_pop" and not moment.refused and moment.outcome.jobs:
                granted.pop((moment.op.worker, moment.op.request), None)
        for key, (op, leases) in granted.items():
            jobs = moment.store.jobs
            if key not in reused and all(
                j in jobs and jobs[j].token == t and jobs[j].worker for j, t in leases.items()
            ):
                before = state_of(moment.store)
                again = engine.step(moment.store, 10**12, op)
                assert {job.jid: job.token for job in again} == leases, op
                assert before == state_of(moment.store)
                answered += 1
    assert answered > 25


def test_a_grant_that_is_forgotten_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.model.state import workers

    monkeypatch.setattr(workers, "remember", lambda store, name, request, jids: None)
    assert fails(test_a_grant_answers_its_resend_as_long_as_all_of_it_is_held)


@pytest.mark.parametrize("op", [ops.Priority("a", 5), ops.Update("a", ""), ops.Log("a", ""), ops.TagAdd("a", ("t",))])
def test_nothing_done_to_a_leased_job_ends_its_grant(op: Any) -> None:
    store_ = Store()
    for jid in ("a", "b"):
        engine.step(store_, 0, ops.Put("q", jid, "k", ""))
    pop = ops.Pop("q", "w", request="r")
    engine.step(store_, 0, pop)
    engine.step(store_, 0, op)
    assert [job.jid for job in engine.step(store_, 0, pop)] == ["a"]


def test_a_completion_under_a_request_used_before_is_granted_anew() -> None:
    store_ = Store()
    engine.step(store_, 0, ops.ConfigSet("jobs-history", 0))
    for jid in ("a", "b"):
        engine.step(store_, 0, ops.Put("q", jid, "k", ""))
    (job,) = engine.step(store_, 0, ops.Pop("q", "w", request="r"))
    done = engine.step(store_, 0, ops.CompleteAndPop("a", job.token, "q", "w", request="r"))
    assert [job.jid for job in done.jobs] == ["b"]


def test_no_lease_has_the_token_zero() -> None:
    store_ = Store()
    engine.step(store_, 0, ops.Put("q", "a", "k", "", retries=0))
    engine.step(store_, 0, ops.Pop("q", "w"))
    engine.step(store_, 10**9, ops.Pop("q", "w"))  # lapsed, and buried with the token 0
    refused = engine.step(store_, 10**9, ops.Fail("a", 0, "g", ""))
    assert refused == Refusal("LOCK_LOST", ("a", "0", "failed", ""))


# ---- 5: reads never write, and are true at now


def _reads(store_: Store) -> Iterator[Any]:
    jids = tuple(store_.jobs) or ("a",)
    yield from (ops.Get(jids[0]), ops.Multiget(jids), ops.Config(), ops.ConfigGet("heartbeat"))
    yield from (ops.TopTags(), ops.Tracked(), ops.FailedGroups(), ops.Completed(), ops.Queues())
    yield from (ops.Workers(), ops.Events(), *(ops.Tagged(tag) for tag in store_.tags))
    yield from (ops.Failed(group) for group in store_.groups)
    yield from (ops.Worker(worker) for worker in store_.workers)
    looks = (ops.Peek, ops.Waiting, ops.Scheduled, ops.Depending, ops.Throttled, ops.Running, ops.Stalled)
    for queue in store_.queues:
        yield from (look(queue) for look in (*looks, ops.Queue, ops.Length, ops.Stats))


def test_reads_never_write() -> None:
    for history in bulk():
        moment = last(history)
        before = state_of(moment.store)
        for later in (0, 1, 10**6, 10**9):
            for read in _reads(moment.store):
                assert read.spec.reads
                engine.step(moment.store, _later(moment, later), read)
        assert before == state_of(moment.store)
    for moment in everywhere(before=True, count=80):
        if moment.op.spec.reads:
            assert moment.before == state_of(moment.store), moment.step


def test_a_peek_that_promotes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def promoting(verb: Any, store_: Store, now: int, op: ops.Peek) -> Any:
        for job in queues.due(store_, op.queue, now, 1):
            queues.promote(store_, job)
        return verb(store_, now, op)

    plant(monkeypatch, "peek", promoting)
    assert fails(test_reads_never_write)


def _listed(store_: Store, now: int, queue: str) -> dict[str, tuple[str, ...]]:
    """Read the jobs of a queue by state from the lists."""
    lists = {
        "waiting": ops.Waiting, "scheduled": ops.Scheduled, "depends": ops.Depending, "throttled": ops.Throttled,
        "running": ops.Running, "stalled": ops.Stalled,
    }  # fmt: skip
    return {s: engine.step(store_, now, op(queue, 0, 1000)).jids for s, op in lists.items()}


def test_lists_counts_and_jobs_agree_at_any_moment() -> None:
    for history in bulk():
        moment = last(history)
        for now in (_later(moment, ms) for ms in (0, 1000, 60_000, 10**8)):
            for queue in moment.store.queues:
                listed = _listed(moment.store, now, queue)
                counts = engine.step(moment.store, now, ops.Queue(queue))
                for state, jids in listed.items():
                    assert getattr(counts, state) == len(jids)
                    for jid in jids:
                        job = engine.step(moment.store, now, ops.Get(jid))
                        assert (job.state, job.queue) == (state, queue)
                length = engine.step(moment.store, now, ops.Length(queue))
                assert length == sum(map(len, listed.values()))


def test_a_state_that_is_not_true_at_now_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.model.state import jobs

    monkeypatch.setattr(jobs, "seen_at", lambda now, state, ready_at, expires_at: state)
    assert fails(test_lists_counts_and_jobs_agree_at_any_moment)


def test_peek_shows_the_jobs_that_pop_leases() -> None:
    shown = 0
    for history in bulk():
        moment = last(history)
        now = _later(moment, 20_000)
        for queue in list(moment.store.queues):
            if moment.store.queues[queue].pauses or moment.store.throttles:
                continue
            peeked = engine.step(moment.store, now, ops.Peek(queue, 3))
            before = set(moment.store.jobs)
            popped = engine.step(moment.store, now, ops.Pop(queue, "w", 3))
            if any("-dead-" in jid for jid in set(moment.store.jobs) - before):
                continue  # a dead letter that this very pop has made
            assert [job.jid for job in peeked] == [job.jid for job in popped]
            shown += len(popped)
    assert shown > 100


# ---- 6: order is total


def _wanted(before: Snapshot, now: int, queue: str, count: int) -> list[str]:
    """Compute the reply of a pop from a snapshot, by the rules in lifecycle.py."""
    grace = before.config.get("grace-period", OPTIONS["grace-period"].default)
    jobs = [(jid, job) for jid, job in before.jobs.items() if job["queue"] == queue]
    lapsed = [
        (-1 if job["state"] == "stalled" else job["expires_at"], job["seq"], jid)
        for jid, job in jobs
        if job["state"] == "stalled" or (job["state"] == "running" and job["expires_at"] <= now - grace)
    ]
    first = [
        jid
        for _, _, jid in sorted(lapsed)
        if before.jobs[jid]["state"] == "stalled"
        or (
            not is_spent(before.jobs[jid])
            and ("revoked", "1") not in before.jobs[jid]["options"]
            and before.jobs[jid]["expires_at"] + backoff(before.jobs[jid]) <= now
        )
    ]
    ready = [
        (job["priority"], -1 - job["ready_at"], (-job["seq"],), jid)
        if ("lifo", "1") in job["options"]
        else (job["priority"], job["ready_at"], (job["seq"],), jid)
        for jid, job in jobs
        if job["state"] == "waiting" or (job["state"] == "scheduled" and job["ready_at"] <= now)
        if not any(name == "ttl_ms" and job["put_at"] + int(value) < now for name, value in job["options"])
    ]
    ready += _due_runs(before, now, queue)
    return (first + [jid for _, _, _, jid in sorted(ready)])[:count]


def _due_runs(before: Snapshot, now: int, queue: str) -> list[tuple[int, int, tuple[int, ...], str]]:
    """Compute the due runs by the rules in state/schedules.py: their place in the order of jobs, and their ids."""
    runs = []
    for place, (_, _, jid) in enumerate(before.queues[queue]["recur"] if queue in before.queues else ()):
        one, number, turn = before.schedules[jid], before.schedules[jid]["runs"], 0
        for due_at in recurring.due(one, now):
            number, turn = number + 1, turn + 1
            while f"{jid}-{number}" in before.jobs:
                number, turn = number + 1, turn + 1
            runs.append((one["priority"], due_at, (before.seq, turn, place), f"{jid}-{number}"))
    return runs


def _throttled(before: Snapshot, queue: str) -> bool:
    """Whether something other than the order decides which jobs of a queue are leased."""
    jobs = [dict(job["options"]) for job in before.jobs.values() if job["queue"] == queue]
    return f"queue/{queue}" in before.throttles or any("throttles" in options for options in jobs)


def _fair_or_aging(before: Snapshot) -> bool:
    return any(name.startswith(("fair", "aging")) and value for name, value in before.config.items())


def test_pops_come_in_the_order_of_priority_readiness_and_sequence() -> None:
    several = 0
    for moment in everywhere(before=True):
        if moment.name != "pop" or not any(event.event == "popped" for event in moment.events):
            continue
        if any(event.event in ("throttled", "unthrottled") for event in moment.events):
            continue  # who of a line goes on is told in test_hazards_lines.py
        if any(job.state == "throttled" for job in moment.store.jobs.values()):
            continue  # it may be parked by this very pop, and the event is not kept
        if any("-dead-" in jid for jid in moment.store.jobs.keys() - moment.before.jobs.keys()):
            continue  # a dead letter may come into this very queue
        assert moment.before is not None
        if any("-dead-" in job.jid and job.jid not in moment.before.jobs for job in moment.outcome):
            continue  # it did, and the event is not kept
        if _throttled(moment.before, moment.op.queue) or _fair_or_aging(moment.before):
            continue  # test_fair.py computes turns, and test_aging.py places by age
        if any(
            jid not in moment.store.jobs or moment.store.jobs[jid].put_at != job["put_at"]
            for jid, job in moment.before.jobs.items()
        ):
            continue  # a job past keeping is gone by this very pop, and its id was free for a run
        wanted = _wanted(moment.before, moment.now, moment.op.queue, moment.op.count)
        assert [job.jid for job in moment.outcome] == wanted, moment.step
        several += len(wanted) > 1
    assert several > 60


@pytest.mark.parametrize("fault", ["by id", "as noticed"])
def test_an_order_by_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    from qmodel.model.state import jobs

    def push(store_: Store, job: Any) -> None:
        queue = queues._made(store_, job.queue)
        if fault == "by id":
            job.ready_at, job.seq = 0, sum(job.jid.encode())
        else:
            job.ready_at = 10**14  # whoever is noticed late comes late
        queue.ready.add((job.priority, job.ready_at, job.seq, job.jid))

    monkeypatch.setattr(queues, "push", push)
    monkeypatch.setitem(state_index.PLAIN, "waiting", (push, queues.pull))
    assert jobs.place
    assert fails(test_pops_come_in_the_order_of_priority_readiness_and_sequence)


# ---- recurring jobs: one run for each due time


def _due_times(history: Any) -> Iterator[tuple[Any, int]]:
    """Give two moments for each run: when it was due, and when it should have been due."""
    expected: dict[Any, int] = {}
    intervals: dict[Any, int] = {}
    for moment in walk(history):
        if len(moment.events) >= moment.store.events.maxlen:
            expected.clear()  # of so few events that are kept, some may be gone
            continue
        for event in moment.events:
            jid = event.facts[0]
            if event.event == "recurred" and moment.op.kind == "interval":
                expected[jid], intervals[jid] = int(event.facts[3]), moment.op.interval_ms
            elif event.event in ("recurred", "unrecurred"):
                expected.pop(jid, None)
            elif event.event == "recur_updated" and jid in expected:
                expected[jid] = int(event.facts[2])
                intervals[jid] = getattr(moment.op, "interval_ms", None) or intervals[jid]
            elif event.event in ("missed", "skipped") and jid in expected:
                expected[jid] = int(event.facts[3])
            elif event.event == "fired" and jid in expected and moment.name != "recur_now":
                yield event.facts[3], expected[jid]
                expected[jid] += intervals[jid]
            if not expected.get(jid):  # it stands still: nobody can tell from here when the next one is due
                expected.pop(jid, None)


def test_each_due_time_has_one_run_and_none_drifts() -> None:
    runs = [run for history in bulk() for run in _due_times(history)]
    assert all(due_at == expected for due_at, expected in runs)
    assert len(runs) > 200


def test_a_run_that_is_made_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.model.state import schedules

    monkeypatch.setattr(schedules, "advance", lambda store, found: None)
    assert fails(test_each_due_time_has_one_run_and_none_drifts)


# ---- 8: work is bounded


def _queue_of(count: int, **arguments: Any) -> Store:
    """Make a store with this many jobs, put a thousand at a time."""
    store_ = Store()
    for first in range(0, count, 1000):
        jobs = tuple(ops.Put("q", f"j{n}", "k", "", **arguments) for n in range(first, first + 1000))
        assert not isinstance(engine.step(store_, 0, ops.PutMany(jobs)), Refusal)
    return store_


def _events_of(store_: Store, now: int, op: Any) -> int:
    before = store_.seq
    assert not isinstance(engine.step(store_, now, op), Refusal)
    return store_.seq - before


def test_one_operation_touches_a_bounded_number_of_jobs() -> None:
    assert _events_of(_queue_of(3000), 0, ops.Pop("q", "w", 1000)) == 1000
    assert _events_of(_queue_of(3000), 0, ops.Drain("q")) == 1000
    due = _queue_of(3000, delay_ms=1)
    assert _events_of(due, 1, ops.Pop("q", "w", 1)) == 1001
    lapsed = _queue_of(2000, retries=0)
    engine.step(lapsed, 0, ops.Pop("q", "w", 1000))
    engine.step(lapsed, 0, ops.Pop("q", "w", 1000))
    for count in (1, 1000):
        assert _events_of(lapsed, 10**9, ops.Pop("q", "w", count)) == 2 * 500  # half of the budget is for what lapsed
    assert _events_of(lapsed, 10**9, ops.RetryMany(group="failed-retries-q", to="q", count=1000)) == 1000


def test_a_job_has_at_most_a_thousand_dependents() -> None:
    store_ = _queue_of(1000)
    engine.step(store_, 0, ops.Put("q", "root", "k", ""))
    children = tuple(ops.Put("q", f"c{n}", "k", "", depends=("root",)) for n in range(1000))
    engine.step(store_, 0, ops.PutMany(children))
    one_more = engine.step(store_, 0, ops.Put("q", "c1000", "k", "", depends=("root",)))
    assert one_more == Refusal("DEPENDENCY_LIMIT", ("root",))


# ---- store


def test_events_are_a_gapless_sequence() -> None:
    for history in bulk():
        last = 0
        for moment in walk(history):
            seqs = [event.seq for event in moment.events]
            most = moment.store.events.maxlen
            first = last + 1 if len(seqs) < most else seqs[0]
            assert seqs == list(range(first, first + len(seqs)))
            last = moment.store.seq
            assert not seqs or seqs[-1] == last


def test_a_change_without_an_event_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(store_: Store, now: int, event: str, *facts: Any) -> int:
        store_.seq += 1
        return store_.seq

    for module in ("put", "pop", "finish"):
        monkeypatch.setattr(f"qmodel.model.ops.{module}.emit", silent)
    assert fails(test_events_are_a_gapless_sequence)
    assert store.emit


# ---- conservation


def test_no_job_is_lost_and_none_appears_without_a_put() -> None:
    for history in bulk():
        known: set[str] = set()
        for moment in walk(history):
            if not moment.refused and moment.name in ("put", "put_many"):
                puts = getattr(moment.op, "jobs", (moment.op,))
                stands = moment.outcome if moment.name == "put_many" else (moment.outcome,)
                known |= {one.jid for one, jid in zip(puts, stands, strict=True) if one.jid == jid}
            for event in moment.events:  # in turn: a run may have the id of a job that the same step has deleted
                if event.event == "put":  # of a run, a dead letter, or a sub-request
                    known.add(str(event.facts[0]))
                elif event.event in ("canceled", "retired"):
                    known.discard(str(event.facts[0]))
            told_all = len(moment.events) < moment.store.events.maxlen
            if told_all and moment.events:
                assert known == set(moment.store.jobs), moment.step
            known = set(moment.store.jobs)


def test_a_job_that_vanishes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(verb: Any, store_: Store, now: int, op: ops.Fail) -> Any:
        reply = verb(store_, now, op)
        if not isinstance(reply, Refusal):
            from qmodel.model.state import jobs

            jobs.remove(store_, store_.jobs[op.jid])
        return reply

    plant(monkeypatch, "fail", losing)
    assert fails(test_no_job_is_lost_and_none_appears_without_a_put)
