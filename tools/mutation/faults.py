"""Scenes in which commands fail, keys are wrong, or a server begins epochs: what no history shows.

A scene is a few calls on the keys before some recorded step. After a fault a call writes, which repairs what is left,
or `qmodel doctor` examines and mends first. A command is denied

- once, the n-th write of a step, or with all later ones: nothing is left half done, unless all of them fail;
- by its name, as long as several calls: what has failed is kept, and is in the way of calls that touch its keys.

Steps of the first histories are tried, one step for each way through `state/writes.lua`, and calls of a short row of
plain jobs, in which the library does not begin anew. Between two calls of a row another server changes the keys, as
after a failover and back, or a key is lost: what the library knows of them no longer holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import cycle, pairwise, product
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from qmodel.conformance.histories.script import START
from qmodel.conformance.histories.wire_calls import CALLS, SERVER_CLOCK
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.arguments import TOKEN_EPOCH
from qmodel.wire import codec

Denied = int | str
"""Which write of a call fails, from 1; if it is negative, all later ones too. Or the name of a command that fails."""

NONE_FAILS: Final = 1 << 30
"""For a call of which no write fails, and which may fail by itself."""

MOST_DENIED: Final = 12
"""Of so many writes of a step each fails in turn."""

SIZES: Final = (2, 3, 5, 13, 1, 8)
"""How many operations a call of several has."""

ROWS: Final = ("a_short_row", "a_short_row_with_a_journal", "a_bare_row")
"""The directed histories in which each step fails while the library keeps what it knows."""

TOGETHER: Final = (*ROWS, "calls_next_to_each_other", "calls_next_to_each_other_with_a_journal")
"""The directed histories that are recorded with several operations in a call, beside rows of plain calls."""

AGAIN: Final = 8
"""So many of the last steps of a history are done again on keys of which one is wrong."""

BEHIND: Final = 12
"""So many steps the counters are older than the other keys, after a file of the server was damaged."""

BARE_ROW: Final = "a_bare_row"
"""The row whose calls are also misspelt."""

WORDS: Final = (
    ("wait", "1"), ("wait", "0"), ("wait", "x"), ("wait",), ("x",), ("x", "1"), ("wait", "1", "x"), ("count", "1"),
    ("count", "2"), ("wait", "1", "count", "1"), ("wait", "1", "wait", "0"), ("result", "r"), ("next", "q"),
    ("data", "d"), ("priority", "1"), ("priority", "1", "priority", "2"), ("tags", "t"), ("throttles", "t"),
    ("jobs", "4"),
)  # fmt: skip
"""What stands behind the arguments of a call that is misspelt."""

ELSEWHERE: Final = (
    ops.Put("q", "elsewhere", "k", "d"),
    ops.Pop("q", "v"),
    ops.Pause(("q",)),
    ops.ConfigSet("heartbeat", 30),
    ops.ConfigSet("journal", 1),
    ops.ThrottleSet("queue/q", 1),
    ops.Deregister(("w", "0")),
)
"""What another server executes between two calls of a row."""

LOSSES: Final = 3
"""Before every third call of a row each key is lost in turn."""

IN_THE_OTHER: Final = (ops.ConfigSet("heartbeat", 30), ops.Put("r", "one", "k", ""), ops.Track("one"))
"""How the other of two namespaces differs, whose calls take turns."""

AFTER: Final = 4
"""So many calls of the row come after it."""

LAPSED: Final = 70_000
"""So much later a lease has lapsed, by the usual options."""

TAGS: Final = 1000
"""The most tags of a job, each of which has a list."""

ALONE: Final = (
    "counters", "config", "intent", "events", "journal", "journaled", "journal-heavy", "workers-passed", "requests",
    "uniques", "subscriptions", "cascade", "queues", "workers", "completed", "failed", "failures", "tags", "tracked",
    "s", "s-minutes", "requests-order", "recur-crons", "throttles", "throttles-used", "unique-ends", "messages",
    "keeping", "dropped", "families", "cooling",
)  # fmt: skip
"""The keys of which a namespace has one; none of them is a list."""

OLD: Final = "1\t0\t0\t1\t0\t0\t0\t0"
"""The counters after the first event."""

RUN_ID: Final = b"8f3a96c20b" * 4
"""The id of the server's process, from which the digits of its epochs are made."""

