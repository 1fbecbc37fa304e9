"""Histories with a purpose: what chance meets too seldom, because it takes a thousand of something or an exact moment.

Each is made on the model, so that it can use the tokens that pops gave. `./dev mutate` runs them after the generated
ones; most were written because a mutant survived without them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from qmodel.conformance.histories import (
    directed_ends,
    directed_flows,
    directed_journal,
    directed_keys,
    directed_lists,
    directed_messages,
    directed_throttles,
    directed_waits,
)
from qmodel.conformance.histories.script import START, Named, Script
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST, RESERVED, TIME_END
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.settings import DAY


def ids(letter: str, count: int) -> list[str]:
    """So many job ids that order as they are counted."""
    return [f"{letter}{number:04}" for number in range(count)]


# ---- a thousand of something


def a_thousand_dependents(s: Script) -> None:
    """A job has at most 1000 dependents; those it has already do not count again."""
    s.put("hub", "other")
    many = ids("d", MOST)
    s.put("d0000", depends=("hub",))
    s.put(*many[:999], depends=("hub",))
    s.do(ops.Put("q", "x", "k", "", depends=("hub", "hub")))
    s.do(ops.Put("q", "x", "k", "", depends=("other",)))
    s.put("x", "y", depends=("hub",))
    s.do(ops.Put("q", "z", "k", "", depends=("other",)))
    s.do(ops.DependsOn("z", ("hub",)))
    s.do(ops.DependsOn("z", ("hub", "other")))
    s.do(ops.Put("q", "x", "k", "", depends=("hub",)))
    s.do(ops.PutMany((ops.Put("q", "d0000", "k", "", depends=("hub",)), ops.Put("q", "x", "k", "", depends=("hub",)))))
    s.do(ops.DependsOn("d0001", ("hub", "other")))
    s.do(ops.Get("hub"))
    s.do(ops.Cancel(("hub",)))
    s.do(ops.Cancel(("hub",), True))
    s.do(ops.Drain("q", 2))
    s.do(ops.Put("q", "d0005", "k", "", depends=()))
    s.do(ops.Put("q", "late", "k", "", depends=("hub",)))
    hub = s.pop()[0]
    s.complete(hub)
    s.do(ops.Depending("q", 0, MOST))
    s.do(ops.Throttled("q", 0, MOST))
    s.do(ops.Waiting("q", 995, 10))
    s.look()


def a_thousand_dependents_at_once(s: Script) -> None:
    """The thousand are counted over all jobs of one put_many."""
    s.put("hub", "two")
    one = [ops.Put("q", jid, "k", "", depends=("hub",)) for jid in ids("d", 998)]
    s.do(ops.PutMany(tuple(one)))
    more = tuple(ops.Put("q", jid, "k", "", depends=("two", "hub")) for jid in ("a", "b", "c"))
    s.do(ops.PutMany(more))
    s.do(ops.PutMany(more[:2]))
    s.do(ops.Put("q", "c", "k", "", depends=("two",)))
    s.do(ops.DependsOn("c", ("hub",)))
    s.do(ops.Get("two"))


def one_of_a_thousand(s: Script) -> None:
    """One that depends on the job already is not counted again among the thousand."""
    s.put("hub")
    s.put("d0000", depends=("hub",))
    s.put(*ids("d", MOST), depends=("hub",))
    s.do(ops.Get("hub"))


def many_edges_twice(s: Script) -> None:
    """What is named twice is one dependency, also where they are counted."""
    many = tuple(ids("d", 500))
    s.put(*many)
    s.do(ops.PutMany(tuple(ops.Put("q", jid, "k", "", depends=(*many, *many)) for jid in "abcdefgh")))
    s.do(ops.Get("a"))


def canceling_a_thousand(s: Script) -> None:
    """With 999 dependents a cancel takes 1000 jobs, and one more is too many."""
    s.put("hub")
    many = ids("d", 999)
    s.put(*many, depends=("hub",))
    s.do(ops.Put("q", "deep", "k", "", depends=("d0998",)))
    s.do(ops.Cancel(("hub",), True))
    s.do(ops.Cancel(("hub", "deep"), True))
    s.do(ops.Cancel(("deep",)))
    s.do(ops.Cancel(("hub",), True))
    s.look()


def a_thousand_dependencies(s: Script) -> None:
    """What would end more than a thousand dependencies at once is refused."""
    many = ids("d", MOST)
    s.put(*many, "e")
    s.do(ops.Put("q", "big", "k", "", depends=tuple(many)))
    s.do(ops.DependsOn("big", ("e",)))
    s.do(ops.Get("big"))
    s.do(ops.DependsOff("big", (), True))
    s.do(ops.Cancel(("big",)))
    s.do(ops.Put("q", "big", "k", "", depends=()))
    s.do(ops.PutMany((ops.Put("q", "fine", "k", ""), ops.Put("q", "big", "k", "", depends=("e",)))))
    s.do(ops.PutMany((ops.Put("q", "fine", "k", "", depends=("e",)), ops.Put("q", "big", "k", ""))))
    s.do(ops.Put("r", "big", "k", ""))
    s.do(ops.DependsOff("big", ("d0500",)))
    s.do(ops.Put("q", "one", "k", "", depends=("e",)))
    s.do(ops.Cancel(("one", "big")))
    s.do(ops.DependsOff("big", ("d0501",)))
    s.do(ops.Cancel(("one", "big")))
    s.do(ops.Get("e"))
    s.do(ops.Put("q", "big", "k", "", depends=tuple(many)))
    s.do(ops.DependsOff("big", (), True))
    s.do(ops.Put("q", "big", "k", "", depends=tuple(many)))
    s.do(ops.Put("q", "big", "k", "", depends=("e",)))
    s.do(ops.Put("q", "big", "k", "", depends=tuple(many)))
    s.do(ops.Cancel(("big",)))
    s.look()


def looking_at_a_thousand(s: Script) -> None:
    """The search for a cycle looks at 1000 jobs and no more."""
    many = ids("d", 999)
    s.put(*many, "e", "x", "v", "u")
    for jid in ("x", "v", "u"):  # nobody looks where nobody waits for the job
        s.do(ops.Put("q", jid + "2", "k", "", depends=(jid,)))
    s.do(ops.Put("q", "y", "k", "", depends=tuple(many)))
    s.do(ops.Put("q", "x", "k", "", depends=("y",)))
    s.do(ops.DependsOn("y", ("e",)))
    s.do(ops.Put("q", "v", "k", "", depends=("y",)))
    s.do(ops.Put("q", "u", "k", "", depends=("d0000", "y", "d0000")))
    s.do(ops.DependsOn("x", ("d0001",)))
    s.do(ops.DependsOff("y", ("d0000", "d0001")))
    s.do(ops.Put("q", "u", "k", "", depends=("d0000", "y", "d0000")))


def looking_once(s: Script) -> None:
    """However many jobs are put at once, nobody looks twice at a job that they lead to, nor at more than 4000."""
    for letter in "abcde":
        chain = [ops.Put("q", f"{letter}{n}", "k", "", depends=(f"{letter}{n + 1}",)) for n in range(899)]
        s.do(ops.PutMany((*chain, ops.Put("q", f"{letter}899", "k", ""))))
    over = [ops.Put("q", f"over-{letter}", "k", "", depends=(f"{letter}0", "a899")) for letter in "abcde"]
    waiting = [ops.Put("q", f"waiting-{letter}", "k", "", depends=(f"over-{letter}",)) for letter in "abcde"]
    s.do(ops.PutMany((*over, *waiting)))
    s.do(ops.PutMany((over[0], over[1], waiting[0])))
    s.do(ops.PutMany((over[0], over[1], waiting[0], waiting[1])))
    s.do(ops.PutMany((waiting[2], ops.Put("q", "over-c", "k", "", depends=("c0", "x")), ops.Put("q", "x", "k", ""))))
    s.do(ops.PutMany((over[0], waiting[0], ops.Put("q", "last", "k", "", depends=("waiting-a", "over-a")))))
    s.do(ops.Put("q", "a899", "k", "", depends=("over-b",)))
    s.do(ops.PutMany((ops.Put("q", "y", "k", "", depends=("x",)), ops.Put("q", "x", "k", "", depends=("over-c", "y")))))
    s.do(ops.Put("q", "waiting-a", "k", "", depends=("over-b", "over-a")))
    s.do(ops.PutMany((ops.Put("q", "a0", "k", ""), ops.Put("q", "a1", "k", "", depends=("a0",)))))


def four_thousand_dependencies(s: Script) -> None:
    """Of a job that depends on more than 4000 the first 4001 are looked at; of one that nobody waits for, none."""
    many = ids("d", 4003)
    s.put("x", "y", *many)
    s.do(ops.Put("q", "big", "k", "", depends=("y",)))
    for first in range(0, 4003, MOST):
        s.do(ops.DependsOn("big", tuple(many[first : first + MOST])))
    for jid in (many[0], many[3999], many[4000], many[4001]):
        s.do(ops.Put("q", jid, "k", "", depends=("x",)))
        s.do(ops.Put("q", "x", "k", "", depends=("big",)))
    s.do(ops.Put("q", "z", "k", "", depends=("big",)))
    s.do(ops.PutMany((ops.Put("q", "u", "k", "", depends=("z",)), ops.Put("q", "v", "k", "", depends=()))))


def four_thousand_edges(s: Script) -> None:
    """One operation adds at most 4000 dependencies."""
    many = tuple(ids("d", MOST))
    s.put(*many)
    four = [ops.Put("q", jid, "k", "", depends=many) for jid in "abcd"]
    s.do(ops.PutMany((*four, ops.Put("q", "e", "k", "", depends=("d0000",)))))
    s.do(ops.PutMany((*four, ops.Put("q", "e", "k", "", depends=()), ops.Put("q", "f", "k", ""))))
    s.do(ops.Get("a"))
    s.do(ops.Cancel(("a", "b")))
    s.do(ops.Get("d0999"))


def a_thousand_jobs(s: Script) -> None:
    """Everything that takes a count takes a thousand, and its keys hold as many."""
    many = ids("j", 1003)
    s.put(*many, tags=("t",), depends=())
    s.do(ops.TopTags())
    s.do(ops.Tagged("t", 995, 10))
    first = s.pop(MOST, request="r")
    s.pop(MOST, request="r")
    s.do(ops.Worker("w"))
    s.do(ops.Workers())
    s.do(ops.Running("q", 998, 5))
    s.do(ops.Timeout(tuple(job.jid for job in first[:500])))
    s.do(ops.Stalled("q", 498, 5))
    s.do(ops.Heartbeat(first[700].jid, first[700].token))
    s.do(ops.Peek("q", MOST))
    s.complete(*first[500:], after=90_000)
    second = s.pop(MOST)
    s.complete(*second, after=10)
    s.do(ops.Stats("q"))
    s.do(ops.Completed(998, 5))
    s.put(*many[:3])
    s.set("jobs-history-count", 0)
    last = s.pop(3)
    s.do(ops.Complete(last[0].jid, last[0].token))
    s.do(ops.CompleteAndPop(last[1].jid, last[1].token, "q", "w"))
    s.do(ops.Completed())
    s.complete(last[2])
    s.look()


def a_thousand_scheduled(s: Script) -> None:
    """A pop moves at most a thousand due jobs, and the next one the rest."""
    many = ids("j", 1002)
    s.put(*many, delay_ms=1000)
    s.put("later", delay_ms=5000)
    s.do(ops.Waiting("q", 999, 5), 1000)
    s.do(ops.Waiting("q"))
    s.do(ops.Peek("q", 2))
    s.pop(1)
    s.do(ops.Queue("q"))
    s.do(ops.Waiting("q", 998, 5))
    s.do(ops.Peek("q", MOST))
    s.pop(1)
    s.do(ops.Queue("q"))
    s.do(ops.Drain("q", MOST))
    s.do(ops.Drain("q", MOST))


def a_thousand_failed(s: Script) -> None:
    """A group of a thousand is tried again with one operation."""
    s.put(*ids("j", 1001), retries=0)
    s.pop(1)
    s.pop(MOST)
    s.pop(MOST, queue="q")
    s.now += 80_000
    s.pop(1)
    s.pop(MOST)
    s.do(ops.Failed("failed-retries-q", 998, 5))
    s.do(ops.FailedGroups())
    s.do(ops.RetryMany(group="failed-retries-q", to="r", count=MOST))
    s.do(ops.Stats("q"))
    s.do(ops.Cancel(tuple(ids("j", MOST))))
    s.look()


def a_thousand_idle_workers(s: Script) -> None:
    """At most a thousand workers count as idle."""
    s.put("x")
    s.pop(1)
    for _ in range(1002):
        s.do(ops.Pop("q", "w", wait=True))
    s.put(*ids("j", 3))
    s.do(ops.Pop("q", "w", 10, True))
    s.do(ops.Pop("q", "w", 10, True))
    s.do(ops.Forget(("q",)))


def a_thousand_requests(s: Script) -> None:
    """The replies of the last thousand requests are kept."""
    s.put("a", tags=("x",))
    for number in range(MOST):
        s.do(ops.Priority("a", number % 7, f"r{number}"))
    s.do(ops.Priority("a", 100, "r0"))
    s.do(ops.TagAdd("a", ("y", "z"), "t"))
    s.do(ops.Priority("a", 101, "r0"))
    s.do(ops.Priority("a", 102, "r1"))
    s.do(ops.Priority("a", 103, "r2"))
    s.do(ops.Priority("a", 104, "r999"))
    s.do(ops.TagAdd("a", ("v",), "t"))
    s.do(ops.Cancel(("none",), False, "c"))
    s.do(ops.Cancel(("a",), False, "c"))
    s.do(ops.Cancel(("a",), False, "d"))
    s.do(ops.Cancel(("none",), False, "d"))


def ten_thousand_events(s: Script) -> None:
    """Ten thousand events are kept."""
    for letter in "abcdefghij":
        s.put(*ids(letter, MOST))
        s.do(ops.Cancel(tuple(ids(letter, MOST))))
        if letter in "efij":
            s.do(ops.Events(0, 2))
    s.do(ops.Events(9_999, 2))
    s.do(ops.Events(s.store.seq - 2, 5))


# ---- recurring jobs


def a_thousand_runs(s: Script) -> None:
    """One operation makes at most 1000 runs, of each recurring job in turn; the next one goes on."""
    s.do(ops.Recur("q", "fast", "k", "x", 1, priority=1))
    s.do(ops.Recur("q", "slow", "k", "y" * 1100, 1000, 500, tags=("t", "u", "t")))
    s.do(ops.Peek("q", 3), 2999)
    s.do(ops.Queue("q"))
    s.do(ops.Fire("q", 2))
    s.do(ops.Fire("q", 3))
    s.pop(3)
    s.do(ops.Recurring("q", 0, 1))
    s.do(ops.Recurring("q", 1, 5))
    s.do(ops.Fire("q"))
    s.look()
    s.do(ops.Fire("q"))
    s.do(ops.Fire("q"))
    s.do(ops.Fire("q"), 1)
    s.do(ops.Length("q"))
    s.pop(MOST)
    s.look()


def runs_of_many(s: Script) -> None:
    """Of more than 1000 recurring jobs those come first that have been due for longest."""
    for number in range(1002):
        s.do(ops.Recur("q", f"z{number}", "k", "", 1000, 0 if number % 2 else 1))
    s.do(ops.Peek("q"), 10)
    s.do(ops.Fire("q"))
    s.do(ops.Fire("q"))
    s.do(ops.Recurring("q", 1000, 5))
    s.do(ops.Queues())


def a_run_among_equals(s: Script) -> None:
    """A run comes after what stood in the order before it was made, and peek says so."""
    s.do(ops.Recur("q", "r", "k", "", 1000))
    s.do(ops.Recur("q", "q", "k", "", 1000))
    s.put("z1", "z2")
    s.do(ops.Peek("q", 4))
    s.pop(4)


def missed_runs(s: Script) -> None:
    """What was due longer ago than backlog intervals is passed over; what is due just then is not."""
    for backlog in (1, 2, 3):
        s.do(ops.Recur("q", f"b{backlog}", "k", "", 1000, backlog=backlog))
    for after in (0, 1000, 2999, 1, 4000, 3001, 60_000):
        s.do(ops.Peek("q", 20), after)
        s.do(ops.Fire("q"))
        s.do(ops.Queue("q"))
    s.do(ops.RecurUpdate("b1", backlog=1_000_000))
    s.do(ops.Fire("q"), 5500)
    s.look()


def run_ids_that_are_taken(s: Script) -> None:
    """A run never takes the id of a job: it gets the next number, and a number that is tried counts as work."""
    s.put("r-1", "r-2", "r-4", queue="other")
    s.do(ops.Recur("q", "r", "k", "", 1000))
    s.do(ops.Fire("q", 1))
    s.do(ops.Queue("q"))
    s.do(ops.Peek("q", 2))
    s.do(ops.Fire("q", 1))
    s.do(ops.Fire("q", 1))
    s.do(ops.Fire("q", 5), 1000)
    s.do(ops.Unrecur("r"))
    s.do(ops.Recur("q", "r", "k", "", 1000, 1000))
    s.pop(2, wait=True)
    s.do(ops.Fire("q"), 1000)
    s.look()


def a_run_instead_of_a_job_that_is_gone(s: Script) -> None:
    """The job of that id is deleted in the very step that makes the run."""
    s.set("jobs-history", 0)
    s.put("r-1", "r-2")
    first, second = s.pop(2)
    s.do(ops.Recur("q", "r", "k", "z" * 1100, 1000))
    s.do(ops.CompleteAndPop(first.jid, first.token, "q", "w", data="y" * 1100))
    s.do(ops.Get("r-1"))
    s.do(ops.CompleteAndPop(second.jid, second.token, "q", "w", 2), 1000)
    s.do(ops.Get("r-2"))
    s.look()


def changing_what_recurs(s: Script) -> None:
    """The next run of a new interval; a move to another queue; and what may not be forgotten."""
    s.pop(wait=True)
    s.pop(worker="v", wait=True)
    s.do(ops.Recur("q", "r", "k", "", 10_000, 10_000))
    s.do(ops.Queue("q"))
    s.do(ops.RecurUpdate("r", interval_ms=4000))
    s.do(ops.RecurUpdate("r", interval_ms=9000), 1000)
    s.do(ops.RecurUpdate("r", interval_ms=1))
    s.do(ops.RecurUpdate("r", interval_ms=60_000))
    s.do(ops.RecurUpdate("r", queue="q2"))
    s.do(ops.Forget(("q2",)))
    s.do(ops.Forget(("q",)))
    s.do(ops.Pause(("q2",)))
    s.pop(queue="q2", wait=True)
    s.do(ops.Unpause(("q2",)))
    s.pop(queue="q2", wait=True)
    s.do(ops.RecurUpdate("r", "q", "l", "x", 5000, -1, 0, 2))
    s.do(ops.RecurTag("r", ("a", "b", "a")))
    s.do(ops.RecurTag("r", ("b",)))
    s.do(ops.RecurUntag("r", ("c",)))
    s.do(ops.RecurUntag("r", ("a", "c")))
    s.do(ops.RecurUpdate("ghost"))
    s.do(ops.RecurTag("ghost", ("a",)))
    s.do(ops.RecurUntag("ghost", ("a",)))
    s.do(ops.Recur("q3", "r", "m", "", 1000))
    s.do(ops.Queues())
    s.pop(queue="q3")
    s.do(ops.Unrecur("r"))
    s.do(ops.Unrecur("r"))
    s.do(ops.Forget(("q", "q2")))
    s.look()


def _recur(s: Script, jid: str = "r", queue: str = "q", interval_ms: int = 1000, **arguments: Any) -> None:
    s.do(ops.Recur(queue, jid, "k", "", interval_ms, **arguments))


_ENDS: tuple[Callable[[Any], Operation], ...] = (
    lambda run: ops.Complete(run.jid, run.token), lambda run: ops.Fail(run.jid, run.token, "g", ""),
    lambda run: ops.CompleteMany((ops.Complete(run.jid, run.token),)), lambda run: ops.Retry(run.jid, run.token),
    lambda run: ops.CompleteAndPop(run.jid, run.token, "none", "w"), lambda run: ops.Cancel((run.jid,)),
    lambda run: ops.Put("x", run.jid, "k", ""), lambda run: ops.PutMany((ops.Put("x", run.jid, "k", ""),)),
    lambda run: ops.Pop("q", "v"), lambda run: ops.PopAny(("q",), "v"), lambda run: ops.Drain("q"),
    lambda run: ops.CompleteAndPop(run.jid, run.token, "q", "w", 2), lambda run: ops.Release(run.jid, run.token),
    lambda run: ops.Timeout((run.jid,)), lambda run: ops.Revoke((run.jid,)),
    lambda run: ops.CancelMany("q"),
)  # fmt: skip
"""Every way in which a run that is leased, or lapsed, or given back, or revoked, may end."""


def _run_of(s: Script) -> Any:
    """A run that is leased."""
    s.pop(9)
    if not (leased := s.store.queues["q"].locks):
        s.do(ops.Pop("q", "w"), 1000)
    return s.store.jobs[leased[-1][2]]


def ends_of_runs(s: Script) -> None:
    """A run that another one waits for ends in every way there is; what was due meanwhile is skipped, once."""
    _recur(s, overlap="skip", retries=0)
    for end in _ENDS:
        run = _run_of(s)
        if end(run).spec.name in ("drain", "revoke"):
            s.do(ops.Release(run.jid, run.token))
        elif end(run).spec.name in ("release", "timeout"):
            s.do(ops.Revoke((run.jid,)))
        s.do(ops.RecurGet("r"))
        s.do(ops.Queue("q"))
        s.do(end(run), 61_000 if end(run).spec.name.startswith("pop") else 2600)
        s.do(ops.RecurGet("r"))
        s.do(ops.Peek("q", 5), 700)
    run = _run_of(s)
    s.do(ops.Complete(run.jid, run.token, next="next"), 5000)
    s.do(ops.RecurGet("r"))
    s.complete(*s.pop(queue="next"), after=5000)
    s.look()


def ends_that_end_it(s: Script) -> None:
    """The end of a run may show that there is none to come: in every way in which a run can end."""
    for number, end in enumerate(_ENDS):
        _recur(s, f"r{number}", overlap="skip", retries=0, end_at=s.now + 2000)
        run = _run_of(s)
        if end(run).spec.name in ("drain", "revoke"):
            s.do(ops.Release(run.jid, run.token))
        elif end(run).spec.name in ("release", "timeout"):
            s.do(ops.Revoke((run.jid,)))
        s.do(end(run), 61_000)
        s.do(ops.RecurGet(f"r{number}"))
    s.look()


def dead_letters(s: Script) -> None:
    """What a dead letter has of its job, what is put anew from it, and when that is refused."""
    data = "z" * 3000
    for jid, more in (("a" * 128, {"lifo": True}), ("b", {"lease_ms": 777}), ("c", {"timeout_ms": 888}), ("d", {})):
        s.do(ops.Put("q", jid, "k", data, 3, 0, 7, ("t", "u"), dead_queue="dead", **more))
        s.do(ops.Revoke((jid,)), 1)
    letters = [job.jid for job in s.do(ops.Peek("dead", 9))]
    s.do(ops.Put("q", "waits", "k", "", depends=(letters[0],)))
    for letter in letters:
        s.do(ops.Replay(letter, f"n{letter[:9]}"))
        s.do(ops.Replay(letter, f"n{letter[:9]}"))
    s.do(ops.Cancel(("waits",)))
    s.do(ops.RetryMany(group="revoked-q", to="q"))
    s.do(ops.Replay(letters[0]))
    s.do(ops.Replay("b"))
    s.do(ops.Replay("nobody"))
    for job in s.do(ops.Pop("dead", "w", 9)):
        s.do(ops.Complete(job.jid, job.token))
        s.do(ops.Replay(job.jid))
    for job in s.do(ops.Pop("q", "w", 9)):
        s.do(ops.Heartbeat(job.jid, job.token), 5)
    s.look()


def revoked_with_many_dependencies(s: Script) -> None:
    """As many dependencies as one operation ends, and one more; a job that expired takes a pop for each thousand."""
    many = tuple(f"m{n}" for n in range(1001))
    s.do(ops.PutMany(tuple(ops.Put("r", jid, "k", "") for jid in many[:1000])))
    s.do(ops.Put("r", many[1000], "k", ""))
    for jid in ("a", "b"):
        s.do(ops.Put("q", jid, "k", "", depends=many[:1000], ttl_ms=5))
    s.do(ops.Revoke(("a",)))
    s.do(ops.DependsOn("b", many[1000:]))
    s.do(ops.Revoke(("m0", "b")))
    s.do(ops.Revoke(("b", "m0")))
    s.do(ops.Peek("q"), 6)
    s.do(ops.Fire("q"))
    s.do(ops.Pop("q", "w"))
    s.do(ops.Pop("q", "w"))
    s.look()


def after_the_end(s: Script) -> None:
    """A run is due so long after the end of the one before, however it ended; and never beside it."""
    _recur(s, kind="after", offset_ms=10)
    s.do(ops.Fire("q"))
    run = s.pop(2)
    run = s.pop(2) or [s.do(ops.Pop("q", "w"), 10)[0]]
    s.do(ops.Queue("q"), 5000)
    s.do(ops.Recur("q", "r", "l", "", 1000, 10, kind="after"))  # as it was, so it waits on
    s.do(ops.Recur("q", "r", "l", "", 2000, kind="after"))  # begins anew, and still waits
    s.do(ops.RecurUpdate("r", interval_ms=3000))
    s.do(ops.Complete(run[0].jid, run[0].token))
    s.do(ops.RecurGet("r"))
    s.do(ops.RecurUpdate("r", interval_ms=4000), 1)
    s.do(ops.RecurNow("r"))
    s.do(ops.RecurNow("r"))
    first, second = s.pop(2)
    s.do(ops.Fire("q"), 10_000)
    s.do(ops.Fail(first.jid, first.token, "g", ""))
    s.do(ops.Fire("q"))
    s.do(ops.Complete(second.jid, second.token))
    s.do(ops.Fire("q"))
    s.do(ops.RecurPause("r"))
    s.do(ops.Cancel(("r-4",)), 10)
    s.do(ops.RecurUnpause("r"), 60_000)
    s.do(ops.Peek("q"))
    s.do(ops.Unrecur("r"))
    _recur(s, kind="after", start_at=s.now + 50, end_at=s.now + 1000)
    s.pop(1)
    run = s.do(ops.Pop("q", "w"), 50)
    s.do(ops.Complete(run[0].jid, run[0].token), 1)
    _recur(s, "late", kind="after", start_at=s.now - 50)
    _recur(s, "two", "t", kind="after")
    s.do(ops.Fire("t"))
    s.do(ops.RecurNow("two"))
    for run in s.pop(2, queue="t"):
        s.do(ops.Complete(run.jid, run.token), 100)
    s.look()


def another_of_the_same_name(s: Script) -> None:
    """The end of a run tells nothing to a recurring job of that name that is another one."""
    _recur(s, overlap="skip")
    run = s.pop()[0]
    s.do(ops.Unrecur("r"))
    _recur(s, overlap="skip")
    s.do(ops.Fire("q"))
    s.do(ops.Complete(run.jid, run.token), 5000)
    s.do(ops.RecurGet("r"))
    s.do(ops.Unrecur("r"))
    s.complete(*s.pop())
    s.look()


def two_of_its_runs_in_one_step(s: Script) -> None:
    """Two runs end in one step, of one that goes on and of one that is over with the first."""
    moments = tuple(s.now + 1000 * n for n in range(3))
    _recur(s, "l", interval_ms=0, kind="cron", cron="x", due_at=moments, overlap="skip", end_at=s.now + 2500)
    _recur(s, "i", overlap="skip", end_at=s.now + 2500)
    for jid in ("l", "i"):
        s.do(ops.RecurNow(jid))
    runs = s.pop(9)
    s.complete(*runs, after=1)
    s.pop(9)
    for jid in ("l", "i"):
        s.do(ops.RecurNow(jid))
    s.complete(*s.pop(9), after=10)
    for jid in ("l-2", "i-2", "l-3", "i-3"):
        s.do(ops.Cancel((jid,)), 1500)
    s.do(ops.RecurringUnset(10**6))
    s.look()


def lists_of_moments(s: Script) -> None:
    """Moments are known once, in order, and a hundred at most; the last known is where others go on."""
    now = s.now
    many = tuple(now + 1000 * n for n in range(1, 101))
    listed: dict[str, Any] = {"interval_ms": 0, "kind": "cron", "cron": "* * * * * UTC"}
    _recur(s, **listed)
    s.do(ops.RecurringUnset())
    s.do(ops.RecurAdvance("r", now, many))
    s.do(ops.RecurAdvance("r", now, many))
    s.do(ops.RecurAdvance("r", many[-1], (many[-1] + 1,)))  # there is no room
    s.do(ops.RecurringUnset(100_000))
    s.do(ops.RecurringUnset(99_999))
    s.do(ops.Fire("q"), 3000)
    s.do(ops.RecurAdvance("r", many[-1], (many[0], *(many[-1] + n for n in range(1, 90)))))
    s.do(ops.RecurGet("r"))
    s.do(ops.RecurAdvance("r", many[-1], (many[-1] + 5,)))
    s.do(ops.RecurAdvance("r", many[-1] + 3, ()))
    s.do(ops.RecurAdvance("r", many[-1] + 3, ()))
    s.do(ops.RecurringUnset(10**9))
    s.do(ops.Fire("q", 50), 10**6)
    s.do(ops.Peek("q", 60))
    s.do(ops.Fire("q"))
    bad: tuple[tuple[Any, ...], ...] = ((1, 1), (2, 1), (*many, 10**13), ("x",))
    for wrong in bad:
        s.do(ops.RecurAdvance("r", 0, wrong))
        s.do(ops.Recur("q", "w", "k", "", 0, kind="cron", cron="x", due_at=wrong))
    s.do(ops.RecurAdvance("ghost", 0, (1,)))
    _recur(s, "interval")
    s.do(ops.RecurAdvance("interval", 0, (1,)))
    now = s.now
    _recur(s, "b", start_at=now + 10, end_at=now + 30, due_at=(now + 9, now + 10, now + 30, now + 31), **listed)
    s.do(ops.RecurringUnset(10**9))
    _recur(s, "s", start_at=now + 10, **listed)
    for after in (now + 5, now + 12, now + 9):
        s.do(ops.RecurAdvance("s", after, (now + 12,)))
        s.do(ops.RecurGet("s"))
    s.do(ops.RecurAdvance("s", now + 12, (now + 12, now + 13)))
    s.do(ops.RecurAdvance("s", now + 13, ()))
    _recur(s, "n", due_at=(now + 5,), **listed)
    _recur(s, "e", end_at=now + 1, **listed)
    s.do(ops.RecurAdvance("e", now, (now + 2,)))
    s.do(ops.RecurPause("n"))
    s.do(ops.RecurringUnset(10**9))
    s.do(ops.RecurUnpause("n"), 6)
    s.do(ops.RecurringUnset())
    s.do(ops.RecurAdvance("n", now + 5, ()))
    s.do(ops.Fire("q"), 1000)
    s.look()


def lists_at_the_beginning(s: Script) -> None:
    """At the beginning of time, too, a list that has no more moments ends, and 0 is no bound."""
    s.now = 0
    for jid, moments in (("a", ()), ("b", (0,)), ("c", (0, 1)), ("d", (0,))):
        _recur(s, jid, interval_ms=0, kind="cron", cron="x", due_at=moments)
    s.do(ops.RecurringUnset())
    for jid in "abc":
        s.do(ops.RecurAdvance(jid, s.store.schedules[jid].last_at))
    s.do(ops.RecurAdvance("d", 0, (1, 2)))
    _recur(s, "i")
    _recur(s, "x", end_at=1)
    s.look()
    s.do(ops.Fire("q"), 1)
    _recur(s, "y", interval_ms=1, end_at=1, missed="one")
    s.do(ops.Fire("q"), 5)
    s.now = 1000
    _recur(s, "z", interval_ms=0, kind="cron", cron="x", due_at=(0,), missed="none", catchup_ms=1000)
    s.do(ops.RecurGet("z"))
    s.do(ops.Fire("q"))
    s.look()


def policies_of_missed_runs(s: Script) -> None:
    """All, the last one, or those that are not too late, of an interval and of a list; with and without a backlog."""
    for missed in ("all", "one", "none"):
        for backlog in (0, 1, 2):
            more: dict[str, Any] = {"missed": missed, "backlog": backlog, "catchup_ms": 2000}
            _recur(s, f"i{missed}{backlog}", **more)
            moments = tuple(s.now + n for n in (0, 10, 2000, 3000, 4000, 4001))
            _recur(s, f"l{missed}{backlog}", interval_ms=0, kind="cron", cron="x", due_at=moments, **more)
            _recur(s, f"e{missed}{backlog}", end_at=s.now + 3500, **more)
    for after in (0, 4000, 1000, 1, 60_000):
        s.do(ops.Peek("q", 40), after)
        s.do(ops.Fire("q"))
        s.do(ops.Queue("q"))
    s.do(ops.Recurring("q", 0, 30))
    s.look()


def bounds_of_runs(s: Script) -> None:
    """So many runs and no more, none before the start or after the end; and what would have none is refused."""
    now = s.now
    _recur(s, "two", limit=2)
    s.do(ops.Fire("q"), 10_000)
    _recur(s, "two", limit=2, start_at=now)
    s.do(ops.RecurNow("two"))
    s.do(ops.RecurNow("two"))
    _recur(s, "ends", end_at=s.now + 2000)
    s.do(ops.Fire("q"), 10_000)
    for start_at, end_at in ((s.now - 2500, 0), (s.now + 500, 0), (s.now, s.now), (s.now - 2500, s.now)):
        _recur(s, "starts", start_at=start_at, end_at=end_at, offset_ms=100)
        s.do(ops.RecurGet("starts"))
    _recur(s, "x", end_at=s.now - 1)
    _recur(s, "x", start_at=5, end_at=4)
    _recur(s, "x", limit=1)
    s.do(ops.RecurUpdate("x", interval_ms=5))
    _recur(s, "y", end_at=s.now + 500, offset_ms=400)
    s.do(ops.RecurUpdate("y", interval_ms=2000))
    wrong: tuple[dict[str, Any], ...] = (
        {"kind": "cron"}, {"cron": "x"}, {"interval_ms": 0}, {"kind": "cron", "cron": "x"}, {"due_at": (1,)},
        {"kind": "cron", "cron": "x", "interval_ms": 0, "offset_ms": 1},
        {"kind": "after", "interval_ms": 0}, {"start_at": 2, "end_at": 1},
    )  # fmt: skip
    for arguments in wrong:
        _recur(s, "x", **arguments)
    s.look()


def as_it_was(s: Script) -> None:
    """What recurs at the same times goes on; with one of them another it begins anew; and a pause stays."""
    _recur(s, limit=5, offset_ms=10)
    s.do(ops.Fire("q"), 2500)
    more: tuple[dict[str, Any], ...] = (
        {}, {"limit": 4}, {"limit": 2}, {"restart": True}, {"interval_ms": 999}, {}, {"start_at": s.now - 7}, {},
        {"kind": "after"}, {}, {"offset_ms": 0}, {}, {"overlap": "skip"},
    )  # fmt: skip
    for again in more:
        _recur(s, **{"limit": 5, "offset_ms": 10, **again})
        s.do(ops.RecurGet("r"), 5)
    s.do(ops.RecurPause("r"))
    s.do(ops.RecurPause("r"))
    _recur(s, limit=9)
    s.do(ops.RecurNow("r"))
    s.do(ops.RecurUpdate("r", queue="p", interval_ms=500))
    s.do(ops.Queue("p"))
    s.do(ops.Forget(("p",)))
    s.do(ops.RecurUnpause("r"), 1600)
    s.do(ops.RecurUnpause("r"))
    s.do(ops.RecurGet("r"))
    _recur(s, "e", end_at=s.now + 10)
    s.do(ops.RecurPause("e"))
    s.do(ops.RecurUnpause("e"), 2000)
    _recur(s, "c", "p", 0, kind="cron", cron="x", due_at=(s.now + 1, s.now + 5))
    _recur(s, "c", "p", 0, kind="cron", cron="x", due_at=(s.now + 3,))
    s.do(ops.RecurGet("c"))
    _recur(s, "c", "p", 0, kind="cron", cron="y", due_at=(s.now + 3,))
    s.do(ops.RecurUpdate("c", interval_ms=5))
    s.do(ops.RecurUpdate("c", klass="l"))
    s.look()


def runs_at_once(s: Script) -> None:
    """A run more takes a free number, or none of a thousand; it counts, and moves nothing."""
    s.pop(wait=True)
    _recur(s, offset_ms=500)
    s.put("r-1", "r-2")
    s.do(ops.RecurNow("r"))
    s.do(ops.RecurNow("r", request="n"))
    s.do(ops.RecurNow("r", request="n"))
    s.put(*(f"r-{n}" for n in range(5, 5 + MOST)))
    s.do(ops.RecurNow("r"))
    s.do(ops.RecurNow("r"))
    s.do(ops.RecurNow("ghost"))
    s.do(ops.RecurGet("r"))
    s.do(ops.Fire("q"), 500)
    s.look()


# ---- sweeps


def old_statistics(s: Script) -> None:
    """A day that is new strikes ten that are too old."""
    s.set("stats-history", 1)
    queues = [f"q{number:02}" for number in range(12)]
    s.put(*ids("j", 300), queue="q00")
    s.complete(*s.pop(140, queue="q00"), after=1234)
    for job in s.pop(5, queue="q00"):
        s.do(ops.Complete(job.jid, job.token), 77)
    s.do(ops.Stats("q00"))
    for queue in queues:
        s.put(queue, queue=queue)
        s.pop(queue=queue)
    for days in (DAY, DAY, DAY, 0):
        s.now += days
        for queue in queues[:2] if days else queues[2:4]:
            s.put(queue + "n", queue=queue)
            s.pop(queue=queue)
        s.do(ops.Stats("q00", s.now - DAY))
        s.do(ops.Stats("q11", START))
    s.look()


def by_the_minute(s: Script) -> None:
    """Runs are counted in their minutes, pending or folded in; what is too old is struck when a day begins."""
    s.now += DAY - s.now % DAY - 90_000
    s.put(*ids("j", 300), retries=0)
    for many, after in ((100, 7), (40, 59_000), (1, 0), (70, 60_000)):
        s.complete(*s.pop(many), after=after)
        s.do(ops.Metrics("q", count=5))
    s.set("heartbeat", 366 * DAY)
    s.complete(*s.pop(1), after=10**10 + 1)
    s.do(ops.Metrics("q"))
    s.set("metrics-history", 1441)
    for jid in ("k", "l", "m"):
        s.put(jid, retries=1)
        for step in (ops.Retry, ops.Retry, ops.Fail):
            for job in s.pop():
                s.do(step(job.jid, job.token, *(("g", "m") if step is ops.Fail else ())), 30_000)
                s.do(ops.Metrics("q", count=1441 if jid == "k" else 3))
        s.do(ops.Metrics("q", s.now + 60_000, 3))
        s.do(ops.Metrics("q", s.now - DAY, MOST))
        s.now += DAY
        s.look()
    for queue in (f"q{number:02}" for number in range(12)):
        s.put(queue, queue=queue)
        s.complete(*s.pop(queue=queue), after=3)
    s.now += 3 * DAY
    for queue in ("new", "newer", "newest"):
        s.put(queue, queue=queue)
        s.pop(queue=queue)
        s.look()
    s.do(ops.Metrics("q11", s.now - 3 * DAY, 2), -3 * DAY)
    s.put("back", queue="q11")
    s.complete(*s.pop(queue="q11"), after=3)
    s.do(ops.Metrics("q11"))
    s.set("metrics-history", 0)
    s.do(ops.Metrics("q11", count=2))
    s.set("stats-history", 0)
    s.set("metrics-history", 10_080)
    s.do(ops.Metrics("q11", count=MOST))
    s.look()


def old_workers(s: Script) -> None:
    """A worker that is seen strikes ten that were silent for too long, unless they hold a lease."""
    s.set("max-worker-age", 5000)
    s.set("heartbeat", 1_000_000)
    s.put(*ids("j", 6))
    for number in range(30):
        if number in (3, 7, 9, 11, 20, 29):
            s.pop(worker=f"w{number:02}")
        else:
            s.do(ops.Pop("none", f"w{number:02}"))
        s.now += 10
    for after in (4000, 700, 150, 10, 10, 1500, 1500):
        s.now += after
        s.do(ops.Workers(0, MOST))
        s.do(ops.Pop("none", "new"))
        for offset in range(9):
            s.do(ops.Workers(offset, 2))
        s.do(ops.Workers(1, 3))
        s.do(ops.Workers(2, 1))


def ten_silent_holders(s: Script) -> None:
    """Ten silent workers that hold leases, and ten more, do not hide others from the sweep."""
    s.set("max-worker-age", 5000)
    s.set("heartbeat", 1_000_000)
    s.put(*ids("j", 20))
    for number in range(20):
        s.pop(worker=f"a{number:02}")
    for number in range(13):
        s.do(ops.Pop("none", f"b{number:02}"))
    s.now += 6000
    for _ in range(6):
        s.do(ops.Pop("none", "new"), 1000)
        s.do(ops.Workers(0, 50))
    s.do(ops.Deregister(("a00", "a01", "b00", "nobody")))
    s.do(ops.Workers(0, 50))
    for name in ("c", "d"):
        s.do(ops.Pop("none", name), 1)
        s.do(ops.Workers(0, 50))


def a_thousand_silent_workers(s: Script) -> None:
    """Silent workers that hold leases are looked for among the thousand latest silent ones."""
    s.set("max-worker-age", 5000)
    s.set("heartbeat", 1_000_000)
    s.put(*ids("j", 10))
    for number in range(10):
        s.pop(worker=f"a{number}")
        s.now += 1
    for number in range(995):
        s.do(ops.Pop("none", f"b{number:03}"), 1)
    s.do(ops.Pop("none", "new"), 6000)
    s.do(ops.Workers(0, MOST))
    s.do(ops.Workers(3, 5))


def retiring(s: Script) -> None:
    """One completion retires a hundred, by count and by age, and no more than there are."""
    s.put(*ids("j", 240))
    leased = s.pop(MOST)
    s.complete(*leased[:235])
    s.set("jobs-history-count", 5)
    for job in leased[235:238]:
        s.do(ops.Complete(job.jid, job.token), 1)
        s.do(ops.Completed())
    s.do(ops.ConfigUnset("jobs-history-count"))
    s.set("jobs-history", 1000)
    s.do(ops.Complete(leased[238].jid, leased[238].token), 998)
    s.do(ops.Completed())
    s.put("x", "y", "z")
    for job in s.pop(3):
        s.do(ops.CompleteAndPop(job.jid, job.token, "q", "w"), 1)
        s.do(ops.Completed())
    s.do(ops.Complete(leased[239].jid, leased[239].token), 999)
    s.do(ops.Completed())


def not_kept(s: Script) -> None:
    """A completion is known again though its job was not kept: by its token, and only as the last one of that job."""
    s.set("jobs-history-count", 0)
    s.put("a", "b", "c", "d", "e")
    a, b, c, d = s.pop(4)
    for _ in range(2):
        s.do(ops.Complete("a", a.token))
        s.do(ops.CompleteAndPop("b", b.token, "q", "w", request="r"))
        s.do(ops.CompleteMany((ops.Complete("c", c.token), ops.Complete("a", a.token))))
        s.do(ops.CompleteAndPop("d", d.token, "q", "w", request="r"))
    for wrong in (ops.Complete("a", b.token), ops.Complete("b", a.token), ops.Complete("a", 0)):
        s.do(wrong)
    s.do(ops.Fail("a", a.token, "g", ""))
    s.do(ops.Heartbeat("a", a.token))
    s.put("a")
    s.do(ops.Complete("a", a.token))
    s.do(ops.Complete("e", s.store.jobs["e"].token, next="r"))
    s.set("jobs-history-count", 1)
    s.put("f", "g")
    f, g = s.pop(2)
    s.complete(f, g)
    s.complete(f, g)


def retiring_by_count(s: Script) -> None:
    """The oldest complete job goes when there is one too many, however far the bound was."""
    for keep in (3, 2, 4):
        s.set("jobs-history-count", keep)
        for round_ in range(6):
            s.put(f"a{keep}{round_}", f"b{keep}{round_}", tags=("t",))
            for job in s.pop(1 + round_ % 2):
                s.do(ops.Complete(job.jid, job.token, data="x" * (1024 + round_ % 2)), 7)
            if round_ == 3:
                complete = s.do(ops.Completed())
                s.put(complete.jids[-1])
    s.look()


# ---- exact moments


def about_a_lease(s: Script) -> None:
    """The very moments at which a lease and its grace end."""
    s.set("heartbeat", 1000)
    s.set("grace-period", 500)
    s.put("a", "b", "c", retries=2)
    s.pop(3)
    for after in (999, 1, 499, 1, 1):
        s.now += after
        for op in (
            ops.Running("q"),
            ops.Stalled("q"),
            ops.Queue("q"),
            ops.Workers(),
            ops.Worker("w"),
            ops.Peek("q", 2),
        ):
            s.do(op)
        if after == 499:
            s.pop(2, worker="v")
    s.do(ops.Peek("q", 1))
    s.pop(2, worker="v")
    s.do(ops.Timeout(("c",))) if s.store.jobs["c"].state == "running" else None
    s.pop(1, worker="u")
    s.look()


def keys_of_jobs(s: Script) -> None:
    """Keys in every mode: who stands, what becomes of who comes, and what goes on at each end."""
    held = {"unique": "u", "unique_mode": "again"}

    def put(jid: str, data: str = "", **more: Any) -> None:
        s.do(ops.Put("q", jid, "k", data, **{**held, **more}))
        s.do(ops.UniqueGet("u"))

    for end in range(8):
        a, b, c = f"a{end}", f"b{end}", f"c{end}"
        put(a, "1", retries=0)
        put(b, "2")
        taken = s.pop()
        put(b, "y" * 2000)
        put(c, "4", unique_mode="debounce", delay_ms=5, request=f"r{end}")
        put(c, "4", unique_mode="debounce", delay_ms=5, request=f"r{end}")
        put(b, "5", delay_ms=1000, request=f"s{end}")
        token = taken[0].token if taken else 0
        s.do(ops.Drain("q"))
        put(b, "6", depends=("c0",) if end == 7 else None)
        put(a, "7", unique_mode=None)
        s.do((
            ops.Complete(a, token), ops.Fail(a, token, "g", ""), ops.Retry(a, token), ops.Cancel((a,)),
            ops.Put("r", a, "k", ""), ops.UniqueRelease("u", f"x{end}"), ops.Cancel((a, b)), ops.Revoke((a,)),
        )[end])  # fmt: skip
        s.do(ops.UniqueGet("u"))
        s.do(ops.UniqueRelease("u", f"x{end}"))
        s.do(ops.Multiget((a, b, c)))
        s.do(ops.Cancel((a, b, c)), 500)
        s.do(ops.UniqueRelease("u"))
    s.look()


def keys_and_what_else_holds_a_job(s: Script) -> None:
    """The next one put anew, revoked, and in a cycle; a holder that is parked, that was tried, and that is gone."""

    def put(jid: str, **more: Any) -> None:
        s.do(ops.Put("q", jid, "k", "x", **{"unique": "u", "unique_mode": "again", **more}))

    for end in range(3):
        put("a")
        s.pop()
        put("b")
        put("b", depends=("a",))
        s.do((ops.Put("q", "b", "k", ""), ops.Revoke(("b",)), ops.UniqueRelease("u", f"r{end}"))[end])
        s.do(ops.Multiget(("a", "b")))
        s.do(ops.UniqueGet("u"))
        put("c")
        s.do(ops.PutMany((ops.Put("q", "y", "k", "", unique="u"), ops.Put("q", "z", "k", "", depends=("y",)))))
        s.do(ops.Get("z"))
        s.do(ops.Cancel(("a", "b", "c", "y", "z"), True))
    s.do(ops.Put("q", "d", "k", ""))
    s.do(ops.Put("q", "b", "k", "", depends=("d",)))
    put("a")
    s.do(ops.Promote("a"))
    s.pop(9)
    again = ops.Put("q", "b", "k", "", unique="u", unique_mode="again")
    s.do(ops.PutMany((again, ops.Put("q", "d", "k", "", depends=("b",)))))
    s.do(ops.Cancel(("a", "b", "d"), True))
    s.do(ops.Put("r", "l", "k", "", ordered="o"))
    put("a", ordered="o")
    put("b", unique_mode="debounce", delay_ms=50)
    put("b")
    s.do(ops.Get("a"))
    s.do(ops.Cancel(("l",)))
    put("b", unique_mode="debounce")
    job = s.pop()[0]
    s.do(ops.Retry(job.jid, job.token))
    put("b", unique_mode="debounce", delay_ms=50)
    put("b")
    s.do(ops.Multiget(("a", "b")))
    s.look()


def keys_with_an_end(s: Script) -> None:
    """Windows and other keys that end by themselves, at the very moment; and how they are swept."""
    for at, mode in enumerate(("window", "pending")):
        for jid, after in (("a", 0), ("b", 999), ("c", 1), ("d", 0)):
            s.now += after
            s.do(ops.Put("q", f"{jid}{at}", "k", "", unique="u", unique_mode=mode, unique_ms=1000))
            s.do(ops.UniqueGet("u"))
        s.do(ops.Put("q", "e", "k", "x", unique="u", unique_mode="again"))
        s.pop(9)
        s.do(ops.Put("q", "e", "k", "x", unique="u", unique_mode="again"))
        s.do(ops.Put("q", "f", "k", "x", unique="u", unique_mode="debounce", unique_max_ms=10))
        s.do(ops.Cancel((f"a{at}", f"c{at}")))
        s.do(ops.UniqueGet("u"))
        s.now += 1000
        s.do(ops.UniqueGet("u"))
        s.do(ops.UniqueRelease("u"))
    for number in range(9):
        s.do(ops.Put("q", f"w{number}", "k", "", unique=f"k{number}", unique_mode="window", unique_ms=10 + number % 3))
        s.now += 7
    s.do(ops.Put("q", "w9", "k", "", unique="k3", unique_ms=5), 50)
    s.do(ops.Put("q", "w9", "k", "", unique="k3"))
    s.do(ops.Put("q", "x", "k", "", unique="k9", unique_mode="debounce", delay_ms=50, unique_max_ms=120))
    for data in ("2", "3", "4", "5"):
        s.do(ops.Put("q", "y", "k", data, unique="k9", unique_mode="debounce", delay_ms=50, unique_max_ms=120), 40)
        s.do(ops.Get("x"))
    s.look()


def what_is_there_is_passed_over(s: Script) -> None:
    """Of what is put as new only free ids are put: the others are as they were, and stand for themselves."""
    some = [ops.Put("q", jid, "k", jid) for jid in "abc"]
    s.do(ops.PutNew((some[0],), "r"))
    s.do(ops.PutNew((some[0],), "r"))
    s.do(ops.PutNew(tuple(some), "s"))
    s.do(ops.PutNew(tuple(some), "s"))
    s.do(ops.PutNew(tuple(some)))
    s.do(ops.PutNew((some[1], some[1])))
    for job in s.pop():
        s.complete(job)
    e, f = (ops.Put("q", jid, "k", "", unique="u") for jid in "ef")
    d = ops.Put("q", "d", "k", "", depends=("e", "b"))
    s.do(ops.PutNew((ops.Put("r", "a", "l", "x", unique="u", depends=("a",)), d, e, f)))
    s.do(ops.PutNew((f, ops.Put("q", "g", "k", "", depends=("f",)))))
    s.do(ops.PutNew((ops.Put("q", "a", "k", "", unique_ms=5), ops.Put("q", "h", "k", "", throttles=("t",)))))
    s.do(ops.ThrottleSet("t", capacity=1, refill=1, refill_ms=1))
    for bad in ({"unique_ms": 5}, {"throttles": ("t",), "cost": 2}, {"depends": ("nobody",)}):
        s.do(ops.PutNew((ops.Put("q", "i", "k", "", **bad), some[0])))
        s.do(ops.PutNew((ops.Put("q", "a", "k", "", **bad),)))
    s.do(ops.PutNew(tuple(ops.Put("q", f"n{n}", "k", "") for n in range(1000))))
    s.do(ops.Multiget(("a", "d", "e", "f", "g", "h", "i", "n999")))


def keys_of_a_batch(s: Script) -> None:
    """What is put together with keys: the first one stands, edges lead to it, and what cannot be said is refused."""
    new = [ops.Put("q", jid, "k", jid, unique="u") for jid in "ab"]
    c = ops.Put("q", "c", "k", "", depends=("b fail x", "a"))
    s.do(ops.PutMany((*new, c), "r"))
    s.do(ops.PutMany((*new, c), "r"))
    s.do(ops.Get("c"))
    s.do(ops.PutMany((ops.Put("q", "a", "k", ""), new[1])))
    s.do(ops.PutMany((ops.Put("q", "a", "k", "", unique="u"), ops.Put("q", "d", "k", "", unique="v"))))
    taken = s.pop()
    late = [ops.Put("q", jid, "k", jid, unique="u", unique_mode="again") for jid in "efg"]
    s.do(ops.PutMany((*late, ops.Put("q", "h", "k", "", depends=("g",)))))
    s.do(ops.PutMany((ops.Put("q", "a", "k", "", depends=("h",)), ops.Put("q", "i", "k", ""))))
    s.do(ops.Get("h"))
    for job in taken:
        s.complete(job)
    s.do(ops.Put("r", "w", "k", "", unique="x", unique_mode="window", unique_ms=1000))
    s.do(ops.Cancel(("w",)))
    s.do(ops.PutMany((ops.Put("q", "v", "k", "", unique="x"), ops.Put("q", "z", "k", "", depends=("v",)))))
    s.do(ops.PutMany((ops.Put("q", "l", "k", "", unique="u", depends=("n",)), ops.Put("q", "m", "k", "", unique="y"),
                      ops.Put("q", "n", "k", "", depends=("m",)))))  # fmt: skip
    wrong: tuple[dict[str, Any], ...] = ({"unique_mode": "again"}, {"unique_ms": 5}, {"unique_max_ms": 5})
    for bad in wrong:
        s.do(ops.PutMany((ops.Put("q", "o", "k", "", **bad),)))
        s.do(ops.Put("q", "o", "k", "", **bad))
        s.do(ops.Put("q", "o", "k", "", unique="w", **{**bad, "unique_mode": "debounce"}))
    s.do(ops.Put("q", "o", "k", "", unique="w", unique_mode="window"))
    s.look()


def about_a_schedule(s: Script) -> None:
    """The very moments at which jobs are due, and in which order."""
    s.put("late", delay_ms=2000, priority=0)
    s.put("b", "a", delay_ms=1000)
    s.put("first", delay_ms=1000, priority=-1)
    s.put("now")
    s.put("now2", priority=0)
    for after in (0, 999, 1, 999, 1):
        s.now += after
        for op in (
            ops.Waiting("q"),
            ops.Waiting("q", 1, 2),
            ops.Waiting("q", 3, 9),
            ops.Waiting("q", 2, 1),
            ops.Scheduled("q"),
            ops.Queue("q"),
            ops.Peek("q"),
            ops.Peek("q", 2),
            ops.Peek("q", 3),
            ops.Peek("q", 9),
        ):
            s.do(op)
    s.pop(2)
    s.put("f", "g", priority=3)
    s.put("h", delay_ms=5)
    s.do(ops.Peek("q", 9), 5)
    s.do(ops.Waiting("q", 0, 3))
    s.do(ops.Waiting("q", 4, 3))
    s.do(ops.Drain("q", 3))
    s.pop(9)


def many_alike(s: Script) -> None:
    """What is shown first, of many jobs with the same priority, moment, or both."""
    for priority in (5, -5, 0):
        s.put(*(f"{letter}{priority}" for letter in "edcba"), priority=priority, delay_ms=100)
        s.put(*(f"{letter}{priority}" for letter in "jihgf"), priority=priority)
    s.now += 50
    for priority in (0, -5):
        s.put(*(f"{letter}{priority}" for letter in "onmlk"), priority=priority, delay_ms=50)
        s.put(*(f"{letter}{priority}" for letter in "tsrqp"), priority=priority, delay_ms=10)
    s.now += 50
    s.do(ops.Waiting("q", 0, 50))
    for count in (1, 4, 11, 50):
        s.do(ops.Peek("q", count))
    s.pop(7)
    s.do(ops.Peek("q", 50))
    s.do(ops.Timeout(tuple(job.jid for job in s.pop(3))))
    s.do(ops.Peek("q", 5))
    s.do(ops.Peek("q", 50))
    s.pop(50)
    s.do(ops.Worker("w"))


def small_numbers(s: Script) -> None:
    """Small numbers of either sign, wherever they stand."""
    for number in range(-8, 9):
        s.do(ops.Put("q", f"p{number + 8}", "k", "", number, max(number, 0), max(number, 0)))
    s.do(ops.Waiting("q"))
    for count in (1, 2, 3, 20):
        s.do(ops.Peek("q", count))
        s.pop(count)
    for number in range(-8, 9):
        s.do(ops.Priority(f"p{number + 8}", -number))
    s.do(ops.Timeout(tuple(f"p{number}" for number in range(9))))
    s.do(ops.Put("q", "p16", "k", "", -3))
    for number in range(-6, 3):
        s.do(ops.Priority("p16", number))
    s.pop(3)
    s.look()


def at_the_beginning(s: Script) -> None:
    """At the beginning of time, too, a job whose lease was taken is the first to be handed out."""
    s.now = 0
    for round_ in range(2):
        s.put(*(f"{letter}{round_}" for letter in "abcdef"))
        s.put(f"late{round_}", delay_ms=1)
        s.do(ops.Timeout(tuple(job.jid for job in s.pop(5))))
        for _ in range(3):
            s.pop(1)
            s.do(ops.Queue("q"))
        s.put(f"g{round_}", delay_ms=7)
        for _ in range(3):
            s.do(ops.Peek("q", 3))
            s.pop(1)
        s.now += 3
        s.pop(9)
    s.look()


def how_long(s: Script) -> None:
    """Durations at the edges of the histogram's bins."""
    s.set("heartbeat", 366 * DAY)
    s.set("stats-history", 3660)
    s.set("histogram-history", 3660)
    edges = (0, 1, 60, 61, 3600, 4500, 86_400, 90_000, 259_200, 345_600, 30 * 86_400, 31 * 86_400, 40 * 86_400)
    for seconds in edges:
        for milliseconds in sorted({max(seconds * 1000 - 1, 0), seconds * 1000, seconds * 1000 + 999}):
            s.put("j")
            (job,) = s.pop()
            s.do(ops.Complete(job.jid, job.token), milliseconds)
            s.do(ops.Stats("q"))
    s.put("j", "k")
    s.now += 259_200_000
    s.pop(2)
    s.do(ops.Stats("q"))


