"""Histories with a purpose, of unique keys, of lines as a peek foresees them, and of what follows in parts."""

from __future__ import annotations

from collections.abc import Callable

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops


def _put(s: Script, jid: str, mode: str | None = None, **more: object) -> object:
    return s.do(ops.Put("q", jid, "k", f"of {jid}", unique="k", unique_mode=mode, **more))  # type: ignore[arg-type]


def what_stands_for_a_key(s: Script) -> None:
    """A holder that failed before it began; a next one that ran before; one that has other dependencies."""
    _put(s, "a", "window", unique_ms=60_000)
    s.do(ops.Revoke(("a",)))
    _put(s, "b", "debounce")
    s.do(ops.Get("a"))
    s.do(ops.UniqueRelease("k"))
    _put(s, "r")
    for _ in range(2):
        _put(s, "r2", request="x")
    s.do(ops.Cancel(("r",)))
    s.put("n", "other")
    s.complete(*s.pop())
    _put(s, "h")
    s.do(ops.Priority("h", -1))
    (h,) = s.pop()
    _put(s, "n", "again", depends=("other",))
    _put(s, "m", "again", delay_ms=5)
    s.do(ops.Get("n"))
    s.complete(h)
    s.do(ops.Get("n"))
    s.do(ops.UniqueGet("k"))
    s.complete(*s.pop())
    s.do(ops.Get("n"))
    s.look()


def released_with_other_dependencies(s: Script) -> None:
    """The next one waits on for what else it depends on when its key is released."""
    s.put("other")
    _put(s, "h", priority=-1)
    s.pop()
    _put(s, "n", "again", depends=("other",))
    s.do(ops.UniqueRelease("k"))
    s.do(ops.Get("n"))
    s.complete(*s.pop())
    s.do(ops.Get("n"))


def two_of_a_key_at_once(s: Script) -> None:
    """A job that has a key is not put in one step with another one of that key; and none waits for who waits for it."""
    _put(s, "a")
    puts = [ops.Put("q", jid, "k", "", unique="k") for jid in "ab"]
    s.do(ops.PutMany(tuple(puts)))
    s.do(ops.PutMany(tuple(puts[:1])))
    s.do(ops.PutMany((ops.Put("q", "a", "k", ""), puts[1])))
    (a,) = s.pop()
    s.put("c")
    s.do(ops.Release("a", a.token, depends=("c",)))
    _put(s, "c", "again")
    _put(s, "d", "again")
    s.look()


def a_key_that_went_on(s: Script) -> None:
    """A job whose key has passed to others takes nothing away from them when it ends."""
    _put(s, "a", unique_ms=10)
    (a,) = s.pop()
    s.now += 1000
    _put(s, "b")
    (b,) = s.pop()
    _put(s, "c", "again")
    s.complete(a)
    s.do(ops.UniqueGet("k"))
    s.complete(b)
    s.do(ops.UniqueGet("k"))


def a_delay_that_gives_up_a_place(s: Script) -> None:
    """A job that has a place in a line, and is delayed by a put for which it stands, lets the next one go on."""
    _put(s, "a", ordered="o")
    s.put("b", ordered="o")
    _put(s, "c", "debounce", delay_ms=1000)
    _put(s, "d", "debounce", delay_ms=500)
    s.do(ops.Get("b"))
    s.do(ops.Get("a"))
    s.pop(2)


# ---- lines


def peeks_at_a_request(s: Script) -> None:
    """Who would be let through, if those that hold places, and some that wait, were to end in the next pop."""
    s.do(ops.RequestOpen("x", "q", 2))
    lives = {2: 5000, 3: 70_000, 4: 5000, 6: 70_000}
    puts = [ops.Put("q", f"x:{n}", "k", "", retries=0, ttl_ms=lives.get(n)) for n in range(9)]
    s.do(ops.RequestAdd("x", tuple(puts)))
    s.pop(2)
    s.do(ops.Put("q", "o1", "k", "", ordered="o", ttl_ms=1000))
    s.do(ops.Put("q", "o2", "k", "", ordered="o", ttl_ms=2000))
    s.do(ops.Put("r", "o3", "k", "", ordered="o"))
    s.do(ops.Put("q", "o4", "k", "", ordered="o", ttl_ms=90_000))
    for later in (0, 1500, 6000, 80_000):
        s.now += later
        s.put("z", priority=0)
        s.do(ops.Cancel(("z",)))
        for count in (1, 3, 20):
            s.do(ops.Peek("q", count))
        s.do(ops.Peek("r", 5))
    s.put("z0")
    s.do(ops.Peek("q", 20))
    s.pop(20)
    s.look()