EPOCH: Final = int(SERVER_CLOCK) * 1_000_000 + int(RUN_ID[:10], 16) % 1_000_000
"""The first epoch that this server begins."""

PREFIX: Final = "ql:"
"""The namespace of all calls but those of `in_turns`."""

NEXT: Final = ops.Deregister(("nobody",))
"""A call that writes, and changes nothing: it repairs what the step before it has left."""

LOOK: Final = ops.Queues()
"""A call that only reads."""

PLAIN: Final = ops.Put("q", "own", "k", "d")
"""A call after which the library knows what it has read."""


class Together:
    """Stands for the operations of a call of several."""

    spec = SimpleNamespace(name=CALLS, reads=False, reply="")


class Examine:
    """Stands for what `qmodel doctor` calls to find what is wrong with keys."""

    spec = SimpleNamespace(name="examine", reads=True, reply="")


class Mend:
    """Stands for what it calls to mend that."""

    spec = SimpleNamespace(name="mend", reads=False, reply="")


class Lost:
    """Stands for the loss of a key, or for one of another type, by a hand or by a server that is short of memory."""

    spec = SimpleNamespace(name="lost", reads=False, reply="")


class Call(NamedTuple):
    """One call of a scene."""

    step: Step
    args: list[str]
    denied: Denied = NONE_FAILS
    units: int | None = None
    """The budget of the operation, if it is not the usual one."""
    elsewhere: bool = False
    """Whether the right library executes it, in another server's memory: this one keeps what it knew before."""
    prefix: str = PREFIX
    """The namespace of the call."""


class Scene(NamedTuple):
    """Calls on some keys; the library begins anew before every `length` of them."""

    name: str
    keys: dict[bytes, Any]
    calls: list[Call]
    length: int = 4


class Written(NamedTuple):
    """A recorded step, and which commands it writes with."""

    history: str
    at: int
    call: Call
    before: dict[bytes, Any]
    after: dict[bytes, Any]
    writes: Counter[str]


def call(now: int, op: Any, denied: Denied = NONE_FAILS) -> Call:
    """Give the call of an operation."""
    return Call(Step(now, op), codec.encode(op, now), denied)


def doctor(now: int) -> list[Call]:
    """Give the calls of `qmodel doctor`."""
    found: list[Any] = [Examine, Mend]  # nothing but their specs is asked for
    return [Call(Step(now, one), []) for one in found]


def failing(steps: Sequence[Written]) -> Iterator[Scene]:
    """Let writes of steps fail, each step by itself."""
    for one in steps:
        now = one.call.step.now
        for nth in denials(one.writes.total()):
            calls = [one.call._replace(denied=nth), *(doctor(now) if nth % 2 == 0 else ()), call(now, NEXT)]
            yield Scene(f"denied {one.history} {one.at} {nth}", one.before, calls)


def failing_by_name(steps: Sequence[Written]) -> Iterator[Scene]:
    """Let commands of steps fail for as long as several calls."""
    for one in steps:
        for word in sorted(one.writes.keys() - {"MSET"}):
            yield Scene(f"denied {one.history} {one.at} {word}", one.before, _kept(one.call, word))


def _kept(one: Call, word: str) -> list[Call]:
    now, denied = one.step.now, one._replace(denied=word)
    return [denied, denied, call(now, LOOK, word), call(now, NEXT, word), *doctor(now), call(now, NEXT), one]


def failing_in_row(row: Sequence[Written]) -> Iterator[Scene]:
    """Let writes of the calls of a row fail, each after the calls before it."""
    calls = [one.call for one in row]
    of_kinds = _late(calls) if row[0].history == BARE_ROW else range(len(calls))
    for at, one in ((at, row[at]) for at in of_kinds):
        now = one.call.step.now
        failed: dict[Denied, list[Call]] = {
            nth: [calls[at]._replace(denied=nth), *(doctor(now) if nth % 2 == 0 else ()), *calls[at : at + 2]]
            for nth in denials(one.writes.total())
        }
        kept: dict[Denied, list[Call]] = {word: _kept(one.call, word) for word in sorted(one.writes.keys() - {"MSET"})}
        for denied, after in [*failed.items(), *kept.items()]:
            scene = [*calls[:at], *after, call(now, NEXT)]
            yield Scene(f"denied {one.history} {at} {denied} in a row", row[0].before, scene, len(scene))


