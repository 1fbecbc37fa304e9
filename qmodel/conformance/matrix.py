"""The matrix: every situation of a job, every operation, every outcome that can follow.

Chance does not close the matrix, so it is enumerated: a breadth-first search over the model, at a
scope of two jobs (`a`, which the cells are about, and `b`), two workers and two queues, finds every
reachable situation by a shortest history. There every operation is tried with every class of
arguments that may matter (the token of the lease, an old one, a wrong one; with and without a delay,
a dependency, a next queue...), and once more, for what a resend is answered.

A cell is (operation, situation of `a` before, outcome): the code of the refusal, or the situation of
`a` after and the events told. Each is kept as a scenario, with the shortest history that was found,
and with what the model answers: `tests/conformance/scenarios`, one file for each operation, written
by `python -m qmodel.conformance.matrix FOLDER`. Every corner of the triangle must agree to them all.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from qmodel import engine
from qmodel import operations as ops
from qmodel.conformance import report
from qmodel.conformance.copying import copy
from qmodel.conformance.generator import WIRE_HOSTILE, succeeds
from qmodel.conformance.subjects import History, Step
from qmodel.operations import CATALOGUE, Operation
from qmodel.refusals import Refusal
from qmodel.state import config
from qmodel.state.store import Store, events_after

SITUATIONS = {
    "missing": "There is no such job",
    "waiting": "The job is ready in its queue",
    "scheduled": "The job waits for its time",
    "scheduled, due": "The job's time has come, and nobody has noticed yet",
    "depends": "The job waits for another one",
    "throttled": "The job is ready, and waits in its line",
    "running": "The job is leased",
    "running, in grace": "The job's lease ran out, and its grace has not",
    "running, lapsed": "The job's lease and its grace ran out, and nobody has noticed yet",
    "stalled": "The job's lease was taken by a timeout",
    "complete": "The job is complete",
    "failed": "The job has failed",
    "any": "Whatever jobs there are",
}

JOBLESS = {
    "metadata_get", "metadata_set", "metadata_increment", "metadata_unset",
    "config", "config_get", "config_set", "config_unset", "deregister", "pause", "unpause", "top_tags", "events",
    "metrics",
    "newest", "unique_get", "unique_release",
    "request_open", "request_add", "request_close", "request_put", "request_get", "requests", "request_tune",
    "request_cancel", "request_forget",
    "recur", "unrecur", "recur_get", "recur_update", "recur_tag", "recur_untag", "recur_pause",
    "recur_unpause", "recur_now", "recur_advance", "recurring_unset", "recurring", "fire",
    "throttle_set", "throttle_unset", "throttle_get", "throttles",
    "publish", "subscribe", "catch_up", "unsubscribe", "subscription_get", "subscriptions", "messages", "trim",
}  # fmt: skip
"""Operations that no situation of a job matters to."""


def situation(store: Store, now: int, jid: str = "a") -> str:
    """The situation of a job: the state that is stored, and what is true of it now."""
    job = store.jobs.get(jid)
    if job is None:
        return "missing"
    if job.state == "scheduled" and job.ready_at <= now:
        return "scheduled, due"
    if job.state == "running" and job.expires_at <= now:
        over = job.expires_at + config.value(store, "grace-period") <= now
        return "running, lapsed" if over else "running, in grace"
    return job.state


class Cell(NamedTuple):
    """A cell of the matrix."""

    operation: str
    situation: str
    outcome: str


class Scenario(NamedTuple):
    """A cell, and a history whose last step shows it."""

    cell: Cell
    history: History

    @property
    def name(self) -> str:
        """Short and unique within the operation."""
        return f"{self.cell.situation}: {self.cell.outcome}"

    @property
    def sentence(self) -> str:
        """What the scenario pins."""
        return f"{SITUATIONS[self.cell.situation]}; {self.cell.operation} {_said(self.cell.outcome)}."


def _said(outcome: str) -> str:
    if outcome.startswith("refused "):
        code, _, rest = outcome.removeprefix("refused ").partition(" ")
        return f"is refused with {code}{' of ' + rest if rest else ''}, and nothing changes"
    plain = {
        "again": "sent again is answered the same, and nothing more changes",
        "nothing": "finds nothing to change",
        "shown": "shows something of it",
        "not shown": "shows nothing",
    }
    if outcome in plain:
        return plain[outcome]
    after, _, events = outcome.partition(" (")
    where = {"stays": "leaves it there", "-> missing": "ends with the job gone"}
    told = events.rstrip(")").replace(" ", ", ")
    return where.get(after, f"makes it {after.removeprefix('-> ')}") + f"; told: {told or 'nothing'}"


# ---- the search


class _Node(NamedTuple):
    history: tuple[Step, ...]
    now: int


def _replayed(history: History) -> Store:
    store = Store()
    for step in history:
        engine.step(store, *step)
    return store


def _key(store: Store, now: int) -> tuple[Any, ...]:
    """What two histories must have in common for the second to be of no interest."""
    jobs = []
    for jid in ("a", "b"):
        job = store.jobs.get(jid)
        ended = [what for what, _, _ in job.history if what in _ENDS] if job is not None else []
        jobs.append(
            None
            if job is None
            else (
                situation(store, now, jid),
                job.queue if jid == "a" else "",
                job.worker if jid == "a" else "",
                job.remaining == 0 if jid == "a" else False,
                bool(job.dependencies),
                bool(job.dependents),
                "line" in job.options,
                ended[-2:] if jid == "a" else (),
                job.failure.group if job.state == "failed" and job.failure is not None else "",
            )
        )
    return tuple(map(repr, jobs))


_ENDS = ("completed", "failed", "retried", "released")
"""The stages from which a resend is answered; the last two leases are tried."""

_WAITS = (1000, 60_000, 70_000)


def _moves(store: Store) -> Iterator[Operation]:
    """What the search may do next."""
    yield ops.Put("q", "a", "k", "")
    yield ops.Put("q", "a", "k", "", delay_ms=1000)
    yield ops.Put("q", "a", "k", "", retries=0)
    yield ops.Put("q", "b", "k", "")
    yield ops.Put("q", "a", "k", "", depends=("b",))
    yield ops.Put("q", "b", "k", "", depends=("a",))
    yield ops.Put("q", "a", "k", "", ordered="o")
    yield ops.Put("q", "b", "k", "", ordered="o")
    yield ops.Pop("q", "u")
    for jid in ("a", "b"):
        job = store.jobs.get(jid)
        if job is not None and job.state == "running":
            yield ops.Complete(jid, job.token)
            if jid == "a":
                yield ops.Complete(jid, job.token, next="r")
                yield ops.Fail(jid, job.token, "g", "m")
                yield ops.Retry(jid, job.token)
                yield ops.Retry(jid, job.token, delay_ms=1000)
                yield ops.Release(jid, job.token)
                yield ops.Timeout((jid,))
    yield ops.Cancel(("a",))


def _nodes() -> Iterator[_Node]:
    """Every situation that can be reached, by a shortest history: there are about 2500."""
    seen = set()
    level = [_Node((), 0)]
    while level:
        found = []
        for node in level:
            store = _replayed(node.history)
            for op in list(_moves(store)):
                grown = _Node((*node.history, Step(node.now, op)), node.now)
                after = _replayed(grown.history)
                if after.seq == store.seq:
                    continue
                for wait in (0, *_WAITS):
                    later = grown._replace(now=grown.now + wait)
                    key = _key(after, later.now)
                    if key not in seen:
                        seen.add(key)
                        found.append(later)
        yield from level
        level = found


# ---- what is tried


def _tokens(store: Store) -> tuple[int, ...]:
    """The token of a's last lease, an earlier one, and one that never was."""
    job = store.jobs.get("a")
    if job is None:
        return (1,)
    popped = [int(facts[1]) for what, _, facts in job.history if what == "popped"]
    return tuple(dict.fromkeys((*reversed(popped[-2:]), 999)))


