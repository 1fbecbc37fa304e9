"""What other queues got wrong about looking after a queue, each as a claim about this one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qmodel import engine
from qmodel import operations as ops
from qmodel.conformance import snapshot
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


# ---- pauses


def test_a_timed_pause_does_not_end_the_pause_of_a_person() -> None:
    """M6 of Mosquito: the pause of a rate limiter overwrote an operator's, and the queue went on by itself."""
    store = Store()
    done(store, 1, *put("q", "a"), ops.Pause(("q",)))
    assert done(store, 2, ops.Pause(("q",), "rate", 1000)) == 0
    assert done(store, 2, ops.Queue("q")).pauses == (("by hand", 0), ("rate", 1002))
    assert done(store, 5000, ops.Queue("q")).pauses == (("by hand", 0),)
    assert done(store, 5000, ops.Pop("q", "w")) == ()
    assert done(store, 5000, ops.Unpause(("q",), "by hand")) == 1
    assert [job.jid for job in done(store, 5000, ops.Pop("q", "w"))] == ["a"]


def test_a_timed_pause_has_ended_for_reads_before_anybody_notices() -> None:
    store = Store()
    done(store, 1, *put("q", "a"), ops.Pause(("q",), "rate", 1000))
    seen = [(one.paused, one.next_at) for one in (done(store, at, ops.Queue("q")) for at in (1000, 1001))]
    assert seen == [(True, 1001), (False, 0)]
    assert [job.jid for job in done(store, 1001, ops.Pop("q", "w"))] == ["a"]
    assert store.queues["q"].pauses == {}


def test_the_end_of_a_pause_wakes_the_idle() -> None:
    store = Store()
    done(store, 1, *put("q", "a", "b"), ops.Pause(("q",), "rate", 1000))
    done(store, 2, ops.Pop("q", "u", wait=True), ops.Pop("q", "v", wait=True))
    assert (store.queues["q"].idle, store.queues["q"].wakes) == (2, 0)
    done(store, 1001, ops.Pop("q", "w"))
    assert (store.queues["q"].idle, store.queues["q"].wakes) == (0, 2)


def test_the_reasons_of_a_queue_are_few() -> None:
    store = Store()
    done(store, 1, *(ops.Pause(("q",), f"r{n}", 1000) for n in range(10)), ops.Pause(("q",), "r3"))
    assert engine.step(store, 2, ops.Pause(("q",), "x")) == Refusal("LIMIT_REACHED", ("pauses of queue q", "10"))
    done(store, 1001, ops.Pause(("q",), "x"))
    assert store.queues["q"].pauses == {"r3": 0, "x": 0}


def test_nothing_is_left_of_a_queue_whose_pauses_are_over() -> None:
    store = Store()
    done(store, 1, ops.Pause(("q",)), ops.Pause(("q",), "rate", 5), ops.Pop("q", "w"), ops.Unpause(("q",)))
    assert snapshot.of(store).queues == {}
