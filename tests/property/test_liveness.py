"""Nothing is stuck: whatever happened, workers that go on will finish every job, but for those that wait for a failed
one. It is the law under all that makes jobs wait: dependencies, delays, pauses, ordered keys, throttles, requests.
"""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.arguments import TIME_END, awaited_request
from qmodel.model import engine, snapshot
from qmodel.model.invariants import check
from qmodel.model.state import queues, requests
from qmodel.model.state.store import Store
from tests.property.support import bulk, fails, last, plant

ROUNDS = 500


def _do(store: Store, now: int, op: Any) -> Any:
    outcome = engine.step(store, now, op)
    assert not hasattr(outcome, "code"), outcome
    return outcome


def _finish(store: Store, now: int) -> None:
    """Let a worker complete every job that it pops; without a job it sleeps until the moment that the queues give."""
    for jid in list(store.schedules):
        _do(store, now, ops.Unrecur(jid))
    for _ in range(ROUNDS):
        names = tuple(sorted(store.queues))
        if names:
            _do(store, now, ops.Unpause(names))
        before = store.seq
        taken = [job for name in names for job in _do(store, now, ops.Pop(name, "finisher", 1000))]
        for job in taken:
            _do(store, now, ops.Complete(job.jid, job.token))
        if store.seq == before:  # what one pop fails may let a job of another queue go on
            moments = [counts.next_at for name in names if (counts := _do(store, now, ops.Queue(name))).next_at]
            if not moments or min(moments) >= TIME_END:
                buckets = [name for name, one in store.throttles.items() if one.capacity]
                if not buckets:
                    return
                for name in buckets:  # one may fill by a token a day, until after the end of time
                    _do(store, now, ops.ThrottleUnset(name))
            else:
                now = max(min(moments), now)
    raise AssertionError("there is no end to it")


def _is_blocked(store: Store, jid: str) -> bool:
    """Whether a job waits, directly or indirectly, for a failed job, a request that never ends well, or a moment that
    is never reached.
    """
    id = awaited_request(jid)
    if id:
        return _is_held_up(store, id)
    job = store.jobs[jid]
    if job.state == "failed" or (job.state == "scheduled" and job.ready_at >= TIME_END):
        return True
    return job.state == "depends" and any(_is_blocked(store, other) for other in job.dependencies)


def _is_held_up(store: Store, id: str) -> bool:
    """Whether a request has ended badly, is still open, or has a sub-request that is blocked."""
    request = requests.load(store, id)
    if requests.has_ended(request):
        return not requests.has_ended_well(request)
    return request.state == "open" or any(_is_blocked(store, jid) for jid in request.unfinished)


def test_active_workers_finish_every_job() -> None:
    left = 0
    for history in bulk():
        moment = last(history)
        if not 0 <= moment.now <= TIME_END // 2:
            continue
        _finish(moment.store, max(moment.now, 0))
        for jid, job in moment.store.jobs.items():
            assert job.state in ("complete", "failed") or _is_blocked(moment.store, jid), (jid, job.state)
            left += job.state == "depends"
        assert not check(snapshot.of(moment.store))
    assert left, "no history left a job that waits for a failed one"


def test_a_job_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetting(verb: Any, store: Store, now: int, op: ops.Promote) -> Any:
        reply = verb(store, now, op)
        queue = queues.of(store, store.jobs[op.jid].queue)
        queue.ready.clear()
        return reply

    plant(monkeypatch, "promote", forgetting)
    assert fails(test_active_workers_finish_every_job)
