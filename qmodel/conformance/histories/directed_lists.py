"""Histories with a purpose, of lists: searches that go on from where they were, and jobs that are kept, or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops


def _walk(s: Script, **wanted: Any) -> None:
    """Search from the beginning to the end, one or two at a time."""
    for count in (1, 2):
        cursor = ""
        for _ in range(40):
            found = s.do(ops.Search(**wanted, cursor=cursor, count=count))
            cursor = found.cursor
            if not cursor:
                break


def walks_through_every_list(s: Script) -> None:
    """The jobs of a queue in every state, those of a tag, of a worker and of groups, one after the other."""
    s.put("w1", "w2", "w3", tags=("t",))
    s.put("w0", "w4", priority=-3, tags=("t",))
    s.put("l1", "l2", priority=2, lifo=True)
    s.put("s1", "s2", delay_ms=5000)
    s.put("s3", delay_ms=6000)
    s.put("d1", "d2", depends=("w1",))
    s.now += 1
    s.put("d3", depends=("w1",))
    s.do(ops.ThrottleSet("x", 1))
    s.put("x1", "x2", "x3", priority=-9, throttles=("x",))
    s.put("r1", "r2", "r3", "r4", "r5", priority=-8)
    s.pop(3)
    s.pop(2, worker="v")
    s.now += 7
    s.do(ops.Timeout(("r1", "r2")))
    s.put(*(f"f{number}" for number in range(8)), "c1", "c2", "c3", priority=-10)
    for number, job in enumerate(s.pop(11)):
        if job.jid[0] == "f":
            s.do(ops.Fail(job.jid, job.token, ("g", "g h", " ", "z")[number % 4], ""), number % 3)
        else:
            s.do(ops.Complete(job.jid, job.token), number % 2)
    _walk(s, queue="q")
    for state in ("waiting", "scheduled", "depends", "throttled", "running", "stalled"):
        _walk(s, queue="q", state=state)
    for state in ("complete", "failed"):
        _walk(s, state=state)
    _walk(s, tag="t")
    for worker in ("v", "w"):
        _walk(s, worker=worker)
    for group in ("g", "g h", " ", "none"):
        _walk(s, group=group)
    found = s.do(ops.RetryMany(group="g h", count=1))
    s.do(ops.RetryMany(group="g h", count=1, cursor=found.cursor))
    found = s.do(ops.CancelMany(tag="t", count=1))
    s.do(ops.CancelMany(tag="t", count=1, cursor=found.cursor))
    s.do(ops.Clean("failed", 3))
    s.do(ops.Clean("complete", 1, count=1))
    s.look()


def cursors_that_are_none(s: Script) -> None:
    """What is refused as a cursor, and what is not."""
    s.put("a", "b", "c", tags=("t",))
    for job in s.pop(2):
        s.do(ops.Fail(job.jid, job.token, "g", ""))
    s.pop()
    numbers = ("x", "", "0", "1 2", "-inf", "01", "-1", "99999999999999", "-99999999999999", "100000000000000")
    for wanted in ({"worker": "w"}, {"tag": "t"}, {"group": "g"}, {"state": "failed"}, {"queue": "q"}):
        for kind in ("held", "tag", "group", "group 0", "locks 0", "ready 0", "ready 0 0", "depends 0", "nothing"):
            s.do(ops.Search(**wanted, cursor=kind))  # type: ignore[arg-type]
            for number in numbers:
                s.do(ops.Search(**wanted, cursor=f"{kind} {number}"))  # type: ignore[arg-type]
    for number in numbers:
        for cursor in (f"locks {number} 0", f"group {number} 0 g", f"group 0 {number} g", f"ready {number} 0 0"):
            s.do(ops.Search("q", "failed" if cursor[0] == "g" else None, cursor=cursor))
    for cursor in ("group 0 0 ", "group 0 0  ", "group 0 0 g h", "group 0 0 a", "group 0 0 z", "ready 0 0 0 0"):
        s.do(ops.Search(state="failed", cursor=cursor))


def a_thousand_groups(s: Script) -> None:
    """A search looks at a thousand jobs, be each in a list of its own, and goes on from there."""
    queues = [f"q{number:04}" for number in range(1002)]
    puts = [ops.Put(queue, "j" + queue, "k", "", retries=0) for queue in queues]
    for first in range(0, 1002, 200):
        part = slice(first, first + 200)
        s.do(ops.PutMany(tuple(puts[part])))
        s.do(ops.PopAny(tuple(queues[part]), "w", 1000))
        s.do(ops.PopAny(tuple(queues[part]), "w", 1000), 80_000)
    for klass in ("k", "l"):
        found = s.do(ops.Search(state="failed", klass=klass, count=1000))
        s.do(ops.Search(state="failed", klass=klass, count=1000, cursor=found.cursor))
    s.do(ops.FailedGroups(995, 3))


def a_thousand_too_young(s: Script) -> None:
    """Where jobs are deleted by age the search ends at the first that is too young, in each list."""
    jids = [f"a{number:04}" for number in range(1004)]
    s.put(*jids)
    leased = [*s.pop(1000), *s.pop(4)]
    s.complete(*leased[:1])
    s.do(ops.Fail(leased[1].jid, leased[1].token, "failed-retries-q", ""))
    s.now += 10_000
    s.complete(*leased[2:500])
    s.complete(*leased[500:])
    s.put(*(f"b{jid}" for jid in jids), retries=0, queue="r")
    for later in (0, 80_000):
        s.now += later
        s.pop(1000, queue="r")
        s.pop(4, queue="r")
    s.put("z0", "z1", queue="z")
    for job in s.pop(2, queue="z"):
        s.do(ops.Fail(job.jid, job.token, f"z{job.jid}", ""), -100_000 if job.jid == "z1" else 0)
    s.now += 100_000
    for state in ("complete", "failed"):
        for age in (200_000, 85_000):
            s.do(ops.Clean(state, age, preview=True))
            s.do(ops.Clean(state, age, klass="none"))


def kept_in_order(s: Script) -> None:
    """Jobs that say how long they are kept go at their very moments, three in a step, the earliest first."""
    for jid, ms in (("a", 1000), ("b", 1001), ("c", 999), ("d", 5000)):
        s.put(jid, keep_complete_ms=ms)
    s.put(*(f"e{number}" for number in range(7)), keep_complete_ms=2000)
    s.put(*(f"f{number}" for number in range(4)), keep_failed_ms=0)
    for job in s.pop(4):
        s.complete(job)
    s.complete(*s.pop(7))
    s.put(*(f"o{number}" for number in range(9)), queue="r")
    at_once = s.pop(4)
    others = s.pop(9, queue="r")
    failing = [*others[:4], at_once[0], *others[4:]]
    for job, at in zip(failing, (998, 1, 1, 1, 999, 0, 1, 0, 0, 3000), strict=True):
        s.do(ops.Fail(job.jid, job.token, "g", ""), at)
    for job in at_once[1:]:
        s.do(ops.Fail(job.jid, job.token, "g", ""))
    s.look()


def kept_as_long_as_it_is_failed(s: Script) -> None:
    """A failed job that is past keeping stays for its dependents; tried again it is like any other."""
    s.set("failed-history", 1000)
    s.put("a", retries=1, keep_failed_ms=500)
    s.put("b", "c")
    s.put("after", depends=("a",))
    for number, job in enumerate(s.pop(3)):
        s.do(ops.Fail(job.jid, job.token, f"g{number}", ""), 2000)
    s.do(ops.Get("a"))
    s.do(ops.RetryMany(group="g0", to="q", count=1))
    s.do(ops.Get("a"))
    (a,) = s.pop()
    s.do(ops.Fail("a", a.token, "h", ""))
    s.do(ops.Get("a"))
    s.look()


def fewer_are_kept(s: Script) -> None:
    """When fewer failed jobs are to be kept, each failure takes three of them away."""
    s.put(*(f"a{number}" for number in range(12)))
    leased = s.pop(12)
    for job in leased[:8]:
        s.do(ops.Fail(job.jid, job.token, "g", ""), 1)
    s.set("failed-history-count", 2)
    for job in leased[8:]:
        s.do(ops.Fail(job.jid, job.token, "g", ""), 1)
        s.do(ops.Failed("g"))


def pages_of_requests(s: Script) -> None:
    """Pages of the requests in a state, and a limit that is lowered below what runs."""
    for id in "abc":
        s.do(ops.RequestOpen(id, "q", 3))
    for offset, count in ((0, 1), (0, 2), (1, 1), (1, 2), (0, 25)):
        s.do(ops.Requests("open", offset, count))
    s.do(ops.RequestAdd("a", tuple(ops.Put("q", f"a:{number}", "k", "") for number in range(6))))
    leased = s.pop(9)
    s.do(ops.RequestTune("a", limit=1))
    for job in leased:
        s.complete(job)
        s.do(ops.RequestGet("a"))
    s.pop(9)


def what_a_request_refuses(s: Script) -> None:
    """To be opened otherwise than it was; sub-requests that are none."""
    s.do(ops.RequestOpen("a", "q", 2, 1))
    for queue, limit, priority in (("q", 2, 1), ("r", 2, 1), ("q", 1, 1), ("q", 2, 2)):
        s.do(ops.RequestOpen("a", queue, limit, priority))
        s.do(ops.RequestPut("a", queue, limit, (ops.Put("r", "a:1", "k", ""),), priority))
    given: tuple[dict[str, Any], ...] = (
        {"priority": 1}, {"ordered": "o"}, {"unique": "u"}, {"unique_mode": "again"}, {"throttles": ("queue/q",)},
    )  # fmt: skip
    for more in given:
        s.do(ops.RequestAdd("a", (ops.Put("q", "a:1", "k", "", **more),)))
    one = ops.Put("q", "a:1", "k", "")
    s.do(ops.RequestAdd("a", (one, one)))
    s.do(ops.RequestAdd("a", (one,)))
    s.do(ops.RequestAdd("a", (one,)))
    s.put("after", depends=("a:1",))
    s.do(ops.RequestCancel("a"))
    s.do(ops.Cancel(("after",)))
    s.do(ops.RequestCancel("a"))
    s.look()


def a_request_that_is_changed_and_called_off(s: Script) -> None:
    """With sub-requests that run, that have lapsed, that wait, and that are parked with a place or without one."""
    s.do(ops.ThrottleSet("x", 1))
    s.do(ops.RequestOpen("a", "q", 4))
    s.do(ops.RequestAdd("a", tuple(ops.Put("q", f"a:{n}", "k", "", throttles=("x",)) for n in range(2))))
    s.do(ops.RequestAdd("a", tuple(ops.Put("q", f"a:{n}", "k", "") for n in range(2, 7))))
    leased = s.pop(3)
    s.do(ops.RequestGet("a"))
    for priority in (-3, -3, 2):
        s.do(ops.RequestTune("a", priority))
        for number in range(7):
            s.do(ops.Get(f"a:{number}"))
    for later in (60_000, 1000):
        s.now += later
        s.do(ops.RequestGet("a"))
    s.do(ops.Heartbeat(leased[0].jid, leased[0].token))
    s.do(ops.RequestGet("a"))
    for _ in range(2):
        s.do(ops.RequestCancel("a"))
        s.do(ops.RequestGet("a"))
    s.complete(*leased)
    s.do(ops.RequestGet("a"))
    s.do(ops.RequestCancel("a"))
    s.set("requests-history", 0)
    s.do(ops.RequestOpen("b", "q", 1))
    s.do(ops.RequestAdd("b", (ops.Put("q", "b:1", "k", ""),)))
    s.look()


def a_letter_that_is_waited_for(s: Script) -> None:
    """A dead letter on which others depend is not taken away by trying its job again."""
    s.put("a", dead_queue="d", retries=0)
    (job,) = s.pop()
    s.do(ops.Fail(job.jid, job.token, "g", ""))
    letter = next(jid for jid in s.store.jobs if jid != "a")
    s.put("after", depends=(letter,))
    s.do(ops.Replay(letter))
    s.do(ops.Cancel(("after",)))
    s.do(ops.Replay(letter))
    s.look()


def forgetting_a_request_in_parts(s: Script) -> None:
    """More than a thousand sub-requests are forgotten with two operations."""
    s.do(ops.RequestOpen("a", "q", 1))
    puts = [ops.Put("q", f"a:{number:04}", "k", "") for number in range(1002)]
    s.do(ops.RequestAdd("a", tuple(puts[:1000])))
    s.do(ops.RequestAdd("a", tuple(puts[1000:])))
    for _ in range(2):
        s.do(ops.RequestCancel("a"))
        s.do(ops.RequestForget("a"))
    for _ in range(2):
        s.do(ops.RequestForget("a"))
    s.set("requests-history", 0)
    s.do(ops.RequestOpen("b", "q", 1))
    one = (ops.Put("q", "b:1", "k", ""),)
    s.do(ops.RequestAdd("b", one))
    s.do(ops.Cancel(("b:1",)))
    s.do(ops.RequestPut("b", "q", 1, one))
    s.do(ops.RequestGet("b"))


def keys_past_their_moment(s: Script) -> None:
    """Two keys that are past their moment go with each that is taken; what is taken again has no old end."""
    for number in range(5):
        s.do(ops.Put("q", f"a{number}", "k", "", unique=f"k{number}", unique_ms=10))
    s.now += 1000
    for number in range(3):
        s.do(ops.Put("q", f"b{number}", "k", "", unique=f"l{number}"))
    s.do(ops.Put("q", "c", "k", "", unique="m", unique_mode="window", unique_ms=5000))
    s.do(ops.Put("q", "c", "k", "", unique="m"))
    s.do(ops.UniqueGet("m"))
    s.do(ops.UniqueGet("m"), 6000)
    s.do(ops.Put("q", "d", "k", "", unique="n"))
    s.look()


def at_the_beginning_of_time(s: Script) -> None:
    """At the moment 0, and a millisecond later."""
    s.now = 0
    s.do(ops.Publish("a", "x"))
    s.do(ops.Subscribe("none", ("b",), "q", "k", since=0))
    s.do(ops.Subscribe("late", ("a",), "q", "k", since=1))
    s.do(ops.Subscribe("some", ("a",), "q", "k", since=0))
    s.do(ops.Put("q", "u", "k", "", unique="k", unique_ms=1))
    s.do(ops.UniqueRelease("k"))
    s.do(ops.Put("q", "v", "k", "", unique="k", unique_ms=1))
    s.do(ops.Put("q", "o1", "k", "", ordered="o"))
    s.do(ops.Put("q", "o2", "k", "", ordered="o"))
    s.do(ops.Pause(("q",), "by hand", 1))
    s.do(ops.Cancel(("o1",)))
    s.put("t", queue="r", tags=("t",))
    s.complete(*s.pop(queue="r"))
    s.do(ops.Clean("complete", 0, tag="t"))
    for _ in range(3):
        s.do(ops.Put("q", "w", "k", "", unique="l"))
        s.pop(9)
        s.now += 1
    s.look()


def pauses_with_numbers_for_reasons(s: Script) -> None:
    """Reasons that look like numbers; and pauses that end in one step, by the moments at which they did."""
    s.put("a")
    for reason in ("7", "8"):
        s.do(ops.Pause(("q",), reason))
    s.do(ops.Queue("q"))
    s.do(ops.Unpause(("q",)))
    for reason, ms in (("b", 1000), ("a", 2000), ("c", 1000), ("9", 1500), ("B", 2000)):
        s.do(ops.Pause(("q",), reason, ms))
    s.do(ops.Why("a"))
    s.pop()
    s.now += 5000
    s.pop()


def a_subscription_before_all_messages(s: Script) -> None:
    """One that begins before the first message, and one that begins when there is none."""
    s.do(ops.Publish("a", "x"))
    for _ in range(3):
        s.do(ops.Publish("a", "x"), 10)
    for number, since in enumerate((s.now - 40, s.now - 30, s.now - 15, s.now, s.now + 1)):
        s.do(ops.Subscribe(f"s{number}", ("a",), "q", "k", since=since, count=1))
    s.look()
    s.do(ops.Trim(9))
    s.do(ops.Subscribe("t", ("a",), "q", "k", since=s.now))


def subscriptions_with_options(s: Script) -> None:
    """Their jobs are run as they say; they stand in the order in which they came, however long their texts are."""
    given: tuple[dict[str, Any], ...] = (
        {"lifo": True}, {"timeout_ms": 500}, {"lease_ms": 700}, {"ttl_ms": 900}, {"ordered": "o"}, {"dead_queue": "d"},
    )  # fmt: skip
    for number, options in enumerate(given):
        s.do(ops.Subscribe(f"s{9 - number}", ("a", "b." * 40 + "c"), "q", "k", **options))
    s.do(ops.Subscriptions())
    s.do(ops.Subscriptions(1, 2))
    s.do(ops.Publish("a", "x"))
    s.pop(9)
    s.look()


def a_thousand_notes(s: Script) -> None:
    """A klass may have a thousand keys."""
    for number in range(1001):
        s.do(ops.MetadataSet("k", f"n{number:04}", "1"))
    s.do(ops.MetadataSet("k", "n0000", "2"))
    s.do(ops.MetadataIncrement("k", "n1000", 1))
    s.do(ops.MetadataSet("k", "n0000", ""))
    s.do(ops.MetadataIncrement("k", "n1000", 1))


SCRIPTS: tuple[Callable[[Script], None], ...] = (
    walks_through_every_list, cursors_that_are_none, a_thousand_groups, a_thousand_too_young, kept_in_order,
    kept_as_long_as_it_is_failed, fewer_are_kept, pages_of_requests, what_a_request_refuses,
    a_request_that_is_changed_and_called_off, a_letter_that_is_waited_for, forgetting_a_request_in_parts,
    keys_past_their_moment, at_the_beginning_of_time, pauses_with_numbers_for_reasons,
    a_subscription_before_all_messages, subscriptions_with_options, a_thousand_notes,
)  # fmt: skip
