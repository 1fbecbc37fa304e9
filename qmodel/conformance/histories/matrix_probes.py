"""The operations that the matrix tries in each situation of the job `a`, with each class of arguments that may matter.

A try is a tuple of operations: the last one is tested, the others prepare it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from qmodel.conformance.histories.generate import WIRE_HOSTILE
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.model import engine
from qmodel.model.copies import copy
from qmodel.model.state.history import stages
from qmodel.model.state.store import Store


def _tokens(store: Store) -> tuple[int, ...]:
    """List the token of the job's last lease, the token before, and a token that never existed."""
    job = store.jobs.get("a")
    if job is None:
        return (1,)
    popped = [int(facts[1]) for what, _, facts in stages(job) if what == "popped"]
    return tuple(dict.fromkeys((*reversed(popped[-2:]), 999)))


def resends(store: Store) -> Iterator[tuple[Operation, ...]]:
    """Give the tries for each situation of `a` and each end of its last leases: operations that end a lease."""
    for token in _tokens(store)[:2]:
        yield from _ends(token)


def _ends(token: int) -> Iterator[tuple[Operation, ...]]:
    one = ops.Complete("a", token)
    for last in (one, ops.CompleteMany((one,)), ops.CompleteAndPop("a", token, "q", "u")):
        yield (last,)
        yield (ops.ConfigSet("jobs-history-count", 0), last)
        yield (ops.ConfigSet("jobs-history-count", 0), last, last)
    yield (ops.Complete("a", token, next="r"),)
    yield (ops.CompleteAndPop("a", token, "q", "u", request="n"),)
    yield (ops.CompleteMany((one, one)),)
    yield (ops.CompleteMany((ops.Complete("a", token, next="r"),)),)
    yield (ops.Fail("a", token, "g", "m"),)
    yield (ops.Retry("a", token),)
    yield (ops.Retry("a", token, delay_ms=1000, group="g", message="m"),)
    yield (ops.Release("a", token),)
    yield (ops.Release("a", token, delay_ms=1000),)
    for depends in (("b",), ("a",), ("ghost",)):
        yield (ops.Release("a", token, depends=depends),)
    yield (ops.Heartbeat("a", token),)
    yield (ops.Progress("a", token, "x", request="n"),)


