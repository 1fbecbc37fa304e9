"""Histories with a purpose, of throttles: the gates at which jobs wait, whom they let go on, and who is woken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops


def woken_by_throttles(s: Script) -> None:
    """Whoever sleeps is woken when a place becomes free, in the queue's own throttle or in one that a job names."""
    s.do(ops.ThrottleSet("queue/q", 1))
    s.do(ops.ThrottleSet("x", 1))
    s.put("a", "b")
    s.put("c", "d", queue="r", throttles=("x",))
    for queue in "qr":
        (held,) = s.pop(queue=queue)
        s.do(ops.Pop(queue, "v", wait=True))
        s.complete(held)
        s.do(ops.Queue(queue))
        (held,) = s.pop(queue=queue)
        s.do(ops.Pop(queue, "v", wait=True))
        s.complete(held)
        s.do(ops.Queue(queue))


def two_gates_of_a_queue(s: Script) -> None:
    """Each opens at a moment of its own, the one by itself, the other when a place is free."""
    s.do(ops.ThrottleSet("x", rate=1, rate_ms=10_000))
    s.do(ops.ThrottleSet("y", 1))
    s.put("a", "b", throttles=("x",))
    s.put("c", "d", throttles=("y",))
    held = s.pop(4)
    s.do(ops.Queue("q"))
    s.now += 5000
    s.pop(4)
    s.now += 5000
    s.pop(4)
    s.complete(*held)
    s.do(ops.Queue("q"))
    s.pop(4)


def let_go_on_and_waiting_still(s: Script) -> None:
    """Jobs that a gate has let go on keep what they will take until they are claimed, or go elsewhere."""
    s.do(ops.ThrottleSet("x", 2, capacity=100, refill=1, refill_ms=1_000_000))
    s.put("a", "b", "c", "d", "e", throttles=("x",), cost=12, priority=-1)
    held = s.pop(5)
    s.put("g", throttles=("x",), priority=-1)
    s.complete(*held)
    s.put("h1", "h2", "h3", "h4", priority=-5)
    s.pop()
    for jid in "cde":
        s.do(ops.Why(jid))
    s.put("f", throttles=("x",), cost=12, priority=-1)
    s.put("f2", throttles=("x",), cost=12, priority=-2)
    s.pop()
    s.do(ops.Cancel(("d",)))
    s.do(ops.Cancel(("e", "f", "f2")))
    s.do(ops.ThrottleSet("x", 1, capacity=100, refill=1, refill_ms=1_000_000))
    s.pop(3)
    s.do(ops.Delay("c", 1000))
    s.do(ops.ThrottleGet("x"))
    s.pop(9)
    s.look()


def a_bucket_that_was_lowered(s: Script) -> None:
    """Where those that were let go on, or have just passed, will take more than the bucket can hold."""
    s.do(ops.ThrottleSet("x", 1, capacity=40, refill=1, refill_ms=1000))
    s.put("a", "b", "c", throttles=("x",), cost=12)
    s.pop(4)
    s.put("h1", "h2", priority=-5)
    s.put("e", throttles=("x",), cost=12)
    s.put("e2", throttles=("x",), cost=1)
    s.put("f", throttles=("x",), cost=1, priority=1)
    s.do(ops.ThrottleSet("x", 9, capacity=40, refill=1, refill_ms=1000))
    s.now += 1
    s.pop()
    s.do(ops.ThrottleSet("queue/q", capacity=5, refill=1, refill_ms=1_000_000))
    s.pop()
    s.pop(2)
    s.do(ops.Cancel(("e",)))
    s.do(ops.ThrottleSet("x", 9, capacity=12, refill=1, refill_ms=1000))
    s.pop(2)
    s.do(ops.ThrottleUnset("queue/q"))
    s.pop(9)
    s.do(ops.Queue("q"))
    s.do(ops.ThrottleSet("y", capacity=5, refill=1, refill_ms=1000))
    s.put("g", queue="r", throttles=("y",), cost=5)
    s.put("i", queue="r", throttles=("y",), cost=1)
    s.do(ops.ThrottleSet("y", capacity=2, refill=1, refill_ms=1000))
    s.pop(2, queue="r")
    s.do(ops.Queue("r"))
    s.look()