def a_clock_that_goes_back(s: Script) -> None:
    """Nothing waits or runs for less than no time."""
    s.put("a", "b", "c", retries=0)
    s.now -= 700
    a, b = s.pop(2)
    s.do(ops.Complete(a.jid, a.token), -5000)
    s.do(ops.Stats("q"))
    s.do(ops.Fail(b.jid, b.token, "g", "m"), -DAY)
    s.do(ops.Stats("q"))
    s.set("stats-history", 0)
    (c,) = s.pop()
    s.do(ops.Fail(c.jid, c.token, "g", "m"), 3 * DAY)
    s.do(ops.RetryMany(group="g", to="q", count=9), 5)
    s.do(ops.Stats("q", s.now))
    s.do(ops.Stats("q", s.now - 3 * DAY))
    s.look()
    for day in (DAY, -DAY, 0):  # a failure is taken off a day that was struck, and is there again
        s.now += day
        s.put("d", queue="r")
        (d,) = s.pop(queue="r")
        if day == DAY:
            s.do(ops.Fail("d", d.token, "h", "m"))
            s.put("e", queue="r")
            s.now += 2 * DAY
            s.pop(queue="r")
            s.now -= 2 * DAY
            s.put("f", queue="r")
            s.pop(queue="r")
            s.do(ops.RetryMany(group="h", to="r", count=1))
            s.do(ops.Stats("r"))
            s.do(ops.Timeout(("e", "f")))
            s.pop(9, queue="r")


