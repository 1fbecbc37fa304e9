"""What other queues got wrong about looking after a queue, each as a claim about this one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qmodel import engine
from qmodel import operations as ops
from qmodel.refusals import Refusal
from qmodel.state.store import Store


def done(store: Store, now: int, *operations: ops.Operation) -> Any:
    """Execute operations of which none is refused; give the last reply."""
    reply = None
    for op in operations:
        reply = engine.step(store, now, op)
        assert not isinstance(reply, Refusal), (op, reply)
    return reply


def put(queue: str, *jids: str, **more: Any) -> Iterable[ops.Operation]:
    """Puts of some jobs."""
    return (ops.Put(queue, jid, "k", "", **more) for jid in jids)


# ---- several queues


def test_several_queues_are_taken_from_in_the_order_given() -> None:
    store = Store()
    done(store, 1, *put("r", "r1", "r2", priority=-5), *put("q", "q1"))
    popped = done(store, 1, ops.PopAny(("q", "r"), "w", 2, request="n"))

    assert [job.jid for job in popped] == ["q1", "r1"]
    assert [job.jid for job in done(store, 1, ops.PopAny(("q", "r"), "w", 2, request="n"))] == ["q1", "r1"]
    assert [job.jid for job in done(store, 1, ops.PopAny(("q", "r"), "w", 2))] == ["r2"]


def test_who_finds_nothing_in_several_queues_is_idle_in_each_once() -> None:
    store = Store()
    assert done(store, 1, ops.PopAny(("q", "r", "q"), "w", wait=True)) == ()
    assert {name: queue.idle for name, queue in store.queues.items()} == {"q": 1, "r": 1}


def test_the_work_of_a_pop_from_several_queues_is_bounded() -> None:
    store = Store()
    names = [f"q{n}" for n in range(3)]
    for name in names:
        done(store, 1, *put(name, *(f"{name}-{n}" for n in range(600)), retries=0), ops.Pop(name, "u", 600))
    before = store.seq
    assert done(store, 10**6, ops.PopAny(tuple(names), "w", 1000)) == ()
    assert store.seq - before == 1200  # each of a queue's 600 lost and failed, and no further queue is begun
