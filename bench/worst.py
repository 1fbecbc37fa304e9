"""Search for the worst single call of every operation: the CPU time of the server for one call at the largest sizes.

Each case prepares a namespace, so that one call of an operation has the most to do in one respect: jobs, tags,
throttles, dependencies, dependents, schedules, subscriptions, bytes, and so on. It begins with 1000 items; while the
call is refused, it goes on with as many as the refusal says would be accepted, or with half. So the largest accepted
size is measured. The time is the server's CPU clock, user and system. What takes more than half of the limit is
measured again, and the least of five counts, because what else runs on the machine only adds. All calls carry their own
moment, so due jobs and lapsed leases need no waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from bench import Options
from bench.lifecycle import Caller
from bench.machine import Pinned, candidates, favour, pinned
from bench.raw import pack
from bench.report import Report, Table, Verdict
from qmodel.backends.bundle import function_name
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE, Operation, Put
from qmodel.wire import codec

MOST_MS = 50.0
"""What one call may cost."""

MOST = 1000
TURNS = 5
BIG = "x" * (1 << 20)
WORKER = "worker"


class Refused(Exception):
    """Raised when a call of the preparation is refused: the case does not exist at this size."""


class World:
    """An empty namespace on a server, and its clock."""

    def __init__(self, server: Pinned) -> None:
        self.server = server
        self.caller = Caller(server.url).load()
        self.now = int(time.time() * 1000)

    def clear(self) -> None:
        """Empty the server."""
        self.caller.connection.call("FLUSHALL", "SYNC")

    def command(self, op: Operation) -> bytes:
        """The bytes of a call at this world's moment."""
        return pack("FCALL", function_name(op.spec.name), "1", "ql:", *codec.encode(op, self.now))

    def call(self, op: Operation) -> Any:
        """Execute an operation of the preparation; give its raw reply."""
        return self.calls([op])[0]

    def calls(self, given: Iterable[Operation]) -> list[Any]:
        """Execute operations, 100 in a round trip; give their raw replies."""
        replies, waiting = [], list(given)
        for first in range(0, len(waiting), 100):
            some = waiting[first : first + 100]
            for op, reply in zip(some, self.caller.connection.exchange(map(self.command, some)), strict=True):
                code, *rest = codec.listed(op, reply)
                if code != b"OK":
                    raise Refused(code, rest)
                replies.append(rest[0])
        return replies

    def put(self, puts: Iterable[Put]) -> None:
        """Put jobs, one a call."""
        self.calls(puts)

    def lease(self, queue: str, count: int) -> list[tuple[str, int]]:
        """Lease this many jobs of a queue; give their ids and tokens."""
        held: list[tuple[str, int]] = []
        while len(held) < count:
            jobs = codec.decode(op := ops.Pop(queue, WORKER, min(100, count - len(held))), [b"OK", self.call(op)])
            if not jobs:
                raise Refused(b"EMPTY", [])
            held += [(job.jid, job.token) for job in jobs]
        return held

    def fail(self, queue: str, count: int, group: str = "g") -> int:
        """Fail jobs of a queue; give how many."""
        return len(self.calls(ops.Fail(jid, token, group, "m") for jid, token in self.lease(queue, count)))

    def complete(self, queue: str, count: int) -> int:
        """Complete jobs of a queue; give how many."""
        return len(self.calls(ops.Complete(jid, token) for jid, token in self.lease(queue, count)))

    def settle(self) -> None:
        """Let the server collect what earlier calls, and refused ones above all, have left in memory."""
        self.caller.connection.call("MEMORY", "PURGE")
        self.calls([ops.Newest()] * 2000)

    def length(self) -> int:
        """The sequence of the newest event."""
        return int(self.call(ops.Newest())[0])


Feature = Callable[[int], dict[str, Any]]
Prepare = Callable[[World, int], Operation]


class Case(NamedTuple):
    """A way to make an operation work hard: what there is besides the items, and what prepares it for n items."""

    name: str
    what: str
    prepare: Prepare


class Cost(NamedTuple):
    """What a call of a case took."""

    case: Case
    size: int
    ms: float
    events: int
    refused: str


EIGHT = tuple(f"x{i}" for i in range(8))