def failed_on_another_day(s: Script) -> None:
    """A job that fails counts on that day and queue, and is taken off there, whoever takes it off."""
    for way in ("unfail", "put", "cancel"):
        s.put(way, queue="f" + way)
        (job,) = s.pop(queue="f" + way)
        s.do(ops.Fail(job.jid, job.token, "g" + way, "m"), 10)
        day = s.now
        s.now += DAY
        s.put("z" + way, queue="f" + way)
        (other,) = s.pop(queue="f" + way)
        s.do(ops.Fail(other.jid, other.token, "other", "m"))
        if way == "unfail":
            s.do(ops.RetryMany(group="gunfail", to="elsewhere", count=1))
        elif way == "put":
            s.do(ops.Put("elsewhere", "put", "k", ""))
        else:
            s.do(ops.Cancel(("cancel",)))
        for queue in ("f" + way, "elsewhere"):
            s.do(ops.Stats(queue, day))
            s.do(ops.Stats(queue))
    s.look()


def folding(s: Script) -> None:
    """Statistics are the same however many durations came together before they were folded."""
    s.put(*ids("j", 400))
    for number in range(70):
        s.now += 137
        leased = s.pop(1 if number % 9 else 3)
        s.do(ops.Complete(leased[0].jid, leased[0].token), 1700 * number)
        if number in (10, 50, 60, 61, 62, 63, 64, 65, 66, 69):
            s.do(ops.Stats("q"))
    s.pop(55)
    s.do(ops.Stats("q"))
    s.pop(64)
    s.do(ops.Stats("q"))
    s.complete(*s.pop(130), after=900_000)
    s.do(ops.Stats("q"))


