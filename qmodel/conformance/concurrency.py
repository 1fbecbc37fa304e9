"""Many clients at once: what they were answered is what the model answers, in the order in which it happened.

The order need not be searched for: it is recorded. A second library, loaded beside the first, holds the same code
behind one function more, which takes a number and the moment inside the same atomic call, and gives both back with the
reply. So thousands of operations from many threads and processes become one history, and the model replays it.

The clients do not look at the state. They share few names, so they meet all the time: the same jobs are put twice,
popped by several, finished late, canceled under somebody's hands.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry as RetryPolicy

from qmodel import engine, wire
from qmodel import operations as ops
from qmodel.backends import bundle
from qmodel.backends.redis_dump import dump_keys
from qmodel.conformance import rawkeys, snapshot
from qmodel.operations import Operation
from qmodel.refusals import Refusal
from qmodel.replies import CompletedAndPopped, Job
from qmodel.state.store import Store

PREFIX = "concurrent:"
FUNCTION = "qmodel_recorded"

RECORDED = f"""
register_function{{function_name = '{FUNCTION}', callback = function(keys, args)
  if not redis then bound() end
  local order = redis.call('INCR', 'order:' .. keys[1])
  local time = redis.call('TIME')
  local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
  local given = {{now}}
  for i = 3, #args do
    given[i - 1] = args[i]
  end
  return {{order, now, register.call(args[1], keys[1], given)}}
end}}
"""


class Answered(NamedTuple):
    """One operation of one client: when it happened, in which order, and what it was answered."""

    order: int
    now: int
    op: Operation
    outcome: Any


def library() -> str:
    """The library with the function that records, under a name of its own."""
    whole = bundle.library()
    head, _, rest = whole.partition("\n")
    kept = rest[: rest.index("register_function{function_name")]
    return f"{head}_recorded\n{kept}{RECORDED}"


class _Client:
    """A client that asks for whatever it likes, and knows only the leases that it was given."""

    def __init__(self, url: str, name: str) -> None:
        self.redis: Any = Redis.from_url(url, retry=RetryPolicy(NoBackoff(), 0), protocol=2)
        self.random = random.Random(name)
        self.name = name
        self.leases: list[tuple[str, int]] = []
        self.asked: list[Operation] = []

    def run(self, count: int) -> list[Answered]:
        """Ask for so many operations, one after the other."""
        return [self.ask(self.draw()) for _ in range(count)]

    def ask(self, op: Operation) -> Answered:
        """Execute one operation."""
        _, *words = wire.encode(op, 0)
        order, now, raw = self.redis.execute_command("FCALL", FUNCTION, 1, PREFIX, op.spec.name, "", *words)
        outcome = wire.decode(op, raw)
        self.asked.append(op)
        granted = outcome.jobs if isinstance(outcome, CompletedAndPopped) else outcome
        if isinstance(op, ops.Pop | ops.CompleteAndPop) and not isinstance(granted, Refusal):
            self.leases += [(job.jid, job.token) for job in granted if isinstance(job, Job)]
        return Answered(order, int(now), op, outcome)

    def draw(self) -> Operation:
        """Choose an operation: mostly of a job's life, sometimes one of before again."""
        chance = self.random.random()
        if self.asked and chance < 0.05:
            return self.random.choice(self.asked[-20:])
        if self.leases and chance < 0.45:
            return self.finish(*self.leases.pop(self.random.randrange(len(self.leases))))
        jid, queue = f"j{self.random.randrange(40)}", self.random.choice("qr")
        request = f"{self.name}-{len(self.asked)}"
        if chance < 0.65:
            return self.put(queue, jid, request)
        if chance < 0.9:
            return ops.Pop(queue, self.name, self.random.choice((1, 1, 3)), request=request)
        return self.random.choice(
            (
                ops.Cancel((jid,), True, request),
                ops.Timeout((jid,), request),
                ops.TagAdd(jid, ("t",), request),
                ops.Priority(jid, self.random.randrange(-2, 3), request),
                ops.Promote(jid, request),
                ops.Unfail(queue, "g", 2, request),
                ops.Get(jid),
                ops.Queue(queue),
                ops.Peek(queue, 3),
            )
        )

    def put(self, queue: str, jid: str, request: str) -> Operation:
        """Put a job, or move it from whoever has it."""
        depends = (f"j{self.random.randrange(40)}",) if self.random.random() < 0.1 else None
        delay = self.random.choice((0, 0, 0, 2))
        return ops.Put(queue, jid, "k", "{}", delay_ms=delay, retries=1, depends=depends, request=request)

    def finish(self, jid: str, token: int) -> Operation:
        """End a lease, or renew it."""
        chance = self.random.randrange(8)
        if chance == 0:
            self.leases.append((jid, token))
            return ops.Heartbeat(jid, token)
        return (
            ops.Complete(jid, token),
            ops.Complete(jid, token),
            ops.CompleteAndPop(jid, token, "q", self.name, request=f"{self.name}+{len(self.asked)}"),
            ops.Complete(jid, token, next="r"),
            ops.Fail(jid, token, "g", "m"),
            ops.Retry(jid, token),
            ops.Release(jid, token),
        )[chance - 1]


def _process(url: str, name: str, threads: int, count: int) -> list[Answered]:
    found: list[list[Answered]] = []
    clients = [_Client(url, f"{name}.{n}") for n in range(threads)]
    running = [threading.Thread(target=lambda c=one: found.append(c.run(count))) for one in clients]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if len(found) < threads:
        raise RuntimeError(f"{threads - len(found)} clients of process {name} failed")
    return [answered for answers in found for answered in answers]


def run(url: str, processes: int = 2, threads: int = 4, count: int = 500) -> list[Answered]:
    """Let processes * threads clients each execute `count` operations on a server; give all, in order.

    The database is the suite's own: it is emptied first.
    """
    with Redis.from_url(url) as server:
        server.flushdb()
        server.execute_command("FUNCTION", "LOAD", "REPLACE", library())
    with ProcessPoolExecutor(processes) as pool:
        parts = pool.map(_process, *zip(*[(url, str(n), threads, count) for n in range(processes)], strict=True))
        return sorted(answered for part in parts for answered in part)


def differences(url: str, history: Sequence[Answered]) -> list[str]:
    """Replay a recorded history on the model: where it answers otherwise, or ends in another state."""
    store = Store()
    found = [
        f"{number}: {op} at {now}: {expected!r} != {outcome!r}"
        for number, now, op, outcome in history
        if (expected := engine.step(store, now, op)) != outcome
    ]
    found += [f"order {number} is missing" for number in _missing(one.order for one in history)]
    with Redis.from_url(url, protocol=2) as server:
        at_end = rawkeys.decode(dump_keys(server, PREFIX), PREFIX)
    return found + snapshot.difference(snapshot.of(store), at_end)


def _missing(orders: Iterable[int]) -> list[int]:
    seen = set(orders)
    return [number for number in range(1, len(seen) + 1) if number not in seen]
