"""Histories of mostly plain calls (lua/ops/plain.lua), and some that are nearly plain.

The generator draws few plain calls in a row, because it draws all operations. Here they are puts with options that
leave a job plain, pops, completions and additions to requests, of few queues, workers and keys, with other operations
between. Half of the histories have one queue, one worker and few other operations, so that plain calls go on for long.
"""

from __future__ import annotations

import random
from typing import Any

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


class Drawer:
    """Draws mostly plain calls; it knows from the replies what is leased."""

    def __init__(self, seed: int | str) -> None:
        self.chance = random.Random(f"plain.{seed}")
        self.now = 10**12
        alike = self.chance.randrange(2) == 0
        self.queues: tuple[str, ...] = QUEUES[:1] if alike else QUEUES
        self.workers: tuple[str, ...] = WORKERS[:1] if alike else WORKERS
        self.options, self.others = (12, 60) if alike else (5, 12)
        self.leases: list[tuple[str, int]] = []
        self.popped: list[list[tuple[str, int]]] = []
        self.jids = 0
        self.last: Operation | None = None

    def rarely(self, one_of: int) -> bool:
        return self.chance.randrange(one_of) == 0

    def request(self) -> str:
        return "" if self.rarely(12) else f"r{self.chance.randrange(10**9)}"

    def put(self) -> ops.Put:
        self.jids += not self.rarely(20)
        more: dict[str, Any] = {}
        if self.rarely(self.options):
            more = self.chance.choice(
                [{"tags": ("a", "b")}, {"priority": 3}, {"delay_ms": 40}, {"retries": 1}, {"ttl_ms": 50},
                 {"throttles": ("t",)}, {"throttles": ("t",)},
                 {"throttles": ("x",), "tags": ("a",)}, {"throttles": ("t", "x")},
                 {"depends": (f"j{self.jids - 1}",)}, {"lease_ms": 9}, {"keep_complete_ms": 20},
                 *self.unique(), *(self.several() for _ in range(8))]
            )  # fmt: skip
        data = "x" * self.chance.choice((0, 2, 2, 2, 1024, 1025)) if self.rarely(6) else "{}"
        jid = f"j{self.jids}" if not self.rarely(30) else f"{self.jids}-data"
        if self.leases and self.rarely(6):
            jid = self.chance.choice(self.leases)[0]
        queue, klass = self.chance.choice(self.queues), self.chance.choice(KLASSES)
        return ops.Put(queue, jid, klass, data, request=self.request(), **more)

    def several(self) -> dict[str, Any]:
        """Draw options of a put; most leave a job plain."""
        held = self.chance.choice(({}, {}, {"throttles": ("t",)}, {"unique": f"u{self.chance.randrange(30)}"}))
        all_ = {
            "priority": 2, "retries": 9, "lifo": True, "dead_queue": "q", "keep_failed_ms": 9, "max_lapses": 1,
            "timeout_ms": self.chance.choice((25, 5000)), "lease_ms": self.chance.choice((20, 40, 4000, 90_000)),
            "retry_delay_ms": 20, "retry_delay_max_ms": 30, "fair_key": self.chance.choice("klm"), "fair_weight": 3,
            "tags": ("a",), **held, **({"keep_complete_ms": 20} if self.rarely(9) else {}),
        }  # fmt: skip
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
        count = 1 if self.chance.randrange(3) else self.chance.choice((2, 5, 150))
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
        if not self.leases or self.rarely(20):
            return f"j{self.jids}", 1
        return self.leases.pop(self.chance.randrange(len(self.leases)) if self.rarely(3) else 0)

    def complete(self) -> ops.Complete:
        more: dict[str, Any] = {}
        if self.rarely(12):
            more = self.chance.choice([{"next": "r"}, {"data": "new"}, {"result": "x" * 1000}])
        elif self.rarely(3):
            more = {"result": self.result()}
        return ops.Complete(*self.lease(), **more)

    def complete_and_pop(self) -> ops.CompleteAndPop:
        more: dict[str, Any] = {"result": self.result()} if self.rarely(3) else {}
        if self.rarely(12):
            more |= self.chance.choice([{"next": "r"}, {"data": "new"}, {"count": 2}, {"result": "x" * 1000}])
        return ops.CompleteAndPop(*self.lease(), self.chance.choice(self.queues), self.chance.choice(self.workers),
                                  wait=self.rarely(4), request=self.request(), **more)  # fmt: skip

    def complete_many(self) -> ops.CompleteMany:
        count = self.chance.randrange(1, 12)
        if self.popped and not self.rarely(3):
            together = self.popped.pop(self.chance.randrange(len(self.popped)))[:count]
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
            self.now += self.chance.choice((0, 1, 1, 7, 40, 300, 1500) if not self.rarely(40) else (61_000, 86_400_000))
        if self.last and self.rarely(15):
            return self.now, self.last
        ways = [self.put, self.pop, self.complete, self.complete_and_pop, self.put_many, self.complete_many,
                self.request_add]  # fmt: skip
        way = self.other if self.rarely(self.others) else self.chance.choices(ways, (6, 6, 5, 7, 2, 2, 2))[0]
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
    history += [Step(drawer.now, ops.Put(queue, f"first-{queue}", "K", "{}")) for queue in QUEUES]
    history += [Step(drawer.now, ops.RequestOpen(one, "q", 3, i)) for i, one in enumerate(REQUESTS)]
    for step in history:
        drawer.hear(engine.step(store, *step))
    for _ in range(steps):
        step = Step(*drawer.draw())
        drawer.hear(engine.step(store, *step))
        history.append(step)
    return history