def wrong(steps: Sequence[Written]) -> Iterator[Scene]:
    """Let keys be missing, of another type, or older than the others; the last calls are done again on these."""
    name, now, keys = steps[-1].history, steps[-1].call.step.now, steps[-1].after
    again = list({one.call.step.op.spec.name: one.call for one in steps}.values())[-AGAIN:]
    old = {key: value for key, value in steps[-BEHIND].before.items() if key.endswith(b"counters")}
    for nth, bad in enumerate((*spoiled(keys), {**keys, **old})):
        yield Scene(f"spoiled {name} {nth}", bad, [*doctor(now), call(now, NEXT)])
        yield Scene(
            f"spoiled {name} {nth} again", bad, [*again, *doctor(now), *again[:2], call(now, NEXT)], 2 + nth % 3
        )


def live(row: Sequence[Written]) -> Iterator[Scene]:
    """Let calls take the moment of the server, which begins an epoch by itself when it cannot know the last step."""
    name, keys, calls = row[0].history, row[0].before, [one.call for one in row]
    now = [_live(one) for one in calls]
    later = call(calls[0].step.now, ops.BeginEpoch(EPOCH + 7_000_000))
    yield Scene(f"live {name}", keys, now, len(now))
    yield Scene(f"live {name} anew", keys, [*now, call(0, ops.Journal())], 2)
    yield Scene(f"live {name} later", keys, [*calls[:4], *now[4:9], *calls[9:12], *now[12:]], len(now))
    yield Scene(f"live {name} another", keys, [*now[:3], later, *now[3:]], 5)
    faulty: list[Denied] = [*denials(9), "XADD", "ZADD", "INFO", "INCRBY", "RPUSH"]
    chunks = (now[at:end] for at, end in pairwise((0, 4, 7, 9, len(now))) if now[0].step.op.spec.name != CALLS)
    yield Scene(f"live {name} together", keys, [_together(chunk) for chunk in chunks], len(now))
    for denied in faulty:
        scene = [now[0]._replace(denied=denied), *doctor(0), now[1], now[0], call(0, NEXT)]
        yield Scene(f"live {name} {denied}", keys, scene, len(scene))


def changed_elsewhere(row: Sequence[Written]) -> Iterator[Scene]:
    """Let another server execute a call before each call of a row, which goes on for a few calls."""
    calls = [one.call for one in row]
    for at in range(1, len(calls)):
        now = calls[at].step.now
        others = [calls[at], *(call(now, op) for op in ELSEWHERE)]
        for nth, other in enumerate(others):
            before = [*calls[:at], other._replace(denied=NONE_FAILS, elsewhere=True)]
            scene = [*before, *calls[at : at + AFTER]]
            yield Scene(f"elsewhere {row[0].history} {at} {nth}", row[0].before, scene, len(scene))
            if nth == 0 and at % LOSSES == 0:
                look, again = call(now, LOOK), others[1]._replace(elsewhere=True)
                scene = [*before, look, *calls[at : at + AFTER], call(now, PLAIN), again, look]
                yield Scene(f"elsewhere {row[0].history} {at} and a look", row[0].before, scene, len(scene))
    for at in range(2, len(calls), LOSSES):
        now = calls[at].step.now
        for key, as_ in product(sorted(row[at].before), ((), ("x",))):
            gone = _lost(now, key.decode().removeprefix(PREFIX), *as_)
            scene = [*calls[:at], gone, *calls[at : at + AFTER], *doctor(now), *calls[at : at + 1]]
            name = f"lost {row[0].history} {at} {key.decode()} {''.join(as_)}"
            yield Scene(name, row[0].before, scene, len(scene))


def in_turns(row: Sequence[Written]) -> Iterator[Scene]:
    """Let the calls of a row in two namespaces take turns; what the library keeps of one is not of the other."""
    calls, now = [one.call for one in row], row[0].call.step.now
    other = [*(call(now, op) for op in IN_THE_OTHER), *(_later(one, len(IN_THE_OTHER)) for one in calls)]
    there = [one._replace(prefix="other:") for one in other]
    for size in (1, 2, 5):
        starts = range(0, len(there), size)
        scene = [one for at in starts for one in (*calls[at : at + size], *there[at : at + size])]
        yield Scene(f"in turns of {size} {row[0].history}", row[0].before, scene, len(scene))


