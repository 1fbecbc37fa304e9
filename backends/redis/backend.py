"""`redis://`, `rediss://`, `unix://`, `valkey://`, `valkeys://`: each operation is one Lua call.

    redis://user:password@host:6379/0?prefix={shop}:ql:&deadline=10

The URL takes these options; all others go to redis-py:

- `prefix=ql:`       the start of all keys: a namespace. A hash tag keeps it in one cluster slot.
- `deadline=60`      for how many seconds a call is resent, and a first connection retried, before ConnectError.
- `connect_deadline` the same for the first connection alone, where a person waits for it.
- `functions=yes`    `no` runs the library as a script; servers without functions always do.
- `load=newer`       when to load the library: see setup.py; `always` and `never` are for deployments.
- `eviction=refuse`  `accept` connects to a server that deletes jobs when its memory is full.
- `requests=fresh`   `given` adds no request ids (for conformance).
- `max_connections`  of the asynchronous backend, 64 by default; the blocking one has one per thread.

Resending. redis-py's own retries are off. If the reply of a call is lost, or the server is starting, busy or failing
over, this backend sends the call again: the same strings with the same request id, with exponential backoff and full
jitter, until the deadline. An operation that takes a request id and has none gets a fresh one, made once for all its
sends. So an operation takes effect once, however often it is sent (`qmodel.contract.operations` gives the reason for
each). See resend.py.

Connections. The backend keeps its own list of idle connections and uses the last used one first. redis-py's pool asks
before each use whether a connection is still good, which costs a system call. Here a broken connection fails, and the
call is resent.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from redis import connection as connections
from redis import exceptions as raised
from redis.backoff import NoBackoff
from redis.retry import Retry

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
from qmodel.backends.redis.round_trip import exchange
from qmodel.backends.redis.setup import (
    Dialect,
    Found,
    Options,
    Talk,
    Warned,
    failed,
    is_hopeless,
    loading,
    options_of,
    setup,
)
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError
from qmodel.wire.codec import Unencodable, decode

if TYPE_CHECKING:
    from qmodel.backends.redis.aio import AsyncRedisBackend

T = TypeVar("T")


class RedisBackend:
    """Executes operations on a server. Any number of threads may use it, also after a fork.

    A call is resent until the deadline (see the head of this file). `warnings` lists what a user should know about the
    server.
    """

    reads = True  # `execute` takes a reader

    def __init__(self, options: Options) -> None:
        self.options = options
        self.warnings: tuple[Warned, ...] = ()
        self._fresh = options.fresh_requests
        self._settings = settings(options, Retry(NoBackoff(), 0))
        self._class = options.connection.get("connection_class", connections.Connection)
        self._idle: list[Any] = []
        self._idle_waiting: list[Any] = []
        self._waiting: set[Any] = set()
        self._closed = threading.Event()
        _OPEN.add(self)
        self._dialect = Dialect(options.prefix, options.functions)
        found = self._connect()
        self.warnings = found.warnings
        if found.functions != options.functions:
            self._dialect = Dialect(options.prefix, found.functions)

    # ---- the protocol

    def execute(self, op: Operation, now: int | None = None, read: Callable[[Operation, Any], Any] = decode) -> Any:
        """Execute one operation at `now` (ms; default: the server's clock); give its reply or Refusal.

        `read` decodes what the server sent. A caller that reads many events decodes them to columns instead of objects.
        """
        try:
            args = encoded(op, now, self._fresh)
        except Unencodable:
            return unencodable(op, now)
        packed = self._dialect.pack(type(op), args)
        try:
            raw = self._send(packed)
        except FAILURES as error:
            raw = self._send_again(error, lambda: self._send(packed))
        return read(op, raw)

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, each a step of its own, 500 in one round trip."""
        batch = Batch(ops, now, self._dialect, self._fresh)
        while packed := batch.next():
            try:
                batch.take(self._send_many(packed, batch.expected))
            except FAILURES as error:
                self._send_again(error, lambda: batch.take(self._send_many(batch.next(), batch.expected)))
        return batch.finish(self.options.where)

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True) or `timeout` passed (False).

        Also False when the server goes away (a little later), and when another thread closes the backend. If the waiter
        is interrupted after it was woken, its wake-up is lost.
        """
        timeout = wait_of(timeout)
        return self._block(blocking_pop(self.options.prefix, queues, timeout), timeout)

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or `timeout` passed (False). Also False when the
        server goes away or the backend is closed.
        """
        timeout = wait_of(timeout)
        return self._block(blocking_read(self.options.prefix, after, timeout), timeout)

    def _block(self, command: tuple[str, ...] | None, timeout: float) -> bool:
        if command is None or self._closed.is_set():
            self._closed.wait(timeout)
            return False
        began = time.monotonic()
        try:
            return self._wait(command, timeout)
        except ConnectError:
            if self._closed.is_set():  # before there was a connection to wait on
                return False
            raise
        except FAILURES as error:
            if not may_pass(error):
                raise server_error(error, self.options.where) from error
            left = began + timeout - time.monotonic()
            self._closed.wait(min(max(left, 0), RESTART_PAUSE))
            return False

    def close(self) -> None:
        """Close all connections. Waiters wake up with False."""
        self._closed.set()
        for connection in list(self._waiting):
            _hang_up(connection)
        self._forget()

    # ---- connections

    def _connect(self) -> Found:
        attempts = Attempts(self.options.first_deadline, self.options.where)
        while True:
            try:
                check_settings(self._class, self._settings)
                return self._talk(setup(self.options))
            except FAILURES as error:
                delay = attempts.pause()
                if delay is None or is_hopeless(error, self.options):
                    raise failed(error, self.options) from error
                follow(error, self._settings)
                self._forget()
                time.sleep(delay)

    def _talk(self, talk: Talk[T]) -> T:
        """Run a dialogue with the server: send each command that `talk` gives, and send it the reply."""
        connection = self._open(self._idle)
        reply: Any = None
        try:
            while True:
                connection.send_command(*talk.send(reply))
                reply = _reply(connection)
                if isinstance(reply, Exception) and may_pass(reply) and not is_unloaded(reply):
                    raise reply
        except StopIteration as end:
            self._idle.append(connection)
            found: T = end.value
            return found
        except BaseException:
            connection.disconnect()
            raise

    def _open(self, idle: list[Any]) -> Any:
        """Take an idle connection, or make a new one, which connects at its first use."""
        try:
            return idle.pop()
        except IndexError:
            if self._closed.is_set():
                raise closed(self.options.where) from None
            made = self._class(**self._settings)
            # redis-py 5.0.1 drops this one on unix sockets, and would then wait for ever.
            made.socket_timeout = self.options.connection["socket_timeout"]
            return made

    def _keep(self, connection: Any) -> None:
        """Keep a connection for the next call, unless the backend was closed meanwhile."""
        self._idle.append(connection)
        if self._closed.is_set():
            self._forget()

    def _forget(self) -> None:
        """Close all idle connections: what broke one has probably broken all."""
        for idle in (self._idle, self._idle_waiting):
            while idle:
                idle.pop().disconnect()

    # ---- sending

    def _send(self, packed: bytes) -> Any:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open(self._idle)
        try:
            raw = exchange(connection, packed)
        except raised.ResponseError:
            self._idle.append(connection)
            raise
        except BaseException:
            connection.disconnect()
            raise
        self._keep(connection)
        return raw

    def _send_many(self, packed: bytes, count: int) -> list[Any]:
        connection = self._open(self._idle)
        try:
            connection.send_packed_command((packed,), check_health=False)
            raw = [_reply(connection) for _ in range(count)]
        except BaseException:
            connection.disconnect()
            raise
        self._keep(connection)
        return raw

    def _send_again(self, error: Exception, send: Callable[[], T]) -> T:
        attempts = Attempts(self.options.deadline, self.options.where)
        while True:
            delay = attempts.delay(error)
            try:
                if is_unloaded(error):
                    self._talk(loading(self._dialect.functions, self.options))
                else:
                    follow(error, self._settings)
                    self._forget()
                self._closed.wait(delay)
                return send()
            except FAILURES as again:
                error = again

    def _wait(self, command: tuple[str, ...], timeout: float) -> bool:
        connection = self._open(self._idle_waiting)
        self._waiting.add(connection)
        try:
            connection.send_command(*command, check_health=False)
            if self._closed.is_set():
                raise raised.ConnectionError("closed")
            # The server answers in time unless it vanished.
            if not connection.can_read(timeout + self.options.connection["socket_timeout"]):
                raise raised.TimeoutError("no answer to a wait")
            woken = connection.read_response() is not None
        except BaseException:
            connection.disconnect()
            raise
        finally:
            self._waiting.discard(connection)
        self._idle_waiting.append(connection)
        return woken


def _reply(connection: Any) -> Any:
    """Read one reply; an error reply is returned as an exception object."""
    try:
        return connection.read_response()
    except raised.ResponseError as error:
        return error


def _hang_up(connection: Any) -> None:
    """Wake the thread that reads from a connection; that thread closes it."""
    line = getattr(connection, "_sock", None)
    if line is not None:
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)


_OPEN: weakref.WeakSet[RedisBackend] = weakref.WeakSet()


def _after_fork() -> None:
    """Leave the connections to the parent process: two processes on one connection would read each other's replies."""
    for backend in list(_OPEN):
        backend._waiting.clear()
        backend._forget()


os.register_at_fork(after_in_child=_after_fork)


def connect(url: str) -> RedisBackend:
    """Open a URL. Raises ConnectError, which names the problem and the remedy."""
    return RedisBackend(options_of(url))


def connect_async(url: str) -> AsyncRedisBackend:
    """Open a URL for an event loop. The server is checked by the first call."""
    from qmodel.backends.redis.aio import AsyncRedisBackend

    return AsyncRedisBackend(options_of(url))