# ---- what is refused


def completing_wrongly(s: Script) -> None:
    """What a completion may not ask for; nothing changes, not even for the first of several."""
    s.put("a", "b", "c", "d")
    a, b, c, _ = s.pop(4)

    def one(job: Any, **arguments: Any) -> ops.Complete:
        return ops.Complete(job.jid, job.token, **arguments)

    s.do(ops.CompleteMany((one(a), one(b, next="r"))))
    s.do(ops.CompleteMany((one(a, next="r"), one(b))))
    s.do(ops.CompleteMany((one(a), one(b, delay_ms=5))))
    s.do(ops.CompleteMany((one(a), one(b, depends=("c",)))))
    s.do(ops.CompleteMany((one(a), one(b, depends=("c",), delay_ms=5))))
    s.do(ops.CompleteMany((one(a), one(b, depends=("c",), next="r"), one(c, delay_ms=1))))
    s.do(ops.CompleteMany((one(a), one(b), one(a))))
    s.do(ops.CompleteMany((one(a), ops.Complete("b", b.token + 1))))
    s.do(one(a, delay_ms=5))
    s.do(one(a, depends=("c",)))
    s.do(one(a, depends=("c",), delay_ms=5))
    for arguments in (
        {"delay_ms": 5},
        {"depends": ("c",)},
        {"depends": ("c",), "delay_ms": 5},
        {"next": "r", "depends": ("x",)},
    ):
        s.do(ops.CompleteAndPop("a", a.token, "q", "w", **arguments))
    s.do(one(a, next="r", depends=("c", "a")))
    s.complete(a, b)
    s.complete(a, b, c)
    s.do(ops.CompleteMany((one(a, delay_ms=5),)))
    s.do(ops.CompleteMany((one(a, next="r"),)))
    s.do(one(a, delay_ms=5))
    s.do(ops.CompleteAndPop("a", a.token, "q", "w", delay_ms=5))
    s.look()


