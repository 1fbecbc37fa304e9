"""Sending confirmed operations: the dialogue with a server, and the backends on which every call is one.

See confirm.py for what is sent.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from qmodel.backends.redis.common import Batch
from qmodel.backends.redis.confirm import PART, Confirm
from qmodel.backends.redis.resend import Attempts, may_pass
from qmodel.backends.redis.setup import packed
from qmodel.backends.redis.url import Options
from qmodel.contract.operations import Operation

Talk = Generator[tuple[bytes, int], list[Any], None]
"""A dialogue on one connection: a generator that yields bytes and the number of their replies, and is sent these."""


def confirming(batch: Batch, mark: bytes, confirm: Confirm, attempts: Attempts, options: Options) -> Talk:
    """Send the next operations of a batch, the mark and the wait; wait on until they are confirmed, or the deadline.

    What it yields is to be sent on one connection; it is sent the replies. Raises the first error that a resend may
    cure: then all of this is sent again, for what was executed before the error is not confirmed either.
    """
    longest = PART * options.connection["socket_timeout"]
    wait = packed(confirm.command(min(attempts.left, longest)))
    *replies, marked, said = _cured((yield (batch.next() + mark + wait, batch.expected + 2)))
    for reply in (marked, said):
        if isinstance(reply, Exception):
            raise reply
    while not confirm.is_met(said) and attempts.left > 0:
        wait = packed(confirm.command(min(attempts.left, longest)))
        (said,) = _cured((yield (wait, 1)))
    batch.take(replies)
    if not confirm.is_met(said):
        batch.refuse_unconfirmed(confirm.said(said), options)


def _cured(replies: list[Any]) -> list[Any]:
    for reply in replies:
        if isinstance(reply, Exception) and may_pass(reply):
            raise reply
    return replies


class Confirming:
    """A backend of confirmed calls, on the connections of another one."""

    def __init__(self, backend: Any, confirm: Confirm) -> None:
        self.backend = backend
        self.confirm = confirm
        self.layout = getattr(backend, "layout", None)
        self.shards = getattr(backend, "shards", ())

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation, and confirm it; give its reply or Refusal."""
        return self.backend.execute_many((op,), now, self.confirm)[0]

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, and confirm all of them."""
        replies: list[Any] = self.backend.execute_many(ops, now, self.confirm)
        return replies

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or `timeout` passed (False)."""
        woken: bool = self.backend.wait(queues, timeout)
        return woken

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or `timeout` passed (False)."""
        woken: bool = self.backend.wait_events(after, timeout)
        return woken

    def confirming(self, replicas: int = 0, local: bool = False) -> Any:
        """Give a backend on the same connections that confirms calls in another way."""
        return self.backend.confirming(replicas, local)

    def close(self) -> None:
        """Do nothing: the connections belong to the other backend."""


class AsyncConfirming:
    """A backend of confirmed calls for an event loop, on the connections of another one."""

    def __init__(self, backend: Any, confirm: Confirm) -> None:
        self.backend = backend
        self.confirm = confirm
        self.layout = getattr(backend, "layout", None)
        self.shards = getattr(backend, "shards", ())

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation, and confirm it; give its reply or Refusal."""
        return (await self.backend.execute_many((op,), now, self.confirm))[0]

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, and confirm all of them."""
        replies: list[Any] = await self.backend.execute_many(ops, now, self.confirm)
        return replies

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or `timeout` passed (False)."""
        woken: bool = await self.backend.wait(queues, timeout)
        return woken

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or `timeout` passed (False)."""
        woken: bool = await self.backend.wait_events(after, timeout)
        return woken

    def confirming(self, replicas: int = 0, local: bool = False) -> Any:
        """Give a backend on the same connections that confirms calls in another way."""
        return self.backend.confirming(replicas, local)

    async def close(self) -> None:
        """Do nothing: the connections belong to the other backend."""
