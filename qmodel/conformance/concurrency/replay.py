"""Many clients at once: what they were answered is what the model answers, in the order in which it happened.

The order need not be searched for: it is recorded. A second library, loaded beside the first, holds the same code
behind one function more, which takes a number and the moment inside the same atomic call (unless the caller gives the
moment), and gives both back with the reply. So thousands of operations from many threads and processes become one
history, and the model replays it.

The clients (`calls.py`) meet all the time. Where the order cannot be recorded it is searched for
(`linearizability.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry as RetryPolicy

from qmodel.backends import bundle
from qmodel.backends.redis import raw_keys
from qmodel.backends.redis.dump import dump_keys
from qmodel.conformance.histories.blind import Asker
from qmodel.contract.operations import Operation
from qmodel.model import engine, snapshot
from qmodel.model.state.store import Store
from qmodel.wire import codec

PREFIX = "concurrent:"
FUNCTION = "qmodel_recorded"

RECORDED = f"""
register_function{{function_name = '{FUNCTION}', callback = function(keys, args)
  if not redis then bound() end
  local order = redis.call('INCR', 'order:' .. keys[1])
  local time, now = redis.call('TIME'), args[2]
  if now == '' then
    now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
  end
  local given = {{now}}
  for i = 3, #args do
    given[i - 1] = args[i]
  end
  return {{order, now, register.call(args[1], keys[1], given)}}
end}}
"""


class Answered(NamedTuple):
    """One operation of one client: when it happened, in which order, and what it was answered.

    `called` and `returned` are what the client knew of the moment, in nanoseconds of a clock that all share.
    """

    order: int
    now: int
    op: Operation
    outcome: Any
    client: str
    called: int
    returned: int


def library() -> str:
    """The library with the function that records, under a name of its own."""
    whole = bundle.library()
    head, _, rest = whole.partition("\n")
    kept = rest[: rest.index("register_function{function_name")]
    return f"{head}_recorded\n{kept}{RECORDED}"


class _Client:
    """A client whose calls are recorded."""

    def __init__(self, url: str, name: str) -> None:
        self.redis: Any = Redis.from_url(url, retry=RetryPolicy(NoBackoff(), 0), protocol=2)
        self.asker = Asker(name)

    def run(self, count: int) -> list[Answered]:
        """Ask for so many operations, one after the other."""
        return [self.ask(self.asker.draw()) for _ in range(count)]

    def ask(self, op: Operation) -> Answered:
        """Execute one operation."""
        _, *words = codec.encode(op, 0)
        called = time.monotonic_ns()
        order, now, raw = self.redis.execute_command("FCALL", FUNCTION, 1, PREFIX, op.spec.name, "", *words)
        returned = time.monotonic_ns()
        outcome = codec.decode(op, raw)
        self.asker.learn(op, outcome)
        return Answered(order, int(now), op, outcome, self.asker.name, called, returned)


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
        for number, now, op, outcome, *_ in history
        if (expected := engine.step(store, now, op)) != outcome
    ]
    found += [f"order {number} is missing" for number in _missing(one.order for one in history)]
    with Redis.from_url(url, protocol=2) as server:
        at_end = raw_keys.decode(dump_keys(server, PREFIX), PREFIX)
    return found + snapshot.difference(snapshot.of(store), at_end)


def _missing(orders: Iterable[int]) -> list[int]:
    seen = set(orders)
    return [number for number in range(1, len(seen) + 1) if number not in seen]