def sending_twice(s: Script) -> None:
    """Whatever ends a lease, or grants one, is answered again as before, and changes nothing more."""
    s.put(*ids("j", 16), retries=1)
    s.put("dependent", depends=("j0000",))
    a, b, c, d, e = s.pop(5, request="p")
    twice: list[Operation] = [
        ops.Pop("q", "w", 5, False, "p"),
        ops.Pop("q", "v", 1, False, "p"),
        ops.CompleteAndPop(a.jid, a.token, "q", "w", 2, request="n"),
        ops.CompleteAndPop(a.jid, a.token, "q", "w", 2, request="other"),
        ops.CompleteAndPop(a.jid, a.token, "q", "w", 2, request="n"),
        ops.Pop("q", "w", 5, False, "p"),
        ops.CompleteAndPop(b.jid, b.token, "q", "w", 1, request="n"),
        ops.Pop("q", "w", 5, False, "n"),
        ops.Complete(b.jid, b.token),
        ops.Fail(c.jid, c.token, "g", "m"),
        ops.Complete(c.jid, c.token),
        ops.Retry(d.jid, d.token, 0),
        ops.Release(d.jid, d.token),
        ops.Release(e.jid, e.token, 50),
        ops.Retry(e.jid, e.token),
        ops.Heartbeat(e.jid, e.token),
        ops.Complete(e.jid, 0),
        ops.Fail(e.jid, 0, "g", "m"),
        ops.Progress(e.jid, 0, "x"),
    ]
    for op in twice:
        s.do(op, 3)
        s.do(op, 3)
        s.do(ops.Get("j0000"))
    s.look()
    for request in ("x", "r", ""):
        s.pop(1, request=request)
        s.pop(1, request=request)
    s.do(ops.Put("q", "new", "k", "1", request="a"))
    s.do(ops.Put("q", "new", "k", "2", request="a"))
    s.do(ops.Put("q", "new", "k", "3"))
    s.do(ops.Put("q", "new", "k", "4"))
    s.do(ops.PutMany((ops.Put("q", "x", "k", "1"), ops.Put("q", "new", "k", "5")), "b"))
    s.do(ops.PutMany((ops.Put("q", "y", "k", "1"), ops.Put("q", "new", "k", "6")), "b"))
    s.do(ops.PutMany((ops.Put("q", "y", "k", "1"), ops.Put("q", "y", "k", "6")), "c"))
    s.look()