def what_a_bucket_has_promised(s: Script) -> None:
    """The tokens of those that a gate has let go on are not for others, be they many tokens or few."""
    for queue, cost, few in (("q", 1_000_000, 1), ("r", 12, 20)):
        s.do(ops.ThrottleSet(queue, 1, capacity=cost * 2 if few > 1 else cost, refill=1, refill_ms=1))
        s.put("a" + queue, queue=queue, throttles=(queue,))
        s.put("b" + queue, queue=queue, throttles=(queue,), cost=cost)
        (held,) = s.pop(2, queue=queue)
        s.put("e" + queue, queue=queue, throttles=(queue,), cost=few)
        s.put("h1" + queue, "h2" + queue, queue=queue, priority=-1)
        s.complete(held, after=1000)
        s.pop(queue=queue)
        s.do(ops.ThrottleSet(queue, 5, capacity=cost * 2 if few > 1 else cost, refill=1, refill_ms=1))
        s.pop(2, queue=queue)
        s.do(ops.ThrottleGet(queue))
        s.do(ops.Queue(queue))


def behind_one_that_needs_more(s: Script) -> None:
    """Nobody of the same priority overtakes a job that waits for more tokens; one of a better priority does."""
    for level in (0, -1):
        queue = f"q{level}"
        s.do(ops.ThrottleSet("x", capacity=5, refill=1, refill_ms=1000))
        s.put("a", queue=queue, throttles=("x",), cost=3, priority=level)
        s.pop(queue=queue)
        s.put("b", queue=queue, throttles=("x",), cost=3, priority=level)
        s.put("c", queue=queue, throttles=("x",), priority=level)
        s.pop(2, queue=queue)
        s.put("d", queue=queue, throttles=("x",), priority=level - 1)
        s.pop(2, queue=queue)
        s.do(ops.Queue(queue))
        for jid in "bc":
            s.do(ops.Why(jid))
        s.do(ops.Cancel(("a", "b", "c", "d")))
        s.now += 60_000


def many_holders(s: Script) -> None:
    """Of those that hold a place the first ones are shown: 25 of a throttle, 3 to whoever waits for it."""
    for name, queue in (("x", "q"), ("queue/r", "r")):
        s.do(ops.ThrottleSet(name, 27))
        s.put(*(f"{queue}{number:02}" for number in range(29)), queue=queue, throttles=("x",) if queue == "q" else ())
        s.pop(29, queue=queue)
        s.do(ops.ThrottleGet(name))
        s.do(ops.Why(f"{queue}28"))
    s.do(ops.Throttles())


def names_of_throttles(s: Script) -> None:
    """A throttle with a long name, one named like the beginning of a queue's own, one that is named twice by a job."""
    for name in ("throttle", "queue/", "queue"):
        s.do(ops.ThrottleSet(name, 1))
        s.do(ops.ThrottleGet(name))
    s.put("a", "b", throttles=("throttle", "queue"))
    (held,) = s.pop(2)
    s.complete(held)
    s.pop()
    s.do(ops.ThrottleUnset("queue/"))
    s.do(ops.ThrottleSet("z", capacity=1, refill=1, refill_ms=1000))
    s.do(ops.ThrottleUnset("z"))
    s.do(ops.ThrottleUnset("z"))
    s.do(ops.ThrottleSet("y", capacity=5, refill=1, refill_ms=1000))
    s.put("c", queue="r", throttles=("y", "y"), cost=2)
    s.do(ops.Put("r", "d", "k", "", throttles=()))
    s.do(ops.Get("d"))
    s.pop(2, queue="r")
    s.do(ops.ThrottleGet("y"))
    s.look()


