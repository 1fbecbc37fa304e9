"""The probes: for each requirement about bindings a history that shows it, and as little else as can be.

They are a staircase. Each needs only what those before it have shown, and one thing more, so that the first one that a
driver fails tells what is wrong with it. Therefore time, texts and leases are first shown by replies that hold nothing
but a number or an id, and only then by whole jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodel.conformance.histories.script import START, Script
from qmodel.conformance.kit.vectors import Vector, made
from qmodel.contract import operations as ops

Probe = Callable[[Script], None]

PROBES: dict[str, Probe] = {}
"""By the id of its requirement, in the order in which they are tried."""


def probe(id: str) -> Callable[[Probe], Probe]:
    """Enter a probe for a requirement."""

    def enter(write: Probe) -> Probe:
        PROBES[id] = write
        return write

    return enter


def vectors() -> list[Vector]:
    """The probes as vectors of the level `smoke`."""
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
def _whole(s: Script) -> None:
    """Nothing is counted: 0, and not 0.0 or "0"."""
    s.do(ops.Length("q"))


@probe("READ-1")
def _read_again(s: Script) -> None:
    """The same read before and after a change. Queue, job and type have one name, so that none can be mistaken."""
    s.do(ops.Length("q"))
    s.do(ops.Put("q", "q", "q", ""))
    s.do(ops.Length("q"))


@probe("CALL-1")
def _order(s: Script) -> None:
    """Queue, id and type differ; the job is in that queue under that id."""
    put(s, "a")
    s.do(ops.Length("q"))


@probe("NULL-1")
def _nothing(s: Script) -> None:
    """There is no such job."""
    s.do(ops.Get("nobody"))


@probe("REFUSAL-1")
def _refused(s: Script) -> None:
    """A job's id is not empty."""
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
    """A worker is seen at the moment of its pop."""
    s.do(ops.Pop("q", "w"))
    s.do(ops.Workers())


@probe("TIME-2")
def _duration(s: Script) -> None:
    """A job with a delay of a second and a half: scheduled a millisecond before it is over, and then no more."""
    put(s, "a", delay_ms=1500)
    s.do(ops.Scheduled("q"), 1499)
    s.do(ops.Scheduled("q"), 1)


@probe("NUMBER-2")
def _negative(s: Script) -> None:
    """A job with a negative priority goes before another one."""
    put(s, "b", priority=1)
    put(s, "a", priority=-2)
    s.do(ops.Waiting("q"))
    s.do(ops.Priority("b", -3))


@probe("NUMBER-3")
def _great(s: Script) -> None:
    """The greatest numbers there are, and one that a float of 32 bits does not hold."""
    s.do(ops.ConfigSet("jobs-history", 300_000_000_001))
    put(s, "b", priority=2**31 - 1)
    put(s, "a", priority=2**31 - 2)
    s.do(ops.Waiting("q"))
    s.now = 89_999_999_999_998
    s.do(ops.Pop("r", "w"))
    s.do(ops.Workers())


@probe("LIST-1")
def _elements(s: Script) -> None:
    """Three jobs in one call, and three tags, in the order of the alphabet."""
    put(s, "a")
    s.do(ops.TagAdd("a", ("r", "s", "t")))
    s.put("b", "c", "d")
    s.do(ops.Length("q"))


@probe("LIST-2")
def _orders(s: Script) -> None:
    """Tags and jobs that are not in the order of the alphabet, or of anything."""
    put(s, "b")
    put(s, "c")
    put(s, "a")
    s.do(ops.TagAdd("a", ("t", "r", "s")))
    s.do(ops.Waiting("q"))


# ---- sending


@probe("SEND-1")
def _once(s: Script) -> None:
    """A line is logged; the events tell of one."""
    put(s, "a")
    s.do(ops.Log("a", "one"))
    s.do(ops.Events())