def peeks_at_what_falls_due(s: Script) -> None:
    """Jobs of lines that fall due: the first of each gets its place, one that has it keeps it, and others wait."""
    s.do(ops.Put("q", "p0", "k", "", ordered="p"))
    (p0,) = s.pop()
    s.do(ops.Retry("p0", p0.token, 1000))
    for jid, line in (("a1", "a"), ("a2", "a"), ("p1", "p"), ("b1", "b"), ("n1", None), ("a3", "a"), ("b2", "b")):
        s.do(ops.Put("q", jid, "k", "", delay_ms=1000, ordered=line))
    s.do(ops.Put("q", "c1", "k", "", ordered="c", ttl_ms=500))
    s.do(ops.Put("q", "c2", "k", "", ordered="c", delay_ms=900))
    s.do(ops.Put("q", "c3", "k", "", ordered="c"))
    s.do(ops.RequestOpen("y", "q", 2))
    s.do(ops.RequestAdd("y", tuple(ops.Put("q", f"y:{n}", "k", "", delay_ms=900 + n) for n in range(4))))
    for later in (0, 600, 500):
        s.now += later
        for count in (1, 2, 25):
            s.do(ops.Peek("q", count))
    s.pop(25)
    s.look()


def a_limit_that_was_lowered(s: Script) -> None:
    """With more places taken than there are nobody is let through."""
    s.do(ops.RequestOpen("x", "q", 3))
    s.do(ops.RequestAdd("x", tuple(ops.Put("q", f"x:{n}", "k", "", retries=0) for n in range(9))))
    leased = s.pop(3)
    s.do(ops.RequestTune("x", limit=1))
    s.complete(leased[0])
    s.do(ops.RequestGet("x"))
    s.now += 80_000
    s.do(ops.Peek("q", 5))
    s.pop(5)
    s.look()


# ---- what follows a failure, in parts


def _fail(s: Script, queue: str = "z") -> None:
    for job in s.pop(9, queue=queue):
        s.do(ops.Fail(job.jid, job.token, "g", ""))


def canceled_and_failed_by_two_ways(s: Script) -> None:
    """One that is to be canceled already; one that failed for the one, and is let go by the other."""
    s.put("a", "b", queue="z")
    s.put("a2", depends=("a cancel",))
    s.put("c", depends=("a cancel",))
    s.do(ops.DependsOn("a2", ("c cancel",)))
    s.put("d", depends=("a cancel",))
    s.put("w", depends=("d fail", "b ignore"))
    (a, b) = s.pop(2, queue="z")
    s.do(ops.Fail("a", a.token, "g", ""))
    s.do(ops.Get("w"))
    s.do(ops.Fail("b", b.token, "g", ""))
    s.look()


def hundreds_come_to_a_failed_job(s: Script) -> None:
    """It is asked for once, however many come to depend on it in one step."""
    s.put("root", queue="z")
    _fail(s)
    s.put(*(f"a{n:04}" for n in range(550)), depends=("root fail",))
    s.do(ops.Pop("nowhere", "w"))
    s.do(ops.Get("root"))


def asked_for_again(s: Script) -> None:
    """Others come to depend on failed jobs of which the cascade is left, in every order."""
    s.put("root", "other", queue="z")
    for n in range(8):
        s.put(f"t{n}", depends=("root fail",))
        s.put(*(f"u{n}-{m:03}" for m in range(350)), depends=(f"t{n} fail",), queue="r")
        s.put(f"v{n}", depends=("other fail",))
        s.put(*(f"w{n}-{m:03}" for m in range(200)), depends=(f"v{n} cancel",), queue="r")
    (root, other) = s.pop(2, queue="z")
    s.do(ops.Fail("root", root.token, "g", ""))
    late = [ops.Put("q", f"late{n}", "k", "", depends=(f"t{n} fail", "t6 ignore")) for n in (0, 1)]
    s.do(ops.PutMany(tuple(late)))
    s.do(ops.Fail("other", other.token, "g", ""))
    s.do(ops.Put("q", "later", "k", "", depends=("t0 fail", "v0 fail")))
    for _ in range(4):
        s.do(ops.Pop("nowhere", "w"))
    s.look()


