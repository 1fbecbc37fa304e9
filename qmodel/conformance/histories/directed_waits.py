"""Histories with a purpose, of what makes jobs wait: throttles, lines, requests, lives; and of limits of messages."""

from __future__ import annotations

from collections.abc import Callable

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops


def reasons_of_all_kinds(s: Script) -> None:
    """A complete job; one whose lease has run out, not yet taken; jobs at a spent throttle, one behind another."""
    s.put("a", "b")
    first, second = s.pop(2)
    s.do(ops.Complete(first.jid, first.token))
    s.now += 60_001
    for jid in (first.jid, second.jid):
        s.do(ops.Why(jid))
    s.do(ops.ThrottleSet("x", capacity=1, refill=1, refill_ms=100_000))
    s.put("c", "d", "e", queue="r", throttles=("x",))
    s.pop(3, queue="r")
    for jid in ("d", "e"):
        s.do(ops.Why(jid))
    s.do(ops.Priority("d", 9))
    s.pop(3, queue="r")
    for jid in ("d", "e"):
        s.do(ops.Why(jid))
    s.do(ops.Put("r", "f", "k", "", throttles=("queue/r",)))


def alone_at_a_gate(s: Script) -> None:
    """A job parked alone has another priority, and goes on when there is room."""
    s.do(ops.ThrottleSet("x", 1))
    s.put("a", "b", throttles=("x",))
    held = s.pop(2)
    s.do(ops.Why("b"))
    s.do(ops.Priority("b", 5))
    s.complete(*held)
    s.pop(2)


def a_lapsed_job_at_a_closed_queue(s: Script) -> None:
    """The queue's own throttle is spent when a lapsed job comes to be handed out again."""
    s.do(ops.ThrottleSet("queue/q", rate=1, rate_ms=10_000_000))
    s.put("a", "b")
    s.pop()
    s.now += 80_000
    s.pop(2)
    s.do(ops.Peek("q", 3))
    s.do(ops.Queue("q"))


def what_a_pop_would_free(s: Script) -> None:
    """The one that has a line will fail in the next pop, and others of the line are shown to go on by that."""
    s.do(ops.Put("q", "a", "k", "", retries=0, ordered="o"))
    s.pop()
    s.do(ops.Put("q", "b", "k", "", ordered="o", ttl_ms=1))
    s.do(ops.Put("r", "c", "k", "", ordered="o"))
    s.do(ops.Put("q", "d", "k", "", ordered="o"))
    for later in (0, 80_000):
        s.now += later
        s.do(ops.Peek("q", 5))
        s.do(ops.Peek("r", 5))
    s.pop(5)
    s.pop(5, queue="r")
    s.do(ops.Put("q", "e", "k", "", retries=0, ordered="p"))
    s.pop()
    s.do(ops.Put("q", "f", "k", "", ordered="p"))
    s.do(ops.Put("q", "g", "k", "", ordered="r", delay_ms=1000))
    s.do(ops.Put("q", "h", "k", "", lifo=True))
    s.do(ops.Put("q", "i", "k", "", lifo=True))
    s.now += 80_000
    s.do(ops.Peek("q", 5))
    s.pop(5)


def a_thousand_lives_are_over(s: Script) -> None:
    """More than a pop sees to have expired: those that it meets in the order fail too, also one that was let go on."""
    s.do(ops.ThrottleSet("x", 1))
    s.put(*(f"a{number}" for number in range(1003)), ttl_ms=1)
    s.put("t", "u", throttles=("x",), ttl_ms=5000, priority=-1)
    s.pop(2)
    s.now += 10
    s.pop(5)
    s.pop(5)


def a_thousand_expire_after_one_was_let_go_on(s: Script) -> None:
    """A throttled job that was let go on expires before it is claimed, behind a thousand that are seen to first."""
    s.do(ops.ThrottleSet("x", 1))
    s.put("t", "u", throttles=("x",), ttl_ms=5000, priority=5)
    (held,) = s.pop(2)
    s.complete(held)
    s.put(*(f"a{number}" for number in range(1001)), ttl_ms=4000)
    s.pop(1)
    s.now += 6000
    s.pop(3)
    s.pop(3)


