"""Blind clients: they draw operations without reading the state, and know only their own leases.

They share few names, so they compete all the time: they put the same jobs twice, pop them as several workers, finish
them late, and cancel them while they run.
"""

from __future__ import annotations

import random
from typing import Any

from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.replies import CompletedAndPopped, Job


class BlindClient:
    """Draws the operations of one client. Its name is the worker's name and, with `seed`, the seed of its choices.

    `jobs` is the number of job ids that the clients share.
    """

    def __init__(self, name: str, jobs: int = 40, seed: str = "") -> None:
        self.name = name
        self.random = random.Random(name + seed)
        self.leases: list[tuple[str, int]] = []
        self.asked: list[Operation] = []
        self._jobs = jobs

    def draw(self) -> Operation:
        """Draw an operation; sometimes repeat an earlier one."""
        op = self._draw()
        self.asked.append(op)
        return op

    def learn(self, op: Operation, outcome: Any) -> None:
        """Remember the leases that a reply grants."""
        granted = outcome.jobs if isinstance(outcome, CompletedAndPopped) else outcome
        if isinstance(op, ops.Pop | ops.PopAny | ops.CompleteAndPop) and isinstance(granted, tuple):
            self.leases += [(job.jid, job.token) for job in granted if isinstance(job, Job)]

    def _draw(self) -> Operation:
        chance = self.random.random()
        if self.asked and chance < 0.05:
            return self.random.choice(self.asked[-20:])
        if self.leases and chance < 0.45:
            return self._finish(*self.leases.pop(self.random.randrange(len(self.leases))))
        queue = self.random.choice("qr")
        if chance < 0.65:
            return self._put(queue)
        if chance < 0.9:
            if chance < 0.68:
                return ops.PopAny(("q", "r"), self.name, self.random.choice((1, 3)), request=self._request())
            return ops.Pop(queue, self.name, self.random.choice((1, 1, 3)), request=self._request())
        return self._other(self._jid(), queue)

    def _jid(self) -> str:
        return f"j{self.random.randrange(self._jobs)}"

    def _request(self) -> str:
        return f"{self.name}-{len(self.asked)}"

    def _put(self, queue: str) -> Operation:
        """Put a job, even one that another worker holds; sometimes put two in one step."""
        depends = (self._jid(),) if self.random.random() < 0.1 else None
        delay = self.random.choice((0, 0, 0, 2))
        throttles = ("t",) if self.random.random() < 0.2 else None
        one = ops.Put(
            queue, self._jid(), "k", "{}", delay_ms=delay, retries=1, depends=depends, request=self._request(),
            throttles=throttles,
        )  # fmt: skip
        other = self._jid()
        if other == one.jid or depends or self.random.random() < 0.8:
            return one
        pair = (ops.Put(queue, one.jid, "k", "{}"), ops.Put(queue, other, "k", "{}"))
        return ops.PutMany(pair, self._request())

    def _finish(self, jid: str, token: int) -> Operation:
        """End a lease, or renew it; sometimes end two in one step."""
        chance = self.random.randrange(10)
        if chance == 0:
            self.leases.append((jid, token))
            return ops.Heartbeat(jid, token)
        if chance < 3 and self.leases:
            other = self.leases.pop()
            return ops.CompleteMany((ops.Complete(jid, token), ops.Complete(*other)))
        return self.random.choice(
            (
                ops.Complete(jid, token),
                ops.Complete(jid, token),
                ops.CompleteAndPop(jid, token, "q", self.name, request=self._request()),
                ops.Complete(jid, token, next="r"),
                ops.Fail(jid, token, "g", "m"),
                ops.Retry(jid, token),
                ops.Release(jid, token),
            )
        )

    def _other(self, jid: str, queue: str) -> Operation:
        request = self._request()
        return self.random.choice(
            (
                ops.Cancel((jid,), True, request=request),
                ops.Timeout((jid,), request),
                ops.TagAdd(jid, (f"t{self.random.randrange(3)}",), request),
                ops.Priority(jid, self.random.randrange(-2, 3), request),
                ops.Promote(jid, request),
                ops.RetryMany(group="g", to=queue, count=2, request=request),
                ops.ThrottleSet("t", self.random.choice((1, 2)), request=request),
                ops.ThrottleUnset("t", request),
                ops.Get(jid),
                ops.Get(jid),
                ops.Queue(queue),
                ops.Peek(queue, 3),
            )
        )