def granted_alone(s: Script) -> None:
    """A lease of one job is told again by its request, whatever other jobs are called; one name makes two requests."""
    s.put("a", "4", "5", "w")
    s.pop(request="alone")  # a sequence that is the id of another job
    s.pop(request="alone")
    (second,) = s.pop(request="second")
    s.do(ops.Worker("w"))
    s.complete(second)
    s.pop(request="second")
    s.put(*ids("j", 12))
    for _ in range(2):
        mine, yours = s.pop(3, request="same"), s.pop(3, worker="v", request="same")
        s.complete(mine[0], yours[0])
        s.complete(*mine[1:], *yours[1:])
    s.look()


def retries_run_out(s: Script) -> None:
    """The last retry fails the job, whoever used it up, and its worker is not told that it failed it."""
    s.set("heartbeat", 1000)
    s.set("grace-period", 0)
    s.put("a", "b", "c", "d", retries=1)
    for _ in range(2):
        for job in s.pop(3):
            if job.jid == "a":
                s.do(ops.Retry("a", job.token, group="mine", message="why"))
                s.do(ops.Retry("a", job.token, group="mine", message="why"))
            elif job.jid == "b":
                s.do(ops.Retry("b", job.token))
                s.do(ops.Fail("b", job.token, "g", "m"))
                s.do(ops.Retry("b", job.token, group="mine"))
        s.now += 1000
    s.look()
    s.do(ops.Peek("q", 9))
    s.pop(9)
    s.do(ops.Peek("q", 9), 1000)
    lost = s.store.jobs["c"].token
    s.pop(9)
    for op in (
        ops.Fail("c", lost, "g", "m"),
        ops.Retry("c", lost),
        ops.Fail("c", 0, "g", "m"),
        ops.Retry("c", 0),
        ops.Complete("c", lost),
    ):
        s.do(op)
    s.look()


def cycles(s: Script) -> None:
    """Each kind of cycle, with its path."""
    s.put("a", "b", "c", "d", "e")
    s.do(ops.Put("q", "a", "k", "", depends=("a",)))
    s.do(ops.Put("q", "b", "k", "", depends=("a",)))
    s.do(ops.Put("q", "a", "k", "", depends=("b",)))
    s.do(ops.Put("q", "c", "k", "", depends=("e", "b", "d")))
    s.do(ops.Put("q", "a", "k", "", depends=("d", "c")))
    s.do(ops.Put("q", "d", "k", "", depends=("a",)))
    s.do(ops.Put("q", "a", "k", "", depends=("e", "c")))
    s.do(ops.DependsOn("b", ("b",)))
    s.do(ops.DependsOn("b", ("c",)))
    s.do(ops.DependsOn("b", ("d", "c")))
    pair = ops.Put("q", "x", "k", "", depends=("y",)), ops.Put("q", "y", "k", "", depends=("x",))
    s.do(ops.PutMany(pair))
    s.do(
        ops.PutMany(
            (pair[0], ops.Put("q", "y", "k", "", depends=("z", "c")), ops.Put("q", "z", "k", "", depends=("x",)))
        )
    )
    s.do(ops.PutMany((ops.Put("q", "a", "k", "", depends=("c",)), ops.Put("q", "c", "k", "", depends=("b",)))))
    s.do(ops.PutMany((ops.Put("q", "a", "k", "", depends=("c",)), ops.Put("q", "c", "k", "", depends=()))))
    s.do(ops.PutMany((ops.Put("q", "x", "k", "", depends=("y",)), ops.Put("q", "y", "k", "", depends=()))))
    s.do(ops.DependsOn("x", ("nobody",)))
    s.do(ops.Put("q", "x", "k", "", depends=("y", "nobody")))
    e = next(job for job in s.pop(9) if job.jid == "e")
    s.do(ops.Complete("e", e.token, next="r", depends=("c",)))
    s.do(ops.Complete("e", e.token, next="r", depends=("y", "e")))
    s.do(ops.Complete("e", e.token, next="r", depends=("y",)))
    s.look()


def reversed_edges(s: Script) -> None:
    """Dependencies and dependents are shown by id, in whatever order they came, and searched in that order."""
    s.put("e", "d", "c", "b", "a")
    s.do(ops.Put("q", "x", "k", "", depends=("e", "a", "c")))
    s.do(ops.Put("q", "y", "k", "", depends=("x", "d", "b")))
    s.do(ops.Put("q", "w", "k", "", depends=("y", "x", "a")))
    s.do(ops.DependsOn("x", ("w",)))
    s.do(ops.DependsOn("x", ("y", "w")))
    s.do(ops.Get("a"))
    s.do(ops.Get("x"))
    s.do(ops.Cancel(("a",)))
    s.do(ops.Cancel(("b", "a"), True))
    s.look()


