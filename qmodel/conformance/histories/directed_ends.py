"""Histories with a purpose, of ends: dead letters, and jobs that are canceled or deleted many at a time."""

from __future__ import annotations

from typing import Any

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST


def _letters(s: Script, queue: str = "dead") -> list[str]:
    return [job.jid for job in s.do(ops.Peek(queue, 9))]


def _failed(s: Script, jid: str, **arguments: Any) -> None:
    """Put a job, and let it fail."""
    s.put(jid, retries=0, **arguments)
    for job in s.pop():
        s.do(ops.Fail(job.jid, job.token, "g", "why"))


def letters_as_they_were_put(s: Script) -> None:
    """What is put anew stands before the others where its job did, in place of a failed job or where there is none."""
    for jid, lifo in (("a", True), ("b", None), ("c", False), ("d", True)):
        _failed(s, jid, lifo=lifo, dead_queue="dead")
    s.do(ops.Cancel(("a", "b")))
    s.do(ops.Put("q", "d", "k", "", retries=0, lifo=False, dead_queue="dead"))
    for job in s.pop():
        s.do(ops.Fail(job.jid, job.token, "g", "why"))
    s.put("first", queue="q")
    for letter in _letters(s):
        s.do(ops.Get(letter))
        s.do(ops.Replay(letter))
        s.do(ops.Waiting("q"))
    s.put("last", queue="q")
    s.look()


def a_letter_with_many_dependencies(s: Script) -> None:
    """A letter that waits for more than a thousand jobs is not taken away; one that waits for a thousand is."""
    many = tuple(f"m{number:04}" for number in range(MOST + 1))
    s.put(*many, queue="other")
    _failed(s, "a", dead_queue="dead", tags=("t",))
    (letter,) = _letters(s)
    (held,) = s.pop(queue="dead")
    s.do(ops.Release(letter, held.token, depends=many[:MOST]))
    s.do(ops.DependsOn(letter, many[MOST:]))
    s.do(ops.Replay(letter))
    s.do(ops.DependsOff(letter, many[:1]))
    s.do(ops.Replay(letter))
    s.do(ops.Get("a"))
    s.do(ops.Get(many[1]))


def a_letter_whose_name_is_taken(s: Script) -> None:
    """A job that fails leaves no letter where another job has the letter's name."""
    for jid in ("a", "b" * 128):
        s.put(jid, dead_queue="dead", retries=0)
        (job,) = s.pop()
        s.put(f"{jid[:100]}-dead-{s.store.seq + 2}", queue="other")
        s.do(ops.Fail(job.jid, job.token, "g", "why"))
        s.do(ops.RetryMany(group="g", to="q"))
        (job,) = s.pop()
        s.do(ops.Fail(job.jid, job.token, "g", "again"))
    s.look()


def canceling_edges_in_bulk(s: Script) -> None:
    """Of the jobs that fit those are canceled that end a thousand dependencies, and those that nobody waits for."""
    many = tuple(f"m{number:04}" for number in range(MOST))
    s.put(*many, queue="other")
    for most, rest in ((500, 1), (500, 0), (499, 1), (1, 500)):
        for jid, count in (("a", most), ("b", 500), ("c", rest), ("d", 1), ("e", 0)):
            s.do(ops.Put("q", jid, "k", "", depends=many[:count], tags=("t",)))
        s.do(ops.CancelMany("q", preview=True))
        s.do(ops.CancelMany("q"))
        s.do(ops.Queue("q"))
        s.do(ops.CancelMany(tag="t"))
        s.do(ops.CancelMany(tag="t"))
    s.put("a", "b", tags=("t",))
    s.put("c", "d", tags=("t",), depends=("a",))
    s.do(ops.CancelMany(tag="t", preview=True))
    s.do(ops.CancelMany(tag="t"))
    s.do(ops.CancelMany(tag="t"))
    s.look()