def probes(store: Store) -> Iterator[tuple[Operation, ...]]:
    """Give the tries for each situation of `a`."""
    again: dict[str, Any] = {"request": "n"}
    put = ("q", "a", "k", "")
    for token in _tokens(store):
        yield from _with_token(token)
    for delay, depends in ((0, None), (1000, None), (0, ("b",)), (0, ("a",)), (0, ("ghost",)), (0, ())):
        yield (ops.Put(*put, delay_ms=delay, depends=depends, request="n"),)
        yield (ops.PutMany((ops.Put(*put, delay_ms=delay, depends=depends),), "n"),)
    for at, delay in ((5_000, 0), (999_999_999, 0), (999_999_999, 1)):
        yield (ops.Put(*put, delay_ms=delay, at=at, request="n"),)
        yield (ops.PutMany((ops.Put(*put, delay_ms=delay, at=at),), "n"),)
    yield (ops.Put("r", "a", "k", "", **again),)
    yield (ops.PutMany((ops.Put(*put, depends=("b",)), ops.Put("q", "b", "k", "", depends=("a",)))),)
    yield (ops.PutMany((ops.Put(*put), ops.Put(*put))),)
    yield (ops.PutNew((ops.Put(*put), ops.Put("q", "b", "k", "", depends=("a",))), "n"),)
    yield (ops.PutNew((ops.Put(*put), ops.Put("q", "new", "k", "", depends=("a",))), "n"),)
    yield (ops.PutNew((ops.Put(*put), ops.Put(*put))),)
    queue = store.jobs["a"].queue if "a" in store.jobs else "q"
    yield (ops.Pop(queue, "w", **again),)
    yield (ops.Pop(queue, "w", 2, wait=True, **again),)
    yield (ops.Pause((queue,)), ops.Pop(queue, "w", wait=True))
    recur = ops.Recur("q", "z", "k", "", 1000)
    yield (recur, ops.Pop("q", "w", **again))
    yield (recur, ops.Pop("q", "w", 2, **again))
    yield (ops.Pop("s", "w"),)
    yield (ops.PopAny(("s", queue), "w", 2, wait=True, **again),)
    yield (ops.PopAny(("s",), "w"),)
    yield (ops.Peek(queue, 2),)
    yield (ops.Timeout(("a",), **again),)
    yield (ops.Timeout(("a", "ghost"), **again),)
    yield (ops.Revoke(("a",), **again),)
    yield (ops.Revoke(("a",)), ops.Revoke(("a",)))
    yield (ops.Revoke(("a", "ghost")),)
    yield (ops.Replay("a", **again),)
    dead = (ops.Put("q", "a", "k", "", dead_queue="dead"), ops.Revoke(("a",)))
    letter = f"a-dead-{_grown(store, dead) - 2}"
    yield (*dead, ops.Replay(letter, **again))
    yield (*dead, ops.Put("q", "a", "k", ""), ops.Replay(letter, **again))
    yield (*dead, ops.Pop("dead", "w"), ops.Replay(letter, **again))
    brief = (ops.Put("x", "a", "k", "", keep_failed_ms=0), ops.Pop("x", "w"))
    fails = ops.Fail("a", _grown(store, brief), "g", "m")
    yield (*brief, fails)
    yield (*brief, fails, fails)
    yield (*dead, ops.Put("q", "b", "k", "", depends=(letter,)), ops.Replay(letter, **again))
    yield (ops.Revoke(("a",)), ops.Pop(queue, "w"))
    yield (ops.Update("a", "x", **again),)
    yield (ops.Priority("a", -1, **again),)
    yield (ops.Delay("a", 0, **again),)
    yield (ops.Delay("a", 1000, **again),)
    yield (ops.Promote("a", **again),)
    yield (ops.Log("a", "x", **again),)
    for jids in (("a",), ("a", "b")):
        yield (ops.Cancel(jids, **again),)
    yield (ops.Cancel(("a",), cascade=True, **again),)
    yield (ops.Cancel(("a", "b"), complete=True, **again),)
    yield (ops.Drain(queue, **again),)
    for other in ("b", "a", "ghost"):
        yield (ops.DependsOn("a", (other,), **again),)
        yield (ops.DependsOff("a", (other,), **again),)
    yield (ops.DependsOff("a", all=True, **again),)
    add = ops.TagAdd("a", ("t",), **again)
    yield (add,)
    yield (ops.TagAdd("a", ("t",)), ops.TagAdd("a", ("t",)))
    yield (ops.TagAdd("a", ("t",)), ops.TagRemove("a", ("t",), **again))
    yield (ops.TagRemove("a", ("t",)),)
    yield (add, ops.Tagged("t"))
    yield (ops.Tagged("t"),)
    yield (ops.TopTags(),)
    yield (add, ops.TagAdd("b", ("t",)), ops.TopTags())
    yield (ops.Track("a", **again),)
    yield (ops.Track("a"), ops.Track("a"))
    yield (ops.Track("a"), ops.Untrack("a", **again))
    yield (ops.Untrack("a"),)
    yield (ops.Tracked(),)
    yield (ops.Track("a"), ops.Tracked())
    yield (ops.FailedGroups(),)
    for group in ("g", "failed-retries-q"):
        yield (ops.Failed(group),)
        yield (ops.RetryMany(group=group, to="r", **again),)
    yield (ops.Get("a"),)
    for clean in ("complete", "failed"):
        yield (ops.Clean(clean, **again),)
        yield (ops.Clean(clean, 1000, queue="nowhere", **again),)
    yield (ops.Obliterate(queue, **again),)
    yield (ops.Obliterate(queue, True, **again),)
    yield (ops.RetryMany(**again),)
    yield (ops.RetryMany(klass="nobody"),)
    yield (ops.RetryMany(jids=("a", "ghost", "a"), **again),)
    yield (ops.RetryMany(jids=("a",), to="r"),)
    yield (ops.RetryMany(jids=("a",), klass="nobody"),)
    yield (ops.RetryMany(jids=("a",), cursor="c"),)
    yield (ops.RetryMany(jids=("a",), preview=True),)
    for more in ({}, {"preview": True}, {"state": "waiting"}, {"klass": "nobody"}):
        yield (ops.CancelMany(queue, **more, **again),)
    yield (ops.CancelMany(),)
    yield (ops.Search(),)
    yield (ops.Search(queue),)
    yield (ops.Search(queue, klass="nobody"),)
    yield (ops.Search(queue, klass_like="*", jid_like="*a*", text="e"),)
    yield (ops.Search(queue, jid_like="nobody*"),)
    yield (ops.Search(worker="u"),)
    yield (ops.Search(state="complete"),)
    yield (ops.Search(state="failed"),)
    yield (ops.Multiget(("b", "a")),)
    lists = (ops.Waiting, ops.Scheduled, ops.Depending, ops.Throttled, ops.Running, ops.Stalled)
    for look in (*lists, ops.Queue, ops.Length, ops.Stats):
        yield (look(queue),)
    yield (ops.Metrics(queue, count=2),)
    yield (ops.Completed(),)
    yield (ops.Queues(),)
    yield (ops.Workers(),)
    yield (ops.Worker("u"),)
    yield (ops.Events(),)
    yield (ops.Newest(),)
    yield (ops.Journal(),)
    yield (ops.ConfigSet("journal", 1), ops.Journal())
    yield (ops.ConfigSet("journal", 1), ops.Pause((queue,)), ops.ConfigUnset("journal"), ops.Journal())
    yield (ops.Pause((queue,)),)
    yield (ops.Pause((queue,)), ops.Pause((queue,)))
    yield (ops.Pause((queue,)), ops.Unpause((queue,)))
    yield (ops.Pause((queue,), "rate", 1000, **again),)
    yield (ops.Pause((queue,)), ops.Pause((queue,), "rate", 1000), ops.Unpause((queue,), "rate"))
    yield (ops.Unpause((queue,)),)
    yield (ops.Forget((queue,)),)
    yield (ops.Deregister(("u",)),)
    yield from _unique(again)
    yield from _following(again)
    yield (ops.Why("a"),)