def _probes(store: Store) -> Iterator[tuple[Operation, ...]]:
    """Operations to try; of several at once the last is meant, the others prepare it."""
    again: dict[str, Any] = {"request": "n"}
    put = ("q", "a", "k", "")
    for delay, depends in ((0, None), (1000, None), (0, ("b",)), (0, ("a",)), (0, ("ghost",)), (0, ())):
        yield (ops.Put(*put, delay_ms=delay, depends=depends, request="n"),)
        yield (ops.PutMany((ops.Put(*put, delay_ms=delay, depends=depends),), "n"),)
    yield (ops.Put("r", "a", "k", "", **again),)
    yield (ops.PutMany((ops.Put(*put, depends=("b",)), ops.Put("q", "b", "k", "", depends=("a",)))),)
    yield (ops.PutMany((ops.Put(*put), ops.Put(*put))),)
    queue = store.jobs["a"].queue if "a" in store.jobs else "q"
    yield (ops.Pop(queue, "w", **again),)
    yield (ops.Pop(queue, "w", 2, wait=True, **again),)
    yield (ops.Pause((queue,)), ops.Pop(queue, "w", wait=True))
    yield (ops.Pop("s", "w"),)
    yield (ops.PopAny(("s", queue), "w", 2, wait=True, **again),)
    yield (ops.PopAny(("s",), "w"),)
    yield (ops.Peek(queue, 2),)
    for token in _tokens(store):
        yield from _with_token(token)
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
        yield (ops.Unfail("r", group, **again),)
    yield (ops.Get("a"),)
    for clean in ("complete", "failed"):
        yield (ops.Clean(clean, **again),)
        yield (ops.Clean(clean, 1000, queue="nowhere", **again),)
    yield (ops.Obliterate(queue, **again),)
    yield (ops.Obliterate(queue, True, **again),)
    yield (ops.RetryMany(**again),)
    yield (ops.RetryMany(klass="nobody"),)
    for more in ({}, {"preview": True}, {"state": "waiting"}, {"klass": "nobody"}):
        yield (ops.CancelMany(queue, **more, **again),)
    yield (ops.CancelMany(),)
    yield (ops.Search(),)
    yield (ops.Search(queue),)
    yield (ops.Search(queue, klass="nobody"),)
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
    yield (ops.Pause((queue,)),)
    yield (ops.Pause((queue,)), ops.Pause((queue,)))
    yield (ops.Pause((queue,)), ops.Unpause((queue,)))
    yield (ops.Pause((queue,), "rate", 1000, **again),)
    yield (ops.Pause((queue,)), ops.Pause((queue,), "rate", 1000), ops.Unpause((queue,), "rate"))
    yield (ops.Unpause((queue,)),)
    yield (ops.Forget((queue,)),)
    yield (ops.Deregister(("u",)),)
    yield from _recurring(again)
    yield from _other_times(again)
    yield from _unique(again)
    yield from _throttling(again)
    yield (ops.Why("a"),)
    yield from _publishing(again)
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
    yield (ops.ConfigSet("heartbeat", 0),)
    for name, spec in CATALOGUE.items():
        for argument in spec.arguments[:1]:
            good = {a.name: _good(a.kind) for a in spec.arguments if a.required}
            yield (CATALOGUE[name].cls(**{**good, argument.name: WIRE_HOSTILE(argument.kind)[0]}),)


