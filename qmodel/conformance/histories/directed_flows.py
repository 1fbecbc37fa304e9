"""Histories with a purpose, of edges: what follows when a job fails, also a thousand and more."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation


def _fail(s: Script, jid: str, *, queue: str = "q") -> None:
    """Take a job, wherever it is, and fail it."""
    leased = s.pop(1000, queue=queue)
    job = next(job for job in leased if job.jid == jid)
    s.do(ops.Fail(jid, job.token, "g", "it broke"))
    for other in leased:
        if other.jid != jid:
            s.do(ops.Release(other.jid, other.token))


def _edges(jid: str, names: bool = False) -> dict[str, tuple[str, ...]]:
    """A dependent for each policy."""
    name = " it" if names else ""
    return {policy: (f"{jid} {policy}{name}",) for policy in ("block", "fail", "ignore", "cancel")}


def following(s: Script) -> None:
    """One dependent for each policy, named and not; and what depends on those."""
    s.put("a")
    for names in (False, True):
        for policy, depends in _edges("a", names).items():
            jid = policy + "-named" * names
            s.put(jid, depends=depends)
            for inner, edges in _edges(jid, not names).items():
                if (policy, inner) != ("cancel", "block"):
                    s.put(f"{jid}-{inner}", depends=edges, queue="r")
    s.do(ops.Results("fail-named"))
    _fail(s, "a")
    s.look()
    for jid in list(s.store.jobs):
        s.do(ops.Results(jid))
    s.do(ops.RetryMany(group="failed-dependencies-q", to="q", count=9))
    s.do(ops.RetryMany(group="g", to="q"))
    (a,) = s.pop()
    s.do(ops.Complete("a", a.token, "at last"))
    s.look()
    s.do(ops.Results("block-named"))


def in_any_order(s: Script) -> None:
    """A job whose edges say different things, and whose dependencies fail in either order."""
    for one, other in (
        ("fail", "cancel"),
        ("cancel", "fail"),
        ("ignore", "fail"),
        ("fail", "ignore"),
        ("block", "fail"),
    ):
        s.put("a", "b")
        s.put("w", depends=(f"a {one} left", f"b {other} right"))
        _fail(s, "a")
        s.do(ops.Results("w"))
        _fail(s, "b")
        s.do(ops.Results("w"))
        s.look()
        s.do(ops.Cancel(("w", "a", "b")))


def held_by_another(s: Script) -> None:
    """Jobs that cannot be canceled, for others wait for them by edges that block."""
    s.put("a")
    s.put("b", depends=("a cancel",))
    s.put("c", depends=("b cancel",))
    s.put("d", depends=("c",))
    s.put("e", depends=("b cancel", "c cancel"))
    s.put("f", depends=("b fail", "e cancel"))
    s.put("g", depends=("b ignore gone",))
    _fail(s, "a")
    s.do(ops.Results("g"))
    s.look()
    s.put("h")
    s.put("i", depends=("h cancel",))
    s.put("j", depends=("i",))
    _fail(s, "h")
    s.do(ops.RetryMany(group="failed-dependencies-q", to="q", count=9))
    s.look()


def added_late(s: Script) -> None:
    """Edges to a job that has failed already, however they are given."""
    s.put("a", "z")
    _fail(s, "a")
    for policy in ("block", "fail", "ignore", "cancel"):
        edge = f"a {policy} name"
        s.do(ops.Put("q", f"put-{policy}", "k", "", depends=(edge,), request="r"))
        s.do(ops.Put("q", f"put-{policy}", "k", "", depends=(edge,), request="r"))
        s.do(
            ops.PutMany(
                (ops.Put("q", "m1", "k", "", depends=("m2 cancel",)), ops.Put("q", "m2", "k", "", depends=(edge,)))
            )
        )
        s.put("on", depends=("z",))
        s.do(ops.DependsOn("on", (edge, "a")))
        for finish in (ops.Complete, ops.Release):
            s.put("job", queue="r")
            (job,) = s.pop(queue="r")
            way: dict[str, Any] = {"next": "r"} if finish is ops.Complete else {}
            s.do(finish("job", job.token, depends=(edge,), **way))
            s.do(finish("job", job.token, depends=(edge,), **way))
            s.do(ops.Results("job"))
            s.do(ops.Cancel(("job",)))
        s.look()
    s.do(ops.PutMany((ops.Put("q", "m3", "k", "", depends=("a cancel",)), ops.Put("q", "a", "k", ""))))
    s.look()


def _awaited(s: Script) -> Any:
    """A job that is leased, and those who wait for it: to be freed, failed and canceled; two runs, one the last of its
    recurring job; and one that is freed into a line.
    """
    s.put("j", retries=0)
    s.put("c", depends=("j cancel", "bad"))
    s.put("cc", depends=("c cancel",))
    s.put("f", "ff", depends=("j fail",), dead_queue="dead")
    s.do(ops.Recur("runs", "m", "k", "", 1000, overlap="skip"))
    s.do(ops.Recur("runs", "e", "k", "", 1000, overlap="skip", end_at=s.now + 1500))
    for run in s.pop(9, queue="runs"):
        s.do(ops.Release(run.jid, run.token, depends=("j fail",)))
    s.put("before", queue="lines", ordered="line")
    s.put("i", depends=("j ignore it",), ordered="line")
    return s.pop()[0]


def whoever_fails_it(s: Script) -> None:
    """Dependents that are freed, failed and canceled by each operation that may fail a job."""
    s.put("bad", queue="z")
    _fail(s, "bad", queue="z")
    bad = ("bad fail",)
    failing: tuple[tuple[Callable[[Any], Operation], ...], ...] = (
        (lambda job: ops.Put("q", "j", "k", "", depends=bad),),
        (lambda job: ops.PutMany((ops.Put("q", "j", "k", "", depends=bad),)),),
        (lambda job: ops.Complete("j", job.token, next="q", depends=bad),),
        (lambda job: ops.CompleteAndPop("j", job.token, "r", "w", next="q", depends=bad),),
        (lambda job: ops.Release("j", job.token, depends=bad),),
        (lambda job: ops.Fail("j", job.token, "g", "m"),),
        (lambda job: ops.Retry("j", job.token),),
        (lambda job: ops.Release("j", job.token), lambda job: ops.Revoke(("j",))),
        (lambda job: ops.Revoke(("j",)), lambda job: ops.CompleteMany((ops.Complete("j", job.token),))),
        (lambda job: ops.Revoke(("j",)), lambda job: ops.Timeout(("j",))),
        (lambda job: ops.Config(), lambda job: ops.Pop("q", "v")),
        (lambda job: ops.Config(), lambda job: ops.PopAny(("r", "q"), "v")),
        (lambda job: ops.Put("q", "j", "k", "", ttl_ms=1000), lambda job: ops.Fire("q")),
        (lambda job: ops.Put("q", "j", "k", "", depends=("z",)), lambda job: ops.DependsOn("j", bad)),
    )
    s.put("z", queue="z")
    for steps in failing:
        job = _awaited(s)
        for step in steps[:-1]:
            s.do(step(job))
        s.do(steps[-1](job), 80_000)
        s.do(ops.Results("i"))
        s.do(ops.RecurGet("m"))
        s.do(ops.Unrecur("m"))
        s.do(ops.Unrecur("e"))
        s.do(ops.Cancel(tuple(jid for jid in s.store.jobs if jid not in ("bad", "z")), cascade=True))
    s.look()


def names_of_results(s: Script) -> None:
    """Named edges: met at once, given again under another name or none, ended, and forgotten."""
    s.put("a", "b", "c", "d")
    for job in s.pop(2):
        s.do(ops.Complete(job.jid, job.token, f"of {job.jid}\n\twith lines"))
    s.put("w", depends=("a block first", "c ignore second", "b", "d"))
    s.do(ops.Results("w"))
    s.do(ops.DependsOn("w", ("d block third", "c fail again", "b block fourth")))
    s.do(ops.Results("w"))
    s.do(ops.DependsOn("w", ("c",)))
    s.do(ops.Results("w"))
    s.do(ops.DependsOff("w", ("d",)))
    s.do(ops.Results("w"))
    s.look()
    s.do(ops.Put("q", "w", "k", "new"))
    s.do(ops.Results("w"))
    s.do(ops.Put("q", "w", "k", "newer", depends=("a block only",)))
    s.do(ops.Results("w"))
    w = next(job for job in s.pop(9) if job.jid == "w")
    s.do(ops.Complete("w", w.token, next="r", depends=("b block more",)))
    s.do(ops.Results("w"))
    (w,) = s.pop(queue="r")
    s.do(ops.Complete("w", w.token))
    s.do(ops.Results("w"))
    s.do(ops.Results("nobody"))
    s.look()


def a_thousand_names(s: Script) -> None:
    """As many named dependencies as there may be, and one more."""
    jids = [f"j{n:04}" for n in range(1000)]
    s.put(*jids, "more")
    s.do(ops.Put("q", "w", "k", "", depends=tuple(f"{jid} ignore {jid}" for jid in jids)))
    s.do(ops.DependsOn("w", ("more block more",)))
    s.do(ops.DependsOn("w", ("more",)))
    s.complete(*s.pop(999))
    s.do(ops.Results("w"))
    last, more = s.pop(2)
    s.do(ops.Fail(last.jid, last.token, "g", "the last"))
    s.do(ops.Complete(more.jid, more.token))
    s.do(ops.Get("w"))
    (w,) = s.pop()
    s.do(ops.Release("w", w.token, depends=("more block one-more",)))
    s.do(ops.Results("w"))
    s.do(ops.Complete("w", w.token, next="q", depends=("more block one-more",)))
    s.do(ops.Complete("w", w.token))


def waiting_for_children(s: Script) -> None:
    """A running job that waits for others: for none, for some, for complete ones, and more than once."""
    s.put("parent", retries=1)
    (parent,) = s.pop()
    s.put("one", "two", queue="r")
    s.do(ops.Release("parent", parent.token, depends=("nobody",)))
    s.do(ops.Release("parent", parent.token, depends=("parent",)))
    s.do(ops.Release("parent", parent.token, 500, "step 2", depends=("one block one", "two ignore two")))
    s.do(ops.Release("parent", parent.token, 500, "step 2", depends=("one block one", "two ignore two")))
    s.do(ops.DependsOn("one", ("parent",)))
    s.look()
    one, two = s.pop(2, queue="r")
    s.do(ops.Complete("one", one.token, "1"))
    s.do(ops.Fail("two", two.token, "g", "no"))
    s.look()
    s.now += 600
    (parent,) = s.pop()
    s.do(ops.Results("parent"))
    s.do(ops.Release("parent", parent.token, depends=("one",)))
    (parent,) = s.pop()
    s.do(ops.Release("parent", parent.token, 100, depends=("two fail",)))
    s.look()


def more_than_a_thousand_follow(s: Script) -> None:
    """A tree of three thousand jobs that fails at its root: several operations see to it."""
    s.put("root")
    s.put(*(f"a{n}" for n in range(3)), depends=("root fail",))
    for n in range(3):
        s.put(*(f"b{n}-{m:03}" for m in range(700)), depends=(f"a{n} {('fail', 'ignore', 'cancel')[n]}",), queue="r")
    _fail(s, "root")
    for _ in range(4):
        s.do(ops.Get("a0"))
        s.do(ops.Track("a1"))
        s.do(ops.Pop("nowhere", "w"))
    s.look()


def more_than_a_thousand_are_canceled(s: Script) -> None:
    """A long chain and a broad one, canceled in parts; one job on the way is put anew meanwhile."""
    s.put("root")
    s.put("c0", depends=("root cancel",))
    chain = [f"c{n}" for n in range(1500)]
    for first in range(0, len(chain), 500):
        pairs = list(pairwise(chain))[first : first + 500]
        s.do(ops.PutMany(tuple(ops.Put("q", jid, "k", "", depends=(f"{before} cancel",)) for before, jid in pairs)))
    s.put("b", depends=("root cancel",))
    s.put(*(f"d{n}" for n in range(900)), depends=("b cancel",))
    s.put("e", depends=("root ignore",))
    _fail(s, "root")
    s.do(ops.Length("q"))
    s.do(ops.Put("q", "b", "k", "new", depends=()))
    for _ in range(5):
        s.do(ops.Pop("nowhere", "w"))
        s.do(ops.Length("q"))
    s.look()


def left_and_stale(s: Script) -> None:
    """What is left of a cascade, while jobs that failed are tried anew, or gone, or followed by more."""
    s.put("root", "other")
    for n in range(6):
        s.put(f"t{n}", depends=("root fail", "other fail"))
        s.put(*(f"u{n}-{m:03}" for m in range(350)), depends=(f"t{n} {'cancel' if n == 1 else 'fail'}",), queue="r")
    _fail(s, "root")
    s.do(ops.Put("q", "t0", "k", "", depends=()))
    s.do(ops.Put("q", "late", "k", "", depends=("t2 fail",)))
    s.do(ops.RetryMany(group="failed-dependencies-q", to="q", count=2))
    for _ in range(2):
        s.do(ops.Pop("nowhere", "w"))
    _fail(s, "other")
    s.do(ops.Pop("nowhere", "w"))
    s.look()


def canceling_what_waits_for_many(s: Script) -> None:
    """Jobs that wait for more than a thousand others, canceled with the one that failed."""
    jids = [f"j{n:04}" for n in range(1500)]
    s.put(*jids, queue="r")
    s.put("root")
    s.put("w", depends=("root cancel",))
    s.put("x", depends=("w cancel",))
    for first in (0, 750):
        s.do(ops.DependsOn("w", tuple(jids[first : first + 750])))
        s.do(ops.DependsOn("x", tuple(f"{jid} fail" for jid in jids[first : first + 750])))
    _fail(s, "root")
    for _ in range(5):
        s.do(ops.Get("w"))
        s.do(ops.Get("x"))
        s.do(ops.Pop("nowhere", "w"))
    s.look()


def as_many_edges_as_are_remembered(s: Script) -> None:
    """Of what a job was given it remembers 4096 bytes: what does not fit is left out, what is shorter is not."""
    many = [f"{number:02}" + "x" * 126 for number in range(30)]
    s.put(*many, "a" * 10, "b" * 9, "c", queue="other")
    for last in ("a" * 10, "b" * 9):
        s.do(
            ops.Put("q", "j" + last, "k", "", depends=(*(f"{jid} ignore" for jid in many), f"{last} ignore", "c fail"))
        )
        s.do(ops.Get("j" + last))


SCRIPTS = (
    following, in_any_order, held_by_another, added_late, whoever_fails_it, names_of_results, a_thousand_names,
    waiting_for_children, more_than_a_thousand_follow, more_than_a_thousand_are_canceled, left_and_stale,
    canceling_what_waits_for_many, as_many_edges_as_are_remembered,
)  # fmt: skip
