"""Measure the live audit: how far it is behind a busy server, its memory, and how soon it names a planted fault.

Two processes send lives of jobs at 20,000 operations of jobs a second, or as fast as the server executes and records
them. A third one follows the journal with `qmodel.pipeline.audit.follow`, as `qmodel audit --follow` does, on the same
machine. In one load each job has operations of its own, a hundred in a call; in the other an operation is for a hundred
jobs. The lag is the age of the newest entry of a page when the page is audited, by the server's clock, which is this
machine's. The library has a planted fault: the end of a lease is not counted. From time to time a lease runs out, and
the time to find is that from the reply of the pop that shows the fault until the audit names it. Complete jobs are kept
up to a number that is reached during the first third; memory is compared from there on. When the load has stopped, a
new follower audits what the server keeps, as fast as it can: what it does in a second of its CPU time hardly depends on
other programs.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, NamedTuple

from bench import Options
from bench.journals import library
from bench.lifecycle import SPAN, Batches, Caller, Together, held, jid
from bench.machine import candidates, favour, pinned
from bench.report import Report, Table, Verdict
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.audit.follow import follow
from qmodel.pipeline.audit.replay import Audit

RATE, LOADS, SECONDS = 20_000, 2, 45
LAG, FOUND, GROWN = 2.0, 2.0, 1.1
SETTINGS = {"journal": 1, "max-journal": 1_000_000, "jobs-history-count": 5_000, "grace-period": 0}
PREFIX = "shop:"
FAULTS = 5
"""The leases that run out, evenly spread."""
WAYS: dict[str, tuple[Callable[[Caller], Any], int]] = {
    "an operation for each job": (Together, 1),
    "an operation for a hundred jobs": (Batches, SPAN),
}
"""The loads, and how many jobs an operation is for."""


class Seen(NamedTuple):
    """A page that was audited: when (s since the epoch), its last entry, its age (s), what differs, the memory (MB)."""

    at: float
    number: int
    lag: float
    differ: int
    memory: float


class Sent(NamedTuple):
    """What was sent: operations of jobs, seconds, and the moment (s) of the reply to each pop that shows the fault."""

    operations: int
    seconds: float
    faults: list[float]


class Measured(NamedTuple):
    """A load, what the follower saw, the server's part of a CPU, and what a new follower audits a CPU second."""

    sent: Sent
    seen: list[Seen]
    busy: float
    cpu_rate: float

    def late(self) -> list[float]:
        """Give the seconds from each fault until it was named."""
        found = [one.at for one in self.seen for _ in range(one.differ)]
        return [max(at - shown, 0) for at, shown in zip(found, self.sent.faults, strict=False)]

    def settled(self) -> list[float]:
        """Give the memory after a third of the time."""
        begins = self.seen[0].at + self.sent.seconds / 3
        return [one.memory for one in self.seen if one.at > begins]

    def exact(self) -> bool:
        """Whether every fault was named, and nothing else."""
        return sum(one.differ for one in self.seen) == len(self.sent.faults) == FAULTS


def load(url: str, name: str, seconds: float, count: int, told: Pipe) -> None:
    """Send lives of jobs at a share of the rate, with `count` faults between."""
    favour(os.getpid())
    caller, began, sent, faults = Caller(url, PREFIX), time.monotonic(), 0, list[float]()
    way, lapses = WAYS[name][0](caller), [(n + 1) * seconds / (count + 1) for n in range(count)]
    late = 0.0
    while (passed := time.monotonic() - began) < seconds:
        time.sleep(max(sent * LOADS / RATE - passed, 0))
        way.put()
        way.complete(way.pop())
        sent += 3 * SPAN
        if late and time.monotonic() > late:
            ((job,),) = caller.execute([ops.Pop("slow", "other@host")])
            faults.append(time.time())
            caller.execute([ops.Complete(*held(job))])
            late = 0
        elif not late and lapses and passed > lapses[0]:
            lapses.pop(0)
            caller.execute([ops.Put("slow", jid(), "Slow", "{}", lease_ms=1000), ops.Pop("slow", "lost@host")])
            late = time.monotonic() + 1.1
    told.send(Sent(sent, time.monotonic() - began, faults))


def watch(url: str, told: Pipe) -> None:
    """Follow the journal until told to stop; give what was seen."""
    favour(os.getpid())
    stop, seen = threading.Event(), list[Seen]()
    threading.Thread(target=_wait, args=(told, stop), daemon=True).start()
    with Client(f"{url}?prefix={PREFIX}&load=never") as client:
        told.send("begun")
        for look in follow(client, Audit(), stop):
            if look.at:
                now = time.time()
                seen.append(Seen(now, look.number, now - look.at / 1000, len(look.differences), memory()))
    told.send(seen)


