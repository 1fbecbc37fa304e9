"""Calls as strings of the wire that no client of ours sends: arguments left out, repeated, unknown or malformed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Job
from qmodel.model import engine
from qmodel.model.state import budget
from qmodel.model.state.store import Store
from qmodel.wire import codec

CALLS = "calls"
"""The name in place of an operation's: several operations in one call."""


NOT_UTF8 = tuple(
    bad.decode("utf-8", "surrogateescape")
    for bad in (
        b"\x80", b"\xc3", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xe2\x82", b"\xe2\xc3\xa9\x82", b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff",
    )
)  # fmt: skip
"""Bytes that are no characters in UTF-8, as a text can hold them: left over, cut, too long, out of range."""


class Wire(NamedTuple):
    """A call as strings, and what it must do: what the model does with a step, or with several, or be refused."""

    operation: str
    args: list[str]
    expected: Step | list[Step | Refusal] | Refusal


SERVER_CLOCK = 1_700_000_000.9975
"""What TIME says while these are recorded: an empty `now` is that moment."""


def _bad(operation: str, argument: str) -> Refusal:
    return Refusal("BAD_ARGUMENT", (operation, argument))


def wire() -> list[Wire]:
    """Calls that no client of ours makes; docs/wire.md says what they mean."""
    at = int(SERVER_CLOCK * 1000)
    put = ["5", "", "q", "j", "k", "d"]
    one = ["q", "j", "k", "d"]
    found = [
        Wire("put", ["", "", "q", "clock", "k", "d"], Step(at, ops.Put("q", "clock", "k", "d"))),
        Wire("trim", [], Step(at, ops.Trim())),
        Wire("length", ["", "", "q"], Step(at, ops.Length("q"))),
        Wire("get", ["", "", "clock"], Step(at, ops.Get("clock"))),
        Wire("get", ["", "bad request", "clock"], Step(at, ops.Get("clock"))),
        Wire("length", ["5"], _bad("length", "queue")),
        Wire("length", [], _bad("length", "queue")),
        Wire("put", put[:2], _bad("put", "queue")),
        Wire("put", put[:3], _bad("put", "jid")),
        Wire("put", put[:5], _bad("put", "data")),
        Wire("put", [*put, "nope", "1"], _bad("put", "option")),
        Wire("put", [*put, "nope"], _bad("put", "option")),
        Wire("put", [*put, "priority"], _bad("put", "priority")),
        Wire("put", [*put, "tags"], _bad("put", "tags")),
        Wire("put", [*put, "no"], _bad("put", "option")),
        Wire("put", [*put, "no", "priority"], _bad("put", "no")),
        Wire("put", [*put, "no", "nope"], _bad("put", "option")),
        Wire("put", [*put, "no", "no"], _bad("put", "option")),
        Wire("put", [*put, "priority", "1", "tags"], _bad("put", "tags")),
        Wire("put", [*put, "priority", "1", "priority", "2"], Step(5, ops.Put("q", "j", "k", "d", 2))),
        Wire(
            "put",
            [*put, "tags", "a", "priority", "3", "tags", "b"],
            Step(5, ops.Put("q", "j", "k", "d", 3, tags=("a", "b"))),
        ),
        Wire("put", [*put, "tags", "a", "no", "tags"], Step(5, ops.Put("q", "j", "k", "d", tags=()))),
        Wire("put", [*put, "no", "depends", "no", "tags"], Step(5, ops.Put("q", "j", "k", "d", tags=(), depends=()))),
        Wire("put", [*put, "depends", "j block "], _bad("put", "depends")),
        Wire("put", [*put, "depends", " "], _bad("put", "depends")),
        Wire("put", ["5", "a b", *one], _bad("put", "request")),
        Wire("put", ["5", "x" * 65, *one], _bad("put", "request")),
        Wire("put", ["5", "x" * 64, *one], Step(5, ops.Put("q", "j", "k", "d", request="x" * 64))),
        Wire("get", ["5", "", "j"], Step(5, ops.Get("j"))),
        Wire("complete_many", ["5", ""], _bad("complete_many", "jobs")),
        Wire("put_many", ["5", ""], _bad("put_many", "jobs")),
        Wire("put_many", ["5", "", "jobs"], _bad("put_many", "jobs")),
        Wire("put_many", ["5", "", "jobs", "4", *one], Step(5, ops.PutMany((ops.Put("q", "j", "k", "d"),)))),
        Wire("put_many", ["5", "", "no", "jobs"], _bad("put_many", "no")),
        *(
            Wire("put_many", ["5", "", "jobs", size, *one], _bad("put_many", "jobs"))
            for size in ("5", "6", "x", "0", "-1", "")
        ),
        Wire("put_many", ["5", "", "jobs", "3", *one], _bad("put_many", "data")),
        Wire("put_many", ["5", "", "jobs", "1", *one], _bad("put_many", "jid")),
        Wire("put_many", ["5", "", "jobs", "3", "q", "j", "k", "jobs", "4", *one], _bad("put_many", "data")),
        Wire("put_many", ["5", "", "jobs", "4", *one, "jobs"], _bad("put_many", "jobs")),
        Wire("put_many", ["5", "", "jobs", "5", *one, "priority"], _bad("put_many", "priority")),
        Wire("put_many", ["5", "", "jobs", "4", *one, "priority", "1"], _bad("put_many", "option")),
        Wire("put_many", ["5", "", "jobs", "5", *one, "tags", "jobs", "4", *one], _bad("put_many", "tags")),
        Wire(
            "put_many",
            ["5", "", "jobs", "4", *one, "request", "r", "jobs", "4", "q", "i", "k", "d"],
            Step(5, ops.PutMany((ops.Put("q", "j", "k", "d"), ops.Put("q", "i", "k", "d")))),
        ),
        Wire("put_many", ["5", "", "jobs", "6", *one, "priority", "x"], _bad("put_many", "priority")),
        Wire(
            "put_many",
            ["5", "", "jobs", "6", *one, "priority", "7", "jobs", "6", "q", "i", "k", "d", "no", "tags"],
            Step(5, ops.PutMany((ops.Put("q", "j", "k", "d", 7), ops.Put("q", "i", "k", "d", tags=())))),
        ),
        Wire("get", ["6", "", "j"], Step(6, ops.Get("j"))),
        Wire("pop", ["6", "", "none", "w", "wait", "0"], Step(6, ops.Pop("none", "w"))),
        Wire("pop", ["6", "", "none", "w", "wait", "1"], Step(6, ops.Pop("none", "w", wait=True))),
        *(Wire("pop", ["6", "", "none", "w", "wait", bad], _bad("pop", "wait")) for bad in ("2", "", "01", "true")),
        *(
            Wire("priority", ["6", "", "j", bad], _bad("priority", "priority"))
            for bad in (
                "",
                "-",
                "+1",
                "01",
                "-0",
                "1.0",
                "1e3",
                "0x10",
                " 1",
                "1 ",
                "nan",
                "inf",
                "--1",
                "1-1",
                "00",
                "-01",
                "2147483648",
                "-2147483649",
                "1" * 14,
                "1" * 15,
                "1" * 16,
                "1" * 400,
                "1\n",
                "\u0661",
            )
        ),
        *(
            Wire("priority", ["6", "", "j", str(good)], Step(6, ops.Priority("j", good)))
            for good in (0, 1, -1, 10, 100, -(2**31), 2**31 - 1)
        ),
        *(
            Wire("length", [bad, "", "q"], _bad("length", "now"))
            for bad in ("x", "-1", "1.5", " ", "90000000000000", "9" * 15, "9" * 16, "1e3", "00")
        ),
        Wire("length", ["89999999999999", "", "q"], Step(89_999_999_999_999, ops.Length("q"))),
        Wire("length", ["6", "", "é\u20ac\U0001f600"], Step(6, ops.Length("é\u20ac\U0001f600"))),
        *(Wire("length", ["6", "", f"q{bad}"], _bad("length", "queue")) for bad in NOT_UTF8),
        Wire("complete", ["6", "", "j", "1" + "0" * 30], _bad("complete", "token")),
        Wire("complete", ["6", "", "j", "1", "result"], _bad("complete", "result")),
        Wire("complete_and_pop", ["6", "", "j", "1", "q", "w", "result"], _bad("complete_and_pop", "result")),
        Wire("config", ["6", "", "x"], _bad("config", "option")),
        Wire("config", ["6", ""], Step(6, ops.Config())),
    ]
    return several() + recorded() + found  # while no epoch has begun: its tokens are those of the model