def probes_of_no_job() -> Iterator[tuple[Operation, ...]]:
    """Give the tries for each pair of situations of `a` and `b`: operations that name no job."""
    again: dict[str, Any] = {"request": "n"}
    yield from _recurring(again)
    yield from _other_times(again)
    yield from _throttling(again)
    yield from _publishing(again)
    yield from _requesting(again)
    yield from _awaiting(again)
    yield (ops.Config(),)
    note = ops.MetadataSet("k", "n", "5", **again)
    yield (note,)
    yield (note, ops.MetadataGet("k"))
    yield (ops.MetadataGet("k"),)
    yield (ops.MetadataIncrement("k", "n", **again),)
    yield (ops.MetadataSet("k", "n", "x"), ops.MetadataIncrement("k", "n"))
    yield (note, ops.MetadataUnset("k", "n"))
    yield (ops.MetadataUnset("k", "n"),)
    for option in ("heartbeat", "heartbeat-q", "heartbeat-", "x"):
        yield (ops.ConfigGet(option),)
        yield (ops.ConfigSet(option, 5),)
        yield (ops.ConfigSet(option, 5), ops.ConfigUnset(option))
    yield (ops.ConfigSet("max-job-history", 0),)
    yield from _epochs()
    for name, spec in CATALOGUE.items():
        for argument in spec.arguments[:1]:
            good = {a.name: _good(a.kind) for a in spec.arguments if a.required}
            yield (CATALOGUE[name].cls(**{**good, argument.name: WIRE_HOSTILE(argument.kind)[0]}),)


def _epochs() -> Iterator[tuple[Operation, ...]]:
    """Give the tries with epochs, and reads of readers that know an epoch."""
    begun = ops.BeginEpoch(2)
    yield (begun,)
    yield (begun, begun)
    yield (begun, ops.BeginEpoch(1))
    for after, epoch in ((1, 0), (1, 2), (9, 2)):
        yield (begun, ops.Events(after, epoch=epoch))
        yield (ops.ConfigSet("journal", 1), begun, ops.Journal(after, epoch=epoch))