def damaged() -> Iterator[Scene]:
    """Lose records of jobs that are due, spoil a key again, set the counters back, and let a thousand writes fail."""
    now, tags = START, tuple(f"t{n}" for n in range(TAGS))
    puts = [ops.Put("q", "a", "k", "d"), ops.Put("q", "b", "k", "d", delay_ms=5), ops.Put("q", "c", "k", "d", ttl_ms=5)]
    more = [ops.Pop("q", "w"), puts[2], *(ops.Put("q", jid, "k", "d") for jid in ("d", "e"))]
    more.append(ops.Put("q", "f", "k", "d", delay_ms=6))
    lapsed = call(now + LAPSED, ops.Pop("q", "v", 5))
    begun = [call(now, op) for op in (*puts[:2], *more)]
    for lost in (("a",), ("b",), ("c",), ("d",), ("f",), ("a", "b", "e")):
        gone = [_lost(now, f"j:{jid}") for jid in lost]
        scene = [*begun, *gone, lapsed, *doctor(now), lapsed]
        yield Scene(f"damaged without {' '.join(lost)}", {}, scene, len(scene))
    again = [_lost(now, "queues", "x"), *doctor(now)]
    yield Scene("damaged again", {}, [call(now, puts[0]), *again, *again, *again, call(now, NEXT)])
    yield Scene("damaged all", {(PREFIX + name).encode(): [b"x"] for name in ALONE}, [*doctor(now), *doctor(now)])
    back = [_lost(now, "counters"), _lost(now, "counters", OLD)]
    begun = [call(now, puts[0]), call(now, ops.BeginEpoch(EPOCH)), call(now, puts[1])]
    yield Scene("damaged counters of another epoch", {}, [*begun, *back, *doctor(now), call(now, NEXT)])
    many, after = call(now, replace(puts[0], tags=tags), "ZADD"), call(now, NEXT, "ZADD")
    yield Scene("damaged by a thousand failures", {}, [many, after, *doctor(now), call(now, NEXT)])
    yield _without_one_that_ages(now)
    yield _without_its_request(now)
    yield _several_after_another()


def _without_one_that_ages(now: int) -> Scene:
    """Lose the record of a ready job before a pop moves it to its place by age."""
    calls = [call(now, ops.Put("q", jid, "k", "d")) for jid in ("a", "b", "c")]
    calls += [call(now, ops.ConfigSet("aging", 1000)), _lost(now, "j:c"), call(now, ops.Pop("q", "w")), *doctor(now)]
    return Scene("damaged without one that ages", {}, calls, len(calls))


def _without_its_request(now: int) -> Scene:
    """Lose the request of a sub-request, which is completed then as if it were plain; jobs were completed before."""
    calls = [call(now, ops.Put("q", "a", "k", "d")), call(now, ops.Pop("q", "w")), call(now, ops.Complete("a", 2))]
    calls += [call(now, ops.RequestPut("r", "q", 1, (ops.Put("q", "b", "k", "d"),))), call(now, ops.Pop("q", "w"))]
    calls += [_lost(now, "rq:r"), call(now, ops.Complete("b", 7)), *doctor(now)]
    return Scene("damaged without its request", {}, calls, len(calls))


def _several_after_another() -> Scene:
    """Let another server answer a call of a row, and then several jobs be put in the call that asks it again."""
    puts = [call(START, ops.Put("q", f"j{i}", "k", "d")) for i in range(8)]
    pops = [call(START, ops.Pop("q", "w", request=f"{i}")) for i in range(5)]
    more = [call(START, ops.Put("q", f"m{i}", "k", "d")) for i in range(2)]
    scene = [*puts, *pops[:3], pops[3]._replace(elsewhere=True), _together([*more, *pops[3:]])]
    return Scene("elsewhere and several", {}, scene, len(scene))


def _lost(now: int, key: str, *as_: str) -> Call:
    lost: Any = Lost  # nothing but its spec is asked for
    return Call(Step(now, lost), [PREFIX + key, *as_], elsewhere=True)