def _several(*steps: Step) -> Wire:
    words = [(step.op.spec.name, codec.encode(step.op, step.now)) for step in steps]
    return Wire(CALLS, [part for name, args in words for part in (name, str(len(args)), *args)], list(steps))


def _behind(steps: Sequence[Step], operation: str, args: list[str], expected: Step | Refusal) -> Wire:
    """Give a call behind others, which have made known the names that it has."""
    return Wire(CALLS, [*_several(*steps).args, operation, str(len(args)), *args], [*steps, expected])


def _joined(*calls: Wire) -> Wire:
    """Give the operations of several calls in one."""
    expected = [each for call in calls if isinstance(call.expected, list) for each in call.expected]
    return Wire(CALLS, [word for call in calls for word in call.args], expected)


def recorded() -> list[Wire]:
    """Calls that are recorded in other words than they were sent, and a call of more words than it executes."""
    long = Step(8, ops.TagAdd("nobody", tuple(f"t{i}" for i in range(400))))
    puts = [Step(8, ops.Put("c", f"l{i}", "k", "d")) for i in range(50)]
    return [
        Wire("config_set", ["8", "", "journal", "1"], Step(8, ops.ConfigSet("journal", 1))),
        Wire("complete", ["8", "x", "nobody", "1"], Step(8, ops.Complete("nobody", 1))),
        Wire("trim", ["8"], Step(8, ops.Trim())),
        Wire("journal", ["8", "", "count", "9"], Step(8, ops.Journal(0, 9))),
        Wire("config_set", ["8", "", "journal", "0"], Step(8, ops.ConfigSet("journal", 0))),
        _several(*[long] * 6)._replace(expected=[long] * 4),
        _several(*[long] * 3, *puts)._replace(expected=[*[long] * 3, *puts[:47]]),
    ]