def _grown(store: Store, operations: tuple[Operation, ...]) -> int:
    """Compute the sequence number after some operations."""
    later = copy(store)
    for op in operations:
        engine.step(later, 0, op)
    return later.seq


def _unique(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    b = ops.Put("q", "b", "k", "", unique="u")
    for more in (
        {},
        {"unique_mode": "window", "unique_ms": 1000},
        {"unique_mode": "debounce"},
        {"unique_mode": "again"},
    ):
        a = ops.Put("q", "a", "k", "x", unique="u", **more, **again)
        yield (a,)
        yield (b, a)
        yield (b, ops.Pop("q", "w", 9), a)
    yield (b, ops.Pop("q", "w", 9), a, ops.UniqueGet("u"))
    yield (b, ops.Pop("q", "w", 9), a, ops.UniqueRelease("u"))
    yield (ops.PutMany((ops.Put("q", "a", "k", "", unique="u"), b)),)
    yield (ops.PutNew((ops.Put("q", "a", "k", "", unique="u"), b)),)
    yield (b, ops.PutNew((ops.Put("q", "a", "k", "", unique="u"), ops.Put("q", "new", "k", ""), b)))
    yield (ops.Put("q", "a", "k", "", unique="u"), ops.PutMany((ops.Put("q", "a", "k", ""), b)))
    yield (ops.UniqueGet("u"),)
    yield (ops.UniqueRelease("u"),)


def _throttling(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    limit, bucket = ops.ThrottleSet("x", 1), ops.ThrottleSet("x", capacity=1, refill=1, refill_ms=1)
    yield (ops.ThrottleSet("x", 1, 1, 1, 1, 1, 1, **again),)
    for one in ({"rate": 1}, {"rate_ms": 1}, {"capacity": 1, "refill": 1}, {"capacity": 1}, {"refill": 1}, {}):
        yield (ops.ThrottleSet("x", request="", **one),)
    yield (ops.ThrottleUnset("x"),)
    yield (limit, ops.ThrottleUnset("x", **again))
    yield (ops.ThrottleGet("x"),)
    yield (limit, ops.ThrottleGet("x"))
    yield (ops.Throttles(),)
    yield (ops.ThrottlesUsed(),)
    yield (ops.Put("q", "x", "k", "", throttles=("x",)), ops.Pop("q", "w"), ops.ThrottlesUsed())
    yield (limit, ops.Throttles())
    dear = ops.Put("q", "a", "k", "", throttles=("x",), cost=2)
    yield (bucket, dear)
    yield (bucket, ops.PutMany((dear,)))
    yield (bucket, ops.RequestPut("x", "q", 1, (dear,)))
    yield (bucket, ops.RequestOpen("x", "q", 1), ops.RequestAdd("x", (dear,)))
    pair = tuple(ops.Put("q", jid, "k", "", throttles=("x",)) for jid in "za")
    for pop in (ops.Pop("q", "w", 9), ops.PopAny(("q", "r"), "w", 9)):
        yield (limit, ops.PutMany(pair), pop)
        yield (limit, ops.PutMany(pair), ops.Pop("q", "w", 9), ops.ThrottleUnset("x"), pop)
    yield (limit, ops.PutMany(pair), ops.Pop("q", "w", 9), ops.Why("a"))


def _recurring(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    recur = ops.Recur("q", "z", "k", "", 1000, tags=("t",))
    yield (ops.Recur("q", "z", "k", "", 1000, tags=("t",), **again),)
    yield (recur, ops.Recur("r", "z", "l", "x", 5, 5))
    yield (ops.Unrecur("z"),)
    yield (recur, ops.Unrecur("z", **again))
    yield (recur, ops.Forget(("q",)))
    for update in (
        ops.RecurPause("z", **again), ops.RecurUnpause("z"), ops.RecurNow("z", **again), ops.RecurAdvance("z", 0),
        ops.RecurUpdate("z", **again), ops.RecurTag("z", ("u",), **again), ops.RecurTag("z", ("t",)),
        ops.RecurUntag("z", ("t",), **again), ops.RecurUntag("z", ("u",)), ops.RecurGet("z"), ops.Recurring("q"),
    ):  # fmt: skip
        yield (update,)
        yield (recur, update)
    yield (ops.Fire("q"),)
    yield (recur, ops.Fire("q", **again))
    yield (recur, ops.Put("q", "z-1", "k", ""), ops.Fire("q", **again))
    yield (recur, ops.Peek("q"))
    yield (recur, ops.Queue("q"))


def _other_times(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    recur = ops.Recur("q", "z", "k", "", 1000)
    listed = ops.Recur("q", "z", "k", "", 0, kind="cron", cron="0 9 * * * UTC", due_at=(1, 10**13))
    waits = ops.Recur("q", "z", "k", "", 1000, kind="after")
    yield (listed,)
    yield (ops.Recur("q", "z", "k", "", 1000, end_at=1),)
    yield (ops.Recur("q", "z", "k", "", 1000, kind="cron"),)
    yield (listed, ops.RecurAdvance("z", 10**13, (10**13 + 1,)))
    yield (listed, ops.RecurAdvance("z", 10**13))
    yield (listed, ops.RecurAdvance("z", 1, (10**13 + 1,)))
    yield (listed, ops.RecurringUnset(1000))
    yield (listed, ops.RecurUpdate("z", interval_ms=1))
    yield (waits, ops.Fire("q"), ops.Fire("q"))
    yield (waits, ops.Fire("q"), ops.Cancel(("z-1",)), ops.Queue("q"))
    yield (replace(recur, limit=1), ops.Fire("q", **again))
    yield (recur, ops.RecurPause("z"), ops.RecurUnpause("z", **again))
    yield (recur, ops.Put("q", "z-1", "k", ""), ops.RecurNow("z", **again))


def _publishing(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    first, second = ops.Publish("m.n", "1"), ops.Publish("m.o", "2")
    new = ops.Subscribe("s", ("m.*",), "q", "k", **again)
    behind = ops.Subscribe("s", ("m.*",), "q", "k", after=0, count=1)
    yield (ops.Publish("m.n", "", **again),)
    yield (ops.Publish("m..n", ""),)
    yield (new,)
    yield (ops.Subscribe("s", ("m.>.n",), "q", "k"),)
    yield (new, ops.Publish("m.n", "", **again))
    yield (first, ops.Subscribe("s", (">",), "q", "k", after=0, **again))
    yield (first, ops.Subscribe("s", (">",), "q", "k", since=10**12, **again))
    for look in (
        ops.CatchUp("s", **again), ops.Unsubscribe("s", **again), ops.SubscriptionGet("s"), ops.Subscriptions(),
        ops.Messages(), ops.Trim(1, **again),
    ):  # fmt: skip
        yield (look,)
        yield (first, second, behind, look)


def _requesting(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    a, z = ops.Put("q", "a", "k", ""), ops.Put("q", "z", "k", "")
    opened = ops.RequestOpen("x", "q", 1)
    fed = (opened, ops.RequestAdd("x", (z,)))
    done = (opened, ops.RequestClose("x"))
    for jobs in ((a,), (z,), (), (z, z), (replace(z, depends=("ghost",)),), (replace(z, priority=1),)):
        yield (ops.RequestPut("x", "q", 1, jobs, **again),)
        yield (opened, ops.RequestAdd("x", jobs, **again))
    yield (ops.RequestPut("x", "q", 1, (a, replace(z, depends=("a",)))),)
    yield (opened, ops.RequestAdd("x", (replace(a, depends=("z",)), replace(z, depends=("a",)))))
    for other in (
        ops.RequestOpen("x", "q", 2), ops.RequestOpen("x", "r", 1), replace(opened, deadline_ms=1000),
        replace(opened, fail_fast=True), replace(opened, lease_ms=1000), replace(opened, data="{}"),
        replace(opened, keep_places=True), replace(opened, **again),
    ):  # fmt: skip
        yield (other,)
        yield (opened, other)
    yield (opened, ops.RequestPut("x", "r", 1, (z,)))
    yield (*done, ops.RequestPut("x", "q", 1, (z,)))
    for look in (
        ops.RequestAdd("x", (z,), **again), ops.RequestTouch("x", **again), ops.RequestClose("x", **again),
        ops.RequestTune("x", 1, **again),
        ops.RequestTune("x", limit=2, **again), ops.RequestCancel("x", **again), ops.RequestForget("x", **again),
        ops.RequestForget("x", delete_jobs=True, **again), ops.RequestGet("x"), ops.RequestJobs("x"),
        ops.Requests(), ops.Requests("complete"),
    ):  # fmt: skip
        yield (look,)
        for before in ((opened,), fed, (*fed, ops.RequestClose("x")), (*fed, ops.Pop("q", "w", 9)), done):
            yield (*before, look)
    yield (*fed, ops.Put("r", "y", "k", "", depends=("z",)), ops.RequestCancel("x"))


def _awaiting(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    """Give the tries about jobs that wait for the request `x`, which ends in each way."""
    opened = (ops.RequestOpen("x", "x", 1), ops.RequestAdd("x", (ops.Put("x", "s", "k", ""),)))
    put = ("r", "z", "k", "")
    for policy in ("", " block", " fail", " ignore", " cancel"):
        waits = ops.Put(*put, depends=(f"x request{policy}",), **again)
        yield (waits,)
        yield (*opened, waits)
        for end in ((ops.RequestCancel("x"),), (ops.Cancel(("s",)), ops.RequestClose("x"))):
            yield (*opened, *end, waits)
        yield (*opened, waits, ops.RequestForget("x", **again))
        yield (*opened, waits, ops.RequestCancel("x"), ops.RequestForget("x", **again))
    follow = (
        ops.Put("r", "y", "k", "", ordered="o"),
        ops.Put("r", "z1", "k", "", depends=("x request fail",), dead_queue="dead", keep_failed_ms=0),
        ops.Put("r", "z2", "k", "", depends=("x request ignore",), ordered="o"),
        ops.Put("r", "z3", "k", "", depends=("x request cancel",)),
    )
    yield (*opened, *follow, ops.RequestCancel("x", **again))
    yield (*opened, ops.Cancel(("s",)), *follow, ops.RequestClose("x", **again))
    for delete in (ops.Cancel(("s",)), ops.Drain("x"), ops.CancelMany("x"), ops.Obliterate("x")):
        yield (*opened, *follow, ops.RequestClose("x"), replace(delete, **again))
    yield (*opened, ops.RequestAdd("x", (ops.Put("x", "t", "k", "", depends=("x request",)),), **again))


def _following(again: dict[str, Any]) -> Iterator[tuple[Operation, ...]]:
    """Give the tries about jobs that depend on `a`, with an edge of each policy."""
    for policy in ("block", "fail", "ignore", "cancel"):
        waits = ops.Put("r", "z", "k", "", depends=(f"a {policy} it",))
        yield (waits,)
        for end in (ops.Revoke(("a",), **again), ops.Cancel(("a", "z"), **again), ops.Results("z")):
            yield (waits, end)
        yield (waits, ops.Revoke(("a",)), ops.Results("z"))
        yield (ops.DependsOn("a", (f"b {policy} it",), **again),)
    yield (ops.Results("a"),)


def _good(kind: Any) -> Any:
    return next((value for value in ("x", 1, ("x",)) if kind.accepts(value)), ())


def _with_token(token: int) -> Iterator[tuple[Operation, ...]]:
    none: tuple[str, ...] = ()
    for next, delay, depends in (
        (None, 0, none), ("r", 0, none), ("q", 0, none), ("r", 1000, none), ("r", 0, ("b",)), ("r", 0, ("a",)),
        ("r", 0, ("ghost",)), (None, 1000, none), (None, 0, ("b",)),
    ):  # fmt: skip
        more: dict[str, Any] = {"next": next, "delay_ms": delay, "depends": depends}
        yield (ops.Complete("a", token, **more),)
        yield (ops.CompleteAndPop("a", token, "q", "u", **more, request="n"),)
    yield from _ends(token)
    one = ops.Complete("a", token)
    for end in (
        one, ops.CompleteMany((one,)), ops.CompleteAndPop("a", token, "q", "u"), ops.Fail("a", token, "g", "m"),
        ops.Retry("a", token), ops.Release("a", token), ops.Heartbeat("a", token), ops.Timeout(("a",)),
    ):  # fmt: skip
        yield (ops.Revoke(("a",)), end)