def a_thousand_before_a_closed_throttle(s: Script) -> None:
    """A pop parks a thousand and gets none of them; another worker, who sleeps, is woken to go on."""
    s.do(ops.Pop("q", "v", wait=True))
    s.do(ops.ThrottleSet("x", 1))
    s.put("a", throttles=("x",))
    s.pop()
    s.put(*(f"a{number}" for number in range(1003)), throttles=("x",))
    s.do(ops.Pop("q", "v", wait=True))
    s.do(ops.Pop("q", "w", wait=True))


def canceled_by_two_ways(s: Script) -> None:
    """What is to be canceled for two reasons is canceled once."""
    s.put("a")
    s.put("b", "c", depends=("a cancel",))
    s.put("d", depends=("b cancel", "c cancel"))
    (job,) = s.pop()
    s.do(ops.Fail(job.jid, job.token, "g", ""))


def a_request_that_has_ended(s: Script) -> None:
    """It is tuned, added to, closed and opened in vain."""
    s.do(ops.RequestOpen("x", "q", 1))
    s.do(ops.RequestClose("x"))
    s.do(ops.RequestTune("x", limit=2))
    s.do(ops.RequestAdd("x", (ops.Put("q", "x:1", "k", ""),)))
    s.do(ops.RequestClose("x"))
    s.do(ops.RequestOpen("x", "q", 1))


def sub_requests_of_a_failed_job(s: Script) -> None:
    """They follow it in the step in which they come, each as its edge says; and so do those that wait for them."""
    for way in ("add", "put"):
        s.put("a" + way)
        (job,) = s.pop()
        s.do(ops.Fail(job.jid, job.token, "g", ""))
        jobs = [ops.Put("q", f"{way}:{on}", "k", "", depends=(f"a{way} {on}",)) for on in ("fail", "cancel", "ignore")]
        jobs += [
            ops.Put("q", f"{way}:{on}-{then}", "k", "", depends=(f"{way}:{on} {then}",))
            for on in ("fail", "cancel")
            for then in ("fail", "cancel", "ignore")
        ]
        if way == "add":
            s.do(ops.RequestOpen(way, "q", 1))
            s.do(ops.RequestAdd(way, tuple(jobs), "r"))
            s.do(ops.RequestAdd(way, tuple(jobs), "r"))
        else:
            s.do(ops.RequestPut(way, "q", 1, tuple(jobs), 0, "r"))
        s.do(ops.RequestGet(way))


def too_many_subscriptions(s: Script) -> None:
    """As many as there may be, and one more; and one with more patterns than one may have."""
    for number in range(101):
        s.do(ops.Subscribe(f"s{number}", ("a",), "q", "k"))
    s.do(ops.Subscribe("s0", tuple(f"a{number}" for number in range(11)), "q", "k"))


def pauses_that_end(s: Script) -> None:
    """Two pauses end by themselves, one after the other; a third one does not."""
    s.put("a")
    for reason, ms in (("one", 5000), ("two", 9000), ("for ever", 0)):
        s.do(ops.Pause(("q",), reason, ms))
        s.do(ops.Queue("q"))
        s.do(ops.Why("a"))
    s.do(ops.Unpause(("q",), "for ever"))
    for later in (0, 5000, 4000):
        s.now += later
        s.do(ops.Queue("q"))
        s.do(ops.Why("a"))
        s.pop()


def several_notes(s: Script) -> None:
    """What is noted for a klass is shown by key."""
    for key in ("b", "a", "é", "A", "~"):
        s.do(ops.MetadataSet("k", key, "1"))
    s.do(ops.MetadataGet("k"))


def a_klass_named_like_a_number(s: Script) -> None:
    """What is noted for a klass is not touched by a message whose number is the name of that klass."""
    for klass in ("5", "6"):
        s.do(ops.MetadataSet(klass, "n", "v"))
    for _ in range(4):
        s.do(ops.Publish("a", "x"))
    s.do(ops.MetadataSet("4", "n", "v"))
    for klass in "456":
        s.do(ops.MetadataGet(klass))
    s.do(ops.Messages(0, 9))


SCRIPTS: tuple[Callable[[Script], None], ...] = (
    reasons_of_all_kinds, alone_at_a_gate, a_lapsed_job_at_a_closed_queue, what_a_pop_would_free,
    a_thousand_before_a_closed_throttle, canceled_by_two_ways, a_thousand_lives_are_over,
    a_thousand_expire_after_one_was_let_go_on, a_request_that_has_ended, too_many_subscriptions, several_notes,
    pauses_that_end, sub_requests_of_a_failed_job, a_klass_named_like_a_number,
)  # fmt: skip