def no_longer_to_be_canceled(s: Script) -> None:
    """Of many that are left to be canceled one is put anew and fails for another reason, and one is waited for."""
    s.put("root", queue="z")
    many = [f"d{n:03}" for n in range(900)]
    s.put(*many, depends=("root cancel",), queue="r")
    for part in range(3):
        puts = [ops.Put("r", f"e{part}-{jid}", "k", "", depends=(f"{jid} cancel",)) for jid in many]
        s.do(ops.PutMany(tuple(puts)))
    _fail(s)
    s.do(ops.Put("r", "d000", "k", "", depends=()))
    s.do(ops.Revoke(("d000",)))
    s.do(ops.Put("q", "f", "k", "", depends=("d001 block",)))
    for _ in range(3):
        s.do(ops.Pop("nowhere", "w"))
        s.do(ops.Get("d001"))
    s.look()


def what_is_counted_of_what_follows(s: Script) -> None:
    """Each operation does about a thousand things: those that follow, and one for each job that nobody follows."""
    s.put("one", "two", queue="z")
    names = [f"a{n:04}" for n in range(1500)]
    s.put(*names[:1000], depends=("one fail",))
    s.put(*names[1000:], depends=("two fail",))
    for on, part in (("block", names[::3]), ("cancel", names[1::3]), ("ignore", names[2::3])):
        s.do(ops.PutMany(tuple(ops.Put("r", f"{jid}-{on}", "k", "", depends=(f"{jid} {on}",)) for jid in part)))
    (one, two) = s.pop(2, queue="z")
    s.do(ops.Fail("one", one.token, "g", ""))
    s.do(ops.Fail("two", two.token, "g", ""))
    s.do(ops.RetryMany(group="failed-dependencies-q", to="q", count=600))
    for _ in range(3):
        s.do(ops.Length("r"))
        s.do(ops.Pop("nowhere", "w"))


def canceling_what_waits_for_a_thousand(s: Script) -> None:
    """Just a thousand end with one job, and more of them in two parts, between which its dependents have followed."""
    many = [f"j{n:04}" for n in range(1100)]
    s.put(*many, queue="r")
    s.put("root", "other", queue="z")
    s.put("v", depends=("other cancel",))
    s.put("w", depends=("root cancel",))
    s.put("x", depends=("w fail",))
    s.do(ops.DependsOn("v", tuple(many[:999])))
    s.do(ops.DependsOn("w", tuple(many[:600])))
    s.do(ops.DependsOn("w", tuple(many[600:])))
    _fail(s)
    s.do(ops.Get("v"))
    for _ in range(3):
        s.do(ops.Get("w"))
        s.do(ops.Get("x"))
        s.do(ops.Pop("nowhere", "w"))
    s.look()


def the_thousandth_name(s: Script) -> None:
    """The thousandth named dependency is the last."""
    many = [f"j{n:04}" for n in range(1001)]
    s.put(*many)
    s.do(ops.Put("q", "w", "k", "", depends=tuple(f"{jid} ignore {jid}" for jid in many[:999])))
    s.do(ops.DependsOn("w", (f"{many[999]} ignore x", many[1000])))
    s.do(ops.DependsOn("w", (f"{many[1000]} ignore y",)))
    s.do(ops.Results("w"))


SCRIPTS: tuple[Callable[[Script], None], ...] = (
    what_stands_for_a_key, released_with_other_dependencies, two_of_a_key_at_once, a_key_that_went_on,
    a_delay_that_gives_up_a_place, peeks_at_a_request, peeks_at_what_falls_due, a_limit_that_was_lowered,
    canceled_and_failed_by_two_ways, hundreds_come_to_a_failed_job, asked_for_again, no_longer_to_be_canceled,
    what_is_counted_of_what_follows, canceling_what_waits_for_a_thousand, the_thousandth_name,
)  # fmt: skip