FEATURES: dict[str, Feature] = {
    "plain": lambda i: {},
    "10 own tags": lambda i: {"tags": tuple(f"t{i}-{k}" for k in range(10))},
    "100 own tags": lambda i: {"tags": tuple(f"t{i}-{k}" for k in range(100))},
    "1000 own tags": lambda i: {"tags": tuple(f"t{i}-{k}" for k in range(1000))},
    "100 shared tags": lambda i: {"tags": tuple(f"t{k}" for k in range(100))},
    "8 throttles": lambda i: {"throttles": EIGHT},
    "8 own throttles": lambda i: {"throttles": tuple(f"x{i}-{k}" for k in range(8))},
    "one ordered key": lambda i: {"ordered": "o"},
    "own ordered keys": lambda i: {"ordered": f"o{i}"},
    "own unique keys": lambda i: {"unique": f"u{i}"},
    "all options": lambda i: {
        "ordered": f"o{i}", "unique": f"u{i}", "throttles": EIGHT, "lease_ms": 60_000, "timeout_ms": 10**7,
        "ttl_ms": 10**8, "dead_queue": "dead", "keep_complete_ms": 10**8, "keep_failed_ms": 10**8, "cost": 1,
        "tags": ("a", "b"),
    },
    "dead queue": lambda i: {"dead_queue": "dead"},
    "dead queue, 100 own tags": lambda i: {"dead_queue": "dead", "tags": tuple(f"t{i}-{k}" for k in range(100))},
    "kept 0 ms": lambda i: {"keep_complete_ms": 0, "keep_failed_ms": 0},
    "64 KiB of data": lambda i: {"data": BIG[: 1 << 16]},
    "1 MiB of data": lambda i: {"data": BIG},
}  # fmt: skip

HEAVY = {"1000 own tags": 200, "1 MiB of data": 200, "histories of 100 lines": 200}
"""The most items with a feature of which a call touches a few: more would only take longer to prepare."""

QUICK = ("plain", "100 own tags", "8 throttles", "all options", "64 KiB of data")


def puts(feature: Feature, n: int, queue: str = "q", prefix: str = "j", **more: Any) -> Iterator[Put]:
    """The puts of n jobs with a feature."""
    for i in range(n):
        given = {"data": "", **more, **feature(i)}
        yield Put(queue, f"{prefix}{i}", "Klass", **given)


def _limits(world: World) -> None:
    """Set all limits of the shared throttles, wide."""
    world.calls(
        ops.ThrottleSet(
            name, concurrency=10**5, rate=10**4, rate_ms=60_000, capacity=10**5, refill=1000, refill_ms=1000
        )
        for name in EIGHT
    )


def jids(n: int, prefix: str = "j") -> tuple[str, ...]:
    """The ids of n jobs."""
    return tuple(f"{prefix}{i}" for i in range(n))


# ---- cases: what a batch operation does to n jobs with a feature


def _put_many(feature: Feature) -> Prepare:
    return lambda world, n: ops.PutMany(tuple(puts(feature, n)))


def _put_again(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(feature, n))
        return ops.PutMany(tuple(puts(lambda i: {"tags": (f"other{i}",)}, n)))

    return prepare


def _put_new(feature: Feature) -> Prepare:
    return lambda world, n: ops.PutNew(tuple(puts(feature, n)))


def _request(feature: Feature, add: bool) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        if add:
            world.call(ops.RequestOpen("r", "q", 1000))
            return ops.RequestAdd("r", tuple(puts(feature, n)))
        return ops.RequestPut("r", "q", 1000, tuple(puts(feature, n)))

    return prepare


def _admitted(make: Callable[[World, int], Operation], limit: int = 1000) -> Callable[[Feature], Prepare]:
    """Cases of a request with n sub-requests."""

    def of(feature: Feature) -> Prepare:
        def prepare(world: World, n: int) -> Operation:
            world.call(ops.RequestOpen("r", "q", limit))
            for one in puts(feature, n):
                world.call(ops.RequestAdd("r", (one,)))
            return make(world, n)

        return prepare

    return of


def _leased(make: Operation) -> Callable[[Feature], Prepare]:
    """Cases of a request with n sub-requests that are leased."""

    def then(world: World, n: int) -> Operation:
        world.lease("q", n)
        return make

    return _admitted(then)


def _parked_behind(make: Callable[[World, int], Operation], ordered: bool = True) -> Callable[[Feature], Prepare]:
    """Cases of n jobs with a slot, each with a job parked behind it."""

    def of(feature: Feature) -> Prepare:
        def prepare(world: World, n: int) -> Operation:
            if not ordered:
                world.call(ops.RequestOpen("r", "q", n))
            for name, more in (("a", FEATURES["plain"]), ("b", feature)):
                for i, one in enumerate(puts(more, n, prefix=name)):
                    world.call(replace(one, ordered=f"o{i}") if ordered else ops.RequestAdd("r", (one,)))
            return make(world, n)

        return prepare

    return of


def _complete_all(world: World, n: int) -> Operation:
    return ops.CompleteMany(tuple(ops.Complete(jid, token) for jid, token in world.lease("q", n)))


def _of(become: Callable[[World, int], Any], make: Callable[[Any], Operation]) -> Callable[[Feature], Prepare]:
    """Cases of n jobs of which something has become; the operation is made from what that gives."""

    def of(feature: Feature) -> Prepare:
        def prepare(world: World, n: int) -> Operation:
            world.put(puts(feature, n))
            return make(become(world, n))

        return prepare

    return of


def waiting(make: Callable[[int], Operation]) -> Callable[[Feature], Prepare]:
    """Cases of n waiting jobs."""
    return _of(lambda world, n: n, make)


def running(make: Callable[[list[tuple[str, int]]], Operation]) -> Callable[[Feature], Prepare]:
    """Cases of n leased jobs."""
    return _of(lambda world, n: world.lease("q", n), make)


