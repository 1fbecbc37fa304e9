"""Probes: for each requirement on bindings, a history that tests it and as little else as possible.

Probes build on each other. Each needs what the earlier probes have tested, and one thing more, so the first probe that
a driver fails names its fault. Therefore time, texts and leases are first tested by replies with only a number or an
id, and then by whole jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodel.conformance.histories.script import START, Script
from qmodel.conformance.kit.vectors import Vector, made
from qmodel.contract import operations as ops

Probe = Callable[[Script], None]

PROBES: dict[str, Probe] = {}
"""The probes by the id of their requirement, in the order of the tests."""


def probe(id: str) -> Callable[[Probe], Probe]:
    """Register a probe for a requirement."""

    def enter(write: Probe) -> Probe:
        PROBES[id] = write
        return write

    return enter


def vectors() -> list[Vector]:
    """Make the vectors of the level `smoke` from the probes."""
    found = []
    for id, write in PROBES.items():
        script = Script()
        write(script)
        found.append(made(id, "smoke", write.__doc__ or "", script.steps, id))
    return found


def put(s: Script, jid: str, data: str = "", **arguments: Any) -> None:
    """Put one job into the queue `q`."""
    s.do(ops.Put("q", jid, "k", data, **arguments))


# ---- calls and the plainest replies


@probe("NUMBER-1")
def _integer(s: Script) -> None:
    """The length of an empty queue is 0, not 0.0 or "0"."""
    s.do(ops.Length("q"))


@probe("READ-1")
def _read_again(s: Script) -> None:
    """The same read before and after a change. Queue, job and type share one name, so none can be mistaken."""
    s.do(ops.Length("q"))
    s.do(ops.Put("q", "q", "q", ""))
    s.do(ops.Length("q"))


@probe("CALL-1")
def _order(s: Script) -> None:
    """Queue, job id and type differ; the job is put into that queue under that id."""
    put(s, "a")
    s.do(ops.Length("q"))


@probe("NULL-1")
def _nothing(s: Script) -> None:
    """A job that does not exist."""
    s.do(ops.Get("nobody"))


@probe("REFUSAL-1")
def _refused(s: Script) -> None:
    """An empty job id is refused."""
    s.do(ops.Get(""))


@probe("REFUSAL-2")
def _code(s: Script) -> None:
    """Two refusals with different codes."""
    s.do(ops.ConfigGet(""))
    s.do(ops.ConfigGet("nothing"))


@probe("REFUSAL-3")
def _facts(s: Script) -> None:
    """A refusal with three facts, two of them numbers."""
    s.do(ops.ConfigSet("heartbeat", 0))


@probe("TIME-1")
def _moment(s: Script) -> None:
    """A worker's last-seen time is the moment of its pop."""
    s.do(ops.Pop("q", "w"))
    s.do(ops.Workers())


@probe("TIME-2")
def _duration(s: Script) -> None:
    """A job with a delay of 1500 ms is scheduled 1 ms before the delay ends, and not scheduled when it ends."""
    put(s, "a", delay_ms=1500)
    s.do(ops.Scheduled("q"), 1499)
    s.do(ops.Scheduled("q"), 1)


@probe("NUMBER-2")
def _negative(s: Script) -> None:
    """Jobs with a positive and a negative priority, in the order of their priorities."""
    put(s, "b", priority=1)
    put(s, "a", priority=-2)
    s.do(ops.Waiting("q"))
    s.do(ops.Priority("b", -3))


@probe("NUMBER-3")
def _great(s: Script) -> None:
    """The greatest numbers that are allowed, and one that a 32-bit float cannot represent."""
    s.do(ops.ConfigSet("jobs-history", 300_000_000_001))
    put(s, "b", priority=2**31 - 1)
    put(s, "a", priority=2**31 - 2)
    s.do(ops.Waiting("q"))
    s.now = 89_999_999_999_998
    s.do(ops.Pop("r", "w"))
    s.do(ops.Workers())


@probe("LIST-1")
def _elements(s: Script) -> None:
    """Three tags and three jobs, each in one call, in alphabetical order."""
    put(s, "a")
    s.do(ops.TagAdd("a", ("r", "s", "t")))
    s.put("b", "c", "d")
    s.do(ops.Length("q"))


@probe("LIST-2")
def _orders(s: Script) -> None:
    """Tags and jobs in no alphabetical order."""
    put(s, "b")
    put(s, "c")
    put(s, "a")
    s.do(ops.TagAdd("a", ("t", "r", "s")))
    s.do(ops.Waiting("q"))


