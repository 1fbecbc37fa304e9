"""Histories of mostly plain calls (lua/ops/plain.lua), and some that are nearly plain.

The generator draws few plain calls in a row, because it draws all operations. Here they are puts with options that
leave a job plain, pops, completions and additions to requests, of few queues, workers and keys, with other operations
between. A history is of one of four kinds. In all but the first it has one queue, one worker and few other operations,
so that plain calls go on for long.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.replies import CompletedAndPopped
from qmodel.model import engine
from qmodel.model.state.store import Store

QUEUES, WORKERS, KLASSES, REQUESTS = ("q", "r"), ("v", "w"), ("K", "L"), ("a", "b")
OPTIONS = (
    ("max-events", 7), ("heartbeat", 30), ("heartbeat-q", 500), ("jobs-history-count", 3), ("jobs-history-count", 33),
    ("jobs-history", 1000), ("max-job-history", 4), ("journal", 1), ("max-worker-age", 100),
    ("requests-history", 50), ("fair-q", 1), ("fair-q", 1), ("fair", 1), ("aging-q", 20), ("aging", 1000),
)  # fmt: skip

JOURNALED = ops.ConfigSet("journal", 1), ops.ConfigSet("max-journal", 30), ops.BeginEpoch(5)
"""What makes the calls after it recorded, in an epoch that is not 0."""


STRETCH = 30
"""Jobs that are leased are put again in the last third of as many steps."""


class Kind(NamedTuple):
    """A kind of history.

    alike       whether it has one queue and one worker
    rarer       by how much calls are rarer that end a row: other operations, resent calls, lost leases and the like
    options     one of so many puts has options
    again       at times, one of so many puts is of a job that is leased
    together    of three pops, so many are of several jobs
    ways        how often each plain operation is drawn, in the order of `Drawer.ways`
    usual       the options of the puts that have no others
    """

    alike: bool
    rarer: int
    options: int
    again: int
    together: int
    ways: tuple[int, ...]
    usual: dict[str, Any]


KINDS = (
    Kind(False, 1, 5, 3, 1, (6, 6, 5, 7, 2, 2, 2), {}),
    Kind(True, 6, 15, 2, 1, (6, 5, 5, 8, 1, 2, 1), {}),
    Kind(True, 6, 40, 1, 2, (8, 4, 2, 2, 3, 5, 0), {}),
    Kind(True, 6, 8, 12, 0, (6, 5, 2, 9, 1, 1, 4), {"throttles": ("t",)}),
)


class Drawer:
    """Draws mostly plain calls; it knows from the replies what is leased."""

    def __init__(self, seed: int | str) -> None:
        self.chance = random.Random(f"plain.{seed}")
        self.now = 10**12
        self.kind = self.chance.choice(KINDS)
        some = slice(1) if self.kind.alike else slice(None)
        self.queues, self.workers = QUEUES[some], WORKERS[some]
        self.ways = (self.put, self.pop, self.complete, self.complete_and_pop, self.put_many, self.complete_many,
                     self.request_add)  # fmt: skip
        self.leases: list[tuple[str, int]] = []
        self.popped: list[list[tuple[str, int]]] = []
        self.met: set[str] = set()
        self.jids = self.steps = 0
        self.last: Operation | None = None

    def rarely(self, one_of: int) -> bool:
        return self.chance.randrange(one_of) == 0

    def oddly(self, one_of: int) -> bool:
        return self.rarely(one_of * self.kind.rarer)

    def request(self) -> str:
        return "" if self.oddly(12) else f"r{self.chance.randrange(10**9)}"

    def put(self) -> ops.Put:
        self.jids += not self.oddly(20)
        more = self.kind.usual
        if self.rarely(self.kind.options):
            more = self.several() if not self.oddly(2) else self.chance.choice(
                [{"tags": ("a", "b")}, {"priority": 3}, {"delay_ms": 40}, {"retries": 1}, {"ttl_ms": 50},
                 {"throttles": ("t",)}, {"throttles": ("t",)},
                 {"throttles": ("x",), "tags": ("a",)}, {"throttles": ("t", "x")},
                 {"depends": (f"j{self.jids - 1}",)}, {"lease_ms": 9}, {"keep_complete_ms": 20},
                 *self.unique(), *(self.several() for _ in range(8))]
            )  # fmt: skip
        data = "x" * self.chance.choice((0, 2, 2, 2, 1024, 1025 if self.oddly(1) else 3)) if self.rarely(6) else "{}"
        jid = f"j{self.jids}" if not self.oddly(30) else f"{self.jids}-data"
        if self.leases and self.steps % STRETCH > STRETCH * 2 // 3 and self.rarely(self.kind.again):
            jid = self.again()
        queue, klass = self.chance.choice(self.queues), self.chance.choice(KLASSES)
        return ops.Put(queue, jid, klass, data, request=self.request(), **more)

    def again(self) -> str:
        """Draw a leased job that is put again, mostly for the first time."""
        leases = [lease for lease in self.leases if lease[0] not in self.met] or self.leases
        one = self.chance.choice(leases)
        self.leases.remove(one)
        self.met.add(one[0])
        return one[0]

    def several(self) -> dict[str, Any]:
        """Draw options of a put; most leave a job plain."""
        held = self.chance.choice(({}, {}, {"throttles": ("t",)}, {"unique": f"u{self.chance.randrange(30)}"}))
        all_ = {
            "priority": 2, "retries": 9, "lifo": True, "dead_queue": "q", "keep_failed_ms": 9, "max_lapses": 1,
            "timeout_ms": 25 if self.oddly(2) else 99_000, "lease_ms": 40 if self.oddly(2) else 90_000,
            "retry_delay_ms": 20, "retry_delay_max_ms": 30, "fair_key": self.chance.choice("klm"), "fair_weight": 3,
            "tags": ("a",), **held, **({"keep_complete_ms": 20} if self.rarely(9) else {}),
        }  # fmt: skip
        if self.kind.together > 1 and not self.oddly(2):
            all_ = {name: value for name, value in all_.items() if name not in {"tags", "throttles", "unique"}}
        return dict(self.chance.sample(sorted(all_.items()), self.chance.randrange(1, 5)))

    def unique(self) -> list[dict[str, Any]]:
        """Draw deduplication keys of a put; most of the keys are free."""
        key = f"u{self.chance.randrange(30)}"
        others: list[dict[str, Any]] = [
            {}, {}, {"unique_mode": "again"}, {"unique_mode": "window", "unique_ms": 50}, {"unique_ms": 40},
            {"unique_mode": "debounce", "delay_ms": 30}, {"tags": ("a", "b", "a")}, {"tags": ()},
        ]  # fmt: skip
        return [{"unique": key, "tags": ("b", "a")}, *({"unique": key, **self.chance.choice(others)} for _ in range(3))]

    def put_many(self) -> ops.PutMany:
        first = self.put()
        jobs = [ops.Put(first.queue, first.jid, first.klass, first.data)]
        for _ in range(self.chance.randrange(20)):
            one = self.put()
            queue = first.queue if not self.rarely(40) else one.queue
            more = self.several() if self.rarely(3) else {"tags": one.tags if self.rarely(9) else None}
            if not self.rarely(9):
                more = {name: value for name, value in more.items() if name not in {"tags", "throttles", "unique"}}
            jobs.append(ops.Put(queue, one.jid, one.klass, one.data, **more))
        return ops.PutMany(tuple(jobs), self.request())

    def pop(self) -> ops.Pop:
        count = self.chance.choice((2, 5, 150)) if self.chance.randrange(3) < self.kind.together else 1
        return ops.Pop(self.chance.choice(self.queues), self.chance.choice(self.workers), count, wait=self.rarely(4),
                       request=self.request())  # fmt: skip

    def request_add(self) -> ops.RequestAdd:
        one = self.put()
        more: dict[str, Any] = {"tags": one.tags} if self.rarely(9) else {}
        jobs = [ops.Put(one.queue if self.rarely(9) else "q", one.jid, one.klass, one.data, **more)]
        if self.rarely(9):
            jobs.append(ops.Put("q", f"{one.jid}-more", one.klass, one.data))
        return ops.RequestAdd(self.chance.choice(REQUESTS), tuple(jobs), self.request())

    def lease(self) -> tuple[str, int]:
        if not self.leases or self.oddly(20):
            return f"j{self.jids}", 1
        return self.leases.pop(self.chance.randrange(len(self.leases)) if self.rarely(3) else 0)

    def complete(self) -> ops.Complete:
        more: dict[str, Any] = {}
        if self.oddly(12):
            more = self.chance.choice([{"next": "r"}, {"data": "new"}, {"result": "x" * 1000}])
        elif self.rarely(3):
            more = {"result": self.result()}
        return ops.Complete(*self.lease(), **more)

    def complete_and_pop(self) -> ops.CompleteAndPop:
        more: dict[str, Any] = {"result": self.result()} if self.rarely(3) else {}
        if self.oddly(12):
            more |= self.chance.choice([{"next": "r"}, {"data": "new"}, {"count": 2}, {"result": "x" * 1000}])
        return ops.CompleteAndPop(*self.lease(), self.chance.choice(self.queues), self.chance.choice(self.workers),
                                  wait=self.rarely(4), request=self.request(), **more)  # fmt: skip

    def complete_many(self) -> ops.CompleteMany:
        count = self.chance.randrange(1, 12)
        if self.popped and not self.rarely(3):
            popped = self.popped.pop(self.chance.randrange(len(self.popped)))
            together = [lease for lease in popped if lease in self.leases][:count] or [self.lease()]
            self.leases = [lease for lease in self.leases if lease not in together]
        else:
            together = [self.lease() for _ in range(count)]
        with_results = self.rarely(2)
        return ops.CompleteMany(
            tuple(ops.Complete(*lease, result=self.result() if with_results else "") for lease in together)
        )

    def result(self) -> str:
        return "" if self.rarely(2) else "r" * self.chance.choice((1, 9, 10, 120, 999))

    def other(self) -> Operation:
        queue, worker = self.chance.choice(self.queues), self.chance.choice(self.workers)
        option, value = self.chance.choice(OPTIONS)
        jid, token = self.lease()
        return self.chance.choice([
            ops.ConfigSet(option, value), ops.ConfigUnset(option), ops.ConfigUnset(option), ops.Pause((queue,)),
            ops.Unpause((queue,)), ops.Unpause((queue,)), ops.Track(f"j{self.jids}"), ops.Untrack(f"j{self.jids}"),
            ops.ThrottleSet("t", 1), ops.ThrottleSet("t", 3), ops.ThrottleSet("x", 0, 2, 50), ops.ThrottleUnset("x"),
            ops.ThrottleSet(f"queue/{queue}", 2), ops.ThrottleSet(f"queue/{queue}", 0, 5, 50),
            ops.ThrottleUnset(f"queue/{queue}"),
            ops.Fail(jid, token, "g", "m"), ops.Retry(jid, token), ops.Heartbeat(jid, token),
            ops.Retry(jid, token, 40), ops.Release(jid, token, delay_ms=7),
            ops.Cancel((jid,)), ops.Events(0, 5), ops.UniqueRelease("u1"),
            ops.Deregister((worker,)), ops.Priority(f"j{self.jids}", 4), *self.of_requests(),
        ])  # fmt: skip

    def of_requests(self) -> list[Operation]:
        """Opens a request again, when it has ended and is forgotten; ends one."""
        one = self.chance.choice(REQUESTS)
        limit, priority = self.chance.choice(((2, 0), (9, 3)))
        return [ops.RequestOpen(one, "q", limit, priority), ops.RequestTouch(one),
                ops.RequestOpen(one, "q", limit, priority, fail_fast=True, lease_ms=300, deadline_ms=1500),
                ops.RequestOpen(one, "q", limit, priority, keep_places=True),
                ops.RequestTune(one, limit=self.chance.choice((1, 4))), ops.RequestClose(one),
                ops.RequestClose(one), ops.RequestCancel(one)]  # fmt: skip

    def draw(self) -> tuple[int, Operation]:
        if not self.rarely(3):
            self.now += self.chance.choice((0, 1, 1, 7, 40, 300, 1500) if self.oddly(4) else (0, 1, 1, 7))
        if self.oddly(60):
            self.now += self.chance.choice((61_000, 86_400_000))
        self.steps += 1
        if self.last and self.oddly(15):
            return self.now, self.last
        way = self.other if self.oddly(12) else self.chance.choices(self.ways, self.kind.ways)[0]
        if not self.leases and way in (self.complete, self.complete_and_pop, self.complete_many):
            way = self.put if self.rarely(2) else self.pop
        self.last = way()
        return self.now, self.last

    def hear(self, reply: Any) -> None:
        if isinstance(self.last, ops.Pop) and isinstance(reply, tuple):
            self.leases += [(job.jid, job.token) for job in reply]
            if len(reply) > 1:
                self.popped.append([(job.jid, job.token) for job in reply])
        elif isinstance(self.last, ops.CompleteAndPop) and isinstance(reply, CompletedAndPopped):
            self.leases += [(job.jid, job.token) for job in reply.jobs]


def drawn(seed: int | str, steps: int = 40, before: tuple[Operation, ...] = ()) -> list[Step]:
    """Draw a history in which most calls are plain, after some operations."""
    drawer, store = Drawer(seed), Store()
    history = [Step(drawer.now, op) for op in before]
    options = [drawer.chance.choice(OPTIONS) for _ in range(drawer.chance.randrange(2))]
    history += [Step(drawer.now, ops.ConfigSet(*option)) for option in options]
    history += [Step(drawer.now, ops.ThrottleSet(one, 30)) for one in drawer.kind.usual.get("throttles", ())]
    history += [Step(drawer.now, ops.Put(queue, f"first-{queue}", "K", "{}")) for queue in QUEUES]
    limit = 30 if drawer.kind.alike else 3
    history += [Step(drawer.now, ops.RequestOpen(one, "q", limit, i)) for i, one in enumerate(REQUESTS)]
    for step in history:
        drawer.hear(engine.step(store, *step))
    for _ in range(steps):
        step = Step(*drawer.draw())
        drawer.hear(engine.step(store, *step))
        history.append(step)
    return history