def failed(make: Callable[[int], Operation]) -> Callable[[Feature], Prepare]:
    """Cases of n failed jobs."""
    return _of(lambda world, n: world.fail("q", n), make)


def complete(make: Callable[[int], Operation]) -> Callable[[Feature], Prepare]:
    """Cases of n complete jobs."""
    return _of(lambda world, n: world.complete("q", n), make)


def _lapsed(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(feature, n))
        world.lease("q", n)
        world.now += 10**8
        return ops.Pop("q", "other", 1000)

    return prepare


def _lapsed_last(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(feature, n, retries=0))
        world.lease("q", n)
        world.now += 10**8
        return ops.Pop("q", "other", 1000)

    return prepare


def _scheduled(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(feature, n, delay_ms=1000))
        world.now += 2000
        return ops.Pop("q", WORKER, 1000)

    return prepare


def _expired(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(feature, n, ttl_ms=1000))
        world.now += 2000
        return ops.Pop("q", WORKER, 1000)

    return prepare


def _complete_many(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(feature, n))
        return ops.CompleteMany(tuple(ops.Complete(jid, token, "r") for jid, token in world.lease("q", n)))

    return prepare


def _retires(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(feature, n))
        world.complete("q", n)
        world.put(puts(FEATURES["plain"], n, prefix="k"))
        held = world.lease("q", n)
        world.call(ops.ConfigSet("jobs-history-count", 0))
        return ops.CompleteMany(tuple(ops.Complete(jid, token) for jid, token in held))

    return prepare


BATCHES: dict[str, Callable[[Feature], Prepare]] = {
    "put_many": _put_many,
    "put_many again": _put_again,
    "put_new": _put_new,
    "request_add": lambda f: _request(f, True),
    "request_put": lambda f: _request(f, False),
    "request_cancel": _admitted(lambda world, n: ops.RequestCancel("r")),
    "request_cancel, leased": _leased(ops.RequestCancel("r")),
    "request_get": _leased(ops.RequestGet("r")),
    "request_tune, priority": _admitted(lambda world, n: ops.RequestTune("r", priority=3)),
    "request_tune, both": _admitted(lambda world, n: ops.RequestTune("r", 3, 1000), 1),
    "complete_many, parked behind": _parked_behind(_complete_all),
    "complete_many, requests behind": _parked_behind(_complete_all, ordered=False),
    "cancel, parked behind": _parked_behind(lambda world, n: ops.Cancel(jids(n, "a"))),
    "cancel_many, parked behind": _parked_behind(lambda world, n: ops.CancelMany(queue="q", state="waiting")),
    "revoke, parked behind": _parked_behind(lambda world, n: ops.Revoke(jids(n, "a"))),
    "drain, parked behind": _parked_behind(lambda world, n: ops.Drain("q")),
    "pop": waiting(lambda n: ops.Pop("q", WORKER, 1000)),
    "pop_any": waiting(lambda n: ops.PopAny(("q",), WORKER, 1000)),
    "peek": waiting(lambda n: ops.Peek("q", 1000)),
    "multiget": waiting(lambda n: ops.Multiget(jids(n))),
    "search": waiting(lambda n: ops.Search(queue="q", count=1000)),
    "search none": waiting(lambda n: ops.Search(queue="q", klass="Other", count=1000)),
    "cancel": waiting(lambda n: ops.Cancel(jids(n))),
    "cancel_many": waiting(lambda n: ops.CancelMany(queue="q")),
    "drain": waiting(lambda n: ops.Drain("q")),
    "obliterate": waiting(lambda n: ops.Obliterate("q")),
    "revoke": waiting(lambda n: ops.Revoke(jids(n))),
    "pop lapsed": _lapsed,
    "pop lapsed, last try": _lapsed_last,
    "pop due": _scheduled,
    "pop expired": _expired,
    "complete_many": _complete_many,
    "complete_many, retires": _retires,
    "timeout": running(lambda held: ops.Timeout(tuple(jid for jid, _ in held))),
    "obliterate running": running(lambda held: ops.Obliterate("q", force=True)),
    "worker": running(lambda held: ops.Worker(WORKER)),
    "workers": running(lambda held: ops.Workers()),
    "retry_many": failed(lambda n: ops.RetryMany(group="g")),
    "retry_many by id": failed(lambda n: ops.RetryMany(jids=jids(n))),
    "clean failed": failed(lambda n: ops.Clean("failed")),
    "clean complete": complete(lambda n: ops.Clean("complete")),
}


def _batch_cases(quick: bool) -> Iterator[Case]:
    features = {name: FEATURES[name] for name in QUICK} if quick else FEATURES
    for name, make in BATCHES.items():
        for what, feature in features.items():
            if ("request" in name or "behind" in name) and (
                "unique" in what or "ordered" in what or what == "all options"
            ):
                continue
            if name == "timeout" and what == "1 MiB of data":
                continue
            yield Case(name, what, make(feature))


# ---- cases of one kind each


