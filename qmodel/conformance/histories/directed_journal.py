"""Histories with a purpose, of the journal: what is recorded, from where to where, and how many entries are kept."""

from __future__ import annotations

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops


def what_is_recorded(s: Script) -> None:
    """What is refused, and what is sent again, but neither reads nor what has no form; values of all kinds."""
    s.put("before")
    s.set("journal", 1)
    s.do(ops.Put("q", "a", "k", 'é"\r\n\t\\$5\x00\U0001f600', tags=("x", "y"), depends=("before",), lifo=True))
    for _ in range(2):
        s.do(ops.Put("q", "b", "k", "", tags=(), request="r"))
        s.do(ops.Pause(("p",), request="r"))
    s.do(ops.Put("q", "bad jid", "k", ""))
    s.do(ops.Pop("q", "w", 0))
    s.do(ops.Recur("s", "q", "k", "", interval_ms=0))
    s.do(ops.Complete("nobody", 1))
    s.do(ops.UniqueRelease("nothing"))
    s.do(ops.ConfigSet("journals", 1))
    s.do(ops.Get("a"))
    s.do(ops.Put("q", "big", "k", "é" * 700, throttles=("t",), ordered="o"))
    for job in s.pop(3, request="g"):
        s.do(ops.Heartbeat(job.jid, job.token))
        s.do(ops.Fail(job.jid, job.token, "group", "it\nfailed", "data"))
    s.pop(3, request="g")
    s.do(ops.PutMany((ops.Put("q", "c", "k", "", request="r"), ops.Put("q", "d", "k", "", tags=("z",)))))
    s.do(ops.Drain("q", 1))
    s.do(ops.CancelMany(queue="q"))
    s.do(ops.Journal(0, 1000))


def where_it_begins_and_ends(s: Script) -> None:
    """With the operation that sets the option, and with the one that takes it back; numbers go on."""
    s.do(ops.Journal())
    for turn in range(3):
        s.set("journal", 1)
        s.put(f"in{turn}")
        s.do(ops.ConfigSet("journal", 2))
        s.do(ops.ConfigSet("journal", 1, "again"))
        s.set("journal", 0) if turn else s.do(ops.ConfigUnset("journal"))
        s.put(f"out{turn}")
        s.do(ops.ConfigSet("journal", 0, "once more"))
        s.do(ops.ConfigUnset("journal"))
        s.do(ops.Journal(turn, 50))


def fewer_entries(s: Script) -> None:
    """Entries that fell out are not shown again when more are kept, also where nothing is recorded any more."""
    s.set("journal", 1)
    s.put(*"abc")
    for most in (5, 3, 20, 4, 0, 1, 2, 10_000):
        s.set("max-journal", most)
        s.do(ops.Journal(0, 50))
        for jid in "abc":
            s.do(ops.Log(jid, "x"))
            s.do(ops.Journal(0, 50))
            s.do(ops.Journal(s.store.journaled - 1, 1))
    s.set("journal", 0)
    s.set("max-journal", 4)
    s.do(ops.ConfigUnset("max-journal"))
    s.do(ops.Journal(0, 50))
    s.do(ops.Journal(s.store.journaled, 5))
    s.do(ops.Journal(s.store.journaled + 5, 5))


def trimmed_journal(s: Script) -> None:
    """The stream holds hardly more entries than are kept."""
    s.set("journal", 1)
    s.set("max-journal", 5)
    s.put("a")
    for _ in range(260):
        s.do(ops.Log("a", "y" * 40))
    s.do(ops.Journal(0, 50))
    s.set("max-journal", 200)
    s.do(ops.Journal(0, 50))


SCRIPTS = (what_is_recorded, where_it_begins_and_ends, fewer_entries, trimmed_journal)