# ---- sending


@probe("SEND-1")
def _once(s: Script) -> None:
    """A line is logged once; one event is emitted."""
    put(s, "a")
    s.do(ops.Log("a", "one"))
    s.do(ops.Events())


@probe("SEND-2")
def _again(s: Script) -> None:
    """A line is logged twice with one request id and once with another one; two events are emitted."""
    put(s, "a")
    for request in ("r1", "r1", "r2"):
        s.do(ops.Log("a", "one", request))
    s.do(ops.Events())


@probe("SEND-3")
def _unlike(s: Script) -> None:
    """Two lines are logged without a request id; two events are emitted."""
    put(s, "a")
    s.do(ops.Log("a", "one"))
    s.do(ops.Log("a", "two"))
    s.do(ops.Events())


# ---- given and omitted arguments


@probe("CALL-2")
def _default(s: Script) -> None:
    """A job that is put again without a priority keeps its priority."""
    put(s, "a", priority=9)
    put(s, "b", priority=5)
    put(s, "a")
    s.do(ops.Waiting("q"))


@probe("CALL-3")
def _empty(s: Script) -> None:
    """A job that is put again without tags keeps its tags; put again with an empty list of tags, it has none."""
    put(s, "a", tags=("t",))
    put(s, "b", tags=("t",))
    put(s, "a")
    s.do(ops.Tagged("t"))
    put(s, "a", tags=())
    s.do(ops.Tagged("t"))


@probe("FLAG-1")
def _flag(s: Script) -> None:
    """A job is canceled with the jobs that depend on it, because `cascade` is set."""
    put(s, "a")
    put(s, "b", depends=("a",))
    s.do(ops.Cancel(("a",)))
    s.do(ops.Cancel(("a",), cascade=True))


@probe("FLAG-2")
def _flagged(s: Script) -> None:
    """A queue before and after it is paused."""
    put(s, "a")
    s.do(ops.Queue("q"))
    s.do(ops.Pause(("q",)))
    s.do(ops.Queue("q"))


# ---- jobs and their texts


@probe("JOB-1")
def _whole_job(s: Script) -> None:
    """Jobs with different values in all fields that a job has before it is popped."""
    s.do(ops.Put("u", "z", "l", "more", priority=4), 1)
    s.do(ops.Get("z"), 1)
    s.do(ops.Put("q", "a", "k", "data", priority=3, retries=7, tags=("s", "t"), delay_ms=9), 1)
    s.do(ops.Get("a"), 1)


@probe("JOB-6")
def _edges(s: Script) -> None:
    """Jobs with dependencies and dependents, and a tracked job: their replies have all seven elements."""
    put(s, "z")
    put(s, "a", tags=("t",), depends=("z",))
    put(s, "c", depends=("a",))
    for jid in ("z", "a", "c"):
        s.do(ops.Get(jid))
    s.do(ops.Track("z"))
    s.do(ops.Get("z"))


@probe("JOB-2")
def _state(s: Script) -> None:
    """A scheduled job before and at its time, without a pop in between: at its time it is waiting."""
    put(s, "a", delay_ms=1000)
    s.do(ops.Get("a"))
    s.do(ops.Get("a"), 1000)


@probe("JOB-3")
def _apart(s: Script) -> None:
    """Data of 1024 bytes and of one more."""
    put(s, "a", "x" * 1024)
    put(s, "b", "y" * 1025)
    s.do(ops.Multiget(("a", "b")))


@probe("TEXT-1")
def _utf8(s: Script) -> None:
    """Characters of one to four bytes in data, names and tags; the job's history after them is found by byte sizes."""
    s.do(ops.Put("zürich", "a", "\U0001f600", "é ß € \U0001f600", tags=("größe", "ж")))
    s.do(ops.Get("a"))
    s.do(ops.Queues())


@probe("TEXT-2")
def _control(s: Script) -> None:
    """NUL, all kinds of line ends, tabs, other control characters, and a backslash."""
    for jid, data in (("a", "a\x00b"), ("b", "a\r\nb\nc\rd"), ("c", "x\t\x1f\x7f\x01y"), ("d", "OK"), ("e", "\\n\\")):
        put(s, jid, data)
        s.do(ops.Get(jid))