def _chain(world: World, n: int) -> Operation:
    return ops.PutMany(
        tuple(Put("q", f"j{i}", "K", "", depends=(f"j{i + 1}",) if i + 1 < n else None) for i in range(n))
    )


def _grid(world: World, n: int) -> Operation:
    half = max(n // 2, 1)
    heads = [Put("q", f"h{i}", "K", "") for i in range(half)]
    wide = 4000 // half
    return ops.PutMany(
        (
            *heads,
            *(
                Put("q", f"j{i}", "K", "", depends=tuple(f"h{(i + k) % half} fail n{k}" for k in range(wide)))
                for i in range(half)
            ),
        )
    )


def _ladder(world: World, n: int) -> Operation:
    """Each job depends on the next four: 4000 edges, all on one path."""
    return ops.PutMany(
        tuple(
            Put("q", f"j{i}", "K", "", depends=tuple(f"j{k}" for k in range(i + 1, min(i + 5, n))) or None)
            for i in range(n)
        )
    )


def _dependents(world: World, n: int, policy: str, wide: int) -> None:
    """A root, n jobs that depend on it, and `wide` that depend on each of these."""
    world.call(Put("q", "root", "K", "", -1))
    world.put(Put("q", f"c{i}", "K", "", depends=(f"root {policy}",)) for i in range(n))
    if wide:
        world.put(Put("q", f"c{i}-{k}", "K", "", depends=(f"c{i} {policy}",)) for i in range(n) for k in range(wide))


def _end_root(policy: str, wide: int, how: str) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        _dependents(world, n, policy, wide)
        if how == "cancel":
            return ops.Cancel(("root",), cascade=True)
        ((jid, token),) = world.lease("q", 1)
        if how == "complete":
            return ops.Complete(jid, token)
        if how == "next":
            world.call(ops.Fail(jid, token, "g", "m"))
            return ops.Pop("q", WORKER)
        return ops.Fail(jid, token, "g", "m")

    return prepare


def _tagged_dependents(how: str, policy: str) -> Prepare:
    tags = tuple(f"t{k}" for k in range(100))

    def prepare(world: World, n: int) -> Operation:
        world.call(Put("q", "root", "K", "", -1))
        world.put(
            Put("q", f"c{i}", "K", "", depends=(f"root {policy}",), tags=tags, dead_queue="dead") for i in range(n)
        )
        if how == "cancel":
            return ops.Cancel(("root",), cascade=True)
        ((jid, token),) = world.lease("q", 1)
        return ops.Complete(jid, token) if how == "complete" else ops.Fail(jid, token, "g", "m")

    return prepare


def _wide(make: Callable[[World, int], Operation], each: int = 100) -> Prepare:
    """n waiting jobs with `each` dependents each."""

    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], n))
        world.put(
            Put("d", f"d{k}", "K", "", depends=tuple(f"j{(k + i) % n}" for i in range(min(n, 1000))))
            for k in range(each)
        )
        return make(world, n)

    return prepare


def _named_results(world: World, n: int) -> Operation:
    """A job with n named dependencies, each with a big result."""
    world.put(puts(FEATURES["plain"], n))
    world.call(Put("d", "d", "K", "", depends=tuple(f"j{i} fail n{i}" for i in range(n))))
    world.calls(ops.Complete(jid, token, BIG[:65536]) for jid, token in world.lease("q", n))
    return ops.Results("d")


def _result_for(length: int) -> Prepare:
    """A job with n dependents that keep its result."""

    def prepare(world: World, n: int) -> Operation:
        _dependents(world, n, "fail r", 0)
        ((jid, token),) = world.lease("q", 1)
        return ops.Complete(jid, token, BIG[:length])

    return prepare


def _results_of(length: int, name: str) -> Prepare:
    """A job with n dependencies that are complete, with results."""

    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], n))
        world.calls(ops.Complete(jid, token, BIG[:length]) for jid, token in world.lease("q", n))
        return Put("d", "d", "K", "", depends=tuple(f"j{i}{name.format(i)}" for i in range(n)))

    return prepare


def _moved_on(length: int, make: Callable[[World, int], Operation]) -> Prepare:
    """n jobs that wait in their second queue, with the results of the first one."""

    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], n))
        world.calls(ops.Complete(jid, token, BIG[:length], next="r") for jid, token in world.lease("q", n))
        return make(world, n)

    return prepare


def _said(make: Callable[[World, int], Operation]) -> Prepare:
    """n failed jobs with long messages."""

    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], n))
        world.calls(ops.Fail(jid, token, "g", BIG[: 1 << 16]) for jid, token in world.lease("q", n))
        return make(world, n)

    return prepare