def limits_that_go_together(s: Script) -> None:
    """What is refused of limits, and what a throttle says of itself when one more would be too many."""
    given: tuple[dict[str, Any], ...] = (
        {}, {"capacity": 1}, {"capacity": 1, "refill": 1}, {"capacity": 1, "refill_ms": 1}, {"refill": 1},
        {"refill_ms": 1}, {"rate": 1}, {"rate_ms": 1}, {"concurrency": 1, "refill": 1},
        {"concurrency": 1, "refill_ms": 1},
    )  # fmt: skip
    for limits in given:
        s.do(ops.ThrottleSet("x", **limits))
    s.do(ops.ThrottleSet("x", 2))
    s.do(ops.ThrottleSet("y", rate=1, rate_ms=60_000))
    s.put("a", "b", "c", "d", throttles=("x",))
    s.put("e", "f", queue="r", throttles=("y",))
    s.pop()
    for jid in "abcd":
        s.do(ops.Why(jid))
    s.pop(queue="r")
    s.do(ops.ThrottleGet("y"))
    s.pop(3)
    s.pop(queue="r")
    s.do(ops.Timeout(("a",)))
    s.do(ops.Pause(("q", "r"), "by hand"))
    for jid in "abcdef":
        s.do(ops.Why(jid), 30_000)


def when_a_queue_opens(s: Script) -> None:
    """A queue with a throttle of its own says when the first ready, or lapsed, job may be handed out."""
    s.do(ops.ThrottleSet("queue/q", rate=2, rate_ms=200_000))
    s.put("a", "b", "c", "d")
    s.do(ops.Queue("q"))
    s.pop()
    s.do(ops.Queue("q"), 1000)
    s.pop()
    for _ in range(3):
        s.do(ops.Queue("q"))
        s.do(ops.Peek("q", 5))
        s.now += 61_000
    s.do(ops.Cancel(("c", "d")))
    s.do(ops.Queue("q"))
    s.pop(2)
    s.do(ops.Cancel(("a",)))
    s.do(ops.Queue("q"))


def a_thousand_queues_at_a_throttle(s: Script) -> None:
    """A throttle knows of the first thousand queues that wait for it, by name."""
    s.do(ops.ThrottleSet("x", 1))
    s.put("a", throttles=("x",))
    (held,) = s.pop()
    queues = [f"q{number:04}" for number in range(1002)]
    puts = [ops.Put(queue, "j" + queue, "k", "", throttles=("x",)) for queue in queues]
    s.do(ops.PutMany(tuple(puts[:1000])))
    s.do(ops.PutMany((*puts[1000:], ops.Put(queues[0], "another", "k", "", throttles=("x",)))))
    for first in range(0, 1002, 200):
        s.do(ops.PopAny(tuple(queues[first : first + 200]), "w", wait=True))
    s.do(ops.ThrottleGet("x"))
    s.complete(held)
    s.do(ops.Queues(995, 10))


def a_thousand_go_on(s: Script) -> None:
    """A gate that opens wide lets a thousand go on in one pop, and the others in the next."""
    s.do(ops.ThrottleSet("x", 1))
    s.put(*(f"a{number:04}" for number in range(1005)), throttles=("x",))
    for _ in range(3):
        s.pop()
    s.do(ops.ThrottleSet("x", 5000))
    for _ in range(2):
        s.pop()
        s.do(ops.Waiting("q", 0, 2))
        s.do(ops.Throttled("q", 0, 2))


def two_gates_that_open_wide(s: Script) -> None:
    """A thousand go on in one pop, whoever let them; those that are left at a gate go on later, claimed or not."""
    for name, count in (("x", 501), ("y", 502), ("z", 3)):
        s.do(ops.ThrottleSet(name, 1))
        s.put(*(f"{name}{number:03}" for number in range(count)), throttles=(name,))
        s.pop(3)
    for name in "xyz":
        s.do(ops.ThrottleSet(name, 2000))
    for number in range(3):
        s.put(f"h{number}", priority=-1)
        s.pop()
        s.do(ops.Queue("q"))
        s.do(ops.Throttled("q", 0, 9))


def a_hundred_gates(s: Script) -> None:
    """A pop looks at a hundred gates that may be open, then at the others."""
    names = [f"t{number:03}" for number in range(102)]
    for name in names:
        s.do(ops.ThrottleSet(name, 1))
        s.put(name + "-a", name + "-b", throttles=(name,))
    s.put("h", "i", priority=-1)
    held = s.pop(104)
    s.pop(5)
    s.complete(*(job for job in held if job.jid not in "hi"))
    s.put("h2", "h3", priority=-1)
    for _ in range(2):
        s.pop()
        s.do(ops.Queue("q"))
        s.do(ops.Waiting("q", 98, 9))


