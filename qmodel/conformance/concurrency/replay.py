"""Many concurrent clients, replayed: the model gives the same replies in the recorded order.

The server records the order, so no search is needed. A second function library with the same code has one function
more. Within one atomic call it takes a number from a counter, reads the server's time (unless the caller gives the
moment), executes the operation, and returns number, moment and reply. So thousands of operations of many threads and
processes form one history, which the model replays.

The clients (`histories/blind.py`) use few names, so they compete all the time. If the order cannot be recorded,
`linearizability.py` searches for one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, NamedTuple

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry as RetryPolicy

from qmodel.backends import bundle
from qmodel.backends.redis import raw_keys
from qmodel.backends.redis.dump import dump_keys
from qmodel.conformance.histories.blind import BlindClient
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
    """One operation of one client: its place in the order, its time, and its reply.

    `called` and `returned` are the client's times of call and return, in nanoseconds of a clock that all clients share.
    """

    order: int
    now: int
    op: Operation
    outcome: Any
    client: str
    called: int
    returned: int


def library() -> str:
    """Make the function library with the recording function, under its own name."""
    whole = bundle.library()
    head, _, rest = whole.partition("\n")
    kept = rest[: rest.index("register_function{function_name")]
    return f"{head}_recorded\n{kept}{RECORDED}"


class _Client:
    """Executes the operations of one blind client through the recording function."""

    def __init__(self, url: str, name: str) -> None:
        self.redis: Any = Redis.from_url(url, retry=RetryPolicy(NoBackoff(), 0), protocol=2)
        self.blind = BlindClient(name)

    def run(self, count: int) -> list[Answered]:
        """Execute `count` operations, one after the other."""
        return [self.ask(self.blind.draw()) for _ in range(count)]

    def ask(self, op: Operation) -> Answered:
        """Execute one operation."""
        _, *words = codec.encode(op, 0)
        called = time.monotonic_ns()
        order, now, raw = self.redis.execute_command("FCALL", FUNCTION, 1, PREFIX, op.spec.name, "", *words)
        returned = time.monotonic_ns()
        outcome = codec.decode(op, raw)
        self.blind.learn(op, outcome)
        return Answered(order, int(now), op, outcome, self.blind.name, called, returned)


def _process(url: str, name: str, threads: int, count: int) -> list[Answered]:
    clients = [_Client(url, f"{name}.{n}") for n in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        parts = pool.map(lambda client: client.run(count), clients)
        return [answered for part in parts for answered in part]


def run(url: str, processes: int = 2, threads: int = 4, count: int = 500) -> list[Answered]:
    """Run processes * threads clients that execute `count` operations each; give all operations in recorded order.

    The database belongs to the test suite: it is emptied first.
    """
    with Redis.from_url(url) as server:
        server.flushdb()
        server.execute_command("FUNCTION", "LOAD", "REPLACE", library())
    with ProcessPoolExecutor(processes) as pool:
        parts = pool.map(_process, *zip(*[(url, str(n), threads, count) for n in range(processes)], strict=True))
        return sorted(answered for part in parts for answered in part)


def differences(url: str, history: Sequence[Answered]) -> list[str]:
    """Replay a recorded history on the model; list where replies or the final state differ."""
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