def misspelt(row: Sequence[Written]) -> Iterator[Scene]:
    """Misspell a late call of each operation of a row, alone and between two others of its kind in one call."""
    calls = [one.call for one in row]
    for at in _late(calls):
        for nth, args in enumerate(_other_words(calls[at].args)):
            other, name = calls[at]._replace(args=args), f"misspelt {at} {nth}"
            scene = [*calls[:at], other, calls[at]]
            yield Scene(name, row[0].before, scene, len(scene))
            together = _together([calls[at - 1], other, calls[at + 1]])
            yield Scene(f"{name} together", row[at - 1].before, [together, calls[at]])


def _late(calls: Sequence[Call]) -> list[int]:
    """Choose a call of each operation, from the midst of a row: there it is bare, if any is."""
    places: dict[str, list[int]] = {}
    for at, one in enumerate(calls):
        places.setdefault(one.step.op.spec.name, []).append(at)
    return [of[len(of) // 2] for of in places.values()]


def _other_words(args: list[str]) -> Iterator[list[str]]:
    for at in range(len(args)):
        yield [*args[:at], *args[at + 1 :]]
        for other in ("", "x", "7"):
            yield [*args[:at], other, *args[at + 1 :]]
    yield from ([*args, *words] for words in WORDS)


def _live(one: Call) -> Call:
    """Give a call at the moment of the server; its tokens are those of the epoch that begins before the first one."""
    if one.step.op.spec.name == CALLS:
        return one
    op = _later(one, EPOCH * TOKEN_EPOCH + 1).step.op
    return Call(Step(0, op), ["", *codec.encode(op, 0)[1:]])


def _later(one: Call, by: int) -> Call:
    """Give a call whose token, if it has one, is that of a later lease."""
    op: Any = one.step.op
    return call(one.step.now, replace(op, token=op.token + by)) if hasattr(op, "token") else one


def _together(calls: Sequence[Call]) -> Call:
    together: Any = Together  # nothing but its spec is asked for
    words = [word for one in calls for word in (one.step.op.spec.name, str(len(one.args)), *one.args)]
    return Call(Step(0, together), words)


def gathered(steps: Sequence[Step], sizes: Sequence[int] = SIZES) -> Iterator[Call]:
    """Give the steps of a history as calls: reads alone, and others up to so many at a time as `sizes` says in turn."""
    together: Any = Together  # nothing but its spec is asked for
    turns, words, count = cycle(sizes), list[str](), 0
    size = next(turns)
    for step in steps:
        with suppress(codec.Unencodable):
            args = codec.encode(step.op, step.now)
            if not step.op.spec.reads:
                words, count = [*words, step.op.spec.name, str(len(args)), *args], count + 1
            if words and (step.op.spec.reads or count == size):
                yield Call(Step(step.now, together), words, 0)
                words, count, size = [], 0, next(turns)
            if step.op.spec.reads:
                yield Call(step, args, 0)
    if words:
        yield Call(Step(steps[-1].now, together), words, 0)


def spoiled(keys: dict[bytes, Any]) -> Iterator[dict[bytes, Any]]:
    """Give keys without each one in turn, with a value of another type there, and with a text that says nothing."""
    for key in sorted(keys):
        yield {other: value for other, value in keys.items() if other != key}
        yield {**keys, key: [b"x"] if type(keys[key]) is bytes else b"x"}
        if type(keys[key]) is bytes:
            yield {**keys, key: b"x"}


def denials(writes: int) -> Iterator[int]:
    """List what fails in a step with so many writes: each write alone, and each with those after it."""
    for nth in range(1, min(writes, MOST_DENIED) + 1):
        yield nth
        if nth < writes:
            yield -nth


def denying(denied: Denied) -> Callable[[str, bool], str | None]:
    """Let what is denied fail in one call."""
    left = abs(denied) if isinstance(denied, int) else 0

    def fails(name: str, writes: bool) -> str | None:
        nonlocal left
        if isinstance(denied, str):
            return f"NOPERM {name} is denied" if name == denied else None
        left -= writes
        return f"NOPERM {name} is denied" if writes and (left == 0 or (denied < 0 and left < 0)) else None

    return fails


_PLACE: Final = re.compile(r" script: .*|(user_function):\d+")
"""A place in the library, which an error of Lua names."""


def said(error: Exception) -> str:
    """Give an error without the number of its line, which a mutant may move; but an error has a place or has none."""
    return _PLACE.sub(r"\1", str(error))