def a_place_that_is_held(s: Script) -> None:
    """Who lost a lease holds the place still, though there are fewer of them now, and others were let go on before."""
    s.do(ops.ThrottleSet("x", 2))
    s.put("a", "b", throttles=("x",))
    held = s.pop(2)
    s.do(ops.ThrottleSet("x", 1))
    s.now += 50_000
    s.do(ops.Heartbeat(held[1].jid, held[1].token))
    s.now += 30_000
    s.pop(2)
    s.do(ops.ThrottleGet("x"))
    s.do(ops.ThrottleSet("y", rate=2, rate_ms=1_000_000))
    s.put("c", "d", "e", queue="r", throttles=("y",))
    s.pop(queue="r")
    s.do(ops.ThrottleSet("y", 1, rate=2, rate_ms=1_000_000))
    s.pop(2, queue="r")
    s.do(ops.ThrottleSet("y", 2, rate=2, rate_ms=1_000_000))
    s.put("h", queue="r", priority=-1)
    s.pop(queue="r")
    s.do(ops.Queue("r"))
    s.now += 75_000
    s.pop(queue="r")
    s.do(ops.ThrottleGet("y"))
    s.look()


def let_go_on_one_by_one(s: Script) -> None:
    """Those that were let go on and wait still are counted when the gate is looked at again."""
    s.do(ops.ThrottleSet("x", 2))
    s.put("a1", "a2", "b", "c", "d", throttles=("x",), priority=1)
    held = s.pop(5)
    for job, jid in zip(held, ("h1", "h2"), strict=True):
        s.complete(job)
        s.put(jid, priority=-1)
        s.pop()
        s.do(ops.Waiting("q"))
        s.do(ops.Throttled("q"))


def when_a_queue_may_open(s: Script) -> None:
    """By its own throttle: for the first ready job, and for the first that lost its lease and holds its place still."""
    limits: dict[str, Any] = {"capacity": 10, "refill": 1, "refill_ms": 1000}
    s.do(ops.ThrottleSet("queue/q", **limits))
    s.put("a", cost=10)
    s.complete(*s.pop())
    s.put("b", cost=7, lease_ms=5000)
    s.put("c", cost=4, priority=1)
    s.do(ops.Queue("q"))
    s.do(ops.Queue("q"), 2500)
    s.do(ops.ThrottleSet("queue/q", 1, **limits))
    s.now += 60_000
    s.pop()
    s.do(ops.Queue("q"))
    s.do(ops.Cancel(("c",)))
    s.do(ops.Queue("q"), 100)
    s.do(ops.ThrottleSet("queue/q", 2, **limits))
    s.put("d", cost=5, lease_ms=1000)
    s.now += 4000
    s.pop()
    s.do(ops.ThrottleSet("queue/q", 1, capacity=10, refill=1, refill_ms=100_000))
    for _ in range(4):
        s.do(ops.Queue("q"))
        s.now += 4000
    s.put("e", cost=1)
    s.do(ops.Queue("q"))
    s.do(ops.ThrottleSet("queue/q", rate=1, rate_ms=100_000))
    s.do(ops.Queue("q"))


def a_rate_that_was_taken_back(s: Script) -> None:
    """Claims are forgotten with the rate that they counted for, and a new one begins without any."""
    s.do(ops.ThrottleSet("x", rate=1, rate_ms=1_000_000))
    s.put("a", "b", "c", throttles=("x",))
    s.pop(2)
    s.do(ops.ThrottleSet("x", 9, rate=1, rate_ms=500_000))
    s.pop()
    s.do(ops.ThrottleSet("x", 9))
    s.do(ops.ThrottleSet("x", rate=1, rate_ms=1_000_000))
    s.pop(2)
    s.do(ops.ThrottleGet("x"))


SCRIPTS: tuple[Callable[[Script], None], ...] = (
    woken_by_throttles, two_gates_of_a_queue, let_go_on_and_waiting_still, a_bucket_that_was_lowered,
    what_a_bucket_has_promised, behind_one_that_needs_more, many_holders, names_of_throttles, limits_that_go_together,
    when_a_queue_opens, a_thousand_queues_at_a_throttle, a_thousand_go_on,
    two_gates_that_open_wide, a_hundred_gates, a_place_that_is_held, let_go_on_one_by_one, when_a_queue_may_open,
    a_rate_that_was_taken_back,
)  # fmt: skip