def _throttled(world: World, n: int, queue: str = "q") -> None:
    """n jobs parked at a throttle."""
    world.call(ops.ThrottleSet("x", concurrency=1))
    world.put(puts(lambda i: {"throttles": ("x",)}, n + 1, queue, queue))
    world.call(ops.Pop(queue, WORKER, 1))
    for _ in range(1 + n // 100):
        world.call(ops.Pop(queue, WORKER, 100))


def _unset_then(make: Callable[[], Operation], parked: int) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        _throttled(world, n * parked)
        world.call(ops.ThrottleUnset("x"))
        return make()

    return prepare


def _unset_queues(world: World, n: int) -> Operation:
    world.call(ops.ThrottleSet("x", concurrency=1))
    for i in range(n):
        world.put(Put(f"q{i}", f"q{i}-{k}", "K", "", throttles=("x",)) for k in range(2))
        world.call(ops.Pop(f"q{i}", WORKER, 2))
    return ops.ThrottleUnset("x")


def _many_throttles(world: World, n: int) -> Operation:
    """n jobs, each parked at a throttle of its own, all opened."""
    world.calls(ops.ThrottleSet(f"x{i}", concurrency=1) for i in range(n))
    world.put(Put("o", f"o{i}", "K", "", throttles=(f"x{i}",)) for i in range(n))
    held = world.lease("o", n)
    world.put(Put("q", f"j{i}", "K", "", throttles=(f"x{i}",)) for i in range(n))
    world.calls([ops.Pop("q", WORKER, 100)] * (n // 100 + 1))
    world.calls(ops.Complete(jid, token) for jid, token in held)
    return ops.Pop("q", WORKER, 1000)


def _throttled_queues(world: World, n: int) -> Operation:
    """100 jobs that hold a throttle, for which a job of each of n queues is parked."""
    world.call(ops.ThrottleSet("x", concurrency=100))
    world.put(puts(lambda i: {"throttles": ("x",)}, 100))
    held = world.lease("q", 100)
    world.put(Put(f"q{i}", f"p{i}", "K", "", throttles=("x",)) for i in range(n))
    world.calls(ops.Pop(f"q{i}", WORKER) for i in range(n))
    return ops.CompleteMany(tuple(ops.Complete(jid, token) for jid, token in held))


def _own_throttle(feature: Feature) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.call(ops.ThrottleSet("queue/q", concurrency=10**5, rate=10**4, rate_ms=10**5))
        world.put(puts(feature, n))
        _limits(world)
        return ops.Pop("q", WORKER, 1000)

    return prepare


def _closed_throttle(world: World, n: int) -> Operation:
    world.call(ops.ThrottleSet("x7", concurrency=1))
    world.put(puts(FEATURES["8 throttles"], n + 1))
    world.call(ops.Pop("q", WORKER, 1))
    return ops.Pop("q", WORKER, 1000)


def _recurring(count: int, tags: int, backlog: int = 0, **more: Any) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.calls(
            ops.Recur("q", f"r{i}", "K", "", interval_ms=1, tags=tuple(f"t{k}" for k in range(tags)), **more)
            for i in range(min(count, n))
        )
        world.now += 100_000
        return ops.Pop("q", WORKER, 1)

    return prepare


def _recurring_then(make: Callable[[], Operation], **more: Any) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        _recurring(n, 10, **more)(world, n)
        return make()

    return prepare


def _subscribed(make: Callable[[], Operation], tags: int, messages: int = 0) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        for i in range(min(n, 100)):
            world.call(
                ops.Subscribe(
                    f"s{i}", (*(f"a.*.{k}.>" for k in range(9)), "a.>"), "q", "K",
                    tags=tuple(f"t{k}" for k in range(tags)),
                )
            )  # fmt: skip
        world.calls(ops.Publish(f"a.b.c.d{i}", "") for i in range(messages))
        return make()

    return prepare


def _behind(tags: int) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.calls(ops.Publish(f"a.b.c.d{i}", "") for i in range(n))
        return ops.Subscribe("s", ("a.>",), "q", "K", tags=tuple(f"t{k}" for k in range(tags)), after=0, count=1000)

    return prepare


def _data_history(make: Callable[[int], Operation], lines: int) -> Prepare:
    """n jobs with long histories."""

    def prepare(world: World, n: int) -> Operation:
        world.call(ops.ConfigSet("max-job-history", 1000))
        world.put(puts(FEATURES["plain"], n))
        world.calls(ops.Log(f"j{i}", BIG[:1024]) for i in range(n) for _ in range(lines))
        return make(n)

    return prepare


def _completed_history(world: World, n: int) -> Operation:
    """The completions of n jobs with long histories, again."""
    _data_history(lambda n: ops.Multiget(jids(n)), 100)(world, n)
    again = ops.CompleteMany(tuple(ops.Complete(jid, token) for jid, token in world.lease("q", n)))
    world.call(again)
    return again


def _many_workers(world: World, n: int) -> Operation:
    """The list of n workers, who hold 10 leases each."""
    world.put(puts(FEATURES["plain"], 10 * n))
    world.calls(ops.Pop("q", f"{WORKER}-{i}", 10) for i in range(n))
    return ops.Workers(0, 1000)


def _one_worker(make: Operation, each: int, at_once: int) -> Prepare:
    """n times `each` leases of one worker, who has popped so many at once."""

    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], each * n))
        world.calls(ops.Pop("q", WORKER, at_once, request=f"r{i}") for i in range(0, each * n, at_once))
        return make

    return prepare


