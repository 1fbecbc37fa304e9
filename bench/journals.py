"""Generate journals of a server, of any length, and archive them while they grow.

Plain journals have ordinary jobs, which are put and popped one by one. Of 100 jobs, 94 complete, 3 are retried, 2 fail
and 1 is canceled. One job in ten renews its lease once, and one pop in 20 finds no job. The other journals have all
operations, as the generator of histories draws them. The server keeps few entries and few complete jobs, so the size of
its state, and of the state of an audit, stays constant.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from bench.lifecycle import DATA, Caller
from bench.raw import pack
from qmodel.backends import bundle
from qmodel.backends.bundle import function_name
from qmodel.backends.redis.take_snapshot import taken
from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.pipeline.journal import archive
from qmodel.wire import codec

NOW = 1_760_000_000_000
ROUND = 100
MINUTE = 60_000
KEPT = 5_000
PAGE = 100_000
FAULT = ("ops/pop", "job.remaining = job.remaining - 1", "job.remaining = job.remaining")
"""The fault: the end of a lease is not counted. It shows in the one pop that notices the end of the lease."""

Steps = Iterator[list[tuple[int, Operation]]]


def library(*, wrong: bool) -> str:
    """Give the source of the library, with or without the fault."""
    file, right, other = FAULT
    text = bundle.read(file)
    assert right in text, "the Lua has changed: plant the fault elsewhere"
    return bundle.library({file: text.replace(right, other)} if wrong else None)


@dataclass
class Journal:
    """A namespace of a server with its journal on, and a log of the calls to it."""

    url: str
    prefix: str
    root: str
    sent: int = 0  # the number of entries; it misses some refusals of bad arguments that the journal has
    lapse: int = 0  # the number of the entry that notices the end of a lease

    def begin(self, *, wrong: bool = False) -> Journal:
        """Load the library, and turn the journal on."""
        self.caller = Caller(self.url, self.prefix)
        self.caller.connection.call("FUNCTION", "LOAD", "REPLACE", library(wrong=wrong))
        first: list[Operation] = [ops.ConfigSet("journal", 1), ops.ConfigSet("max-journal", 2 * PAGE)]
        self.execute([(NOW, op) for op in (*first, ops.ConfigSet("jobs-history-count", KEPT))])
        return self

    def execute(self, steps: list[tuple[int, Operation]]) -> list[object]:
        """Execute operations in one round trip, whatever their replies."""
        commands = [
            pack("FCALL", function_name(op.spec.name), "1", self.prefix, *codec.encode(op, now)) for now, op in steps
        ]
        raw = self.caller.connection.exchange(commands)
        found = [codec.decode(op, one) for (_, op), one in zip(steps, raw, strict=True)]
        self.sent += sum(not op.spec.reads and not _bad(one) for (_, op), one in zip(steps, found, strict=True))
        return found

    def fill(self, entries: int, make: Callable[[Journal, int], Iterator[None]], states: int = 0) -> int:
        """Send operations until there are `entries` entries, and archive them, with `states` states, evenly spread."""
        due, cuts, kept = PAGE, [entries * (n + 1) // (states + 1) for n in range(states)], 0
        for _ in make(self, entries):
            if self.sent >= due:
                due += PAGE
                kept += self.keep()
            if cuts and self.sent >= cuts[0]:
                cuts.pop(0)
                archive.keep(self.root, self.prefix, taken(self._where()))
        return kept + self.keep()

    def keep(self) -> int:
        """Archive the new entries."""
        return sum(rows for _, rows in archive.archive(self._where(), self.root))

    def _where(self) -> str:
        return f"{self.url}?prefix={self.prefix}&load=never"


def _bad(found: object) -> bool:
    return isinstance(found, Refusal) and found.code == "BAD_ARGUMENT"


def plain(journal: Journal, entries: int, seed: int = 1) -> Iterator[None]:
    """Send the operations of ordinary jobs; after three fifths of them, let a lease run out."""
    drawn, now, again, number = random.Random(seed), NOW, list[str](), 0
    while journal.sent < entries:
        now += drawn.randrange(50, 500)
        queues = [f"queue-{drawn.randrange(20)}" for _ in range(ROUND)]
        puts = [
            ops.Put(queue, f"{drawn.getrandbits(128):032x}", f"Klass{number % 7}", DATA, request=_request(drawn))
            for number, queue in enumerate(queues, number)
        ]
        number += ROUND
        journal.execute([(now, put) for put in puts])
        queues += again + [f"queue-{drawn.randrange(20, 30)}" for _ in range(ROUND // 20)]
        pops = [ops.Pop(one, f"worker-{drawn.randrange(8)}@host", request=_request(drawn)) for one in queues]
        found = journal.execute([(now + 100 + n, pop) for n, pop in enumerate(pops)])
        ends, again = _ends(drawn, [job for jobs in found for job in jobs])  # type: ignore[attr-defined]
        journal.execute([(now + 300 + n, end) for n, end in enumerate(ends)])
        now += 300 + len(ends)
        if journal.sent >= entries * 3 // 5 and not journal.lapse:
            journal.lapse = _lapse(journal, now)
            now += 2 * MINUTE
        yield


def _request(drawn: random.Random) -> str:
    return f"{drawn.getrandbits(88):022x}"


def _ends(drawn: random.Random, jobs: list[object]) -> tuple[list[Operation], list[str]]:
    """Make the operations that end jobs; list the queues of the jobs that will be popped again."""
    ends, again = list[Operation](), list[str]()
    for job in jobs:
        jid, token, queue = job.jid, job.token, job.queue  # type: ignore[attr-defined]
        draw = drawn.random()
        if drawn.random() < 0.1:
            ends.append(ops.Heartbeat(jid, token))
        if draw < 0.94:
            ends.append(ops.Complete(jid, token, result='{"sent":true}' if draw < 0.3 else ""))
        elif draw < 0.97:
            ends.append(ops.Retry(jid, token))
            again.append(queue)
        elif draw < 0.99:
            ends.append(ops.Fail(jid, token, "no-route", "There is no such host."))
        else:
            ends.append(ops.Cancel((jid,)))
    return ends, again


def _lapse(journal: Journal, now: int) -> int:
    """Let a lease run out; give the number of the entry that notices it."""
    put = ops.Put("slow", "late", "Slow", DATA, lease_ms=1000, request="slow")
    journal.execute([(now, put), (now, ops.Pop("slow", "lost@host", request="slow-1"))])
    ((job,),) = journal.execute([(now + MINUTE, ops.Pop("slow", "other@host", request="slow-2"))])  # type: ignore[misc]
    number = journal.sent
    journal.execute([(now + MINUTE + 1, ops.Complete(job.jid, job.token))])  # type: ignore[has-type]
    return number


def drawn(journal: Journal, entries: int, seed: int = 1) -> Iterator[None]:
    """Send generated histories of 60 steps each, with all operations, one after the other in one namespace.

    The times of histories are spread over decades. Only their order and short distances are kept, because an archive
    has a file for each day.
    """
    number, moment = 0, NOW
    while journal.sent < entries:
        number += 1
        history, steps = runner.draw(RandomChooser(f"journal {seed} {number}"), 60), []
        for before, step in pairwise([history[0], *history]):
            moment += max(-MINUTE, min(step.now - before.now, 2 * MINUTE))
            changes = not step.op.spec.reads and getattr(step.op, "option", "") not in ("journal", "max-journal")
            if changes and _encodable(moment, step.op):
                steps.append((moment, step.op))
        journal.execute(steps)
        yield


def _encodable(now: int, op: Operation) -> bool:
    try:
        codec.encode(op, now)
    except codec.Unencodable:
        return False
    return True
