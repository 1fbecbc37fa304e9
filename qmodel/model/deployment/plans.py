"""How an operation is executed by the shards of a deployment.

`plan` is a generator. It yields calls, each an operation for one shard; who runs it executes them, in any order or at
once, and sends it their replies. What it returns is the reply of the deployment. So the model, a backend in memory and
one on a cluster carry out the same plans, with threads or in an event loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from qmodel.contract.arguments import MOST, names_family
from qmodel.contract.operations import (
    Cancel,
    CompleteAndPop,
    Forget,
    Length,
    Operation,
    Pop,
    Put,
    PutNew,
    Subscribe,
    ThrottleSet,
)
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Bulk, Cleaned, Drained, Page
from qmodel.contract.routing import Layout, Otherwise, shard_tag
from qmodel.model import engine
from qmodel.model.deployment import merging, relay
from qmodel.model.deployment.turns import Turns


class Call(NamedTuple):
    """An operation for one shard."""

    shard: int
    op: Operation


class Extra(list[Call]):
    """Calls of a plan that has something to give already. Who runs the plan does not wait for a shard that is away, and
    gives None for it.
    """


Plan = Generator[list[Call], list[Any], Any]


def destination(layout: Layout, op: Any) -> int | Otherwise | Refusal:
    """Find the shard that executes the whole of an operation; otherwise what happens with it, or a refusal."""
    home = layout.plain_home(op) if type(op) is not CompleteAndPop else None
    if home is not None:  # that shard checks the arguments
        return home
    bad = engine.fault(op)
    if bad is not None:
        return Refusal("BAD_ARGUMENT", (op.spec.name, bad))
    to = layout.route(op)
    if to == "first":
        return 0
    goes_on = type(op) is CompleteAndPop and layout.shards > 1 and op.queue not in layout.single
    return "turn" if goes_on and isinstance(to, int) else to


def begun(layout: Layout, op: Any, turns: Turns) -> Plan | Refusal:
    """Begin to carry out an operation, unless its arguments or its names are refused."""
    to = destination(layout, op)
    if isinstance(to, Refusal):
        return to
    return plan(layout, op, 0 if isinstance(to, int) else turns.next(op))


def carry_out(layout: Layout, op: Any, turns: Turns, execute: Callable[[list[Call]], list[Any]]) -> Any:
    """Carry out a plan with a function that executes calls; give the reply of the deployment."""
    going = begun(layout, op, turns)
    if isinstance(going, Refusal):
        return going
    try:
        calls = next(going)
        while True:
            calls = going.send(execute(calls))
    except StopIteration as end:
        return end.value


_CURSOR = re.compile(r"(0|[1-9]\d{0,3}):(.*)", re.DOTALL)
_LIMITS: Final = ("concurrency", "rate", "capacity", "refill")


def plan(layout: Layout, op: Any, first: int = 0) -> Plan:
    """Carry out an operation with valid arguments. The shards are asked in turn from `first` on."""
    to = layout.route(op)
    if isinstance(to, Refusal):
        return to
    if isinstance(to, int):
        goes_on = type(op) is CompleteAndPop and layout.shards > 1 and op.queue not in layout.single
        return (yield from (_complete_and_pop(layout, to, op, first) if goes_on else _at(to, op)))
    if to == "first":
        return (yield from _at(0, op))
    if to == "turn":
        return (yield from _in_turn(layout, op, first))
    if to == "parts":
        return (yield from _in_parts(layout, op))
    if to == "relay":
        return (yield from _relayed(layout, op))
    if to == "every":
        return (yield from _everywhere(layout, op))
    return (yield from _merged(layout, op))


def _at(shard: int, op: Operation) -> Plan:
    (reply,) = yield [Call(shard, op)]
    return reply


def for_shard(layout: Layout, op: Any, shard: int) -> Any:
    """Give a shard its own form of an operation that all execute: its part of the limits of a throttle, and the name of
    a subscription with its tag, so that the jobs that it makes are at home there.
    """
    changes: dict[str, Any] = {}
    if type(op) is ThrottleSet and not names_family(op.throttle):
        for name in _LIMITS:
            limit = getattr(op, name)
            if limit is not None:
                changes[name] = limit // layout.shards + (shard < limit % layout.shards)
    if "subscription" in type(op).__dataclass_fields__:
        changes["subscription"] = f"{{{shard_tag(shard, layout.shards)}}}{op.subscription}"
    return replace(op, **changes) if changes else op


def _all(layout: Layout, op: Any) -> list[Call]:
    return [Call(shard, for_shard(layout, op, shard)) for shard in range(layout.shards)]


def _refused(replies: list[Any]) -> Refusal | None:
    return next((reply for reply in replies if isinstance(reply, Refusal)), None)


# ---- with dependencies in other shards


def _relayed(layout: Layout, op: Put) -> Plan:
    """Put what stands for the dependencies in other shards, and then the job."""
    job, afar = relay.divided(layout, op)
    for one in afar:
        for shard, put in ((one.home, one.stand_in), (one.there, one.errand)):
            (reply,) = yield [Call(shard, PutNew((put,)))]
            if isinstance(reply, Refusal):
                yield [Call(one.home, Cancel((one.stand_in.jid,)))]
                return reply._replace(facts=tuple(op.jid if fact == put.jid else fact for fact in reply.facts))
    return (yield from plan(layout, job))


# ---- to every shard


def _everywhere(layout: Layout, op: Any) -> Plan:
    """Let the first shard execute it, which may refuse, and then all others."""
    if type(op) is ThrottleSet and not names_family(op.throttle):
        for name in _LIMITS:
            if 0 < (getattr(op, name) or 0) < layout.shards:
                return Refusal("SPLIT_LIMIT", (op.throttle, name, str(layout.shards)))
    if type(op) is Subscribe:
        for queue in (queue for queue in (op.queue, op.dead_queue) if queue in layout.single):
            return Refusal("CROSS_SHARD", (queue, str(layout.home(queue)), op.subscription, "all"))
    if type(op) is Forget and layout.shards > 1:
        for queue in op.queues:
            lengths = yield [Call(shard, Length(queue)) for shard in range(layout.shards)]
            if sum(lengths):
                return Refusal("QUEUE_NOT_EMPTY", (queue, str(sum(lengths))))
    call, *others = _all(layout, op)
    (reply,) = yield [call]
    if isinstance(reply, Refusal) or not others:
        return reply
    replies = yield others
    if refused := _refused(replies):
        return refused
    if op.spec.name == "subscribe":
        return reply + sum(replies)
    return max(reply, *replies) if op.spec.reply == "number" else reply


# ---- in turn


def _order(layout: Layout, first: int) -> Iterator[int]:
    return ((first + by) % layout.shards for by in range(layout.shards))


def _in_turn(layout: Layout, op: Any, first: int) -> Plan:
    if op.spec.name in ("pop", "pop_any"):
        return (yield from _pop(layout, op, first))
    if op.spec.name == "drain":
        return (yield from _drain(layout, op))
    done = 0
    for shard in range(layout.shards):
        (reply,) = yield [Call(shard, replace(op, count=op.count - done))]
        if isinstance(reply, Refusal):
            return reply
        done += reply
        if done >= op.count:
            break
    return done


def _pop(layout: Layout, op: Any, first: int, extra: bool = False) -> Plan:
    """Pop from one shard after the other. Only if no shard has a job, the worker counts as idle in each of them.

    If a shard is away, the jobs that others have given are not kept back; None if there are none and the pop is extra.
    """
    jobs: tuple[Any, ...] = ()
    for waits in (op.wait,) if layout.shards == 1 else (False, True):
        if jobs or (waits and not op.wait):
            break
        for shard in _order(layout, first):
            calls = [Call(shard, replace(op, count=op.count - len(jobs), wait=waits))]
            (reply,) = yield Extra(calls) if jobs or extra else calls
            if reply is None or isinstance(reply, Refusal):
                return jobs or reply
            jobs += reply
            if len(jobs) >= op.count:
                return jobs
    return jobs


def _complete_and_pop(layout: Layout, shard: int, op: CompleteAndPop, first: int) -> Plan:
    """Complete a job and pop in its shard; if that has too few jobs, pop from the others.

    These pops have a request id of their own, because the shard remembers under the first one what it has granted.
    """
    (reply,) = yield [Call(shard, replace(op, wait=False))]
    if isinstance(reply, Refusal) or len(reply.jobs) >= op.count:
        return reply
    request = f"{op.request[:62]}~p" if op.request else ""
    wanted = Pop(op.queue, op.worker, op.count - len(reply.jobs), op.wait and not reply.jobs, request)
    more = yield from _pop(layout, wanted, first, extra=True)
    return reply if more is None or isinstance(more, Refusal) else reply._replace(jobs=reply.jobs + more)


def _drain(layout: Layout, op: Any) -> Plan:
    canceled = left = 0
    for shard in range(layout.shards):
        if canceled < op.count:
            (reply,) = yield [Call(shard, replace(op, count=op.count - canceled))]
            if isinstance(reply, Refusal):
                return reply
            canceled, left = canceled + reply.canceled, left + reply.left
        else:
            (length,) = yield [Call(shard, Length(op.queue))]
            left += length
    return Drained(canceled, left)


# ---- shard after shard, with a cursor


def _in_parts(layout: Layout, op: Any) -> Plan:
    """Do a part in one shard. The cursor is `<shard>:<cursor in the shard>`."""
    found = _CURSOR.fullmatch(op.cursor or "0:")
    if found is None or int(found[1]) >= layout.shards:
        return Refusal("BAD_ARGUMENT", (op.spec.name, "cursor"))
    shard, cursor = int(found[1]), found[2]
    while True:
        (reply,) = yield [Call(shard, replace(op, cursor=cursor))]
        if isinstance(reply, Refusal):
            return reply
        rest = f"{shard + 1}:" if shard + 1 < layout.shards else ""
        after = f"{shard}:{reply.cursor}" if reply.cursor else rest
        empty = not reply[0] if isinstance(reply, Bulk | Cleaned) else not reply.jobs
        if reply.cursor or not empty or not after:
            break
        shard, cursor = shard + 1, ""
    if op.spec.name == "obliterate":
        lengths = yield [Call(other, Length(op.queue)) for other in range(layout.shards) if other != shard]
        reply = reply._replace(passed=reply.passed + sum(lengths))
    return reply._replace(cursor=after)


# ---- merged


def _merged(layout: Layout, op: Any) -> Plan:
    if op.spec.reply == "page":
        return (yield from _page(layout, op))
    if op.spec.name == "tracked":
        return (yield from _tracked(layout, op))
    if op.spec.name in _LISTS:
        return (yield from _list(layout, op))
    if op.spec.name == "multiget":
        jids = [tuple(jid for jid in op.jids if layout.home(jid) == shard) for shard in range(layout.shards)]
        calls = [Call(shard, replace(op, jids=some)) for shard, some in enumerate(jids) if some]
        replies = yield calls
        return _refused(replies) or merging.chosen(op.jids, replies)
    replies = yield _all(layout, op)
    return _refused(replies) or _MERGES[op.spec.name](op, replies)


def _page(layout: Layout, op: Any) -> Plan:
    """List the jobs of one shard after the other; each shard keeps its order."""
    total, jids, skip = 0, (), op.offset
    for shard in range(layout.shards):
        left = op.count - len(jids)
        (reply,) = yield [Call(shard, replace(op, offset=skip, count=max(left, 1)))]
        if isinstance(reply, Refusal):
            return reply
        total += reply.total
        jids += reply.jids[:left]
        skip = max(skip - reply.total, 0)
    return Page(total, jids)


def _tracked(layout: Layout, op: Any) -> Plan:
    """List the tracked jobs of one shard after the other."""
    found, skip, left = [], op.offset, op.count
    for shard in range(layout.shards):
        (reply,) = yield [Call(shard, replace(op, offset=skip, count=left))]
        if isinstance(reply, Refusal):
            return reply
        found.append(reply)
        left -= len(reply.jobs) + len(reply.expired)
        if not left:
            break
        if skip and left == op.count:  # it may have fewer than are to be skipped
            skip -= yield from _count_tracked(shard, op, skip)
        else:
            skip = 0
    return merging.tracked(found)


def _count_tracked(shard: int, op: Any, most: int) -> Generator[list[Call], list[Any], int]:
    count = 0
    while count < most:
        (reply,) = yield [Call(shard, replace(op, offset=count, count=min(MOST, most - count)))]
        size = 0 if isinstance(reply, Refusal) else len(reply.jobs) + len(reply.expired)
        count += size
        if not size:
            break
    return count


def _list(layout: Layout, op: Any) -> Plan:
    """Read the whole lists of all shards, merge them, and give the part that was asked for."""
    lists = []
    for shard in range(layout.shards):
        offset, entries = 0, ()
        while True:
            (reply,) = yield [Call(shard, replace(op, offset=offset, count=MOST))]
            if isinstance(reply, Refusal):
                return reply
            entries += reply
            offset += MOST
            if len(reply) < MOST:
                break
        lists.append(entries)
    return tuple(_LISTS[op.spec.name](lists)[op.offset : op.offset + op.count])


def _most_used(replies: list[Any]) -> list[Any]:
    return sorted(merging.tallies(replies), key=lambda one: (-one.jobs, one.name))


_LISTS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "top_tags": _most_used,
    "failed_groups": lambda replies: sorted(merging.tallies(replies)),
    "queues": merging.queues,
    "workers": merging.workers,
    "throttles": merging.throttles,
    "subscriptions": merging.subscriptions,
}
"""How lists are merged before a part of them is given."""


def _joined(op: Any, replies: list[Any]) -> Any:
    return tuple(one for reply in replies for one in reply)[: op.count]


def _queue(op: Any, replies: list[Any]) -> Any:
    return merging.queues([(one,) for one in replies])[0]


_MERGES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "peek": _joined,
    "recurring_unset": _joined,
    "length": lambda op, replies: sum(replies),
    "catch_up": lambda op, replies: sum(replies),
    "queue": _queue,
    "worker": lambda op, replies: merging.worker(replies),
    "throttle_get": lambda op, replies: merging.throttle(replies),
    "throttles_used": lambda op, replies: merging.used_throttles(op.count, replies),
    "subscription_get": lambda op, replies: merging.subscription(replies),
    "stats": lambda op, replies: merging.stats(replies),
    "newest": lambda op, replies: merging.newest(replies),
    "metrics": lambda op, replies: merging.metrics(replies),
}
"""How the other replies are merged."""
