"""Turns: the fair keys of a queue take turns.

In a fair queue (the option `fair`), each job that becomes ready gets a turn, a number that takes the place of its
ready time in the order. This is start-time fair queuing (Goyal, Vin and Cheng, 1996), with the first waiting job as the
clock: at each priority, the turn of a job is that of the first waiting job and half a step, or the next turn of its own
key, whichever is later. Its key's next turn is a step later. A step is TURN divided by the job's weight. So a key that
has just come stands behind the first job, and a key with many jobs stands once in each round, however many these are.
The half step lets the clock advance while ever new keys come: without it, each would come before the second job of an
older key.

The order stays total and static: priority, turn, sequence. A job keeps its turn until it is taken. A job that is
canceled, moved or given another priority gives its turn back, to the later jobs of its key. A job that comes back
(retried, released, due, unblocked, let through) gets a new turn, behind those of its key that wait.

The next turns of a priority are kept while a job with a turn waits there. A next turn up to that of the first job is
equal to none; each key that is added removes two of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qmodel.model.state import options
from qmodel.model.state.records import Job, Queue, Turns

TURN = 1000
"""What lies between two turns of a key with the weight 1. Turns begin as ready times, so it is a second of these."""

LAST = 99_999_999_999_999
"""The last turn: a member of the order in Lua has no room for a later one."""

PASSED = 2
"""How many keys that the first job has passed are removed when a key is added."""

First = Callable[[Queue, int], int | None]
"""Gives the number that orders the first ready job of a priority, if there is one."""


def fair_key(job: Job) -> str:
    """The key that a job takes turns by: its own, or else its first throttle; empty if it has neither."""
    key = options.get(job, "fair_key")
    return key if key is not None else (options.get(job, "throttles") or "").partition(" ")[0]


def cost(job: Job) -> int:
    """What a job adds to the next turn of its key."""
    return TURN // int(options.get(job, "fair_weight") or 1)


def _turn(job: Job, first: int | None, following: int) -> int:
    """The turn of a job, when this number orders the first one of its priority, and this is its key's next turn."""
    return min(max((job.ready_at if first is None else first) + cost(job) // 2, following), LAST)


def take(queue: Queue, job: Job, first: int | None) -> None:
    """Give a job that becomes ready its turn; `first` is the number that orders the first one of its priority."""
    turns = queue.turns.setdefault(job.priority, Turns())
    key = fair_key(job)
    if key not in turns.next and first is not None:
        for _, _, passed in turns.order.until(first, PASSED):
            _set(turns, passed, None)
    turn = _turn(job, first, turns.next.get(key, 0))
    options.set(job, "turn", turn)
    turns.jobs += 1
    _set(turns, key, min(turn + cost(job), LAST))


def _set(turns: Turns, key: str, to: int | None) -> None:
    """Set the next turn of a key; None removes it."""
    if key in turns.next:
        turns.order.remove((turns.next.pop(key), 0, key))
    if to is not None:
        turns.next[key] = to
        turns.order.add((to, 0, key))


def leave(queue: Queue, job: Job) -> None:
    """Note that a job with a turn is no longer in the order; without any, the next turns are forgotten."""
    if options.get(job, "turn") is None:
        return
    turns = queue.turns[job.priority]
    turns.jobs -= 1
    if turns.jobs == 0:
        del queue.turns[job.priority]


def give_back(queue: Queue, job: Job) -> None:
    """Give back the turn of a job that leaves the order without being taken."""
    if options.get(job, "turn") is None:
        return
    leave(queue, job)
    turns, key = queue.turns.get(job.priority), fair_key(job)
    if turns is not None and key in turns.next:
        _set(turns, key, max(turns.next[key] - cost(job), 0))
    options.drop(job, "turn")


def rounds(job: Job, first: int | None) -> int:
    """How many turns of a key with the weight 1 come before the turn of a waiting job."""
    return 0 if first is None else max(int(options.get(job, "turn") or 0) - first, 0) // TURN


def pretend(queue: Queue, found: Iterable[Job], first: First) -> None:
    """Give jobs, which are drafts for a read, the turns that they would get if they became ready in this order."""
    firsts: dict[int, int] = {}
    following: dict[tuple[int, str], int] = {}
    for job in found:
        if job.ready_at > 0:
            key, turns = (job.priority, fair_key(job)), queue.turns.get(job.priority)
            known = turns.next.get(key[1], 0) if turns is not None else 0
            clock = firsts.get(job.priority, first(queue, job.priority))
            turn = _turn(job, clock, following.get(key, known))
            firsts[job.priority] = turn if clock is None else clock
            following[key] = min(turn + cost(job), LAST)
            job.options = {**job.options, "turn": str(turn)}