@probe("SEND-2")
def _again(s: Script) -> None:
    """A line is logged twice under one request id; the events tell of one, and of a third under another id."""
    put(s, "a")
    for request in ("r1", "r1", "r2"):
        s.do(ops.Log("a", "one", request))
    s.do(ops.Events())


@probe("SEND-3")
def _unlike(s: Script) -> None:
    """Two lines are logged without a request id; the events tell of both."""
    put(s, "a")
    s.do(ops.Log("a", "one"))
    s.do(ops.Log("a", "two"))
    s.do(ops.Events())


# ---- what is given, and what is not


@probe("CALL-2")
def _default(s: Script) -> None:
    """A job is put again without a priority, and keeps the one that it had."""
    put(s, "a", priority=9)
    put(s, "b", priority=5)
    put(s, "a")
    s.do(ops.Waiting("q"))


@probe("CALL-3")
def _empty(s: Script) -> None:
    """A job is put again without tags, and keeps them; then with an empty list of tags, and has none."""
    put(s, "a", tags=("t",))
    put(s, "b", tags=("t",))
    put(s, "a")
    s.do(ops.Tagged("t"))
    put(s, "a", tags=())
    s.do(ops.Tagged("t"))


@probe("FLAG-1")
def _flag(s: Script) -> None:
    """A job is canceled with those that depend on it, because `cascade` says so."""
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
    """Jobs in which every field says something that a job has before it is popped, and no two the same."""
    s.do(ops.Put("u", "z", "l", "more", priority=4), 1)
    s.do(ops.Get("z"), 1)
    s.do(ops.Put("q", "a", "k", "data", priority=3, retries=7, tags=("s", "t"), delay_ms=9), 1)
    s.do(ops.Get("a"), 1)


@probe("JOB-6")
def _edges(s: Script) -> None:
    """Jobs that wait and are waited for, and one that is tracked; then there are seven elements."""
    put(s, "z")
    put(s, "a", tags=("t",), depends=("z",))
    put(s, "c", depends=("a",))
    for jid in ("z", "a", "c"):
        s.do(ops.Get(jid))
    s.do(ops.Track("z"))
    s.do(ops.Get("z"))


@probe("JOB-2")
def _state(s: Script) -> None:
    """A scheduled job before its time, and at it, when nobody has popped: it is waiting then."""
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
    """Letters of one to four bytes, in data, names and tags; a history follows, whose place the sizes tell."""
    s.do(ops.Put("zürich", "a", "\U0001f600", "é ß € \U0001f600", tags=("größe", "ж")))
    s.do(ops.Get("a"))
    s.do(ops.Queues())


@probe("TEXT-2")
def _control(s: Script) -> None:
    """NUL, line ends of all sorts, tabs, and the bytes that stand between things elsewhere."""
    for jid, data in (("a", "a\x00b"), ("b", "a\r\nb\nc\rd"), ("c", "x\t\x1f\x7f\x01y"), ("d", "OK"), ("e", "\\n\\")):
        put(s, jid, data)
        s.do(ops.Get(jid))


@probe("TEXT-3")
def _blanks(s: Script) -> None:
    """Blanks and line ends at either end, and nothing but a blank."""
    for jid, data in (("a", " x "), ("b", "\nx\n"), ("c", " ")):
        put(s, jid, data)
        s.do(ops.Get(jid))


@probe("TEXT-4")
def _long(s: Script) -> None:
    """Data of 70,000 characters of a byte, and of 3,000 of three bytes."""
    for jid, data in (("a", "x" * 70_000), ("b", "€" * 3_000)):
        put(s, jid, data)
        s.do(ops.Get(jid))


@probe("TEXT-5")
def _opaque(s: Script) -> None:
    """Data that look like JSON, written otherwise than anyone would; like numbers; like nothing."""
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
    """Jobs put together, with lists, an empty list, numbers, and a request id, which is of no use there."""
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
    """A lease is taken away and the job handed out again; its new token completes it."""
    put(s, "a")
    s.pop()
    s.do(ops.Timeout(("a",)))
    s.do(ops.Complete("a", s.pop(worker="v")[0].token))