@probe("TEXT-3")
def _blanks(s: Script) -> None:
    """Blanks and line ends at the beginning and end of a text, and a text of one blank."""
    for jid, data in (("a", " x "), ("b", "\nx\n"), ("c", " ")):
        put(s, jid, data)
        s.do(ops.Get(jid))


@probe("TEXT-4")
def _long(s: Script) -> None:
    """Data of 70,000 one-byte characters, and of 3,000 three-byte characters."""
    for jid, data in (("a", "x" * 70_000), ("b", "€" * 3_000)):
        put(s, jid, data)
        s.do(ops.Get(jid))


@probe("TEXT-5")
def _opaque(s: Script) -> None:
    """Data that look like JSON in an unusual format, like a number, or like null."""
    for jid, data in zip("abcdef", ('{"b": 1,"a":[2.50]}', "null", "1e3", "007", "[]", '"x"'), strict=True):
        put(s, jid, data)
        s.do(ops.Get(jid))


@probe("JOB-4")
def _log(s: Script) -> None:
    """A log with line ends, tabs and backslashes."""
    put(s, "a")
    for line in ("one\ntwo", "c:\\new", "a\tb", "\\\\n\n", ""):
        s.do(ops.Log("a", line))
    s.do(ops.Get("a"))


@probe("NEST-1")
def _nested(s: Script) -> None:
    """Jobs put in one call, with lists, an empty list, numbers, and a request id, which is ignored there."""
    put(s, "a", tags=("t",))
    jobs = (
        ops.Put("q", "b", "k", "1", priority=-1, tags=("r", "s"), request="r1"),
        ops.Put("r", "c", "l", "2", depends=("b", "a"), delay_ms=5),
        ops.Put("q", "a", "k", "3", tags=()),
    )
    s.do(ops.PutMany(jobs))
    s.do(ops.Multiget(("a", "b", "c")))


# ---- leases


@probe("LEASE-1")
def _granted(s: Script) -> None:
    """A pop gives a running job, its worker, and a token."""
    put(s, "a")
    s.pop()


@probe("LEASE-2")
def _held(s: Script) -> None:
    """A leased job is renewed and completed under its token."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Heartbeat("a", token), 1000)
    s.do(ops.Complete("a", token))


@probe("LEASE-3")
def _claimed_anew(s: Script) -> None:
    """A timeout takes the lease away; the job is popped again and completed with the new token."""
    put(s, "a")
    s.pop()
    s.do(ops.Timeout(("a",)))
    s.do(ops.Complete("a", s.pop(worker="v")[0].token))


@probe("LEASE-4")
def _late(s: Script) -> None:
    """The worker that lost the lease cannot complete the job; the worker that holds the lease fails it."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Timeout(("a",)))
    new = s.pop(worker="v")[0].token
    s.do(ops.Complete("a", token))
    s.do(ops.Fail("a", new, "g", ""))


@probe("JOB-5")
def _ended(s: Script) -> None:
    """A job with progress that fails with a message, then completes with a result and large data."""
    put(s, "a", "data", tags=("t",))
    token = s.pop()[0].token
    s.do(ops.Progress("a", token, "hälf"), 1)
    s.do(ops.Fail("a", token, "später", "naïve\n\tmessage"), 1)
    s.do(ops.Get("a"), 1)
    s.do(ops.RetryMany(group="später", to="q"), 1)
    token = s.pop(worker="v")[0].token
    s.do(ops.Complete("a", token, "résult", data="é" * 600), 1)
    s.do(ops.Get("a"), 1)


# ---- resends, one for each way to recognise them


@probe("RESEND-job")
def _put_again(s: Script) -> None:
    """A put is sent again while the job is running: the job keeps running."""
    put(s, "a", request="r1")
    s.pop()
    put(s, "a", request="r1")
    s.do(ops.Running("q"))


@probe("RESEND-grant")
def _pop_again(s: Script) -> None:
    """A pop is sent again: it returns the same job with the same token, although another job waits."""
    put(s, "a")
    put(s, "b")
    s.pop(request="r1")
    s.pop(request="r1")
    s.do(ops.Length("q"))
    s.pop(request="r2")


@probe("RESEND-lease")
def _complete_again(s: Script) -> None:
    """A completion is sent again and gets the same reply."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Complete("a", token))
    s.do(ops.Complete("a", token))


@probe("RESEND-memo")
def _track_again(s: Script) -> None:
    """A job is tracked twice with one request id: both replies are 1. With another request id the reply is 0."""
    put(s, "a")
    for request in ("r1", "r1", "r2"):
        s.do(ops.Track("a", request))


@probe("RESEND-same")
def _heartbeat_again(s: Script) -> None:
    """A heartbeat is sent again and renews the lease from the second moment."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Heartbeat("a", token), 1)
    s.do(ops.Heartbeat("a", token), 1)