def _grown(store: Store, operations: tuple[Operation, ...]) -> int:
    """The sequence after some operations."""
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
    yield (limit, ops.Throttles())
    dear = ops.Put("q", "a", "k", "", throttles=("x",), cost=2)
    yield (bucket, dear)
    yield (bucket, ops.PutMany((dear,)))
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
    yield (recur, ops.Pop("q", "w", **again))
    yield (recur, ops.Pop("q", "w", 2, **again))


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
    one = ops.Complete("a", token)
    for last in (one, ops.CompleteMany((one,)), ops.CompleteAndPop("a", token, "q", "u")):
        yield (ops.ConfigSet("jobs-history-count", 0), last)
        yield (ops.ConfigSet("jobs-history-count", 0), last, last)
    yield (ops.CompleteMany((ops.Complete("a", token),)),)
    yield (ops.CompleteMany((ops.Complete("a", token), ops.Complete("a", token))),)
    yield (ops.CompleteMany((ops.Complete("a", token, next="r"),)),)
    yield (ops.Fail("a", token, "g", "m"),)
    yield (ops.Retry("a", token),)
    yield (ops.Retry("a", token, delay_ms=1000, group="g", message="m"),)
    yield (ops.Release("a", token),)
    yield (ops.Release("a", token, delay_ms=1000),)
    for end in (
        one, ops.CompleteMany((one,)), ops.CompleteAndPop("a", token, "q", "u"), ops.Fail("a", token, "g", "m"),
        ops.Retry("a", token), ops.Release("a", token), ops.Heartbeat("a", token), ops.Timeout(("a",)),
    ):  # fmt: skip
        yield (ops.Revoke(("a",)), end)
    yield (ops.Heartbeat("a", token),)
    yield (ops.Progress("a", token, "x", request="n"),)


# ---- the cells


def scenarios() -> dict[Cell, Scenario]:
    """The matrix: every cell that can be reached, with the first history that reached it."""
    found: dict[Cell, Scenario] = {}
    for node in _nodes():
        store = _replayed(node.history)
        for probe in list(_probes(store)):
            steps = tuple(Step(node.now, op) for op in probe)
            for step in steps[:-1]:
                engine.step(store, *step)
            unchanged = _try(found, (*node.history, *steps), store)
            if len(steps) > 1 or not unchanged:
                store = _replayed(node.history)
    return dict(sorted(found.items(), key=_in_order))