def _queues(make: Callable[[tuple[str, ...]], Operation], jobs_each: int, **more: Any) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        names = tuple(f"q{i}" for i in range(n))
        world.put(Put(name, f"{name}-{k}", "K", "", **more) for name in names for k in range(jobs_each))
        return make(names)

    return prepare


def _paused(world: World, n: int) -> Operation:
    names = tuple(f"q{i}" for i in range(n))
    world.put(Put(name, f"{name}-{k}", "K", "") for name in names for k in range(3))
    world.calls(ops.Pause(names, f"r{k}") for k in range(10))
    return ops.Unpause(names)


def _idle(world: World, n: int) -> Operation:
    world.calls(ops.Pop("q", f"w{i}", wait=True) for i in range(n))
    world.call(ops.Pause(("q",)))
    world.put(puts(FEATURES["plain"], n))
    return ops.Unpause(("q",))


def _events(make: Callable[[], Operation]) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], 2 * n))
        return make()

    return prepare


def _journaled(world: World, n: int) -> Operation:
    world.call(ops.ConfigSet("journal", 1))
    world.put(puts(FEATURES["64 KiB of data"], n))
    return ops.Journal(0, 1000)


def _tags_of_one(remove: bool) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        tags = tuple(f"t{k}" for k in range(n))
        world.call(Put("q", "j", "K", "", tags=tags if remove else ("a",)))
        return ops.TagRemove("j", tags) if remove else ops.TagAdd("j", tags)

    return prepare


def _depends_on(on: bool) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], n))
        edges = tuple(f"j{i} fail n{i % 1000}" for i in range(n))
        world.call(Put("q", "root", "K", ""))
        world.call(Put("d", "d", "K", "", depends=("root",) if on else edges))
        return ops.DependsOn("d", edges) if on else ops.DependsOff("d", all=True)

    return prepare


def _deregister(world: World, n: int) -> Operation:
    names = tuple(f"w{i}" for i in range(n))
    world.calls(ops.Pop("q", name) for name in names)
    return ops.WorkerDeregister(names) if hasattr(ops, "WorkerDeregister") else ops.Deregister(names)


def _deep(make: Callable[[int], Operation]) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["plain"], 10 * n))
        return make(n)

    return prepare


def _tracked(world: World, n: int) -> Operation:
    world.put(puts(FEATURES["64 KiB of data"], n))
    world.calls(ops.Track(jid) for jid in jids(n))
    return ops.Tracked(count=1000)


def _one(make: Operation) -> Prepare:
    def prepare(world: World, n: int) -> Operation:
        world.put(puts(FEATURES["10 own tags"], n))
        return make

    return prepare


def _request_forget(world: World, n: int) -> Operation:
    world.call(ops.RequestPut("r", "q", 1000, tuple(puts(FEATURES["plain"], n))))
    world.complete("q", n)
    return ops.RequestForget("r")


def _set_throttles(world: World, n: int) -> Operation:
    world.calls(ops.ThrottleSet(f"x{i}", concurrency=1, rate=10**4, rate_ms=10**4) for i in range(n))
    return ops.Throttles(0, 1000)


MOVED_ON: dict[str, Callable[[World, int], Operation]] = {
    "pop": lambda world, n: ops.Pop("r", WORKER, 1000),
    "peek": lambda world, n: ops.Peek("r", 1000),
    "search none": lambda world, n: ops.Search(queue="r", klass="Other", count=1000),
    "cancel_many": lambda world, n: ops.CancelMany(queue="r"),
    "drain": lambda world, n: ops.Drain("r"),
    "timeout": lambda world, n: ops.Timeout(tuple(jid for jid, _ in world.lease("r", n))),
    "complete_many": lambda world, n: ops.CompleteMany(tuple(ops.Complete(*one) for one in world.lease("r", n))),
}