@probe("LEASE-4")
def _late(s: Script) -> None:
    """The worker that lost the lease completes, and is refused; the one that has it fails the job."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Timeout(("a",)))
    new = s.pop(worker="v")[0].token
    s.do(ops.Complete("a", token))
    s.do(ops.Fail("a", new, "g", ""))


@probe("JOB-5")
def _ended(s: Script) -> None:
    """A job with progress, failed with a message; then completed with a result; texts and data that stand apart."""
    put(s, "a", "data", tags=("t",))
    token = s.pop()[0].token
    s.do(ops.Progress("a", token, "hälf"), 1)
    s.do(ops.Fail("a", token, "später", "naïve\n\tmessage"), 1)
    s.do(ops.Get("a"), 1)
    s.do(ops.RetryMany(group="später", to="q"), 1)
    token = s.pop(worker="v")[0].token
    s.do(ops.Complete("a", token, "résult", data="é" * 600), 1)
    s.do(ops.Get("a"), 1)


# ---- resends, by how they are recognised


@probe("RESEND-job")
def _put_again(s: Script) -> None:
    """A put is sent again when the job already runs: it goes on running."""
    put(s, "a", request="r1")
    s.pop()
    put(s, "a", request="r1")
    s.do(ops.Running("q"))


@probe("RESEND-grant")
def _pop_again(s: Script) -> None:
    """A pop is sent again: it shows the same job, under the same token, though another one waits."""
    put(s, "a")
    put(s, "b")
    s.pop(request="r1")
    s.pop(request="r1")
    s.do(ops.Length("q"))
    s.pop(request="r2")


@probe("RESEND-lease")
def _complete_again(s: Script) -> None:
    """A completion is sent again: it is answered the same."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Complete("a", token))
    s.do(ops.Complete("a", token))


@probe("RESEND-memo")
def _track_again(s: Script) -> None:
    """A job is tracked, and that is sent again: 1 both times, and 0 for another request."""
    put(s, "a")
    for request in ("r1", "r1", "r2"):
        s.do(ops.Track("a", request))


@probe("RESEND-same")
def _heartbeat_again(s: Script) -> None:
    """A heartbeat is sent again: the lease is renewed from then."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Heartbeat("a", token), 1)
    s.do(ops.Heartbeat("a", token), 1)


# ---- every form of reply


@probe("NUMBER-4")
def _fraction(s: Script) -> None:
    """Three waits whose mean is no whole number."""
    for jid in "abc":
        put(s, jid)
    for wait in (1, 2, 4):
        s.now += wait
        s.pop()
    s.do(ops.Stats("q"))


@probe("REPLY-lease")
def _renewed(s: Script) -> None:
    """A lease is renewed, the job is called off, and it is renewed again."""
    put(s, "a")
    token = s.pop()[0].token
    s.do(ops.Heartbeat("a", token), 1)
    s.do(ops.Revoke(("a",)))
    s.do(ops.Heartbeat("a", token), 1)


def _shape(shape: str, *looks: ops.Operation) -> None:
    """A probe for a form of reply: a namespace in which something of everything is, and these reads."""

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

    write.__doc__ = f"Something of everything, and what replies `{shape}`."
    PROBES[f"REPLY-{shape}"] = write


_SHAPED: tuple[tuple[Any, ...], ...] = (
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
        ops.Clean("complete", 1),
        ops.Obliterate("r", True),
    ),
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
        ops.RequestOpen("x", "r", 3),
        ops.RequestTune("x", limit=3),
        ops.RequestAdd("x", (ops.Put("r", "x:3", "k", ""),)),
        ops.RequestAdd("nothing", (ops.Put("r", "x:3", "k", ""),)),
        ops.RequestOpen("y", "r", 1),
        ops.RequestAdd("y", (ops.Put("r", "a", "k", ""),)),
        ops.RequestClose("y"),
        ops.RequestCancel("x"),
        ops.RequestForget("x"),
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
