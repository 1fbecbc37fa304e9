"""Scenes with calls of their own: what is kept was lost, spoiled or set back, or writes fail in certain ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from qmodel.conformance.histories.script import START
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from tools.mutation.faults import (
    EPOCH,
    LOOK,
    NEXT,
    PREFIX,
    Call,
    Denied,
    Qless,
    Scene,
    call,
    doctor,
    joined,
    loss,
)

LAPSED: Final = 70_000
"""So much later a lease has lapsed, by the usual options."""

TAGS: Final = 1000
"""The most tags of a job, each of which has a list."""

LISTS: Final = 2
"""The other lists that a first job of a queue enters."""

ALONE: Final = (
    "counters", "config", "intent", "events", "journal", "journaled", "journal-heavy", "workers-passed", "requests",
    "uniques", "subscriptions", "cascade", "queues", "workers", "completed", "failed", "failures", "tags", "tracked",
    "s", "s-minutes", "requests-order", "recur-crons", "throttles", "throttles-used", "unique-ends", "messages",
    "keeping", "dropped", "families", "cooling",
)  # fmt: skip
"""The keys of which a namespace has one; none of them is a list."""

OF_QUEUE: Final = (
    "-state", "-pauses", "-wake", "-recur", "-gates", "-work", "-scheduled", "-depends", "-throttled", "-locks",
    "-expires", "-ends",
)  # fmt: skip
"""What the keys of a queue end in."""

OF_THROTTLE: Final = ("-state", "-claims", "-queues", "-held")
"""What the keys of a throttle end in."""

OLD: Final = "1\t0\t0\t1\t0\t0\t0\t0"
"""The counters after the first event."""

PUT: Final = ops.Put("q", "a", "k", "d")
OTHER: Final = ops.Put("q", "b", "k", "d")


def damaged() -> Iterator[Scene]:
    """Give all of these scenes."""
    yield from _lost_records()
    yield from _lost_requests()
    yield from _spoiled()
    yield from _set_back()
    yield from _lost_streams()
    yield from _failing()
    yield from _undone()
    yield _several_after_another()
    yield _in_qless()


def _scene(name: str, *calls: Call) -> Scene:
    return Scene(f"damaged {name}", {}, list(calls), len(calls))


def _calls(*given: Any) -> list[Call]:
    return [call(START, op) for op in given]


def _denied(op: Any, denied: Denied, now: int = START) -> Call:
    return call(now, op, denied)


def _lost_records() -> Iterator[Scene]:
    """Lose records of jobs that are due."""
    puts = [PUT, replace(OTHER, delay_ms=5), ops.Put("q", "c", "k", "d", ttl_ms=5)]
    more = [ops.Pop("q", "w"), puts[2], *(ops.Put("q", jid, "k", "d") for jid in ("d", "e"))]
    begun = _calls(*puts[:2], *more, ops.Put("q", "f", "k", "d", delay_ms=6))
    lapsed = call(START + LAPSED, ops.Pop("q", "v", 5))
    for lost in (("a",), ("b",), ("c",), ("d",), ("f",), ("a", "b", "e")):
        gone = [loss(START, f"j:{jid}") for jid in lost]
        yield _scene(f"without {' '.join(lost)}", *begun, *gone, lapsed, *doctor(START), lapsed)
    ready = _calls(PUT, OTHER, ops.Put("q", "c", "k", "d"), ops.ConfigSet("aging", 1000))
    yield _scene("without one that ages", *ready, loss(START, "j:c"), *_calls(ops.Pop("q", "w")), *doctor(START))


def _lost_requests() -> Iterator[Scene]:
    """Lose the request of a sub-request, and the order of the remembered requests."""
    begun = _calls(
        PUT, ops.Pop("q", "w"), ops.Complete("a", 2), ops.RequestPut("r", "q", 1, (OTHER,)), ops.Pop("q", "w")
    )
    yield _scene("without its request", *begun, loss(START, "rq:r"), *_calls(ops.Complete("b", 7)), *doctor(START))
    asked = call(START, ops.Priority("a", 5, request="r"))  # it fails after it has taken note of its request
    yield _scene("order of requests", call(START, PUT), loss(START, "requests-order", "x"), asked, call(START, NEXT))


def _spoiled() -> Iterator[Scene]:
    """Spoil a key again and again, all keys of a namespace, and all of a queue and a throttle."""
    again = [loss(START, "queues", "x"), *doctor(START)]
    yield Scene("damaged again", {}, [call(START, PUT), *again, *again, *again, call(START, NEXT)])
    yield Scene("damaged all", {(PREFIX + name).encode(): [b"x"] for name in ALONE}, [*doctor(START), *doctor(START)])
    names = [f"q:q{end}" for end in OF_QUEUE] + [f"th:t{end}" for end in OF_THROTTLE]
    listed = _calls(replace(PUT, delay_ms=5), ops.ThrottleSet("t", 1))
    yield _scene("all of a queue", *listed, *(loss(START, name, "x") for name in names), *doctor(START), *doctor(START))
    fair = _calls(ops.ConfigSet("fair-q", 1), replace(PUT, fair_key="f"))  # it writes the numbers 1 and -1
    first = [call(0, OTHER), call(0, ops.Priority("b", 2))]
    yield _scene("and not at all", *doctor(START), *fair, *first, *doctor(START))


def _set_back() -> Iterator[Scene]:
    """Set the counters back, or the number of the last entry of the journal."""
    back = [loss(START, "counters"), loss(START, "counters", OLD)]
    yield Scene(
        "damaged counters of another epoch",
        {},
        [*_calls(PUT, ops.BeginEpoch(EPOCH), OTHER), *back, *doctor(START), call(START, NEXT)],
    )
    begun = _calls(PUT, ops.Put("q", "c", "k", "d"), ops.Put("q", "d", "k", "d"))
    after = [*doctor(START), *_calls(NEXT, LOOK)]
    yield _scene("counters and no end of the stream", *begun, *back, _denied(OTHER, "XREVRANGE"), *after)
    pending = [_denied(ops.Put("z", "z", "k", "d"), "ZADD"), back[0], loss(START, "counters", "!" + OLD)]
    told = _denied(ops.ConfigSet("heartbeat", 30), "ZADD")
    yield _scene("counters with a mark", *begun, *pending, told, *after)
    recorded = _calls(ops.BeginEpoch(EPOCH), ops.ConfigSet("journal", 1), *[ops.ConfigSet("heartbeat", 30)] * 17)
    for last in ("2", "15"):
        lost = [loss(START, "journaled"), loss(START, "journaled", last)]
        yield _scene(f"journal after {last}", *recorded, *lost, *_calls(PUT, OTHER, ops.Journal()))


def _lost_streams() -> Iterator[Scene]:
    """Lose the events, which a reader has read."""
    events = _calls(PUT, OTHER, ops.Events(), ops.Events(1, epoch=0))
    lost, few = loss(START, "events"), call(START, ops.ConfigSet("max-events", 2))
    yield _scene("without events", *events, lost, events[-1], *doctor(START), events[-1])
    begun = _calls(ops.BeginEpoch(EPOCH), *(ops.Events(after, epoch=epoch) for after in (1, 3) for epoch in (0, EPOCH)))
    yield _scene("without events of another epoch", few, *events, *_calls(ops.Put("q", "c", "k", "d")), lost, *begun)


def _failing() -> Iterator[Scene]:
    """Let a thousand writes fail, those that were kept, and deletions."""
    tags = tuple(f"t{n}" for n in range(TAGS))
    for most in (TAGS, MOST - LISTS):
        many, after = _denied(replace(PUT, tags=tags[:most]), "ZADD"), _denied(NEXT, "ZADD")
        yield _scene(f"by {most} failures", many, after, *doctor(START), call(START, NEXT))
    mended = [_denied(PUT, "ZADD"), *doctor(START)[:1], doctor(START)[1]._replace(denied="ZADD")]
    yield _scene("and mended in vain", *mended, *doctor(START), *_calls(NEXT, LOOK))
    failed = _calls(PUT, ops.Pop("q", "w"), ops.Fail("a", 2, "g", "m"))
    kept = [*failed[:2], failed[2]._replace(denied="HINCRBY"), _denied(NEXT, "MSET"), *_calls(NEXT, ops.Stats("q"))]
    yield _scene("and nothing can be written", *kept)
    recurs = _calls(ops.Recur("q", "c", "k", "", 1000), ops.Obliterate("q"))
    yield _scene("deletions", recurs[0], recurs[1]._replace(denied="DEL 2"), *doctor(START), *_calls(NEXT, LOOK))


def _undone() -> Iterator[Scene]:
    """Let the texts of a step fail after writes that were early, because the step has read their keys."""
    claimed = _calls(
        replace(PUT, unique="u"), ops.Pop("q", "w"), replace(OTHER, unique="u", unique_mode="again"),
        ops.Cancel(("a", "b")), ops.UniqueGet("u"),
    )  # fmt: skip
    yield _scene("key of two jobs", *claimed[:3], claimed[3]._replace(denied="MSET"), claimed[4], *claimed[3:])
    ended = _calls(replace(PUT, keep_complete_ms=10), ops.Pop("q", "w"), ops.Complete("a", 2), OTHER)
    revoked = _calls(ops.Pop("q", "w"), ops.Revoke(("b",)), ops.ConfigSet("jobs-history-count", 5))
    end = call(START + LAPSED // 2, ops.Complete("b", 5))
    look = call(START, ops.Completed())
    yield _scene("retention", *ended, *revoked, end._replace(denied="MSET"), look, end, look)
    recurs = _calls(ops.Recur("q", "c", "k", "", 1000, retries=0, overlap="skip"))
    pops = [call(START + after, ops.Pop("q", "w", 5)) for after in (2000, 2000 + LAPSED)]
    look = call(START + LAPSED, ops.RecurGet("c"))
    yield _scene("run", *recurs, pops[0], pops[1]._replace(denied="MSET"), look, pops[1], look)


def _several_after_another() -> Scene:
    """Let another server answer a call of a row, and then several jobs be put in the call that asks it again."""
    puts = _calls(*(ops.Put("q", f"j{i}", "k", "d") for i in range(8)))
    pops = _calls(*(ops.Pop("q", "w", request=f"{i}") for i in range(5)))
    more = _calls(*(ops.Put("q", f"m{i}", "k", "d") for i in range(2)))
    scene = [*puts, *pops[:3], pops[3]._replace(elsewhere=True), joined([*more, *pops[3:]])]
    return Scene("elsewhere and several", {}, scene, len(scene))


def _in_qless() -> Scene:
    """Let a client of qless put a job: it brings its moment, which is real, so that an epoch begins."""
    qless: Any = Qless  # nothing but its spec is asked for
    words = ["put", "w", "q", "a", "k", "{}", "0"]
    put = Call(Step(START, qless), [words[0], f"{START / 1000}", *words[1:]])
    return _scene("by nothing in qless", put, *_calls(LOOK, ops.Events()))