OTHERS: list[Case] = [
    Case("put_many", "a chain", _chain),
    Case("put_many", "4000 named edges", _grid),
    Case("put_many", "a ladder of 4000 edges", _ladder),
    Case("cancel", "root with n dependents", _end_root("block", 0, "cancel")),
    Case("cancel", "n dependents with 100 tags", _tagged_dependents("cancel", "block")),
    Case("complete", "n dependents", _end_root("block", 0, "complete")),
    Case("complete", "n dependents with 100 tags", _tagged_dependents("complete", "block")),
    Case("fail", "n dependents fail", _end_root("fail", 0, "fail")),
    Case("fail", "n dependents fail, 5 each", _end_root("fail", 5, "fail")),
    Case("fail", "n dependents, 100 tags, dead letters", _tagged_dependents("fail", "fail")),
    Case("fail", "n dependents canceled, 100 tags", _tagged_dependents("fail", "cancel")),
    Case("fail", "n dependents canceled, 5 each", _end_root("cancel", 5, "fail")),
    Case("fail", "n dependents ignore it", _end_root("ignore", 0, "fail")),
    Case("pop", "continues a cascade, fail", _end_root("fail", 5, "next")),
    Case("pop", "continues a cascade, cancel", _end_root("cancel", 5, "next")),
    Case("pop", "jobs with 100 dependents each", _wide(lambda w, n: ops.Pop("q", WORKER, 1000))),
    Case("multiget", "jobs with 100 dependents each", _wide(lambda w, n: ops.Multiget(jids(n)))),
    Case("search", "jobs with 100 dependents each", _wide(lambda w, n: ops.Search(queue="q", count=1000))),
    Case(
        "complete_many",
        "jobs with 100 dependents each",
        _wide(lambda w, n: ops.CompleteMany(tuple(ops.Complete(*one) for one in w.lease("q", n)))),
    ),
    Case("cancel_many", "jobs with 100 dependencies each", _wide(lambda w, n: ops.CancelMany(queue="d"))),
    Case("results", "n named results of 64 KiB", _named_results),
    *(Case("complete", f"n copies of {kib} KiB of result", _result_for(kib << 10)) for kib in (4, 64, 1024)),
    *(Case("put", f"n dependencies, {kib} KiB of result each", _results_of(kib << 10, "")) for kib in (4, 64, 1024)),
    *(Case("put", f"n names, {kib} KiB of result each", _results_of(kib << 10, " fail n{}")) for kib in (4, 64, 1024)),
    *(
        Case(name, f"{kib} KiB of result from before", _moved_on(kib << 10, make))
        for kib in (4, 64, 1024)
        for name, make in MOVED_ON.items()
    ),
    Case("retry_many", "64 KiB of message", _said(lambda world, n: ops.RetryMany(group="g"))),
    Case("clean failed", "64 KiB of message", _said(lambda world, n: ops.Clean("failed"))),
    Case("pop", "n parked, throttle unset", _unset_then(lambda: ops.Pop("q", WORKER, 1000), 1)),
    Case("pop", "3n parked, throttle unset", _unset_then(lambda: ops.Pop("q", WORKER, 1000), 3)),
    Case("pop", "one of 3n parked, throttle unset", _unset_then(lambda: ops.Pop("q", WORKER, 1), 3)),
    Case("throttle_unset", "n queues with a parked job", _unset_queues),
    Case("pop", "n throttles open", _many_throttles),
    Case("pop", "own throttle", _own_throttle(FEATURES["plain"])),
    Case("pop", "own throttle, 8 throttles", _own_throttle(FEATURES["8 throttles"])),
    Case("complete_many", "a throttle of n queues", _throttled_queues),
    Case("pop", "the last of 8 throttles closed", _closed_throttle),
    Case("pop", "backlog of one schedule", _recurring(1, 0)),
    Case("pop", "backlog of one schedule, 100 tags", _recurring(1, 100)),
    Case("pop", "backlog of n schedules, 10 tags", _recurring(1000, 10)),
    Case("pop", "n schedules due once, 100 tags", _recurring(1000, 100, missed="one")),
    Case("pop", "n schedules that end", _recurring(1000, 1, missed="one", limit=1)),
    Case("peek", "backlog of n schedules", _recurring_then(lambda: ops.Peek("q", 1000))),
    Case("fire", "backlog of n schedules", _recurring_then(lambda: ops.Fire("q", 1000))),
    Case("obliterate", "n schedules", _recurring_then(lambda: ops.Obliterate("q"))),
    Case("recurring", "n schedules", _recurring_then(lambda: ops.Recurring("q", 0, 1000))),
    Case("publish", "100 subscriptions, 10 patterns", _subscribed(lambda: ops.Publish("a.b.c.d", "x"), 0)),
    Case("publish", "100 subscriptions, 100 tags", _subscribed(lambda: ops.Publish("a.b.c.d", "x"), 100)),
    Case("publish", "100 subscriptions, 1 MiB", _subscribed(lambda: ops.Publish("a.b.c.d", BIG), 0)),
    Case("publish", "subject of 60 segments", _subscribed(lambda: ops.Publish("a." * 60 + "b", "x"), 0)),
    Case("subscribe", "n messages behind", _behind(0)),
    Case("subscribe", "n messages behind, 100 tags", _behind(100)),
    Case("trim", "n messages", _subscribed(lambda: ops.Trim(1000), 0, 1000)),
    Case("messages", "n messages", _subscribed(lambda: ops.Messages(0, 1000), 0, 1000)),
    Case("tag_add", "n tags", _tags_of_one(False)),
    Case("tag_remove", "n tags", _tags_of_one(True)),
    Case("top_tags", "n tags", _one(ops.TopTags(0, 1000))),
    Case("tagged", "n jobs", waiting(lambda n: ops.Tagged("t1", 0, 1000))(FEATURES["100 shared tags"])),
    Case("depends_on", "n edges", _depends_on(True)),
    Case("depends_off", "n edges", _depends_on(False)),
    Case("deregister", "n workers", _deregister),
    Case("multiget", "histories of 100 lines", _data_history(lambda n: ops.Multiget(jids(n)), 100)),
    Case("pop", "histories of 100 lines", _data_history(lambda n: ops.Pop("q", WORKER, 1000), 100)),
    Case("cancel", "histories of 100 lines", _data_history(lambda n: ops.Cancel(jids(n)), 100)),
    Case("complete_many again", "histories of 100 lines", _completed_history),
    Case("workers", "n workers, 10 leases each", _many_workers),
    *(
        Case(make.spec.name, f"{each}n leases of one name, popped {how}", _one_worker(make, each, at_once))
        for make in (
            ops.Workers(),
            ops.Worker(WORKER),
            ops.Search(worker=WORKER, count=1000),
            ops.CancelMany(worker=WORKER),
        )
        for each, at_once, how in ((8, 1, "singly"), (15, 100, "by 100"))
    ),
    Case("pop_any", "n queues, 10 jobs each", _queues(lambda names: ops.PopAny(names, WORKER, 1000), 10)),
    Case("pop_any", "n queues, all empty", _queues(lambda names: ops.PopAny(names, WORKER, 1000, True), 0)),
    Case("pop_any", "n queues, all jobs later", _queues(lambda names: ops.PopAny(names, WORKER, 1), 1, delay_ms=10**6)),
    Case("queues", "n queues", _queues(lambda names: ops.Queues(0, 1000), 2)),
    Case("pause", "n queues", _queues(lambda names: ops.Pause(names, "r"), 1)),
    Case("unpause", "n queues, 10 reasons", _paused),
    Case("unpause", "n idle workers", _idle),
    Case("forget", "n queues", _queues(ops.Forget, 0)),
    Case("events", "n events", _events(lambda: ops.Events(0, 1000))),
    Case("journal", "n entries of 64 KiB", _journaled),
    Case("tracked", "n jobs of 64 KiB", _tracked),
    Case("request_forget", "n sub-requests", _request_forget),
    Case("waiting", "deep page", _deep(lambda n: ops.Waiting("q", 9 * n, 1000))),
    Case("metrics", "1000 minutes", _one(ops.Metrics("q", count=1000))),
    Case("stats", "a day", _one(ops.Stats("q"))),
    Case("why", "a waiting job", _one(ops.Why("j1"))),
    Case("throttles", "n throttles", _set_throttles),
    Case("failed_groups", "n groups", _one(ops.FailedGroups(0, 1000))),
]  # fmt: skip