def _wait(told: Pipe, stop: threading.Event) -> None:
    told.recv()
    stop.set()


def drain(url: str, told: Pipe) -> None:
    """Audit all that the server keeps; give the CPU time (s)."""
    with Client(f"{url}?prefix={PREFIX}&load=never") as client:
        began = time.process_time()
        for look in follow(client, Audit(), threading.Event()):
            if not look.at:
                break
    told.send(time.process_time() - began)


def memory() -> float:
    """Give the memory of this process, in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


@contextmanager
def beside(what: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """Run a function in a process of its own; give the pipe to it."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=what, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
        process.join()
    finally:
        process.kill()


def measured(options: Options, name: str, seconds: float) -> Measured:
    """Put a load on a new server, and follow it."""
    with pinned(candidates(options.server)[0]) as server:
        caller = Caller(server.url, PREFIX)
        caller.connection.call("FUNCTION", "LOAD", "REPLACE", library(wrong=True))
        caller.execute([ops.ConfigSet(option, value) for option, value in SETTINGS.items()])
        began = server.cpu_us()
        with beside(watch, server.url) as watching:
            watching.recv()
            with (
                beside(load, server.url, name, seconds, FAULTS) as one,
                beside(load, server.url, name, seconds, 0) as other,
            ):
                sent = _both(one.recv(), other.recv())
            busy = (server.cpu_us() - began) / 1e6 / sent.seconds
            time.sleep(2)
            watching.send("stop")
            seen: list[Seen] = watching.recv()
        with beside(drain, server.url) as draining:
            cpu: float = draining.recv()
    return Measured(sent, seen, busy, sent.operations / cpu)


def _both(one: Sent, other: Sent) -> Sent:
    return one._replace(operations=one.operations + other.operations)


def run(options: Options) -> Report:
    """Measure."""
    seconds = 15.0 if options.quick else SECONDS
    found = {name: measured(options, name, seconds) for name in WAYS}
    rows = [_row(one, WAYS[name][1]) for name, one in found.items()]
    table = Table("A follower beside a load", ["", *found])
    for cells in zip(*rows, strict=True):
        table.add(cells[0][0], *(figure for _, figure in cells))
    method = " ".join(str(__doc__).split())
    verdicts = [verdict for name, one in found.items() for verdict in _verdicts(name, one)]
    return Report("live", "python -m bench live", method, [table], verdicts, [])


def _row(one: Measured, each: int) -> list[tuple[str, str]]:
    lags, settled = sorted(seen.lag for seen in one.seen), one.settled()
    return [
        ("operations of jobs, a second", f"{one.sent.operations / one.sent.seconds:,.0f}"),
        ("entries of the journal, a second", f"{one.sent.operations / each / one.sent.seconds:,.0f}"),
        ("CPU of the server, of one", f"{one.busy:.2f}"),
        ("lag, median, s", f"{lags[len(lags) // 2]:.3f}"),
        ("lag, 99 of 100, s", f"{lags[len(lags) * 99 // 100]:.3f}"),
        ("lag, greatest, s", f"{lags[-1]:.3f}"),
        ("faults named", f"{sum(seen.differ for seen in one.seen)} of {len(one.sent.faults)}"),
        ("time to find, greatest, s", f"{max(one.late(), default=0):.3f}"),
        ("memory after a third of the time, MB", f"{settled[0]:.1f}"),
        ("memory, greatest after that, MB", f"{max(settled):.1f}"),
        ("a new follower: operations of jobs a CPU second", f"{one.cpu_rate:,.0f}"),
    ]


def _verdicts(name: str, one: Measured) -> list[Verdict]:
    settled = one.settled()
    return [
        Verdict(f"{name}: sent", one.sent.operations / one.sent.seconds, RATE * 0.99, "a second", at_least=True),
        Verdict(f"{name}: greatest lag", max(seen.lag for seen in one.seen), LAG, "s"),
        Verdict(f"{name}: every fault is named, and nothing else", float(one.exact()), 1, at_least=True),
        Verdict(f"{name}: greatest time to find", max(one.late(), default=0), FOUND, "s"),
        Verdict(f"{name}: memory of the last two thirds", max(settled) / settled[0], GROWN, "times"),
        Verdict(f"{name}: a new follower, a CPU second", one.cpu_rate, RATE, at_least=True),
    ]
