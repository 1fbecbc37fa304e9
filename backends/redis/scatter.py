"""Sending to several shards at once: the calls of all shards on a node share a round trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from redis import exceptions as raised

from qmodel.backends.redis.backend import RedisBackend, reply_of
from qmodel.backends.redis.resend import FAILURES, may_pass, server_error
from qmodel.backends.redis.route import Line
from qmodel.errors import ConnectError
from qmodel.model.deployment.plans import Call


class Sending(Protocol):
    """What is sent to a shard, in several round trips: a batch of operations, or a probe."""

    @property
    def expected(self) -> int:
        """How many replies the last bytes will get."""

    def next(self) -> bytes:
        """Give the bytes to send next; empty when nothing is left."""

    def take(self, raw: list[Any]) -> None:
        """Keep the replies to the last bytes. Raises the first error that a resend may cure."""


def send_all(
    shards: Sequence[RedisBackend], batches: Mapping[int, Sending], seconds: float | None = None
) -> dict[int, Exception]:
    """Send batches, to all nodes at once; give the shards that failed. Nothing is resent."""
    failed: dict[int, Exception] = {}
    while left := [shard for shard, batch in batches.items() if shard not in failed and batch.next()]:
        lines: dict[int, list[int]] = {}
        for shard in left:
            lines.setdefault(id(shards[shard]._line), []).append(shard)
        sent: list[tuple[Line, Any, list[int]]] = []
        try:
            for some in lines.values():
                line = shards[some[0]]._line
                connection = None
                try:
                    connection = shards[some[0]]._open(line, line.idle)
                    packed = b"".join([batches[shard].next() for shard in some])
                    connection.send_packed_command((packed,), check_health=False)
                except FAILURES as error:
                    if connection is not None:
                        connection.disconnect()
                    failed.update(dict.fromkeys(some, error))
                else:
                    sent.append((line, connection, some))
            while sent:
                line, connection, some = sent[-1]
                failed.update(received(connection, some, batches, seconds))
                shards[some[0]]._keep(line, connection)
                sent.pop()
        finally:
            for _, connection, _ in sent:
                connection.disconnect()
    return failed


def by_shard(calls: Sequence[Call]) -> dict[int, list[int]]:
    """Group the places of calls by their shard."""
    places: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        places.setdefault(call.shard, []).append(place)
    return places


def in_order(count: int, places: dict[int, list[int]], found: dict[int, list[Any]]) -> list[Any]:
    """Put the replies of each shard to the places of its calls."""
    replies: list[Any] = [None] * count
    for shard, some in places.items():
        for place, reply in zip(some, found[shard], strict=True):
            replies[place] = reply
    return replies


def received(
    connection: Any, shards: list[int], batches: Mapping[int, Sending], seconds: float | None
) -> dict[int, Exception]:
    """Read the replies of the shards of a node; give the shards that failed."""
    failed: dict[int, Exception] = {}
    for at, shard in enumerate(shards):
        batch = batches[shard]
        try:
            if seconds is not None and not connection.can_read(seconds):
                raise raised.TimeoutError("no answer")
            raw = [reply_of(connection) for _ in range(batch.expected)]
        except FAILURES as error:
            connection.disconnect()
            return {**failed, **dict.fromkeys(shards[at:], error)}
        try:
            batch.take(raw)
        except FAILURES as error:
            failed[shard] = error
    return failed


def away(where: str, error: Exception) -> ConnectError:
    """Make the error for a call to a node that did not answer."""
    if not may_pass(error):
        return server_error(error, where)
    found = ConnectError(f"{where} is away: {str(error).rstrip('.')}.", "The call may be sent again.")
    found.__cause__ = error
    return found