def several() -> list[Wire]:
    """Several operations in one call: in rows of one kind, alone, refused and malformed."""
    store, found = Store(), []

    def play(now: int, *asked: Operation) -> list[Any]:
        steps = [Step(now, op) for op in asked]
        found.append(_several(*steps))
        return [engine.step(store, *step) for step in steps]

    now = 7
    new = [ops.Put("c", f"c{i}", "k", "d", request=f"c{i}" if i % 2 else "") for i in range(5)]
    play(now, ops.Put("c", "c", "k", "d"), ops.Pop("c", "w", request="c"))
    lease = play(now, ops.Pop("c", "w", request="c"))[0][0]
    play(now, ops.Complete("c", lease.token), ops.Complete("c", lease.token), ops.Complete("c", 1))
    rare: list[dict[str, Any]] = [{"tags": ("t",)}, {"tags": ("t",)}, {"unique": "u"}, {"throttles": ("t",)}]
    play(now, *(ops.Put("c", f"r{i}", "k", "d", **more) for i, more in enumerate(rare)))
    held = [play(now, ops.Pop("c", "w", request=f"r{i}"))[0][0] for i in range(len(rare))]
    play(now, *(ops.Complete(job.jid, job.token) for job in held))
    play(
        now,
        *new,
        new[1],
        ops.Put("c", "c", "k", "d"),
        ops.Put("c", "t", "k", "d", tags=("t",)),
        ops.Put("d", "d", "k", "d"),
    )
    popped = play(now, *(ops.Pop("c", "w", request=f"p{i}") for i in range(4)), ops.Pop("c", "w"))
    popped += play(now, *(ops.Pop("c", "w", count=1, wait=True, request=f"p{i}") for i in range(3, 9)))
    jobs = {job.jid: job for reply in popped for job in reply}.values()
    play(now, *(ops.Complete(job.jid, job.token, result="r" * (i % 2)) for i, job in enumerate(jobs)))
    play(now, ops.Put("c", "last", "k", "d"), ops.RequestOpen("R", "c", 5), ops.ConfigSet("journal", 1))
    lease = play(now, ops.Pop("c", "w", count=9))[0][0]
    found += _behind_others(now, lease)
    good = found[0].args
    bad = ("get 3 7 r c", "put", "put 1 7", "put 02 7 r", "nothing 2 7 r", "put 9 7 r c")
    refused = [[], *([*good, *words.split()] for words in bad)]
    return [*found, *(Wire(CALLS, args, _bad(CALLS, "operations")) for args in refused)]