def two_ways_round(s: Script) -> None:
    """Of two ways round a cycle the path is that of the search, which takes what it met last first."""
    s.put("a", "b", "c", "d", "e", "f")
    s.do(ops.Put("q", "d", "k", "", depends=("a",)))
    s.do(ops.Put("q", "c", "k", "", depends=("a",)))
    s.do(ops.Put("q", "b", "k", "", depends=("d", "c")))
    s.do(ops.Put("q", "a", "k", "", depends=("b",)))
    s.do(ops.Put("q", "f", "k", "", depends=("d",)))
    s.do(ops.DependsOn("f", ("b",)))
    s.do(ops.DependsOn("f", ("c",)))
    s.do(ops.Put("q", "a", "k", "", depends=("f",)))
    s.do(ops.DependsOn("c", ("e",)))
    s.do(ops.DependsOn("d", ("e",)))
    s.do(ops.Put("q", "e", "k", "", depends=("f",)))
    s.do(ops.PutMany((ops.Put("q", "e", "k", "", depends=("f",)), ops.Put("q", "d", "k", "", depends=("a", "e")))))


# ---- texts and names


def big_data(s: Script) -> None:
    """Data of a thousand bytes and more stand apart; each way in, and each way out."""
    sizes = (1023, 1024, 1025, 5000, 10)
    for one, other in pairwise((*sizes, 1025, 1024)):
        s.do(ops.Put("q", "j", "k", "a" * one, priority=1))
        s.do(ops.Get("j"))
        s.do(ops.Update("j", "b" * other))
        s.do(ops.Peek("q"))
        for finish in (ops.Release, ops.Fail, ops.Complete, ops.Heartbeat):
            (job,) = s.pop()
            extra: dict[str, Any] = {"group": "g", "message": "m" * other} if finish is ops.Fail else {}
            s.do(finish("j", job.token, data="c" * (one if finish is ops.Fail else other), **extra))
            s.do(ops.Multiget(("j", "nobody", "j")))
            s.do(ops.Put("q", "j", "k", "d" * one)) if finish is not ops.Release else None
        s.do(ops.Track("j"))
        s.do(ops.Get("j"))
        (job,) = s.pop()
        s.do(ops.Progress("j", job.token, "p" * 700))
        s.do(ops.Complete("j", job.token, "r" * 2000, "e" * other, next="q" if one > 1024 else None))
        s.do(ops.Get("j"))
        s.do(ops.Cancel(("j",)))
        s.do(ops.Tracked())
    s.set("jobs-history-count", 0)
    for data in (None, "f" * 3000):
        s.do(ops.Put("q", "j", "k", "a" * 2000))
        (job,) = s.pop()
        s.do(ops.Complete("j", job.token, data=data))
    s.look()


def odd_texts(s: Script) -> None:
    """Texts that a careless packing breaks."""
    texts = (
        "\t",
        "\n",
        "\\",
        "\\n",
        "\n\\",
        "\t\n",
        "1:x",
        "a\tb\nc\\d",
        "@",
        "\x00",
        "\x1f",
        "0",
        "é" * 40,
        "\\\\n",
        "%d%s",
        "\r\n",
    )
    s.set("max-job-history", 60)
    for number, text in enumerate(texts):
        s.do(ops.Put("q", "j", "k", text, tags=("%a", "a.b", f"[{number}]")))
        s.do(ops.Log("j", text))
        (job,) = s.pop(request=f"r{number}")
        s.do(ops.Progress("j", job.token, text))
        if number % 3 == 0:
            s.do(ops.Fail("j", job.token, "g", text, text))
            s.do(ops.Fail("j", job.token, "g", text, text))
        elif number % 3 == 1:
            s.do(ops.Retry("j", job.token, 0, "g", text))
            s.do(ops.Retry("j", job.token, 0, "g", text))
        else:
            s.do(ops.Complete("j", job.token, text, text))
            s.do(ops.Complete("j", job.token, text, text))
        s.do(ops.Log("j", text + "\n" + text))
        s.do(ops.Get("j"))
    s.do(ops.TagAdd("j", ("a", ".", "b", "a.b", "axb")))
    s.do(ops.TagRemove("j", ("a", "%a")))
    s.look()


def short_histories(s: Script) -> None:
    """A history keeps its first stage and its newest ones; an outcome that is gone is refused."""
    for most in (4, 5, 6, 7, 100):
        s.set("max-job-history", most)
        s.do(ops.Put("q", "j", "k", ""))
        s.do(ops.Get("j"))
        (job,) = s.pop()
        s.do(ops.Release("j", job.token))
        for number in range(7):
            s.do(ops.Log("j", f"line {number}\n"))
            s.do(ops.Get("j"))
            s.do(ops.Release("j", job.token))
    s.set("max-job-history", 4)
    s.do(ops.Log("j", "x"))
    s.do(ops.Get("j"))
    s.do(ops.Log("j", "y"))
    s.do(ops.Get("j"))


def long_names(s: Script) -> None:
    """Names and counts as long and as great as they may be, and one more."""
    for size in (127, 128, 129):
        name = "n" * size
        s.do(ops.Put(name, "j" * size, name, "", tags=(name,), request="r" * (size - 64)))
        s.do(ops.Pop(name, name, 1, False, "r" * (size - 64)))
        s.do(ops.Pause((name,)))
        s.do(ops.Tagged(name))
        s.do(ops.Deregister((name,)))
        s.do(ops.Failed(name + "n" * 32))
        s.do(ops.ConfigSet("heartbeat-" + name, 1000))
        s.do(ops.ConfigGet("heartbeat-" + name))
        s.do(ops.ConfigSet("heartbeat-" + name[:118], size))
    for size in (65535, 65536, 65537):
        s.do(ops.Log("j" * 128, "m" * size))
    for size in ((1 << 20) - 1, 1 << 20, (1 << 20) + 1):
        s.do(ops.Update("j" * 127, "d" * size))
    for ending in RESERVED:
        s.do(ops.Put("q", ending, "k", ""))
        s.do(ops.Put("q", "x" + ending, "k", ""))
        s.do(ops.Put("q", ending + "x", "k", ""))
        s.do(ops.Put("q", ending[1:], "k", ""))
    for value in (999, 1000, 1001, 0, 1, 2):
        s.do(ops.Waiting("q", 0, value))
        s.do(ops.Peek("q", value))
        s.do(ops.Multiget(("x",) * value))
        s.do(ops.Track("-x", "q" * value if value < 100 else "z"))
    for value in (TIME_END - 1, TIME_END, 10**14, 99_999_999_999_999, 10**15, 0, -1, -(10**13)):
        s.do(ops.Events(max(value, 0), 1))
        s.do(ops.Complete("x", value))
        s.do(ops.Stats("q", value))
        s.do(ops.Priority("-x", value))
        s.steps.append(Step(value, ops.Length("q")))
    for value in (2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 7, -7):
        s.do(ops.Priority("data", value))
        s.do(ops.Put("q", "data", "k", "", priority=value))
    for character in " ~!\x7f\x1f\x80é\n\t\0":
        for op in (
            ops.Put("q", "x" + character, "k", ""),
            ops.Put("q" + character, "x", "k", ""),
            ops.Update("data", character),
        ):
            s.do(op)


def options(s: Script) -> None:
    """Options by queue, listed by name bytewise; ranges; what is no option."""
    for name in ("heartbeat", "max-events", "jobs-history"):  # the options of queues that are called like options
        s.do(ops.ConfigSet("heartbeat-" + name, 7))
        s.do(ops.ConfigGet(name))
        s.do(ops.ConfigGet("heartbeat-" + name))
        s.put("h" + name, queue=name)
        s.pop(queue=name)
    for queue in ("b", "a", "ab", "a b", "Z", "é", "~", "\U0001f600", "\uffee", "a-", "aa"):
        s.do(ops.ConfigSet("heartbeat-" + queue, 10 + len(queue)))
        s.do(ops.ConfigGet("heartbeat-" + queue))
        s.do(ops.Config())
    for option in (
        "heartbeat",
        "grace-period",
        "max-events",
        "max-job-history",
        "heartbeat-b",
        "stats-history",
        "heartbeats",
    ):
        for value in (0, 1, 3, 4, 1000, 1001, 3660, 3661, 10**7, 10**7 + 1, 31_622_400_000, 31_622_400_001):
            s.do(ops.ConfigSet(option, value))
        s.do(ops.ConfigGet(option))
        s.do(ops.ConfigUnset(option))
        s.do(ops.ConfigGet(option))
    s.do(ops.ConfigUnset("heartbeat-nobody"))
    s.do(ops.ConfigUnset("heartbeat-"))
    s.do(ops.ConfigGet("heartbeat-nobody"))
    s.do(ops.Config())
    s.put("j", queue="a")
    s.pop(queue="a")
    s.do(ops.Timeout(("j",)))
    s.do(ops.ConfigSet("heartbeat", 5))
    s.pop(queue="a")
    for queue in ("b", "a", "ab", "a b", "Z", "é", "~", "\U0001f600", "\uffee", "a-", "aa"):
        s.do(ops.ConfigUnset("heartbeat-" + queue))
    s.do(ops.Config())


def fewer_events(s: Script) -> None:
    """Events that fell out are not shown again when more are kept."""
    s.put(*"abcdefgh")
    for most in (5, 3, 20, 4, 1, 2, 10_000):
        s.set("max-events", most)
        s.do(ops.Events(0, 50))
        for jid in "abc":
            s.do(ops.Log(jid, "x"))
            s.do(ops.Events(0, 50))
            s.do(ops.Events(s.store.seq - 2, 1))
    s.set("max-events", 4)
    s.do(ops.ConfigUnset("max-events"))
    s.do(ops.Events(0, 50))
    s.set("max-events", 7)
    s.do(ops.Log("a", "x"))
    s.do(ops.ConfigUnset("max-events"))
    s.do(ops.Events(0, 50))
    s.do(ops.Events(s.store.seq, 5))
    s.do(ops.Events(s.store.seq + 5, 5))


def trimmed_events(s: Script) -> None:
    """The stream holds hardly more events than are kept, also just after fewer are."""
    for jid in range(150):
        s.do(ops.Put("q", f"j{jid}", "klass", "x" * 40))
    s.set("max-events", 5)
    for jid in range(130):
        s.do(ops.Log(f"j{jid}", "y" * 40))
    s.do(ops.Events(0, 50))
    s.do(ops.ConfigUnset("max-events"))
    s.do(ops.Events(0, 50))


def waking(s: Script) -> None:
    """As many idle workers are woken as there are jobs for them, and no more."""
    s.put("a", "b", "c")
    s.pop(3)
    for _ in range(2):
        s.do(ops.Pop("q", "v", 1, True))
    s.do(ops.Timeout(("a", "b", "c")))
    s.pop(9)
    s.do(ops.Pause(("q", "r")))
    for _ in range(4):
        s.do(ops.Pop("q", "v", 1, True))
        s.do(ops.Pop("r", "v", 1, True))
    s.put("d", "e")
    s.put("f", delay_ms=5)
    s.do(ops.Timeout(("a",)))
    s.do(ops.Unpause(("q", "r", "q")))
    for _ in range(3):
        s.do(ops.Pop("q", "v", 1, True), 5)
    s.do(ops.Pause(("q",)))
    for _ in range(6):
        s.do(ops.Pop("q", "v", 1, True))
    s.put("g", delay_ms=5)
    s.put("h", depends=("g",))
    s.do(ops.Unpause(("q",)), 10)
    s.pop(9)


def wakes(s: Script) -> None:
    """Idle workers and wake-ups, by every way in which a job becomes ready."""
    s.put("first", "second")
    s.put("dependent", "dependent2", depends=("second",))
    s.put("later", delay_ms=1000)
    leased = s.pop(2)
    for _ in range(8):
        s.do(ops.Pop("q", "v", 1, True))
    s.put("a")
    s.do(ops.Priority("a", 3))
    s.do(ops.Promote("later"))
    s.do(ops.Delay("a", 0))
    s.do(ops.Release(leased[0].jid, leased[0].token))
    s.do(ops.Complete(leased[1].jid, leased[1].token))
    s.do(ops.Queue("q"))
    s.do(ops.Pop("q", "v", 2, True))
    s.do(ops.Pop("q", "v", 20, True))
    s.do(ops.Pop("q", "v", 20, True))
    s.do(ops.Pop("q", "v", 20, False))
    s.put("b", "c", "d")
    s.do(ops.Pop("q", "v", 20, True))
    s.do(ops.Pop("q", "v", 20, True))
    s.put("e", delay_ms=50)
    s.do(ops.Pop("q", "v", 20, True), 50)
    s.do(ops.Pause(("q",)))
    s.do(ops.Pop("q", "v", 20, True))
    s.put("f")
    s.do(ops.Pop("q", "v", 20, True))
    s.do(ops.Forget(("q",)))
    s.do(ops.Unpause(("q", "r")))
    s.pop(30)


