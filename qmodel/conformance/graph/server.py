"""A real server as a corner of the graph: a state's keys are written with plain commands, and one edge is executed.

Not every edge is executed there, but one of each shape (`shapes.py`): what the server may do differently from the
keyspace in this process depends on the operation, its reply and the kinds of keys that it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qmodel.backends.embedded.keyspace import SortedSet, Stream
from qmodel.conformance.graph.compare import Keys, changes_nothing
from qmodel.conformance.graph.shapes import Shapes
from qmodel.conformance.subjects.lua import PREFIX, ServerSubject
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.model import snapshot
from qmodel.model.state.store import Store, events_after


class ServerCorner:
    """A server that executes one edge of each shape."""

    def __init__(self, url: str) -> None:
        self._subject = ServerSubject(url)
        self._shapes = Shapes()
        self.edges = 0
        """How many edges it has executed."""

    def wants(self, op: Operation, reply: Any, touched: set[bytes]) -> bool:
        """Tell whether no edge of this shape was executed yet; from now on, one was."""
        return self._shapes.is_new(op, reply, touched)

    def differences(self, keys: Keys, now: int, op: Operation, reply: Any, before: Store, after: Store) -> list[str]:
        """Execute an operation in the state of these keys, and list how the server differs from the model."""
        self.edges += 1
        self._load(keys)
        lines = list(snapshot.compare("reply", reply, self._subject.step(now, op)))
        expected = before if changes_nothing(before, op, reply) else after
        lines += snapshot.difference(snapshot.of(expected), self._subject.snapshot())
        if after.seq != before.seq:
            told = events_after(after, before.seq, 1000)
            lines += snapshot.compare("events", told, self._subject.events_after(before.seq))
        return lines

    def _load(self, keys: Keys) -> None:
        """Write a state. The library meets an empty one before: it tells by the counters what it still knows, and two
        states of the graph may have the same ones.
        """
        self._subject.reset()
        self._subject.step(0, ops.Config())
        prefix = self._subject._prefix.encode()
        with self._subject._client.pipeline(transaction=False) as pipeline:
            for key, value in keys.items():
                for name, *words in _commands(value):
                    pipeline.execute_command(name, prefix + key.removeprefix(PREFIX.encode()), *words)
            pipeline.execute()

    def close(self) -> None:
        """Delete the namespace, and disconnect."""
        self._subject.close()


def _commands(value: Any) -> Iterator[tuple[Any, ...]]:
    """Give the commands that write the content of a key, without its name."""
    if isinstance(value, bytes):
        yield "SET", value
    elif isinstance(value, dict):
        yield "HSET", *(word for pair in value.items() for word in pair)
    elif isinstance(value, SortedSet):
        yield "ZADD", *(word for score, member in value.entries for word in (score, member))
    elif isinstance(value, Stream):
        for (ms, part), fields in value.entries:
            yield "XADD", f"{ms}-{part}", *fields
        yield "XSETID", "{}-{}".format(*value.last)
    elif isinstance(value, list):
        yield "RPUSH", *value
    else:
        yield "SADD", *value
