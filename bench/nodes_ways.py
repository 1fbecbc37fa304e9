"""The ways in which `python -m bench nodes` performs jobs: in one namespace, or on a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.connection import Connection

from qmodel.backends.redis.common import encoded
from qmodel.backends.redis.connect import connect
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.routing import shard_tag
from qmodel.model.deployment.plans import Call, destination
from qmodel.wire.codec import decode
from tests.clusters import MASTERS, Node

AT_ONCE, FEWER = 1600, 200
"""Calls on their way to a node; and to each of several nodes at the same time."""

HUNDRED, STOCK = 100, 12
DATA = '{"i": 1}'
SHARDS = (4, 16, 64)
JOBS = 19_200
"""Jobs of a run: a hundred for each shard and more."""


class Way:
    """Performs jobs in one namespace, a call for each step."""

    nodes = 1
    at_once = AT_ONCE

    now: int | None = None
    """The moment of all calls, or the server's clock."""

    def __init__(self, url: str) -> None:
        self.backend: Any = connect(url)
        self._begun, self._shards = 0, 1
        self._lines: dict[int, Connection] = {}

    def stock(self) -> None:
        """Leave waiting and running jobs in each shard: creating a key and deleting it again costs more than a call."""
        numbers = range(-STOCK * self._shards, 0)
        self._execute([(self._at(op), op) for op in [self._put(number) for number in numbers]])
        self._execute([(shard, ops.Pop("q", "w")) for shard in range(self._shards)])

    def run(self, jobs: int) -> None:
        """Put, pop and complete so many jobs."""
        size = min(self.at_once * self.nodes, jobs)
        for _ in range(0, jobs, size):
            self._begun += size
            self._batch(range(self._begun - size, self._begun))

    def close(self) -> None:
        """Disconnect."""
        self.backend.close()
        for line in self._lines.values():
            line.disconnect()

    def _batch(self, numbers: range) -> None:
        self._execute([(self._at(op), op) for op in [self._put(number) for number in numbers]])
        found = self._execute([(self._shard(number), ops.Pop("q", "w")) for number in numbers])
        done = [ops.Complete(job.jid, job.token) for (job,) in found]
        self._execute([(self._at(op), op) for op in done])

    def _put(self, number: int) -> ops.Put:
        return ops.Put("q", f"j{number}", "K", DATA)

    def _shard(self, number: int) -> int:
        return 0

    def _at(self, op: Operation) -> int:
        return 0

    def _backend(self, shard: int) -> Any:
        return self.backend

    def _execute(self, calls: list[tuple[int, Operation]]) -> list[Any]:
        """Send calls, one round trip to each node, one node after the other; give their replies, sorted by node."""
        found: list[Any] = []
        for port, some in self._by_node(calls).items():
            self._send(port, some)
            found += self._replies(port, some)
        return found

    def _by_node(self, calls: list[tuple[int, Operation]]) -> dict[int, list[tuple[int, Operation]]]:
        by_node: dict[int, list[tuple[int, Operation]]] = {}
        for shard, op in sorted(calls, key=lambda call: call[0]):  # shard after shard, as the backend sends them
            by_node.setdefault(self._backend(shard).at["port"], []).append((shard, op))
        return by_node

    def _send(self, port: int, calls: list[tuple[int, Operation]]) -> None:
        line = self._lines.setdefault(port, Connection(port=port))
        packed = [self._backend(shard)._dialect.pack(type(op), encoded(op, self.now, True)) for shard, op in calls]
        line.send_packed_command((b"".join(packed),))

    def _replies(self, port: int, calls: list[tuple[int, Operation]]) -> list[Any]:
        return [decode(op, self._lines[port].read_response(disable_decoding=True)) for _, op in calls]


class Sharded(Way):
    """Performs jobs on a deployment, a call for each step. A worker pops from a shard that it names, as here."""

    nodes = MASTERS

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._shards = int(self.backend.layout.shards)
        self._tags = [f"{{{shard_tag(shard, self._shards)}}}" for shard in range(self._shards)]

    def _put(self, number: int) -> ops.Put:
        return ops.Put("q", f"j{number}{self._tags[self._shard(number)]}", "K", DATA)

    def _shard(self, number: int) -> int:
        return number % self._shards

    def _at(self, op: Operation) -> int:
        found = destination(self.backend.layout, op)
        assert type(found) is int
        return found

    def _backend(self, shard: int) -> Any:
        return self.backend.shards[shard]


class Together(Sharded):
    """Performs jobs on a deployment, a call for each step, with calls on their way to all nodes at the same time."""

    at_once = FEWER

    def _execute(self, calls: list[tuple[int, Operation]]) -> list[Any]:
        by_node = self._by_node(calls)
        for port, some in by_node.items():
            self._send(port, some)
        return [reply for port, some in by_node.items() for reply in self._replies(port, some)]


class Hundreds(Way):
    """Performs jobs in one namespace, a hundred in each call of the client; all calls for a shard come together."""

    at_once = JOBS // MASTERS

    def _batch(self, numbers: range) -> None:
        for first in range(0, len(numbers), HUNDRED):
            shard = first * self._shards // len(numbers)
            puts = tuple(self._job(number, shard) for number in numbers[first:][:HUNDRED])
            self.backend.execute(ops.PutMany(puts), self.now)
            jobs = self._pop(shard)
            self.backend.execute(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in jobs)), self.now)

    def _job(self, number: int, shard: int) -> ops.Put:
        return self._put(number)

    def _pop(self, shard: int) -> Sequence[Any]:
        return self.backend.execute(ops.Pop("q", "w", HUNDRED), self.now)  # type: ignore[no-any-return]


class ShardedHundreds(Hundreds, Sharded):
    """Performs jobs on a deployment, a hundred in each call of the client, shard after shard."""

    def _job(self, number: int, shard: int) -> ops.Put:
        return ops.Put("q", f"j{number}{self._tags[shard]}", "K", DATA)

    def _pop(self, shard: int) -> Sequence[Any]:
        return self.backend.execute_calls([Call(shard, ops.Pop("q", "w", HUNDRED))], self.now)[0]  # type: ignore[no-any-return]


def version_of(node: Node) -> str:
    """Give the kind and the version of a server."""
    said: Any = node.client.info("server")
    return f"Valkey {said['valkey_version']}" if "valkey_version" in said else f"Redis {said['redis_version']}"
