"""Transitions, events and refusals occur exactly as the catalogues list them: no more, no fewer."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from qmodel.conformance.histories.directed.load import directed
from qmodel.conformance.histories.generate import HOSTILE
from qmodel.conformance.histories.script import Script
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.events import EVENTS, Event
from qmodel.contract.lifecycle import STATES, TRANSITIONS
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import REASONS, Refusal
from qmodel.model import engine
from qmodel.model.ops import administer
from qmodel.model.state.store import Store, events_after
from qmodel.model.state.throttles import OWN
from tests.property.support import bulk, fails, plant, walk

COUNT = 1200
"""How many histories are drawn: enough for the rarest transition."""


@functools.cache
def _beyond_the_budget() -> frozenset[tuple[str, str]]:
    """List the refusals of the directed histories that go beyond the budget: (operation, code)."""
    found = set()
    for history in directed():
        if "a_thousand_" in history.name:
            store = Store()
            for now, op in history.steps:
                outcome = engine.step(store, now, op)
                if isinstance(outcome, Refusal):
                    found.add((op.spec.name, outcome.code))
    return frozenset(found)


@functools.cache
def _limits() -> tuple[tuple[str, str], ...]:
    """List the refusals that need more names than generated histories have: (operation, code)."""
    found = set()

    def step(store: Store, op: Any) -> None:
        outcome = engine.step(store, 0, op)
        if isinstance(outcome, Refusal):
            found.add((op.spec.name, outcome.code))

    store = Store()
    children = [ops.Put("q", f"c{n}", "k", "", depends=("root",)) for n in range(1000)]
    step(store, ops.Put("q", "root", "k", "", priority=1))
    step(store, ops.PutMany(tuple(children)))
    step(store, ops.Put("q", "x", "k", ""))
    step(store, ops.Pop("q", "w"))
    step(store, ops.Cancel(("root",), cascade=True))
    step(store, ops.Obliterate("q", True))
    step(store, ops.Put("q", "y", "k", "", depends=("root",)))
    step(store, ops.PutMany((ops.Put("q", "y", "k", "", depends=("root",)),)))
    step(store, ops.PutNew((ops.Put("q", "y", "k", "", depends=("root",)),)))
    token = next((job.token for job in store.jobs.values() if job.state == "running"), 0)
    jid = next((job.jid for job in store.jobs.values() if job.state == "running"), "x")
    step(store, ops.Complete(jid, token, next="q", depends=("root",)))
    step(store, ops.CompleteAndPop(jid, token, "q", "w", next="q", depends=("root",)))
    step(store, ops.CompleteAndPop(jid, token, "q", "w", next="q", depends=("nobody",)))
    step(store, ops.Release(jid, token, depends=("root",)))
    for n in range(26):
        step(store, ops.ThrottleSet(f"{n}*", 1))
    step(store, ops.Put("q", "z", "k", "", depends=("c1",)))
    step(store, ops.DependsOn("z", ("root",)))
    step(store, ops.ThrottleSet("x", capacity=1, refill=1, refill_ms=1))
    step(store, ops.Put("q", "dear", "k", "", throttles=("x",), cost=2))
    step(store, ops.PutMany((ops.Put("q", "dear", "k", "", throttles=("x",), cost=2),)))
    for n in range(1001):
        step(store, ops.MetadataSet("k", f"key {n}", ""))
    step(store, ops.MetadataIncrement("k", "another"))
    for n in range(11):
        step(store, ops.Pause(("full",), f"reason {n}"))
    step(store, ops.Subscribe("s", tuple(f"p{n}" for n in range(11)), "q", "k"))
    # one job that waits for more than can be ended at once
    many = [ops.Put("q", f"m{n}", "k", "") for n in range(1100)]
    step(store, ops.PutMany(tuple(many[:1000])))
    step(store, ops.PutMany(tuple(many[1000:])))
    step(store, ops.Put("q", "far", "k", "", depends=tuple(f"m{n}" for n in range(1000))))
    step(store, ops.DependsOn("far", tuple(f"m{n}" for n in range(1000, 1100))))
    step(store, ops.DependsOff("far", all=True))
    step(store, ops.Revoke(("far",)))
    step(store, ops.Put("r", "l", "k", "", dead_queue="dead"))
    step(store, ops.Revoke(("l",)))
    letter = engine.step(store, 0, ops.Pop("dead", "w"))[0]
    step(store, ops.Complete(letter.jid, letter.token, next="r", depends=tuple(f"m{n}" for n in range(1000))))
    step(store, ops.DependsOn(letter.jid, tuple(f"m{n}" for n in range(1000, 1100))))
    step(store, ops.Replay(letter.jid))
    step(store, ops.Put("w", "a", "k", "", retries=0, dead_queue="d"))
    step(store, ops.Pop("w", "w"))
    step(store, ops.Fail("a", store.jobs["a"].token, "g", ""))
    letter = next(jid for jid in store.jobs if jid.startswith("a-dead-"))
    step(store, ops.Put("w", "b", "k", "", depends=(letter,)))
    step(store, ops.Replay(letter))
    step(store, ops.Cancel(("b",)))
    step(store, ops.RetryMany(group="g", to="w"))
    step(store, ops.Replay(letter))
    step(store, ops.RequestOpen("R", "q", 1))
    step(store, ops.RequestAdd("R", (ops.Put("q", "R:1", "k", "", depends=("root",)),)))
    step(store, ops.RequestPut("S", "q", 1, (ops.Put("q", "S:1", "k", "", depends=("root",)),)))
    step(store, ops.RequestAdd("R", (ops.Put("q", "R:2", "k", "", depends=tuple(f"m{n}" for n in range(1000))),)))
    step(store, ops.DependsOn("R:2", tuple(f"m{n}" for n in range(1000, 1100))))
    step(store, ops.RequestCancel("R"))
    store = Store()
    for part in range(9):
        step(store, ops.PutMany(tuple(ops.Put("q", f"j{part}-{n}", "k", "") for n in range(1000))))
        step(store, ops.Pop("q", "w", 1000))
    step(store, ops.Worker("w"))
    step(store, ops.Search(worker="w"))
    step(store, ops.CancelMany(worker="w"))
    return tuple(found)


FOLLOWS = ("following", "in_any_order", "whoever_fails_it")
"""A directed history in which each operation that may fail a job frees, fails and cancels its dependents."""

ENDS = [one.steps for one in directed() if one.name in ("ends_of_runs", "ends_that_end_it", "bounds_of_runs", *FOLLOWS)]
"""Directed histories in which dependents see each way in which a job can end, and ended jobs are deleted."""


def _rare() -> Iterator[list[Step]]:
    """Give rare histories: dead letters, and failed jobs past their retention, for each operation that fails jobs."""
    yield [Step(0, ops.Results("no blanks")), Step(0, ops.Journal(count=0)), Step(0, ops.Journal(1, epoch=1))]
    yield [Step(0, ops.BeginEpoch(2)), Step(0, ops.BeginEpoch(1))]
    limited = [Step(0, ops.ThrottleSet("t", 1)), Step(0, ops.Put("q", "a", "k", "", throttles=("t",)))]
    yield [*limited, Step(0, ops.Pop("q", "w")), Step(0, ops.ThrottleUnset("t", jid="a"))]
    keep = Step(0, ops.ConfigSet("failed-history-count", 1))
    put, pop = ops.Put("q", "a", "k", "", retries=0, dead_queue="dead"), ops.Pop("q", "w")
    old = [Step(0, ops.Put("r", "old", "k", "")), Step(0, ops.Revoke(("old",)))]
    running = [keep, *old, Step(0, put), Step(0, pop)]
    done = ops.Complete("a", 6)
    revoked = [*running, Step(0, ops.Revoke(("a",)))]
    for end in (
        done, ops.CompleteMany((done,)), ops.CompleteAndPop("a", 6, "s", "w"), ops.Release("a", 6), ops.Timeout(("a",)),
    ):  # fmt: skip
        yield [*revoked, Step(0, end)]
    later = [
        Step(0, ops.Put("q", "a", "k", "", retry_delay_ms=10**9)),
        Step(0, pop),
        Step(0, ops.Put("r", "b", "k", "")),
    ]
    yield [*later, Step(10**6, ops.Pop("r", "w")), Step(10**6, ops.CompleteAndPop("b", 4, "q", "w"))]
    for end in (ops.Fail("a", 6, "g", ""), ops.Retry("a", 6)):
        yield [*running, Step(0, end)]
    for end in (pop, ops.PopAny(("q",), "w")):
        yield [*running, Step(10**6, end)]
    yield [keep, *old, Step(0, put), Step(0, ops.Revoke(("a",)))]
    failed = [*old, Step(0, ops.Put("r", "f", "k", "")), Step(0, ops.Revoke(("f",))), keep]
    waiting = ops.RequestPut("S", "q", 1, (ops.Put("q", "S:1", "k", "", depends=("x",)),))
    last = (ops.Put("q", "x", "k", ""), waiting, ops.DependsOn("S:1", ("f fail",)))
    yield [*failed, *(Step(0, op) for op in last)]
    yield [*failed, Step(0, ops.PutMany((ops.Put("q", "a", "k", "", depends=("f fail",)),)))]
    yield [*failed, Step(0, ops.Put("q", "a", "k", "", depends=("f fail",)))]
    falls = ops.Put("q", "a", "k", "", depends=("f fail",), dead_queue="dead")
    others = (ops.Put("q", jid, "k", "", depends=(f"a {jid}",)) for jid in ("ignore", "cancel"))
    yield [*failed, Step(0, ops.PutNew((falls, *others)))]
    waits = [Step(0, ops.Put("q", "b", "k", "")), Step(0, ops.Put("q", "a", "k", "", depends=("b",)))]
    yield [*failed, *waits, Step(0, ops.DependsOn("a", ("f fail",)))]
    yield [Step(0, put), Step(0, pop), Step(0, ops.Timeout(("a",))), Step(0, ops.Priority("a", 1, first=True))]
    yield [keep, *old, Step(0, ops.Put("q", "a", "k", "", dead_queue="dead", ttl_ms=1)), Step(2, ops.Fire("q"))]


def _in_a_line() -> Iterator[list[Step]]:
    """Give histories in which a job waits for another one with the same key and is admitted in a rare way."""
    begin = [Step(0, ops.Put("q", jid, "k", "", retries=0, ordered="o")) for jid in "ab"]
    pop = Step(0, ops.Pop("q", "w"))
    later = Step(0, ops.Put("q", "c", "k", "", delay_ms=5, ordered="o"))
    last = Step(0, ops.Put("q", "c", "k", "", depends=("d",), ordered="o"))
    yield [*begin, Step(0, ops.Drain("q", 1)), Step(0, ops.Put("q", "e", "k", "")), Step(0, ops.Cancel(("b",)))]
    yield [*begin, pop, Step(10**6, ops.PopAny(("q",), "w"))]
    yield [*begin, later, Step(0, ops.Promote("c"))]
    yield [*begin, Step(0, ops.Put("q", "d", "k", "")), last, Step(0, ops.DependsOff("c", all=True))]
    yield [*begin, Step(0, ops.Delay("a", 5))]
    again = Step(0, ops.Put("q", "c", "k", "", depends=(), ordered="o"))
    yield [*begin, Step(0, ops.Put("q", "d", "k", "")), last, again, again]
    yield [*begin, later, again]
    taken = [*begin, Step(0, ops.Put("r", "c", "k", "")), Step(0, ops.Pop("r", "w"))]
    for end in ((), (ops.Timeout(("c",)),), (ops.Complete("c", 5),), (ops.Fail("c", 5, "g", ""),)):
        yield [*taken, *(Step(0, one) for one in end), again]
    revoked = [*begin, pop, Step(0, ops.Revoke(("a",)))]
    yield [*revoked, Step(0, ops.Release("a", 4))]
    yield [*revoked, Step(0, ops.Timeout(("a",)))]
    yield [*begin, Step(0, ops.Revoke(("b", "a")))]
    yield [*begin, Step(0, ops.Revoke(("a",)))]
    briefly = [Step(0, ops.Put("q", jid, "k", "", ttl_ms=5, ordered="l")) for jid in "xyz"]
    last_of_all = Step(0, ops.Put("q", "w", "k", "", ordered="l"))
    yield [*briefly, Step(0, ops.Delay("x", 9)), last_of_all, Step(6, ops.Fire("q"))]
    yield [*begin, pop, Step(0, ops.Fail("a", 4, "g", "")), Step(0, ops.RetryMany(group="g", to="q"))]
    yield [*begin, pop, Step(0, ops.Retry("a", 4))]


def _of_messages() -> Iterator[list[Step]]:
    """Give histories with rare deliveries: the message has a job already, or its job waits for a concurrency key."""
    old = [Step(0, ops.Publish("m", "")), Step(0, ops.Publish("m", ""))]
    jobs = [Step(0, ops.Put("q", f"s:{number}", "k", "")) for number in (1, 2)]
    slow = ops.Subscribe("s", ("m",), "q", "k", ordered="o", after=0, count=1)
    line = Step(0, ops.Put("q", "a", "k", "", ordered="o"))
    for end in (ops.CatchUp("s"), ops.Trim()):
        yield [*old, *jobs, Step(0, slow), Step(0, end)]
        yield [*old, line, Step(0, slow), Step(0, end)]
    yield [line, Step(0, ops.Subscribe("s", ("m",), "q", "k", ordered="o")), *old]
    yield [Step(0, ops.Put("q", "s:3", "k", "")), Step(0, ops.Subscribe("s", ("m",), "q", "k")), old[0]]
    yield [*old, Step(0, slow), Step(0, ops.ConfigSet("messages-history-count", 0)), old[0], old[1]]


def _with_runs_elsewhere() -> Iterator[list[Step]]:
    """Histories in which the queue of a run is deleted, and what recurs has moved to another; or in which what recurs
    is paused beyond its end.
    """
    paused = [Step(0, ops.Recur("q", "s", "k", "", 1000, end_at=1500)), Step(0, ops.RecurPause("s"))]
    yield [*paused, Step(0, ops.RecurringUnset(-1)), Step(5000, ops.RecurUnpause("s"))]
    recur = [Step(0, ops.Recur("q", "s", "k", "", 1000, overlap="skip")), Step(0, ops.Fire("q"))]
    yield [*recur, Step(0, ops.RecurUpdate("s", queue="r")), Step(5000, ops.Obliterate("q"))]


def _with_requests() -> Iterator[list[Step]]:
    """Give histories with rare situations of requests."""

    def sub(n: int, **more: Any) -> ops.Put:
        return ops.Put("q", f"R:{n}", "k", "", **more)

    def steps(*operations: Any) -> list[Step]:
        return [Step(0, op) for op in operations]

    yield steps(ops.RequestForget("R" * 65))
    yield [*steps(ops.RequestPut("R", "q", 1, (sub(1, ttl_ms=5),))), Step(6, ops.Fire("q"))]
    only = steps(ops.RequestPut("R", "q", 1, (sub(1, retries=0),)))
    for end in (ops.Drain("q"), ops.Cancel(("R:1",)), ops.Revoke(("R:1",)), ops.PutMany((sub(1),)), sub(1)):
        yield [*only, *steps(end)]
    leased = [*only, *steps(ops.Pop("q", "w"))]
    for end in (
        ops.Fail("R:1", 4, "g", ""), ops.Retry("R:1", 4), ops.CompleteMany((ops.Complete("R:1", 4),)),
        ops.Complete("R:1", 4), ops.CompleteAndPop("R:1", 4, "q", "w"),
    ):  # fmt: skip
        yield [*leased, *steps(end)]
    for end in (ops.Release("R:1", 4), ops.Timeout(("R:1",))):
        yield [*leased, *steps(ops.Revoke(("R:1",)), end)]
    for end in (ops.Pop("q", "w"), ops.PopAny(("q",), "w")):
        yield [*leased, Step(10**6, end)]
    begin = (ops.RequestOpen("R", "q", 1), ops.RequestAdd("R", (sub(1), sub(2))))
    pop, full = ops.Pop("q", "w"), ops.ThrottleSet("queue/q", capacity=1, refill=1, refill_ms=1000)
    yield steps(*begin, pop, ops.Timeout(("R:1",)), ops.Revoke(("R:1",)))
    yield steps(*begin, ops.Cancel(("R:1", "R:2")), ops.RequestPut("R", "q", 1, (sub(1),)))
    yield steps(ops.ConfigSet("requests-history", 0), ops.RequestOpen("E", "q", 1), ops.RequestClose("E"), *begin)
    ended = steps(ops.ConfigSet("requests-history", 0), *begin, ops.RequestOpen("E", "q", 1), ops.RequestClose("E"))
    yield [*ended, *steps(ops.RequestAdd("R", (sub(3),)))]
    yield [*ended, *steps(ops.RequestPut("S", "q", 1, (sub(3),)))]
    for puts in ((sub(5), sub(5)), (ops.Put("q", "x", "k", ""),), (sub(6, cost=2),), (sub(7, depends=("R:7",)),)):
        known = ops.Put("q", "x", "k", "")
        yield steps(known, full, *begin, ops.RequestAdd("R", puts), ops.RequestPut("S", "q", 1, puts))
    lost = (sub(6, depends=("nobody",)),)
    yield steps(*begin, ops.RequestAdd("R", lost), ops.RequestPut("S", "q", 1, lost), ops.RequestTune("R", limit=2))
    yield steps(*begin, ops.RequestClose("R"), ops.RequestAdd("R", (sub(3),)), ops.RequestPut("R", "q", 1, (sub(4),)))
    yield steps(*begin, ops.RequestOpen("R", "q", 2), ops.RequestPut("R", "q", 2, (sub(4),)), ops.RequestForget("R"))
    yield steps(*begin, pop, ops.RequestCancel("R"), ops.RequestTune("R"), ops.Cancel(("R:1",)), ops.RequestForget("R"))
    yield steps(*begin, ops.Put("q", "x", "k", "", depends=("R:2",)), ops.RequestCancel("R"))
    yield steps(*begin, ops.RequestCancel("R"), ops.RequestForget("R"), ops.RequestForget("R"))
    late = steps(ops.RequestPut("L", "q", 2, (sub(8), sub(9)), deadline_ms=5), ops.Pop("q", "w", 2))
    stalled = steps(ops.Timeout(("R:8", "R:9")), ops.Put("q", "x", "k", "", depends=("R:9",)))
    yield [*late, *stalled, Step(5, pop)]
    delayed = ops.RequestPut("M", "q", 2, (sub(8, delay_ms=9), sub(9)), deadline_ms=5)
    yield [*steps(delayed, ops.Put("q", "x", "k", "", depends=("R:8",)), pop), Step(5, ops.Fire("q"))]
    held = steps(ops.RequestOpen("H", "q", 1, lease_ms=5), ops.Put("r", "x", "k", ""), ops.Pop("r", "w"))
    for end in (ops.Fire("q"), pop, ops.PopAny(("q",), "w"), ops.CompleteAndPop("x", 3, "q", "w")):
        yield [*held, Step(6, end)]
    for op in (ops.RequestAdd("N", (sub(1),)), ops.RequestClose("N"), ops.RequestTune("N"), ops.RequestCancel("N")):
        yield steps(op)


def _failing_fast() -> Iterator[list[Step]]:
    """Give for each operation that may fail a job a history in which the failure cancels a request."""

    def steps(*operations: Any) -> list[Step]:
        return [Step(0, op) for op in operations]

    sub = ops.Put("r", "R:1", "k", "", depends=("a fail",))
    bad = steps(ops.Put("z", "bad", "k", ""), ops.Revoke(("bad",)), ops.Put("q", "a", "k", "", retries=0))
    begun = [*bad, *steps(ops.RequestPut("R", "r", 2, (sub, ops.Put("r", "R:2", "k", "")), fail_fast=True))]
    again = ops.Put("q", "a", "k", "", depends=("bad fail",))
    for end in (ops.Revoke(("a",)), again, ops.PutMany((again,)), ops.DependsOn("R:1", ("bad fail",))):
        yield [*begun, *steps(end)]
    leased = [*begun, *steps(ops.Pop("q", "w"))]
    for end in (ops.Fail("a", 9, "g", ""), ops.Retry("a", 9)):
        yield [*leased, *steps(end)]
    done = ops.Complete("a", 9)
    for end in (done, ops.CompleteMany((done,)), ops.CompleteAndPop("a", 9, "s", "w"), ops.Release("a", 9),
                ops.Timeout(("a",))):  # fmt: skip
        yield [*leased, *steps(ops.Revoke(("a",)), end)]
    for end in (ops.Pop("q", "w"), ops.PopAny(("q",), "w")):
        yield [*leased, Step(10**6, end)]
    late = (ops.Put("r", "R:1", "k", "", depends=("bad fail",)), ops.Put("r", "R:2", "k", ""))
    yield [*bad, *steps(ops.RequestPut("R", "r", 2, late, fail_fast=True))]
    yield [*bad, *steps(ops.RequestOpen("R", "r", 2, fail_fast=True), ops.RequestAdd("R", late))]


def _waiting_for_a_request() -> Iterator[list[Step]]:
    """Give for each operation that may end a request a history in which jobs that wait for it follow in each way."""

    def steps(*operations: Any, now: int = 0) -> list[Step]:
        return [Step(now, op) for op in operations]

    runs = (
        ops.Recur("s", "often", "k", "", 1000, overlap="skip"),
        ops.Recur("s", "once", "k", "", 1000, overlap="skip", end_at=5000),
        ops.Fire("s"),
        ops.Pop("s", "w", 2),
    )
    waits = ("x request fail",)
    store = Store()
    for op in runs:
        engine.step(store, 0, op)
    released = (ops.Release(jid, job.token, depends=waits) for jid, job in store.jobs.items())
    jobs = (
        ops.Put("r", "y", "k", "", ordered="o"),
        ops.Put("r", "fail", "k", "", depends=waits, dead_queue="dead", keep_failed_ms=0),
        ops.Put("r", "ignore", "k", "", depends=("x request ignore",), ordered="o"),
        ops.Put("r", "cancel", "k", "", depends=("x request cancel",)),
        ops.RequestPut("S", "r", 1, (ops.Put("r", "S:1", "k", "", depends=waits),), fail_fast=True),
        ops.RequestOpen("F", "r", 1, fail_fast=True),
        ops.RequestAdd("F", (ops.Put("r", "F:1", "k", "", depends=waits),)),
    )
    begun = (
        *runs,
        ops.RequestOpen("x", "q", 2),
        ops.RequestAdd("x", (ops.Put("q", "x:1", "k", ""),)),
        *released,
        *jobs,
    )
    delete = ops.Cancel(("x:1",))
    yield [*steps(*begun), *steps(ops.RequestCancel("x"), now=9000)]
    yield [*steps(*begun, delete), *steps(ops.RequestClose("x"), now=9000)]
    for last in (delete, ops.Drain("q"), ops.CancelMany("q"), ops.Obliterate("q")):
        yield [*steps(*begun, ops.RequestClose("x")), *steps(last, now=9000)]
    yield steps(*begun, ops.RequestForget("x"), ops.RequestCancel("x"), ops.RequestForget("x"))
    yield steps(
        *begun, ops.Put("r", "b", "k", "", depends=("x request",)), ops.RequestCancel("x"), ops.RequestForget("x")
    )


def _stalling_past_a_deadline() -> Iterator[list[Step]]:
    """Give histories in which a stalled sub-request, and one without a slot, end with their request, with and without a
    dependent.
    """
    put = ops.RequestPut("R", "r", 1, (ops.Put("r", "R:1", "k", ""),), deadline_ms=9)
    stalled = [Step(0, put), Step(0, ops.Pop("r", "w")), Step(0, ops.Timeout(("R:1",)))]
    lapsed = [
        Step(0, ops.RequestOpen("R", "r", 1, lease_ms=9)),
        Step(0, ops.Put("r", "b", "k", "", retry_delay_ms=99_999)),
    ]
    leased = [*lapsed, Step(0, ops.Put("q", "a", "k", "")), Step(0, ops.Pop("r", "w")), Step(99_999, ops.Pop("q", "w"))]
    yield [*leased, Step(99_999, ops.CompleteAndPop("a", 5, "r", "w"))]
    late = [*stalled[:2], Step(0, ops.Put("q", "a", "k", "")), Step(0, ops.Pop("q", "w"))]
    yield [*late, Step(9, ops.CompleteAndPop("a", 6, "r", "w"))]
    yield [*stalled[:2], Step(9, ops.Fire("r"))]
    for more in ([], [Step(0, ops.Put("z", "x", "k", "", depends=("R:1",)))]):
        yield [*stalled, *more, Step(9, ops.Pop("r", "w"))]
    two = ops.RequestPut("R", "r", 1, tuple(ops.Put("r", jid, "k", "") for jid in ("R:1", "R:2")), deadline_ms=9)
    yield [Step(0, two), Step(0, ops.Put("z", "x", "k", "", depends=("R:2",))), Step(9, ops.Pop("r", "w"))]


def _obliterating_a_throttled_queue() -> list[Step]:
    """A queue with a throttle of its own, which goes with it."""
    own = ops.ThrottleSet(OWN + "q", concurrency=1)
    return [Step(0, op) for op in (ops.Put("q", "a", "k", ""), own, ops.Obliterate("q"))]


def _following_at_once() -> Iterator[list[Step]]:
    """Give histories in which sub-requests depend on a failed job and follow it in the step that adds them."""
    for whole in (False, True):
        s = Script()
        s.put("a", "old")
        a, old = s.pop(2)
        s.do(ops.Fail(a.jid, a.token, "g", ""))
        s.do(ops.Fail(old.jid, old.token, "g", ""))
        s.do(ops.ConfigSet("failed-history-count", 1))
        jobs = (
            ops.Put("q", "x:1", "k", "", depends=("a fail",), dead_queue="dead"),
            ops.Put("q", "x:2", "k", "", depends=("x:1 cancel",)),
            ops.Put("q", "x:3", "k", "", depends=("a ignore",)),
        )
        if whole:
            s.do(ops.RequestPut("x", "q", 1, jobs))
        else:
            s.do(ops.RequestOpen("x", "q", 1))
            s.do(ops.RequestAdd("x", jobs))
        yield s.steps


@functools.cache
def _happened() -> tuple[dict[str, set[str]], dict[str, set[str]], set[tuple[str, str, str]]]:
    """The events and refusals of each operation, and all transitions, over many histories."""
    events: dict[str, set[str]] = defaultdict(set)
    refusals: dict[str, set[str]] = defaultdict(set)
    transitions: set[tuple[str, str, str]] = set()
    real, administer.keep_events = administer.keep_events, lambda store, most: None
    try:
        rare = (
            *_rare(),
            *_in_a_line(),
            *_of_messages(),
            *_with_requests(),
            *_failing_fast(),
            *_stalling_past_a_deadline(),
            *_following_at_once(),
            *_waiting_for_a_request(),
            _obliterating_a_throttled_queue(),
            *_with_runs_elsewhere(),
        )
        for history in (*bulk(COUNT), *ENDS, *rare):
            states: dict[str, str] = {}
            for moment in walk(history):
                events[moment.name].update(event.event for event in moment.events)
                if moment.refused:
                    refusals[moment.name].add(moment.outcome.code)
                transitions.update(_transitions(states, moment.name, moment.events))
                assert states == {j: job.state for j, job in moment.store.jobs.items()}, moment.step
    finally:
        administer.keep_events = real
    for name, code in (*_limits(), *_beyond_the_budget()):
        refusals[name].add(code)
    for name in (
        "put", "put_many", "pop", "pop_any", "retry", "release", "cancel", "drain", "unique_release", "obliterate",
    ):  # fmt: skip
        events[name].update(event.event for event in _end_of_a_holder(name))
    return events, refusals, transitions


def _who(event: Event) -> str:
    """Whether an operation may park or admit a job: by its concurrency key, or by a pop that checks throttles."""
    return "concurrency key" if str(event.facts[-1]).startswith(("ordered:", "request:")) else "pop"


def _follows_a_failure(operation: str, was: str, event: Event) -> bool:
    """Whether a transition of a job was caused by a transition of another job."""
    if event.event == "failed":
        return was == "depends" and str(event.named["group"]).startswith("failed-dependencies-")
    if event.event == "unblocked":
        return not operation.startswith(("complete", "depends_off"))
    deletes = operation in ("cancel", "cancel_many", "drain", "obliterate", "request_cancel")
    return event.event == "canceled" and CATALOGUE[operation].cascades and not deletes


def _end_of_a_holder(name: str) -> tuple[Event, ...]:
    """Give the events that may come from the end of a job if another job waits for its key."""
    store = Store()
    retries = 1 if name == "drain" else 0
    engine.step(store, 0, ops.Put("r", "c", "k", "", ordered="o"))  # so that the one that goes on is parked
    for jid, mode, line in (("a", None, None), ("b", "again", "o")):
        engine.step(store, 0, ops.Put("q", jid, "k", "", retries=retries, unique="u", unique_mode=mode, ordered=line))
        engine.step(store, 0, ops.Pop("q", "w"))
    put = ops.Put("q", "a", "k", "")
    retry = ops.Retry("a", store.jobs["a"].token)
    if name == "drain":
        engine.step(store, 0, retry)
    elif name == "release":
        engine.step(store, 0, ops.Revoke(("a",)))
    seq = store.seq
    ends = {
        "pop": ops.Pop("q", "w"), "pop_any": ops.PopAny(("q",), "w"), "retry": retry, "drain": ops.Drain("q", 1),
        "unique_release": ops.UniqueRelease("u"), "put": put, "cancel": ops.Cancel(("a",)),
        "release": ops.Release("a", store.jobs["a"].token), "put_many": ops.PutMany((put,)),
        "obliterate": ops.Obliterate("q", True, "locks 0 0"),
    }  # fmt: skip
    engine.step(store, 100_000, ends[name])
    return events_after(store, seq, store.seq - seq)


def _transitions(states: dict[str, str], operation: str, events: tuple[Event, ...]) -> Iterator[tuple[str, str, str]]:
    """Fold events into the state of each job, as a reader of the stream does; yield each change."""
    lapsed = set()
    for event in events:
        if "jid" not in EVENTS[event.event]:
            continue
        facts: dict[str, Any] = event.named
        jid = facts["jid"]
        was = states.get(jid, "")
        by = {
            "promoted": "promote" if operation == "promote" else "due", "advanced": "complete",
            "completed": "complete", "canceled": "drain" if operation == "drain" else "cancel",
            "unfailed": "retry_many", "retired": "retention", "retried": "retry", "put": "put",
            "delayed": "delay", "released": "release", "popped": "pop", "prioritized": "priority",
            "failed": FAILS.get(operation, "retry"),
            "throttled": _who(event), "unthrottled": _who(event),
            "unblocked": "depends_off" if operation == "depends_off" else "complete", "deduplicated": "put",
        }.get(event.event, "timeout")  # fmt: skip
        if _follows_a_failure(operation, was, event):
            by = "dependency failed"
        if was in ("scheduled", "waiting", "throttled", "stalled") and by in ("dependency failed", "retry", "complete"):
            by = "end of its request" if event.event in ("failed", "canceled") else by
        if event.event == "lock_lost":
            if facts["cause"] == "lapsed" or (facts["cause"] == "timeout" and operation != "timeout"):
                lapsed.add(jid)
            if operation != "timeout" or facts["cause"] == "revoke":
                continue
            state = "stalled"
        elif event.event == "delayed":
            later = "scheduled" if facts["ready_at"] > event.at else "waiting"
            state = was if was == "depends" else later
        elif event.event in ("throttled", "unthrottled") and was == STATE_AFTER[event.event]:
            continue  # the event before has told so
        elif event.event in ("canceled", "retired"):
            state = ""
        elif event.event in STATE_AFTER:
            state = STATE_AFTER[event.event]
        elif "state" in facts:
            state = facts["state"]
        else:
            continue
        if event.event == "failed" and facts["group"] == f"expired-{facts['queue']}" and was != "running":
            by = "time to live ran out"
        if event.event == "deduplicated" and state == was:
            continue
        if jid in lapsed and event.event in ("popped", "failed", "throttled"):
            by = "lease ran out"
            lapsed.discard(jid)
        states[jid] = state
        if not state:
            del states[jid]
        yield was, state, by


FAILS = {
    "fail": "fail", "revoke": "revoke", "release": "release", "timeout": "timeout", "complete": "complete",
    "complete_many": "complete", "complete_and_pop": "complete",
}  # fmt: skip

STATE_AFTER = {
    "promoted": "waiting", "popped": "running", "completed": "complete",
    "failed": "failed", "throttled": "throttled", "unthrottled": "waiting",
}  # fmt: skip


def test_the_events_alone_determine_the_state_of_every_job() -> None:
    _happened()  # asserts it after every step


def test_a_transition_occurs_if_and_only_if_it_is_listed() -> None:
    _, _, transitions = _happened()
    listed = {(was, now, by) for (was, now), causes in TRANSITIONS.items() for by in causes}
    assert transitions - listed == set()
    assert listed - transitions == set()
    assert {state for pair in TRANSITIONS for state in pair} <= {"", *STATES}


def test_an_unlisted_transition_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.model.ops import change

    _happened.cache_clear()
    monkeypatch.setattr(change, "begins", lambda store, now, job: "scheduled")  # delay by 0 is waiting
    assert fails(test_a_transition_occurs_if_and_only_if_it_is_listed)
    monkeypatch.undo()
    _happened.cache_clear()


def test_an_event_occurs_if_and_only_if_its_operation_claims_it() -> None:
    events, _, _ = _happened()
    for name, spec in CATALOGUE.items():
        assert events[name] == set(spec.events), name
    assert set().union(*events.values()) == set(EVENTS)


def test_a_refusal_occurs_if_and_only_if_its_operation_claims_it() -> None:
    _, refusals, _ = _happened()
    for name, spec in CATALOGUE.items():
        bad = {"BAD_ARGUMENT"}
        assert refusals[name] - bad == set(spec.refusals), name
        assert not spec.arguments or bad <= refusals[name], name
    assert set().union(*refusals.values()) == set(REASONS)


def test_a_refusal_that_is_not_claimed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.contract.refusals import refuse

    def refusing(verb: Any, store: Store, now: int, op: ops.Track) -> Any:
        if op.jid in store.tracked:
            raise refuse("WRONG_STATE", op.jid, "tracked")
        return verb(store, now, op)

    _happened.cache_clear()
    plant(monkeypatch, "track", refusing)
    assert fails(test_a_refusal_occurs_if_and_only_if_its_operation_claims_it)
    monkeypatch.undo()
    _happened.cache_clear()


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_bad_argument_is_refused_by_name(name: str) -> None:
    spec = CATALOGUE[name]
    good = {argument.name: _good(argument.name, argument.kind) for argument in spec.arguments}
    for argument in spec.arguments:
        for bad in (*HOSTILE(argument.kind), b"x", ["x"], object(), {"x": 1}):
            op = spec.cls(**{**good, argument.name: bad})
            if not argument.required and bad == argument.default and type(bad) is type(argument.default):
                continue  # it stands for nothing given
            assert engine.step(Store(), 0, op) == Refusal("BAD_ARGUMENT", (name, argument.name)), bad
    for now in (-1, 9 * 10**13, 1.5, None, True, "0"):
        assert engine.step(Store(), now, spec.cls(**good)) == Refusal("BAD_ARGUMENT", (name, "now"))  # type: ignore[arg-type]


def _good(name: str, kind: Any) -> Any:
    if kind.wire == "operations":
        inner = CATALOGUE[kind.of.lower()]
        return (inner.cls(**{a.name: _good(a.name, a.kind) for a in inner.arguments if a.required}),)
    for value in ("x", 1, True, ("x",), (1,), *getattr(kind, "words", ())):
        if kind.accepts(value):
            return value
    raise AssertionError(name)