def _try(found: dict[Cell, Scenario], history: tuple[Step, ...], store: Store) -> bool:
    """Execute the last step of a history, twice, and enter the cells that it shows; say if it changed nothing."""
    now, op = history[-1]
    before = situation(store, now)
    seq = store.seq
    outcome = engine.step(store, now, op)
    label = _label(store, now, op, before, outcome, seq)
    _enter(found, Cell(op.spec.name, _where(op, outcome, before), label), history)
    if isinstance(outcome, Refusal) or op.spec.reads:
        return True
    if store.seq == seq:
        return False
    seq = store.seq
    if engine.step(store, now, op) == outcome and store.seq == seq:
        _enter(found, Cell(op.spec.name, _where(op, outcome, before), "again"), (*history, history[-1]))
    return False


def _where(op: Operation, outcome: Any, before: str) -> str:
    bad = isinstance(outcome, Refusal) and outcome.code == "BAD_ARGUMENT" and op.spec.name != "complete_many"
    return "any" if op.spec.name in JOBLESS or (bad and outcome.facts[1] not in ("delay_ms", "depends")) else before


def _enter(found: dict[Cell, Scenario], cell: Cell, history: tuple[Step, ...]) -> None:
    known = found.get(cell)
    if known is None or len(history) < len(known.history):
        found[cell] = Scenario(cell, history)


def _label(store: Store, now: int, op: Operation, before: str, outcome: Any, seq: int) -> str:
    if isinstance(outcome, Refusal):
        bad = f" {outcome.facts[1]}" if outcome.code == "BAD_ARGUMENT" else ""
        return f"refused {outcome.code}{bad}"
    if op.spec.reads:
        return "shown" if succeeds(op, outcome, False) else "not shown"
    events = dict.fromkeys(event.event for event in events_after(store, seq, store.seq - seq))
    after = situation(store, now)
    if not events and op.spec.name != "heartbeat":
        return "again" if op.spec.resend == "lease" else "nothing"
    moved = "stays" if after == before else f"-> {after}"
    return f"{moved} ({' '.join(events)})" if events else moved


def _in_order(item: tuple[Cell, Scenario]) -> tuple[int, int, str]:
    cell, _ = item
    return list(CATALOGUE).index(cell.operation), list(SITUATIONS).index(cell.situation), cell.outcome


# ---- files


def files(found: dict[Cell, Scenario]) -> dict[str, str]:
    """The scenarios as texts, by the name of their file."""
    texts: dict[str, list[str]] = {}
    for scenario in found.values():
        name = scenario.cell.operation
        if name not in texts:
            texts[name] = [f"{name}: {CATALOGUE[name].summary}\n"]
        texts[name].append(render(scenario))
    return {f"{name}.txt": "\n".join(parts) for name, parts in texts.items()}


def render(scenario: Scenario) -> str:
    """A scenario as text: its name, its sentence, its steps, and what the last one tells and replies."""
    history = scenario.history
    lines = [f"{now:>6} {report.call(op)}" for now, op in history[:-1]]
    lines += report.lines_of(history)[-1 - _events_of_last(history) - 1 :]
    return f"## {scenario.name}\n{scenario.sentence}\n\n" + "\n".join(lines) + "\n"


def _events_of_last(history: History) -> int:
    before = _replayed(history[:-1])
    seq = before.seq
    engine.step(before, *history[-1])
    return before.seq - seq


def parse(text: str) -> dict[str, list[Step]]:
    """The histories in a file of scenarios, by the name of the scenario."""
    found: dict[str, list[Step]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            history = found[line.removeprefix("## ")] = []
        elif line[:6].strip().isdigit() and line[6:7] == " " and line[7:8].isupper():
            history.append(Step(int(line[:6]), parse_call(line[7:])))
    return found


def parse_call(text: str) -> Operation:
    """An operation from what `report.call` wrote."""
    built: Operation = _built(ast.parse(text, mode="eval").body)
    return built


def _built(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        cls = getattr(ops, node.func.id)
        named = {str(keyword.arg): _built(keyword.value) for keyword in node.keywords}
        built: Operation = cls(*map(_built, node.args), **named)
        return built
    if isinstance(node, ast.Tuple):
        return tuple(map(_built, node.elts))
    return ast.literal_eval(node)


def write(folder: Path) -> None:
    """Write the files of all scenarios into a folder, and delete others there."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = files(scenarios())
    for old in folder.glob("*.txt"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