def canceling_a_request_with_edges(s: Script) -> None:
    """A request is not called off where that would end more than a thousand dependencies."""
    many = tuple(f"m{number:04}" for number in range(501))
    s.put(*many, queue="other")
    for id, count in (("a", 500), ("b", 501)):
        s.do(ops.RequestOpen(id, "q", 1))
        s.do(ops.RequestAdd(id, tuple(ops.Put("q", id + end, "k", "", depends=many[:count]) for end in (":1", ":2"))))
        s.do(ops.RequestCancel(id))
        s.do(ops.RequestGet(id))
    s.do(ops.DependsOff("b:2", many[:2]))
    s.do(ops.RequestCancel("b"))
    s.do(ops.RequestGet("b"))


def draining_a_job_that_is_followed(s: Script) -> None:
    """A job of which only the next one of its key waits is drained; one that another job waits for, too, is not."""
    for jid, queue in (("a", "q"), ("b", "r"), ("c", "q"), ("d", "r")):
        key = "x" if jid in "ab" else "y"
        s.put(jid, queue=queue, unique=key, unique_mode="again")
        if queue == "q":
            (job,) = s.pop()
        else:
            s.do(ops.Release(job.jid, job.token, delay_ms=1000))
    s.put("e", queue="r", depends=("c",))
    s.do(ops.Drain("q", 9))
    s.do(ops.Drain("q", 9))
    s.look()


def expiring_edges_in_parts(s: Script) -> None:
    """Jobs whose time to live is over end a thousand dependencies with each pop, also those of several jobs."""
    many = tuple(f"m{number:04}" for number in range(600))
    s.put(*many, queue="other")
    for jid, count in (("a", 600), ("b", 600), ("c", 300)):
        s.do(ops.Put("q", jid, "k", "", depends=many[:count], ttl_ms=5))
    s.now += 10
    for _ in range(3):
        s.pop()
        for jid in "abc":
            s.do(ops.Get(jid))


def obliterating_a_diamond(s: Script) -> None:
    """A job that waits for two others, which wait for the same one, is deleted once."""
    s.put("a", "x")
    s.put("b", "c", depends=("a",))
    s.put("d", depends=("c", "b"))
    s.put("e", depends=("d", "b", "a"))
    s.do(ops.Obliterate("q", count=1))
    s.do(ops.Obliterate("q"))
    s.look()


def obliterating_a_thousand(s: Script) -> None:
    """A job with those that wait for it is looked at as far as one operation goes, also for who waits elsewhere."""
    many = [f"d{number:04}" for number in range(MOST)]
    s.put("hub")
    s.put(*many[:999], depends=("hub",))
    s.do(ops.Put("r", "x", "k", "", depends=(many[998],)))
    s.do(ops.Obliterate("q"))
    s.put(many[999], depends=("hub",))
    s.do(ops.Obliterate("q"))
    s.do(ops.Cancel(("x", many[999])))
    s.do(ops.Obliterate("q"))
    s.do(ops.Queues())


def obliterating_a_thousand_schedules(s: Script) -> None:
    """Of a queue with more than a thousand schedules some are left after one operation, and none after two."""
    for number in range(MOST + 1):
        s.do(ops.Recur("q", f"s{number:04}", "k", "", 1000))
    for _ in range(2):
        s.do(ops.Obliterate("q"))
        s.do(ops.Queues())


def changing_what_recurs_after_its_end(s: Script) -> None:
    """While a run is going on nobody knows when the next one is due, whatever its interval becomes."""
    for jid, interval_ms in (("short", 10), ("long", 10_000)):
        s.do(ops.Recur("q", jid, "k", "", 1000, kind="after"))
        (run,) = s.pop()
        s.do(ops.RecurUpdate(jid, interval_ms=interval_ms))
        s.do(ops.RecurGet(jid))
        s.complete(run, after=5)
        s.do(ops.RecurGet(jid))
        s.do(ops.RecurUpdate(jid, interval_ms=interval_ms + 1))
        s.do(ops.RecurGet(jid))


SCRIPTS = (
    letters_as_they_were_put, a_letter_with_many_dependencies, a_letter_whose_name_is_taken, canceling_edges_in_bulk,
    canceling_a_request_with_edges, draining_a_job_that_is_followed, expiring_edges_in_parts, obliterating_a_diamond,
    obliterating_a_thousand, obliterating_a_thousand_schedules, changing_what_recurs_after_its_end,
)  # fmt: skip