def full(s: Script) -> None:
    """What is bounded: keys of a klass, reasons of a pause, jobs that one search looks at."""
    for n in range(1000):
        s.do(ops.MetadataSet("k", f"key {n}", ""))
    s.do(ops.MetadataSet("k", "one more", ""))
    s.do(ops.MetadataIncrement("k", "one more"))
    s.do(ops.MetadataSet("k", "key 7", "5"))
    s.do(ops.MetadataIncrement("k", "key 7"))
    for n in range(10):
        s.do(ops.Pause(("q",), f"reason {n}", 1000))
    s.do(ops.Pause(("q",), "one more"))
    s.do(ops.Pause(("q",), "reason 7"))
    s.do(ops.Pause(("q",), "one more"), 1000)
    s.do(ops.Queue("q"))
    s.do(ops.PutMany(tuple(ops.Put("q", f"a{n}", "k", "") for n in range(1000))))
    s.put("b", "c")
    s.do(ops.Search("q", klass="none"))
    s.do(ops.Search("q", count=1000))
    s.do(ops.Search("q", cursor="ready 0 0 999"))
    s.do(ops.CancelMany("q", count=150))


def queue_obliterated(s: Script) -> None:
    """A queue is deleted in parts: with jobs that wait for one another, work at hand, and what else it has."""
    s.put("a", "b", "c", "z")
    s.do(ops.Put("q", "d", "k", "", depends=("a", "b")))
    s.do(ops.Put("q", "e", "k", "", depends=("d", "c")))
    s.do(ops.Put("r", "x", "k", "", depends=("e",)))
    s.do(ops.Obliterate("q"))
    s.do(ops.Cancel(("x",)))
    s.pop()
    s.do(ops.Obliterate("q"))
    s.do(ops.Obliterate("q", count=1))
    s.do(ops.Timeout(("a",)))
    s.do(ops.Obliterate("q"))
    _recur(s)
    s.do(ops.Recur("q", "c", "k", "", 0, kind="cron", cron="* * * * *", due_at=(5000,)))
    s.do(ops.ThrottleSet("queue/q", 1))
    s.do(ops.Pause(("q",), "rate", 10))
    s.do(ops.Obliterate("q", True, count=1, request="once"))
    s.put("late", priority=-1)
    s.do(ops.Obliterate("q", True, count=1, request="once"))
    s.do(ops.Obliterate("q", True, "ready 5 0 0"))
    s.do(ops.Obliterate("q", True, "tag 5"))
    s.do(ops.Obliterate("q", True))
    s.do(ops.Queue("q"))
    s.do(ops.ThrottleGet("queue/q"))
    s.do(ops.Obliterate("q"))


def queue_obliterated_finished(s: Script) -> None:
    """Of the jobs that have ended those of the queue are deleted, wherever they stand."""
    s.put("a", "b", "c", "f")
    s.do(ops.PutMany(tuple(ops.Put("r", f"r{n}", "k", "") for n in range(3))))
    for queue, most in (("q", 2), ("r", 2), ("q", 1)):
        for job in s.do(ops.Pop(queue, "w", most)):
            s.do(ops.Complete(job.jid, job.token, result="x"))
    for job in s.do(ops.Pop("q", "w")):
        s.do(ops.Fail(job.jid, job.token, "g", "no"))
    s.do(ops.Put("q", "g", "k", "", depends=("f",)))
    s.do(ops.Obliterate("q", count=2))
    s.do(ops.Obliterate("q", count=2))
    s.do(ops.Obliterate("q", cursor="completed 0 1"))
    s.do(ops.Completed())
    s.do(ops.FailedGroups())


def queue_obliterated_in_parts(s: Script) -> None:
    """More jobs wait for one another than one operation deletes: in two parts; or for one: then it is refused."""
    s.put("a", "b")
    for of, count in (("a", 600), ("b", 600)):
        s.do(ops.PutMany(tuple(ops.Put("q", f"{of}{n}", "k", "", depends=(of,)) for n in range(count))))
    s.do(ops.Obliterate("q"))
    s.do(ops.Obliterate("q"))
    s.put("a", "c")
    for n in range(0, 1000, 500):
        s.do(ops.PutMany(tuple(ops.Put("q", f"a{n + i}", "k", "", depends=("a",)) for i in range(500))))
    s.do(ops.Obliterate("q"))
    s.do(ops.Cancel(("a0",)))
    s.do(ops.Obliterate("q"))
    s.do(ops.PutMany(tuple(ops.Put("r", f"r{n}", "k", "") for n in range(1000))))
    s.do(ops.Put("q", "d", "k", "", depends=tuple(f"r{n}" for n in range(1000))))
    s.do(ops.Put("q", "e", "k", "", depends=("d",)))
    s.do(ops.Obliterate("q"))
    s.do(ops.Obliterate("q", cursor="depends 0 1"))
    s.do(ops.Cancel(("e",)))
    s.do(ops.Obliterate("q"))


def repeated(s: Script) -> None:
    """What is named twice in one operation counts once."""
    s.put("a", "b", tags=("x", "y", "x"))
    s.do(ops.Put("q", "a", "k", "", tags=("y", "x", "y", "z"), depends=("b", "b")))
    s.do(ops.Put("q", "a", "k", "", tags=("z", "w", "x")))
    s.do(ops.TagAdd("a", ("n", "n", "x")))
    s.do(ops.TagRemove("a", ("n", "n", "nobody")))
    s.do(ops.TopTags())
    s.do(ops.Tagged("x"))
    s.do(ops.Put("q", "b", "k", "", tags=()))
    s.do(ops.TopTags())
    s.do(ops.Multiget(("a", "b", "a")))
    s.do(ops.Pause(("q", "q", "r")))
    s.do(ops.Unpause(("q", "q", "r", "none")))
    s.do(ops.DependsOff("a", ("b", "b")))
    s.do(ops.DependsOff("a", ("nobody",)))
    s.pop(2)
    s.do(ops.Timeout(("a", "b", "a")))
    s.do(ops.Timeout(("a", "nobody")))
    s.pop(2)
    s.do(ops.Cancel(("a", "nobody", "a", "b", "b")))
    s.do(ops.Cancel(("nobody", "a"), True))
    s.do(ops.Forget(("q", "q", "nobody", "r")))
    s.do(ops.Deregister(("w", "w")))
    s.look()


def dependent_counts(s: Script) -> None:
    """Jobs that wait on several others, freed, put again, and taken off one at a time."""
    s.put("a", "b", "c")
    s.put("x", depends=("a", "b"))
    s.put("y", depends=("a",), delay_ms=5000)
    s.put("z", depends=("x", "y", "a"))
    s.do(ops.DependsOn("x", ("c", "a")))
    a, b, c = s.pop(3)
    for job in (b, a):
        s.do(ops.Complete(job.jid, job.token), 10)
        for jid in "axyz":
            s.do(ops.Get(jid))
    s.do(ops.Delay("z", 100))
    s.do(ops.Promote("z"))
    s.do(ops.Promote("y"))
    s.do(ops.Delay("y", 0))
    s.do(ops.DependsOff("z", ("y",)))
    s.do(ops.Complete(c.jid, c.token))
    s.do(ops.DependsOff("z", (), True))
    s.do(ops.DependsOff("z", (), True))
    s.look()
    s.put("d")
    s.put("e", "f", depends=("d",))
    s.do(ops.Fail(next(j for j in s.pop(9) if j.jid == "d").jid, s.store.jobs["d"].token, "g", "m"))
    s.do(ops.DependsOn("e", ("d",)))
    s.do(ops.Cancel(("d",)))
    s.do(ops.Cancel(("f", "d", "e")))
    s.look()


def next_queues(s: Script) -> None:
    """On to a next queue: with a delay, with dependencies, with both, and with neither."""
    s.put("a", "b", "c", "d", "wait", priority=4, retries=2, tags=("t",))
    leased = s.pop(4)
    ways: list[dict[str, Any]] = [
        {}, {"delay_ms": 700}, {"depends": ("wait",)}, {"depends": ("wait",), "delay_ms": 700},
    ]  # fmt: skip
    for job, way in zip(leased, ways, strict=True):
        s.do(ops.Complete(job.jid, job.token, "r", "new", next="r", **way), 10)
        s.do(ops.Complete(job.jid, job.token, "r", "new", next="r", **way))
        s.do(ops.Get(job.jid))
    s.look()
    (wait,) = s.pop()
    s.do(ops.CompleteAndPop(wait.jid, wait.token, "r", "w", 9, True, next="r"), 10)
    s.look()
    s.pop(9, queue="r")
    s.now += 700
    s.pop(9, queue="r")
    s.look()


SCRIPTS: tuple[Callable[[Script], None], ...] = (
    completing_wrongly, sending_twice, granted_alone, retries_run_out, cycles, reversed_edges, two_ways_round,
    about_a_lease,
    keys_of_jobs, keys_and_what_else_holds_a_job, keys_with_an_end, keys_of_a_batch, what_is_there_is_passed_over,
    about_a_schedule, many_alike, a_clock_that_goes_back, failed_on_another_day, next_queues, dependent_counts,
    queue_obliterated, queue_obliterated_finished, queue_obliterated_in_parts, repeated, full,
    wakes, waking, fewer_events, trimmed_events, options, odd_texts, short_histories, big_data, retiring,
    not_kept, retiring_by_count, old_statistics, by_the_minute, old_workers, ten_silent_holders, small_numbers,
    at_the_beginning,
    how_long, folding, long_names, a_thousand_dependents, a_thousand_dependents_at_once, one_of_a_thousand,
    many_edges_twice, canceling_a_thousand, a_thousand_dependencies, looking_at_a_thousand, looking_once,
    four_thousand_dependencies, four_thousand_edges, a_thousand_jobs, a_thousand_scheduled, a_thousand_failed,
    a_thousand_runs, runs_of_many, a_run_among_equals, missed_runs, run_ids_that_are_taken,
    dead_letters, revoked_with_many_dependencies,
    a_run_instead_of_a_job_that_is_gone, changing_what_recurs, ends_of_runs, ends_that_end_it, after_the_end,
    another_of_the_same_name, two_of_its_runs_in_one_step, lists_of_moments, lists_at_the_beginning,
    policies_of_missed_runs, bounds_of_runs, as_it_was, runs_at_once, a_thousand_idle_workers, a_thousand_requests,
    a_thousand_silent_workers, ten_thousand_events, *directed_flows.SCRIPTS, *directed_waits.SCRIPTS,
    *directed_throttles.SCRIPTS, *directed_lists.SCRIPTS, *directed_keys.SCRIPTS, *directed_journal.SCRIPTS,
    *directed_ends.SCRIPTS, *directed_messages.SCRIPTS,
)  # fmt: skip


def directed() -> list[Named]:
    """All of them."""
    found = []
    for write in SCRIPTS:
        script = Script()
        write(script)
        found.append(Named(write.__name__, script.steps))
    return found


# ---- what only a hand that writes the wire can send


class Wire(NamedTuple):
    """A call as strings, and what it must do: what the model does with a step, or be refused."""

    operation: str
    args: list[str]
    expected: Step | Refusal


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
        Wire("put", ["5", "a b", *one], _bad("put", "request")),
        Wire("put", ["5", "x" * 65, *one], _bad("put", "request")),
        Wire("put", ["5", "x" * 64, *one], Step(5, ops.Put("q", "j", "k", "d", request="x" * 64))),
        Wire("get", ["5", "", "j"], Step(5, ops.Get("j"))),
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
        Wire("complete", ["6", "", "j", "900000000000000"], _bad("complete", "token")),
        Wire("config", ["6", "", "x"], _bad("config", "option")),
        Wire("config", ["6", ""], Step(6, ops.Config())),
    ]
    return found
