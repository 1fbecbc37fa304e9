"""A deployment for an event loop (deployment.py). The first call connects, as in aio.py."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from redis import exceptions as raised
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from qmodel import runtime
from qmodel.backends.redis.aio import AsyncRedisBackend
from qmodel.backends.redis.armed import pushing
from qmodel.backends.redis.common import Batch, blocking_pop, blocking_read, settings, wait_of
from qmodel.backends.redis.confirm import Confirm, asked
from qmodel.backends.redis.confirmed import AsyncConfirming
from qmodel.backends.redis.resend import FAILURES, Attempts
from qmodel.backends.redis.route import Line
from qmodel.backends.redis.scatter import by_shard, in_order
from qmodel.backends.redis.setup import Dialect, Warned, setup
from qmodel.backends.redis.shards import (
    Nodes,
    Prepared,
    ShardRoute,
    check,
    creation,
    definition,
    layout_in,
    options_of_shard,
    shards_of,
)
from qmodel.backends.redis.url import Options
from qmodel.contract.operations import Newest, Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.routing import Layout
from qmodel.errors import ConnectError
from qmodel.model.deployment.plans import Call, Extra, begun, destination
from qmodel.model.deployment.turns import Turns


class AsyncRedisShard(Prepared, AsyncRedisBackend):
    """A shard: the backend of one namespace. It shares connections with the other shards on its node."""

    def __init__(self, options: Options, of: AsyncRedisDeployment) -> None:
        self._of = of
        super().__init__(options, ShardRoute(options, of.nodes))
        self._closed = of.closed
        of.nodes.add(self)

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        self._of.enter(loop)
        self._loop = loop
        self._closed = self._of.closed
        self._waiting: set[Any] = set()
        self._seeking, self._connecting, self._room = self._of.seeking, self._of.connecting, self._of.room
        self._failed = None

    async def _connect(self, attempts: Attempts) -> None:
        known = next((one._dialect for one in self._of.nodes.shards if one._dialect is not None), None)
        if known is None:
            await super()._connect(attempts)
        else:  # another shard has checked the servers
            self._dialect = Dialect(self.options.prefix, known.functions)

    async def _go(self) -> bool:
        self._of.nodes.place(self)
        return False

    async def _change(self, line: Line) -> bool:
        before = self._line
        self._of.nodes.renew(before)
        await self._forget(before)
        return True

    async def _wait(self, command: tuple[str, ...], timeout: float) -> Any:
        """Wait for the reply to a command that blocks. If the task is cancelled, the command is ended, and a wake-up
        that it has taken is pushed back.
        """
        line = self._line
        connection = self._open(line, line.waiting)
        self._waiting.add(connection)
        try:
            if not hasattr(connection, "qmodel_id"):
                async with asyncio.timeout(self._timeout):
                    await connection.send_command("CLIENT", "ID", check_health=False)
                    connection.qmodel_id = str(await connection.read_response())
            async with asyncio.timeout(timeout + self._timeout):
                await connection.send_command(*command, check_health=False)
                if self._closed.is_set():
                    raise raised.ConnectionError("closed")
                reading = asyncio.ensure_future(connection.read_response())
                try:
                    reply = await asyncio.shield(reading)
                except asyncio.CancelledError:
                    await asyncio.shield(self._give_up(line, connection, reading))
                    raise
        except BaseException:
            if connection not in line.waiting:
                await connection.disconnect(nowait=True)
            raise
        finally:
            self._waiting.discard(connection)
        await self._rest(line, connection)
        return reply

    async def _rest(self, line: Line, connection: Any) -> None:
        line.waiting.append(connection)
        if line.over:
            await self._forget(line)

    async def _give_up(self, line: Line, connection: Any, reading: asyncio.Future[Any]) -> None:
        """End a command that blocks."""
        try:
            await self._talk(_unblocking(connection.qmodel_id))
            async with asyncio.timeout(self._timeout):
                reply = await reading
            await self._rest(line, connection)
            await self.give_back(reply)
        except (*FAILURES, ConnectError):
            reading.cancel()

    async def give_back(self, reply: Any) -> None:
        """Push back the wake-up that BLPOP has taken, if it has; XREAD gives events."""
        if isinstance(reply, list) and isinstance(reply[0], bytes):
            await self._talk(pushing(reply[0]))


def _unblocking(identity: str) -> Any:
    yield ("CLIENT", "UNBLOCK", identity)


class AsyncRedisDeployment:
    """Executes operations on the shards of a deployment, for the tasks of an event loop.

    With a URL without `shards`, opening it reads the definition, which blocks for a round trip.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.layout: Layout = options.layout or _found_layout(options)
        self.nodes = Nodes(settings(options, Retry(NoBackoff(), 0), socket_timeout=None), options.max_age)
        self.closed = asyncio.Event()
        self.warnings: tuple[Warned, ...] = ()
        count = self.layout.shards
        self.shards = [AsyncRedisShard(options_of_shard(options, shard, count), self) for shard in range(count)]
        self.turns = Turns(count, runtime.randbelow(count))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._checked = False

    @property
    def at(self) -> dict[str, Any]:
        """The settings of a connection to the node of the first shard."""
        return self.shards[0].at

    def enter(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start without connections in a new event loop; those of the old loop ended with it."""
        if self._loop is not loop:
            self._loop = loop
            if not self.closed.is_set():
                self.closed = asyncio.Event()
            self.nodes.forget()
            self.seeking, self.connecting = asyncio.Lock(), asyncio.Lock()
            self.room = asyncio.Semaphore(self.options.max_connections)
            self._checking = asyncio.Lock()

    async def _ready(self) -> None:
        """Check the definition and the nodes, before the first call."""
        self.enter(asyncio.get_running_loop())
        if self._checked:
            return
        async with self._checking:
            if self._checked:
                return
            first = self.shards[0]
            there = layout_in(await first.execute(definition()))
            if there is None:
                await first.execute(creation(self.layout))
                there = layout_in(await first.execute(definition()))
            check(self.options, there)
            self.warnings = first.warnings
            for shard in self.shards:
                if not shard._prepared:
                    with contextlib.suppress(*FAILURES):
                        await shard._talk(setup(shard.options, shard._route))
                        shard._prepared = True
            self._checked = True

    # ---- the protocol

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (ms; default: the servers' clocks); give its reply or Refusal."""
        await self._ready()
        to = destination(self.layout, op)
        if type(to) is int:
            return await self.shards[to].execute(op, now)
        return await self._carry_out(op, now, None)

    async def _carry_out(self, op: Operation, now: int | None, confirm: Confirm | None) -> Any:
        going = begun(self.layout, op, self.turns)
        if isinstance(going, Refusal):
            return going
        try:
            calls = next(going)
            while True:
                calls = going.send(await self._execute_part(calls, now, confirm))
        except StopIteration as end:
            return end.value

    async def _execute_part(self, calls: Sequence[Call], now: int | None, confirm: Confirm | None) -> list[Any]:
        """Execute a part of a plan. What it can do without is not waited for, unless it is to be confirmed."""
        if not isinstance(calls, Extra) or now is not None or confirm or self.options.confirm:
            return await self.execute_calls(calls, now, confirm)
        try:
            async with asyncio.timeout(self.options.connection["socket_timeout"]):
                return await self.execute_calls(calls)
        except (TimeoutError, ConnectError):
            return [None] * len(calls)

    async def execute_many(
        self, ops: Sequence[Operation], now: int | None = None, confirm: Confirm | None = None
    ) -> list[Any]:
        """Execute operations, each a step of its own, in one round trip to each node. Those of a shard keep their
        order.
        """
        await self._ready()
        replies: list[Any] = [None] * len(ops)
        places: list[int] = []
        calls: list[Call] = []

        async def flush() -> None:
            for place, reply in zip(places, await self.execute_calls(calls, now, confirm), strict=True):
                replies[place] = reply
            places.clear()
            calls.clear()

        for place, op in enumerate(ops):
            to = destination(self.layout, op)
            if type(to) is int:
                places.append(place)
                calls.append(Call(to, op))
            else:
                await flush()
                replies[place] = await self._carry_out(op, now, confirm)
        await flush()
        return replies

    async def execute_calls(
        self, calls: Sequence[Call], now: int | None = None, confirm: Confirm | None = None
    ) -> list[Any]:
        """Execute operations in given shards, in one round trip to each node; give their replies."""
        await self._ready()
        confirm = confirm or self.options.confirm
        places = by_shard(calls)

        async def confirmed(shard: int, some: list[int]) -> tuple[int, list[Any]]:
            return shard, await self.shards[shard].execute_many([calls[at].op for at in some], now, confirm)

        if confirm is not None or len(calls) == 1:
            found = dict(await asyncio.gather(*(confirmed(shard, some) for shard, some in places.items())))
            return in_order(len(calls), places, found)
        batches = {}
        for shard, some in places.items():
            backend = self.shards[shard]
            dialect = await backend._ready(backend._attempts())
            batches[shard] = Batch([calls[at].op for at in some], now, dialect, self.options.fresh_requests)
        lines: dict[int, dict[int, Batch]] = {}
        for shard, batch in batches.items():
            lines.setdefault(id(self.shards[shard]._line), {})[shard] = batch
        await asyncio.gather(*(self._send_to_node(some) for some in lines.values()))
        await asyncio.gather(*(self.shards[shard]._send_batch(batch) for shard, batch in batches.items()))
        found = {shard: batch.finish(self.shards[shard].options.where) for shard, batch in batches.items()}
        return in_order(len(calls), places, found)

    async def _send_to_node(self, batches: dict[int, Batch]) -> None:
        """Send the first part of batches in one round trip. What fails is left to the resends of each shard."""
        with contextlib.suppress(*FAILURES):
            packed = b"".join([batch.next() for batch in batches.values()])
            raw = await self.shards[next(iter(batches))]._send_many(
                packed, sum(batch.expected for batch in batches.values())
            )
            for batch in batches.values():
                own, raw = raw[: batch.expected], raw[batch.expected :]
                with contextlib.suppress(*FAILURES):
                    batch.take(own)

    def confirming(self, replicas: int = 0, local: bool = False) -> AsyncConfirming:
        """Give a backend on the same connections that confirms each call: by replicas, or by the server's disk."""
        return AsyncConfirming(self, asked(replicas, local))

    # ---- waiting

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues, in any shard (True), or `timeout` passed (False).

        Also False when a node goes away (a little later), and when another task closes the backend. A wake-up that
        comes beside the first one is given back.
        """
        timeout = wait_of(timeout)
        names = tuple(queues)
        shards = shards_of(self.layout, names)
        return await self._block(shards, lambda shard: blocking_pop(shard.options.prefix, names, timeout), timeout)

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there are more than `after` events in all shards together (True) or `timeout` passed (False)."""
        found = await self.execute_calls([Call(shard, Newest()) for shard in range(self.layout.shards)])
        if sum(one.seq for one in found) > after:
            return True
        return await self.wait_after([one.seq for one in found], timeout)

    async def wait_after(self, after: Sequence[int], timeout: float) -> bool:
        """Sleep until a shard has an event after the sequence number given for it (True) or `timeout` passed
        (False).
        """
        timeout = wait_of(timeout)
        known = {shard.options.prefix: seq for shard, seq in zip(self.shards, after, strict=True)}

        def command(shard: AsyncRedisShard) -> tuple[str, ...]:
            return blocking_read(shard.options.prefix, known[shard.options.prefix], timeout)

        return await self._block(range(self.layout.shards), command, timeout)

    async def _block(
        self, shards: Sequence[int], command: Callable[[AsyncRedisShard], tuple[str, ...] | None], timeout: float
    ) -> bool:
        await self._ready()
        waits = [asyncio.ensure_future(self.shards[at]._block(command(self.shards[at]), timeout)) for at in shards]
        used = 0
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            used = 1
        finally:
            for one in waits:
                one.cancel()
            replies = await asyncio.gather(*waits, return_exceptions=True)
            rung = [
                (at, reply)
                for at, reply in zip(shards, replies, strict=True)
                if reply is not None and not isinstance(reply, BaseException)
            ]
            for at, reply in rung[used:]:
                with contextlib.suppress(*FAILURES, ConnectError):
                    await self.shards[at].give_back(reply)
        for error in replies:
            if isinstance(error, Exception) and not rung:
                raise error
        return bool(rung)

    async def close(self) -> None:
        """Close all connections. Waiters wake up with False."""
        self.closed.set()
        if self._loop is asyncio.get_running_loop():
            for shard in self.shards:
                if shard._loop is self._loop:
                    for connection in list(shard._waiting):
                        await connection.disconnect(nowait=True)
            for line in self.nodes.lines:
                await self.shards[0]._forget(line)


def _found_layout(options: Options) -> Layout:
    """Read the definition of a deployment, on a connection of its own."""
    from qmodel.backends.redis.deployment import RedisDeployment

    found = RedisDeployment(options)
    found.close()
    return found.layout