def _behind_others(now: int, lease: Job) -> list[Wire]:
    """Malformed calls, and calls with entries in the journal a few bytes too short to count as another block."""

    def put(jid: str) -> Step:
        return Step(now, ops.Put("c", jid, "k", "d"))

    moment, leased = str(now), [lease.jid, str(lease.token)]
    many = [moment, "", "jobs", "3", "c", "m0", "k", "jobs", "4", "c", "m1", "k", "d"]
    added = [moment, "", "R", "jobs", "5", "c", "added", "k", "d"]
    pop = [moment, "r" * 43, "c", "w", *["wait", "1"] * 605]
    both = [moment, "", *leased, "c", "w", *["wait", "1"] * 603]
    both[1] = "s" * (budget.BLOCK - len("complete") + 4 - len("".join(both)))
    again = ops.CompleteAndPop(lease.jid, lease.token, "c", "w", wait=True, request=both[1])
    never = ["put", "6", "x", "", "c", "never", "k", "d"]
    known = [[put(f"p{i}"), Step(now, ops.Pop("c", "w", request=f"p{i}")), put(f"q{i}")] for i in range(2)]
    return [
        Wire("complete_many", [moment, "", "jobs", "2", *leased, "x"], _bad("complete_many", "option")),
        Wire(CALLS, never * 2, [_bad("put", "now")] * 2),
        _behind([put("m")], "put_many", many, _bad("put_many", "data")),
        _behind([put("n")], "request_add", added, _bad("request_add", "jobs")),
        _behind(known[0], "pop", pop, Step(now, ops.Pop("c", "w", wait=True, request="r" * 43))),
        _behind(known[1], "complete_and_pop", both, Step(now, again)),
        *_among_others(now, pop),
    ]


def _among_others(now: int, pop: list[str]) -> list[Wire]:
    """Calls that would be done together with the others of their kind, but are malformed, and long ones that are."""

    def puts(*jids: str) -> list[Step]:
        return [Step(now, ops.Put("c", jid, "k", "d")) for jid in jids]

    moment, taken = str(now), Step(now, ops.Pop("c", "w", request="g"))
    pops = [
        _behind(before, "pop", [moment, request, *pop[2:]], Step(now, ops.Pop("c", "w", wait=True, request=request)))
        for before, request in (([*puts("g0"), taken, *puts("g1", "g2")], "s" * 43), ([], "t" * 44))
    ]
    short = _behind(puts("s0", "s1"), "put", [moment, "", "c", "s2", "k"], _bad("put", "data"))
    names = [
        _behind(
            puts(f"{name}{at}", f"{name}-{at}"),
            "put",
            [moment, "", "c", "b", "k", "d", name, f"f{bad}"],
            _bad("put", name),
        )
        for name in ("fair_key", "dead_queue")
        for at, bad in enumerate(NOT_UTF8)
    ]
    return [
        _joined(*pops),
        _joined(short, _several(*puts("s3"))),
        _behind(puts("h0", "h1", "h2"), "put", ["x", "", "c", "h", "k", "d"], _bad("put", "now")),
        _behind(puts("i0", "i1", "i2"), "complete", ["x", "", "nobody", "1"], _bad("complete", "now")),
        *names,
    ]
