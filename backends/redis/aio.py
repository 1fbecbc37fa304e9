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
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from redis import exceptions as raised
from redis.asyncio import connection as connections
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from qmodel.backends.redis.common import (
    RESTART_PAUSE,
    Batch,
    blocking_pop,
    blocking_read,
    check_settings,
    closed,
    encoded,
    follow,
    settings,
    unencodable,
    wait_of,
)
from qmodel.backends.redis.resend import FAILURES, Attempts, is_unloaded, may_pass, server_error
from qmodel.backends.redis.setup import Dialect, Options, Talk, Warned, failed, is_hopeless, loading, setup
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError
from qmodel.wire.codec import Unencodable, decode

T = TypeVar("T")


class AsyncRedisBackend:
    """Executes operations on a server, for the tasks of an event loop.

    A call is resent until the deadline (see backend.py). `warnings` lists what a user should know about the server; it
    is empty before the first call.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.warnings: tuple[Warned, ...] = ()
        self._fresh = options.fresh_requests
        self._timeout: float = options.connection["socket_timeout"]
        self._settings = settings(options, Retry(NoBackoff(), 0), socket_timeout=None)
        plain = options.connection.get("connection_class")
        self._class = getattr(connections, plain.__name__) if plain else connections.Connection
        self._dialect: Dialect | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = asyncio.Event()

    # ---- the protocol

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (ms; default: the server's clock); give its reply or Refusal."""
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

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, each a step of its own, 500 in one round trip."""
        attempts = self._attempts()
        batch = Batch(ops, now, await self._ready(attempts), self._fresh)

        async def send() -> None:
            if packed := batch.next():
                batch.take(await self._send_many(packed, batch.expected))

        while batch.next():
            try:
                await send()
            except FAILURES as error:
                await self._send_again(attempts, error, send)
            attempts = self._attempts()
        return batch.finish(self.options.where)

    async def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or `timeout` passed (False).

        Also False when the server goes away (a little later), and when another task closes the backend. If the waiter
        is cancelled after it was woken, its wake-up is lost.
        """
        timeout = wait_of(timeout)
        return await self._block(blocking_pop(self.options.prefix, queues, timeout), timeout)

    async def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or `timeout` passed (False). Also False when the
        server goes away or the backend is closed.
        """
        timeout = wait_of(timeout)
        return await self._block(blocking_read(self.options.prefix, after, timeout), timeout)

    async def _block(self, command: tuple[str, ...] | None, timeout: float) -> bool:
        if command is None or self._closed.is_set():
            await self._sleep(timeout)
            return False
        began = time.monotonic()
        try:
            await self._ready(self._attempts(timeout))
            return await self._wait(command, timeout)
        except ConnectError:
            if self._closed.is_set():  # before there was a connection to wait on
                return False
            raise
        except FAILURES as error:
            if not may_pass(error):
                raise server_error(error, self.options.where) from error
            left = began + timeout - time.monotonic()
            await self._sleep(min(max(left, 0), RESTART_PAUSE))
            return False

    async def close(self) -> None:
        """Close all connections. Waiters wake up with False."""
        self._closed.set()
        if self._loop is asyncio.get_running_loop():
            for connection in list(self._waiting):
                await connection.disconnect(nowait=True)
            await self._forget()

    async def _sleep(self, seconds: float) -> None:
        """Sleep until the backend is closed, at most so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)

    # ---- connections

    def _attempts(self, most: float = math.inf) -> Attempts:
        """Begin the tries of a call, the first connection included; `most` seconds at most."""
        first = self._dialect is None
        deadline = self.options.first_deadline if first else self.options.deadline
        return Attempts(min(deadline, most), self.options.where)

    async def _ready(self, attempts: Attempts) -> Dialect:
        """Give the form of operations for this server. The first call finds it out."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._enter(loop)
        if self._dialect is None:
            async with self._connecting:
                await self._connect(attempts)
        assert self._dialect is not None
        return self._dialect

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start without connections in a new event loop; those of the old loop ended with it."""
        self._loop = loop
        self._idle: list[Any] = []
        self._idle_waiting: list[Any] = []
        self._waiting: set[Any] = set()
        self._connecting = asyncio.Lock()
        self._failed: ConnectError | None = None
        self._room = asyncio.Semaphore(self.options.max_connections)

    async def _connect(self, attempts: Attempts) -> None:
        """Make the first connection. A task whose deadline passed while another one tried gets that one's error."""
        if self._dialect is None and self._failed is not None and attempts.over:
            raise self._failed
        while self._dialect is None:
            try:
                check_settings(self._class, self._settings)
                found = await self._talk(setup(self.options))
            except FAILURES as error:
                delay = attempts.pause()
                if delay is None or is_hopeless(error, self.options):
                    self._failed = failed(error, self.options)
                    raise self._failed from error
                follow(error, self._settings)
                await self._forget()
                await asyncio.sleep(delay)
            else:
                self.warnings = found.warnings
                self._dialect = Dialect(self.options.prefix, found.functions)

    async def _talk(self, talk: Talk[T]) -> T:
        """Run a dialogue with the server: send each command that `talk` gives, and send it the reply."""
        connection = self._open(self._idle)
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
            self._idle.append(connection)
            found: T = end.value
            return found
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    def _open(self, idle: list[Any]) -> Any:
        """Take an idle connection, or make a new one, which connects at its first use."""
        if idle:
            return idle.pop()
        if self._closed.is_set():
            raise closed(self.options.where)
        return self._class(**self._settings)

    async def _keep(self, connection: Any) -> None:
        """Keep a connection for the next call, unless the backend was closed meanwhile."""
        self._idle.append(connection)
        if self._closed.is_set():
            await self._forget()

    async def _forget(self) -> None:
        """Close all idle connections: what broke one has probably broken all."""
        for idle in (self._idle, self._idle_waiting):
            while idle:
                await idle.pop().disconnect(nowait=True)

    # ---- sending

    async def _send(self, packed: bytes) -> Any:
        async with self._room:
            connection = self._open(self._idle)
            try:
                async with asyncio.timeout(self._timeout):
                    await connection.send_packed_command(packed, check_health=False)
                    raw = await connection.read_response()
            except raised.ResponseError:
                self._idle.append(connection)
                raise
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            await self._keep(connection)
            return raw

    async def _send_many(self, packed: bytes, count: int) -> list[Any]:
        async with self._room:
            connection = self._open(self._idle)
            try:
                async with asyncio.timeout(self._timeout) as limit:
                    await connection.send_packed_command(packed, check_health=False)
                    raw = []
                    for _ in range(count):
                        raw.append(await _reply(connection))
                        limit.reschedule(asyncio.get_running_loop().time() + self._timeout)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            await self._keep(connection)
            return raw

    async def _send_again(self, attempts: Attempts, error: Exception, send: Callable[[], Awaitable[T]]) -> T:
        while True:
            delay = attempts.delay(error)
            try:
                if is_unloaded(error):
                    functions = self._dialect is None or self._dialect.functions
                    talk = loading(functions, self.options)
                    await self._talk(talk)
                else:
                    follow(error, self._settings)
                    await self._forget()
                await asyncio.sleep(delay)
                return await send()
            except FAILURES as again:
                error = again

    async def _wait(self, command: tuple[str, ...], timeout: float) -> bool:
        connection = self._open(self._idle_waiting)
        self._waiting.add(connection)
        try:
            # The server answers in time unless it vanished.
            async with asyncio.timeout(timeout + self._timeout):
                await connection.send_command(*command, check_health=False)
                if self._closed.is_set():
                    raise raised.ConnectionError("closed")
                woken = await connection.read_response() is not None
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            self._waiting.discard(connection)
        self._idle_waiting.append(connection)
        return woken


async def _reply(connection: Any) -> Any:
    """Read one reply; an error reply is returned as an exception object."""
    try:
        return await connection.read_response()
    except raised.ResponseError as error:
        return error