def cost(world: World, case: Case) -> Cost:
    """Measure a case at its largest accepted size; several times, if that takes long."""
    best = measured(world, case, HEAVY.get(case.what, 64 if "1024 KiB" in case.what else MOST), "")
    for _ in range(TURNS - 1):
        if best.ms < MOST_MS / 2:
            break
        best = min(best, measured(world, case, best.size, best.refused), key=lambda one: one.ms)
    return best


def measured(world: World, case: Case, size: int, refused: str) -> Cost:
    """Measure a case once, with as many items or fewer."""
    while True:
        fits = size // 2
        world.clear()
        try:
            command = world.command(case.prepare(world, size))
            world.settle()
            before, began = world.length(), world.server.cpu_us()
            reply = world.caller.connection.exchange([command])[0]
            spent = world.server.cpu_us() - began
            if type(reply) is not list or reply[0] == b"OK":
                return Cost(case, size, spent / 1000, world.length() - before, refused)
            refused = reply[0].decode()
            if refused == "OVER_BUDGET" and int(reply[-1]) <= size:
                fits = max(fits, min(int(reply[-1]), size - 1))
        except Refused as said:
            refused = said.args[0].decode()
        if size == 1:
            return Cost(case, 0, 0.0, 0, refused)
        size = fits


def run(options: Options, only: str = "") -> Report:
    """Measure every case on each requested server."""
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        with pinned(candidate) as server:
            favour(server.pid)
            world = World(server)
            cases = [*_batch_cases(options.quick), *OTHERS]
            found = sorted(
                (cost(world, case) for case in cases if only in f"{case.name}: {case.what}"), key=lambda one: -one.ms
            )
            versions.append(server.version)
            tables.append(_table(server.version, found))
            worst = found[0]
            verdicts.append(
                Verdict(f"{server.version}: worst call, {worst.case.name} ({worst.case.what})", worst.ms, MOST_MS, "ms")
            )
    return Report("worst", "python -m bench worst", " ".join(str(__doc__).split()), tables, verdicts, versions)


def _table(version: str, found: list[Cost]) -> Table:
    table = Table(
        f"Milliseconds of {version} for one call, worst first", ["operation", "with", "n", "ms", "events", "larger n"]
    )
    for one in found:
        table.add(one.case.name, one.case.what, one.size, one.ms, one.events, one.refused)
    return table


def without_case() -> list[str]:
    """The operations of the catalogue that no case calls."""
    called = {case.name.partition(" ")[0].partition(",")[0] for case in [*_batch_cases(False), *OTHERS]}
    return sorted(set(CATALOGUE) - called)
