"""Measure each operation with 100, 10,000 and 1,000,000 waiting jobs in its queue, on the model and on a server.

Each operation runs many times on new jobs, which are removed afterwards, so the length of the queue stays the same. For
the model, the figure is the CPU time of the step. For the server, it is the CPU time of its process, with many calls in
a round trip. The plot beside the page has a panel for each operation. A horizontal line is the goal: the cost does not
grow with the queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from os import getpid
from typing import Any, NamedTuple, Protocol

from bench import Options
from bench.lifecycle import DATA, KLASS, QUEUE, WORKER, Caller
from bench.lifecycle import jid as new_jid
from bench.lifecycle import request as new_request
from bench.machine import Pinned, candidates, favour, pin, pinned, spare_cpu
from bench.plot import panels
from bench.report import RESULTS, Report, Table, median
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.model.engine import step
from qmodel.model.state.store import Store
from qmodel.wire import codec

SIZES = (100, 10_000, 1_000_000)
CALLS = 50


class On(NamedTuple):
    """The job that an operation is executed on, in the state that the operation needs."""

    jid: str
    token: int
    other: str


Make = Callable[[On], Operation]

NEW: dict[str, Make] = {
    "put": lambda on: ops.Put(QUEUE, on.jid, KLASS, DATA, request=new_request()),
    "put, delayed": lambda on: ops.Put(QUEUE, on.jid, KLASS, DATA, delay_ms=10**6, request=new_request()),
    "put, depending": lambda on: ops.Put(QUEUE, on.jid, KLASS, DATA, depends=(on.other,), request=new_request()),
    "put, tagged": lambda on: ops.Put(QUEUE, on.jid, KLASS, DATA, tags=("a", "b"), request=new_request()),
}
WAITING: dict[str, Make] = {
    "pop": lambda _: ops.Pop(QUEUE, WORKER, request=new_request()),
    "put again": lambda on: ops.Put(QUEUE, on.jid, KLASS, DATA, request=new_request()),
    "update": lambda on: ops.Update(on.jid, DATA, new_request()),
    "priority": lambda on: ops.Priority(on.jid, 5, new_request()),
    "delay": lambda on: ops.Delay(on.jid, 10**6, new_request()),
    "log": lambda on: ops.Log(on.jid, "a line", new_request()),
    "cancel": lambda on: ops.Cancel((on.jid,), request=new_request()),
    "tag_add": lambda on: ops.TagAdd(on.jid, ("a",), new_request()),
    "track": lambda on: ops.Track(on.jid, new_request()),
    "get": lambda on: ops.Get(on.jid),
}
HELD: dict[str, Make] = {
    "complete": lambda on: ops.Complete(on.jid, on.token),
    "complete, next": lambda on: ops.Complete(on.jid, on.token, next=QUEUE),
    "complete_and_pop": lambda on: ops.CompleteAndPop(on.jid, on.token, QUEUE, WORKER, request=new_request()),
    "fail": lambda on: ops.Fail(on.jid, on.token, "group", "message"),
    "retry": lambda on: ops.Retry(on.jid, on.token),
    "release": lambda on: ops.Release(on.jid, on.token),
    "heartbeat": lambda on: ops.Heartbeat(on.jid, on.token),
    "timeout": lambda on: ops.Timeout((on.jid,), new_request()),
    "progress": lambda on: ops.Progress(on.jid, on.token, "half", new_request()),
}
ANY: dict[str, Make] = {
    "peek": lambda _: ops.Peek(QUEUE),
    "waiting, first page": lambda _: ops.Waiting(QUEUE),
    "waiting, from 75": lambda _: ops.Waiting(QUEUE, 75),
    "length": lambda _: ops.Length(QUEUE),
    "queue": lambda _: ops.Queue(QUEUE),
    "queues": lambda _: ops.Queues(),
    "stats": lambda _: ops.Stats(QUEUE),
    "workers": lambda _: ops.Workers(),
    "worker": lambda _: ops.Worker(WORKER),
    "completed": lambda _: ops.Completed(),
    "events": lambda _: ops.Events(0, 25),
    "config": lambda _: ops.Config(),
    "pause": lambda _: ops.Pause(("other",)),
    "top_tags": lambda _: ops.TopTags(),
}
CASES = {**NEW, **WAITING, **HELD, **ANY}


class Subject(Protocol):
    """An executor of operations that reports its CPU time."""

    def execute(self, operations: Sequence[Operation]) -> list[Any]: ...
    def cpu_us(self) -> float: ...


class Model:
    """The model in this process."""

    def __init__(self) -> None:
        self.store, self.now = Store(), 1_760_000_000_000

    def execute(self, operations: Sequence[Operation]) -> list[Any]:
        self.now = now = self.now + 1
        store = self.store
        found = [step(store, now, op) for op in operations]
        assert not any(type(reply) is Refusal for reply in found), found
        return found

    def cpu_us(self) -> float:
        return time.process_time_ns() / 1000


class Server:
    """The library on a server; the time does not include reading the replies."""

    def __init__(self, server: Pinned) -> None:
        self.server, self.caller = server, Caller(server.url).load()

    def execute(self, operations: Sequence[Operation]) -> list[Any]:
        return [Raw(op, reply) for op, reply in zip(operations, self.caller.execute(operations), strict=True)]

    def cpu_us(self) -> float:
        return self.server.cpu_us()


class Raw(NamedTuple):
    """A reply that was not decoded."""

    op: Operation
    reply: Any


def _read(reply: Any) -> Any:
    return codec.decode(reply.op, [b"OK", reply.reply]) if type(reply) is Raw else reply


def fill(subject: Subject, count: int) -> None:
    """Put waiting jobs, which come after the jobs of `_on`."""
    for first in range(0, count, 1000):
        size = min(1000, count - first)
        jobs = tuple(ops.Put(QUEUE, new_jid(), KLASS, DATA, 10) for _ in range(size))
        subject.execute([ops.PutMany(jobs, new_request())])


def _on(subject: Subject, name: str) -> list[On]:
    """Put the jobs that a case needs in front of all others."""
    jids, other = [new_jid() for _ in range(CALLS)], new_jid()
    if name == "put, depending":
        subject.execute([ops.Put(QUEUE, other, KLASS, DATA, 20)])
    if name in NEW or name in ANY:
        return [On(jid, 0, other) for jid in jids]
    extra = CALLS if name == "complete_and_pop" else 0
    subject.execute([ops.Put(QUEUE, jid, KLASS, DATA) for jid in jids])
    if name in WAITING:
        return [On(jid, 0, other) for jid in jids]
    (popped,) = map(_read, subject.execute([ops.Pop(QUEUE, WORKER, CALLS)]))
    if extra:
        subject.execute([ops.Put(QUEUE, new_jid(), KLASS, DATA) for _ in range(extra)])
    return [On(job.jid, job.token, other) for job in popped]


def _clear(subject: Subject, name: str, on: list[On], done: list[Any]) -> None:
    """Restore the queue."""
    gone = {one.jid for one in on} | {one.other for one in on}
    for reply in done:
        read = _read(reply)
        if isinstance(read, replies.CompletedAndPopped):
            gone |= {job.jid for job in read.jobs}
        elif name == "pop":
            gone |= {job.jid for job in read}
    if name not in ANY:
        subject.execute([ops.Cancel(tuple(gone), cascade=True)])
    if name == "track":
        subject.execute([ops.Untrack(one.jid) for one in on])


def cost(subject: Subject, name: str, times: int) -> float:
    """Measure the CPU microseconds of one operation: the median of several rounds."""
    spent = []
    for _ in range(times):
        on = _on(subject, name)
        made = [CASES[name](one) for one in on]
        before = subject.cpu_us()
        done = subject.execute(made)
        spent.append((subject.cpu_us() - before) / CALLS)
        _clear(subject, name, on, done)
    return median(spent)


def run(options: Options) -> Report:
    """Measure the model, and one server."""
    pin(getpid(), spare_cpu())
    favour(getpid())
    sizes = SIZES[:2] if options.quick else SIZES
    (candidate, *_) = candidates("redis" if options.server == "all" else options.server)
    found: dict[str, dict[str, list[float]]] = {name: {"model": [], "server": []} for name in CASES}
    for size in sizes:
        with pinned(candidate, spare_cpu()) as server:
            version = server.version
            subjects: dict[str, Subject] = {"model": Model(), "server": Server(server)}
            for where, subject in subjects.items():
                fill(subject, size)
                for name in CASES:
                    cost(subject, name, 1)  # warms up
                    found[name][where].append(cost(subject, name, 3 * options.runs))
    page = panels(found, [f"{size:,}" for size in sizes], f"us an operation, by jobs in the queue ({version})")
    if not options.quick:
        (RESULTS / "growth.svg").write_text(page, encoding="utf-8")
    tables = [_table(where, found, sizes) for where in ("model", "server")]
    method = " ".join(str(__doc__).split()) + "\n\n![a panel for each operation](growth.svg)"
    return Report("growth", "python -m bench growth", method, tables, [], (version,))


def _table(where: str, found: dict[str, dict[str, list[float]]], sizes: Sequence[int]) -> Table:
    table = Table(
        f"Microseconds on the {where}, by jobs in the queue", ["", *(f"{size:,}" for size in sizes), "growth"]
    )
    for name, costs in sorted(found.items(), key=lambda item: -item[1][where][-1] / item[1][where][0]):
        table.add(name, *costs[where], f"{costs[where][-1] / costs[where][0]:.2f}")
    return table
