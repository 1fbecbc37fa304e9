"""The Redis backend for an event loop.

Each round trip has a connection of its own, so that the reply of a cancelled call cannot reach another call. At most
`max_connections` are used at a time; further calls queue up. Each waiter has one more connection. The timeout of a
reply is watched here, once for each round trip: redis-py would start a task for every write.

`connect_async` is not a coroutine, so the first call checks the server and loads the library. That call has one
deadline for all of it. A backend may be used in one event loop after another.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from redis import exceptions as raised
from redis.asyncio import connection as connections
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from qmodel import runtime
from qmodel.backends.redis.common import (
    RESTART_PAUSE,
    Batch,
    blocking_pop,
    blocking_read,
    check_namespace,
    check_settings,
    closed,
    encoded,
    settings,
    unencodable,
    wait_of,
)
from qmodel.backends.redis.confirm import WRITES, Confirm, asked, check_confirm
from qmodel.backends.redis.confirmed import AsyncConfirming, confirming
from qmodel.backends.redis.confirmed import Talk as Packets
from qmodel.backends.redis.resend import FAILURES, Attempts, is_of_connection, is_unloaded, may_pass, server_error
from qmodel.backends.redis.route import Line, Route, class_of
from qmodel.backends.redis.setup import Dialect, Talk, Warned, failed, is_hopeless, loading, setup
from qmodel.backends.redis.url import Address, Options
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError
from qmodel.wire.codec import Unencodable, decode

T = TypeVar("T")


class AsyncRedisBackend:
    """Executes operations on a server, for the tasks of an event loop.

    A call is resent until the deadline (see backend.py). `warnings` lists what a user should know about the server; it
    is empty before the first call.
    """

    def __init__(self, options: Options, route: Route | None = None) -> None:
        check_namespace(options)
        self.options = options
        self.warnings: tuple[Warned, ...] = ()
        self._fresh = options.fresh_requests
        self._timeout: float = options.connection["socket_timeout"]
        self._confirm = options.confirm
        self._given = settings(options, Retry(NoBackoff(), 0), socket_timeout=None)
        self._route = route or Route(options)
        self._line = Line(self._given, options.max_age)
        self._prepared = False
        self._ages = options.max_age < math.inf
        self._dialect: Dialect | None = None
        self._facts: dict[str, str] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = asyncio.Event()

    @property
    def at(self) -> dict[str, Any]:
        """The settings of a connection to the server that is used now."""
        return self._line.settings

    # ---- the protocol

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (ms; default: the server's clock); give its reply or Refusal."""
        if self._confirm is not None and type(op) in WRITES:
            return (await self.execute_many((op,), now))[0]
        try:
            args = encoded(op, now, self._fresh)
        except Unencodable:
            return unencodable(op, now)
        attempts = self._attempts()
        dialect = await self._ready(attempts)
        packed = dialect.pack(type(op), args)
        try:
            raw = await self._send(packed)
        except FAILURES as error:
            raw = await self._send_again(attempts, error, lambda: self._send(packed))
        return decode(op, raw)

    async def execute_many(
        self, ops: Sequence[Operation], now: int | None = None, confirm: Confirm | None = None
    ) -> list[Any]:
        """Execute operations in order, each a step of its own, 500 in one round trip. `confirm` replaces the URL's."""
        attempts = self._attempts()
        dialect = await self._ready(attempts)
        confirm = confirm or self._confirm
        check_confirm(confirm, self._facts, self.options.where)
        if confirm is not None and not any(type(op) in WRITES for op in ops):
            confirm = None
        batch = Batch(ops, now, dialect, self._fresh)

        async def confirmed() -> None:
            assert confirm is not None
            await self._converse(confirming(batch, dialect.mark, confirm, attempts, self.options))

        if confirm is None:
            await self._send_batch(batch, attempts)
        while batch.next():
            try:
                await confirmed()
            except FAILURES as error:
                await self._send_again(attempts, error, confirmed)
            attempts = self._attempts()
        return batch.finish(self.options.where)

    async def _send_batch(self, batch: Batch, attempts: Attempts | None = None) -> None:
        async def send() -> None:
            if packed := batch.next():
                batch.take(await self._send_many(packed, batch.expected))

        while batch.next():
            try:
                await send()
            except FAILURES as error:
                await self._send_again(attempts or self._attempts(), error, send)
            attempts = None

    def confirming(self, replicas: int = 0, local: bool = False) -> AsyncConfirming:
        """Give a backend on the same connections that confirms each call: by replicas, or by the server's disk."""
        return AsyncConfirming(self, asked(replicas, local))

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or `timeout` passed (False).

        Also False when the server goes away (a little later), and when another task closes the backend. If the waiter
        is cancelled after it was woken, its wake-up is lost.
        """
        timeout = wait_of(timeout)
        return bool(await self._block(blocking_pop(self.options.prefix, queues, timeout), timeout))

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or `timeout` passed (False). Also False when the
        server goes away or the backend is closed.
        """
        timeout = wait_of(timeout)
        return bool(await self._block(blocking_read(self.options.prefix, after, timeout), timeout))

    async def _block(self, command: tuple[str, ...] | None, timeout: float) -> Any:
        """Give the reply to a command that blocks, or None."""
        self._join()
        if command is None or self._closed.is_set():
            await self._sleep(timeout)
            return None
        began = runtime.monotonic()
        try:
            await self._ready(self._attempts(timeout))
            return await self._wait(command, timeout)
        except ConnectError:
            if self._closed.is_set():  # before there was a connection to wait on
                return None
            raise
        except FAILURES as error:
            if not may_pass(error):
                raise server_error(error, self.options.where) from error
            left = began + timeout - runtime.monotonic()
            await self._sleep(min(max(left, 0), RESTART_PAUSE))
            return None

    async def close(self) -> None:
        """Close all connections. Waiters wake up with False."""
        self._closed.set()
        if self._loop is asyncio.get_running_loop():
            for connection in list(self._waiting):
                await connection.disconnect(nowait=True)
            await self._forget(self._line)

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the backend is closed, at most so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)

    # ---- connections

    def _attempts(self, most: float = math.inf) -> Attempts:
        """Begin the tries of a call, the first connection included; `most` seconds at most."""
        first = self._dialect is None
        deadline = self.options.first_deadline if first else self.options.deadline
        return Attempts(min(deadline, most), self.options.where, self._route.longest_pause, self.options.also)

    async def _ready(self, attempts: Attempts) -> Dialect:
        """Give the form of operations for this server. The first call finds it out."""
        self._join()
        if self._dialect is None:
            async with self._connecting:
                await self._connect(attempts)
        assert self._dialect is not None
        return self._dialect

    def _join(self) -> None:
        """Enter the running event loop, if it is not the one of the last call."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._enter(loop)

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start without connections in a new event loop; those of the old loop ended with it."""
        self._loop = loop
        if not self._closed.is_set():
            self._closed = asyncio.Event()
        self._line = Line(self._line.settings, self.options.max_age)
        self._waiting: set[Any] = set()
        self._seeking = asyncio.Lock()
        self._connecting = asyncio.Lock()
        self._failed: ConnectError | None = None
        self._room = asyncio.Semaphore(self.options.max_connections)

    async def _connect(self, attempts: Attempts) -> None:
        """Make the first connection. A task whose deadline passed while another one tried gets that one's error."""
        if self._dialect is None and self._failed is not None and attempts.over:
            raise self._failed
        while self._dialect is None:
            try:
                check_settings(class_of(self.options, self._given, connections), self._given)
                if self._route.is_lost:
                    await self._seek()
                    await self._go()
                found = await self._talk(setup(self.options, self._route))
            except FAILURES as error:
                delay = attempts.pause()
                if delay is None or is_hopeless(error, self.options, self._route.is_routed):
                    self._failed = failed(error, self.options, self._route.is_routed)
                    raise self._failed from error
                await self._forget(self._line)
                if self._route.follow(error):
                    await self._go()
                else:
                    self._route.lose()
                await asyncio.sleep(delay)
            else:
                self.warnings, self._facts = found.warnings, found.facts
                self._prepared = True
                self._dialect = Dialect(self.options.prefix, found.functions)

    async def _follow(self, error: BaseException) -> None:
        """Go where the master is now: after MOVED at once, after other errors when somebody says so."""
        if is_of_connection(error):
            await self._forget(self._line)
        async with self._seeking:
            if not self._route.follow(error) and self._route.is_due(error):
                with contextlib.suppress(*FAILURES, ConnectError):
                    await self._seek()
            if await self._go():
                self._prepared = False
            if not self._prepared:  # its library may be missing, or an older one
                await self._load()
                self._prepared = True

    async def recover(self, error: BaseException) -> None:
        """Do what makes a resend after this error possible: load the library, or go where the master is now."""
        if is_unloaded(error):
            await self._load()
        else:
            await self._follow(error)

    async def _load(self) -> None:
        functions = self._dialect is None or self._dialect.functions
        talk = loading(functions, self.options)
        await self._talk(talk)

    async def _seek(self) -> None:
        """Ask one node after the other where the master is. Raises the last error if nobody says."""
        last: BaseException | None = None
        for address in self._route.to_ask():
            try:
                if self._route.learn(address, await self._ask(address)):
                    return
            except FAILURES as error:
                last = error
        raise self._route.unknown(last)

    async def _ask(self, address: Address) -> Any:
        connection = self._make(self._route.asking(self._given, address))
        try:
            async with asyncio.timeout(self._timeout):
                await connection.send_command(*self._route.question)
                return await connection.read_response()
        finally:
            await connection.disconnect(nowait=True)

    async def _go(self) -> bool:
        """Use the node that the route names; say whether it is another one than before."""
        line = Line(self._route.settings(self._given), self.options.max_age)
        return line.at != self._line.at and await self._change(line)

    async def _change(self, line: Line) -> bool:
        before, self._line = self._line, line
        before.over = True
        await self._forget(before)
        return True

    async def _talk(self, talk: Talk[T]) -> T:
        """Run a dialogue with the server: send each command that `talk` gives, and send it the reply."""
        line = self._line
        connection = self._open(line, line.idle)
        reply: Any = None
        try:
            while True:
                command = talk.send(reply)
                async with asyncio.timeout(self._timeout):
                    await connection.send_command(*command)
                    reply = await _reply(connection)
                if isinstance(reply, Exception) and may_pass(reply) and not is_unloaded(reply):
                    raise reply
        except StopIteration as end:
            await self._keep(line, connection)
            found: T = end.value
            return found
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    def _open(self, line: Line, idle: list[Any]) -> Any:
        """Take an idle connection, or make a new one, which connects at its first use."""
        if idle:
            return idle.pop()
        if self._closed.is_set():
            raise closed(self.options.where)
        return self._make(line.settings)

    def _make(self, settings: dict[str, Any]) -> Any:
        return class_of(self.options, settings, connections)(**settings)

    async def _keep(self, line: Line, connection: Any) -> None:
        """Keep a connection for the next call, unless its line has ended or the backend was closed meanwhile."""
        line.idle.append(connection)
        if line.over or self._closed.is_set():
            await self._forget(line)
        elif self._ages and line.old:
            await self._change(Line(line.settings, self.options.max_age))

    async def _forget(self, line: Line) -> None:
        """Close all idle connections: what broke one has probably broken all."""
        for idle in (line.idle, line.waiting):
            while idle:
                await idle.pop().disconnect(nowait=True)

    # ---- sending

    async def _send(self, packed: bytes) -> Any:
        async with self._room:
            line = self._line
            connection = self._open(line, line.idle)
            try:
                async with asyncio.timeout(self._timeout):
                    await connection.send_packed_command(packed, check_health=False)
                    raw = await connection.read_response()
            except raised.ResponseError:
                await self._keep(line, connection)
                raise
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            await self._keep(line, connection)
            return raw

    async def _send_many(self, packed: bytes, count: int) -> list[Any]:
        async with self._room:
            line = self._line
            connection = self._open(line, line.idle)
            try:
                raw = await self._exchange(connection, packed, count)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            await self._keep(line, connection)
            return raw

    async def _exchange(self, connection: Any, packed: bytes, count: int) -> list[Any]:
        """Send commands, and give their replies; the timeout holds for each of them."""
        async with asyncio.timeout(self._timeout) as limit:
            await connection.send_packed_command(packed, check_health=False)
            raw = []
            for _ in range(count):
                raw.append(await _reply(connection))
                limit.reschedule(asyncio.get_running_loop().time() + self._timeout)
        return raw

    async def _converse(self, talk: Packets) -> None:
        """Send what `talk` gives, on one connection, and send it the replies."""
        async with self._room:
            line = self._line
            connection = self._open(line, line.idle)
            try:
                packed, count = next(talk)
                while True:
                    packed, count = talk.send(await self._exchange(connection, packed, count))
            except StopIteration:
                await self._keep(line, connection)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise

    async def _send_again(self, attempts: Attempts, error: Exception, send: Callable[[], Awaitable[T]]) -> T:
        while True:
            delay = attempts.delay(error)
            try:
                await asyncio.sleep(delay)
                await self.recover(error)
                return await send()
            except FAILURES as again:
                error = again

    async def _wait(self, command: tuple[str, ...], timeout: float) -> Any:
        line = self._line
        connection = self._open(line, line.waiting)
        self._waiting.add(connection)
        try:
            # The server answers in time unless it vanished.
            async with asyncio.timeout(timeout + self._timeout):
                await connection.send_command(*command, check_health=False)
                if self._closed.is_set():
                    raise raised.ConnectionError("closed")
                reply = await connection.read_response()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            self._waiting.discard(connection)
        line.waiting.append(connection)
        if line.over:
            await self._forget(line)
        return reply


async def _reply(connection: Any) -> Any:
    """Read one reply; an error reply is returned as an exception object."""
    try:
        return await connection.read_response()
    except raised.ResponseError as error:
        return error