# ---- forms of replies


@probe("NUMBER-4")
def _fraction(s: Script) -> None:
    """Three waits with a mean that is not a whole number."""
    for jid in "abc":
        put(s, jid)
    for wait in (1, 2, 4):
        s.now += wait
        s.pop()
    s.do(ops.Stats("q"))


@probe("REPLY-lease")
def _renewed(s: Script) -> None:
    """A lease is renewed before and after the job is revoked."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Heartbeat("a", token), 1)
    s.do(ops.Revoke(("a",)))
    s.do(ops.Heartbeat("a", token), 1)


def _shape(shape: str, *looks: ops.Operation) -> None:
    """Register a probe for a form of reply: a namespace with jobs in many states, and these operations."""

    def write(s: Script) -> None:
        s.put("a", "b", "c", tags=("t", "u"))
        s.do(ops.Put("q", "d", "k", "", depends=("a",)))
        s.do(ops.Put("r", "e", "k", "", delay_ms=99))
        s.do(ops.Track("b"))
        s.do(ops.Track("c"))
        first, second = s.pop(2)
        s.do(ops.Fail(first.jid, first.token, "g", "why"), 7)
        for look in looks:
            s.do(look)
        s.do(ops.CompleteAndPop(second.jid, second.token, "q", "v", result="done"), 7)
        s.do(ops.Cancel(("c",)))
        for look in looks:
            s.do(look)

    write.__doc__ = f"Operations that reply `{shape}`, in a namespace with jobs in many states."
    PROBES[f"REPLY-{shape}"] = write


_SHAPED: tuple[tuple[Any, ...], ...] = (
    ("newest", ops.Newest()),
    (
        "jids",
        ops.PutMany((ops.Put("r", "f", "k", "", unique="u"), ops.Put("r", "g", "k", "", unique="u"))),
        ops.TagAdd("b", ("v",)),
        ops.DependsOff("d", ("a",)),
        ops.Multiget(("a", "b")),
    ),
    ("names", ops.TagAdd("b", ("v", "w")), ops.TagRemove("b", ("v",))),
    ("job", ops.Get("a"), ops.Get("c")),
    ("jobs", ops.Multiget(("c", "a", "nobody", "b")), ops.Peek("q", 5), ops.Multiget(("nobody",))),
    ("completed_and_popped",),
    ("page", ops.Waiting("q"), ops.Waiting("q", 1, 1), ops.Failed("g"), ops.Completed(), ops.Depending("q")),
    ("tallies", ops.TopTags(), ops.TopTags(1), ops.FailedGroups()),
    ("tracked", ops.Tracked()),
    (
        "schedule",
        ops.Recur("r", "s", "k", "é\n", 5000, 7, -1, 2, ("t", "a")),
        ops.RecurGet("s"),
        ops.RecurGet("nobody"),
    ),
    ("schedules", ops.Recur("r", "s", "k", "", 0, kind="cron", due_at=(START,)), ops.RecurringUnset()),
    ("results", ops.Put("q", "f", "k", "", depends=("b ignore one", "a ignore two", "e")), ops.Results("f")),
    ("found", ops.Search("q"), ops.Search("q", tag="t", count=1), ops.Search(group="g"), ops.Search(klass="k")),
    ("messages", ops.Publish("a.b", "x"), ops.Publish("a.c", ""), ops.Messages()),
    (
        "subscription",
        ops.Subscribe("s", ("a.*", "b.>"), "r", "k", 1, 2, 3, ("t",)),
        ops.SubscriptionGet("s"),
        ops.SubscriptionGet("nobody"),
    ),
    ("subscriptions", ops.Subscribe("s", ("a",), "r", "k"), ops.Subscribe("s2", (">",), "r", "k"), ops.Subscriptions()),
    ("entries", ops.MetadataSet("k", "one", "1"), ops.MetadataIncrement("k", "two", 2), ops.MetadataGet("k")),
    (
        "bulk",
        ops.RetryMany(group="g", preview=True),
        ops.CancelMany("r"),
        ops.Obliterate("r", True),
    ),
    ("cleaned", ops.Clean("complete", 1), ops.Clean("complete", preview=True), ops.Clean("complete")),
    (
        "throttle",
        ops.ThrottleSet("x", 1, 2, 1000, 3, 1, 1000),
        ops.ThrottleGet("x"),
        ops.ThrottleGet("queue/q"),
        ops.Put("q", "dear", "k", "", throttles=("x",), cost=4),
    ),
    ("reasons", ops.Why("a"), ops.Why("b"), ops.Why("c"), ops.Why("d")),
    ("throttles", ops.ThrottleSet("x", 1), ops.ThrottleSet("queue/q", rate=1, rate_ms=5), ops.Throttles()),
    (
        "used_throttles",
        ops.ThrottleSet("t*", 1),
        ops.Put("q", "held", "k", "", throttles=("ta",)),
        ops.Put("q", "parked", "k", "", throttles=("tb", "ta")),
        ops.Pop("q", "w", 2),
        ops.ThrottlesUsed("t*", count=1),
        ops.ThrottlesUsed("*", "ta"),
    ),
    (
        "unique",
        ops.Put("r", "x1", "k", "", unique="u"),
        ops.UniqueGet("u"),
        ops.Pop("r", "w"),
        ops.Put("r", "x2", "k", "", unique="u", unique_mode="again"),
        ops.UniqueGet("u"),
        ops.Put("r", "x3", "k", "", unique="v", unique_mode="window", unique_ms=5),
        ops.UniqueGet("v"),
        ops.UniqueGet("nobody"),
        ops.UniqueRelease("u"),
    ),
    (
        "request",
        ops.RequestPut("x", "r", 2, (ops.Put("r", "x:1", "k", ""), ops.Put("r", "x:2", "k", ""))),
        ops.RequestGet("x"),
        ops.RequestGet("nothing"),
        ops.RequestJobs("x"),
        ops.RequestJobs("x", 1, 1),
        ops.RequestJobs("nothing"),
        ops.RequestOpen("x", "r", 3),
        ops.RequestTune("x", limit=3),
        ops.RequestAdd("x", (ops.Put("r", "x:3", "k", ""),)),
        ops.RequestAdd("nothing", (ops.Put("r", "x:3", "k", ""),)),
        ops.RequestOpen("y", "r", 1),
        ops.RequestAdd("y", (ops.Put("r", "a", "k", ""),)),
        ops.RequestTouch("y"),
        ops.RequestClose("y"),
        ops.RequestTouch("y"),
        ops.RequestCancel("x"),
        ops.RequestForget("x"),
        ops.RequestPut("z", "r", 1, (ops.Put("r", "z:1", "k", ""),), fail_fast=True, keep_places=True),
        ops.RequestGet("z"),
        ops.RequestOpen("z", "r", 1, fail_fast=False),
        ops.Revoke(("z:1",)),
    ),
    (
        "sub_requests",
        ops.RequestPut("z", "r", 1, (ops.Put("r", "z:2", "k", ""), ops.Put("r", "z:1", "k", "", retries=0))),
        ops.Revoke(("z:1",)),
        ops.RequestJobs("z"),
        ops.RequestJobs("z", 1, 1),
        ops.RequestJobs("nothing"),
    ),
    (
        "forgotten",
        ops.RequestPut("z", "r", 1, (ops.Put("r", "z:1", "k", ""), ops.Put("r", "z:2", "k", "", retries=0))),
        ops.Revoke(("z:1", "z:2")),
        ops.RequestForget("z", delete_jobs=True),
        ops.RequestForget("z", delete_jobs=True),
    ),
    ("drained", ops.Drain("r"), ops.Drain("q", 1)),
    ("queues", ops.Queues(), ops.Queues(1, 1)),
    (
        "queue",
        *(ops.Pause(("q",), f"reason {n}") for n in range(11)),
        ops.Queue("q"),
        ops.Queue("r"),
        ops.Queue("nothing"),
    ),
    ("workers", ops.Workers()),
    ("worker", ops.Worker("w"), ops.Worker("v"), ops.Worker("nobody")),
    ("stats", ops.Stats("q"), ops.Stats("q", START - 86_400_000 * 20)),
    ("metrics", ops.Metrics("q", count=3), ops.Metrics("q", START - 86_400_000 * 20)),
    ("events", ops.Events(), ops.Events(3, 2)),
    ("settings", ops.ConfigSet("heartbeat", 1000), ops.Config(), ops.ConfigSet("heartbeat-q", 5), ops.Config()),
)

for _name, *_looks in _SHAPED:
    _shape(_name, *_looks)
