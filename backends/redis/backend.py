"""`redis://`, `rediss://`, `unix://`, `valkey://`, `valkeys://`: operations as one Lua call each.

    redis://user:password@host:6379/0?prefix={shop}:ql:&deadline=10

Of the options in the URL these are ours, and all others go to redis-py:

- `prefix=ql:`       what all keys begin with: a namespace. A hash tag keeps it in one cluster slot.
- `deadline=60`      for how many seconds a call is sent again before it raises ConnectError.
- `functions=yes`    `no` runs the library as a script, as servers without functions need anyway.
- `load=newer`       who loads the library: see setup.py; `always` and `never` are for deployers.
- `eviction=refuse`  `accept` connects to a server that deletes jobs when its memory is full.
- `requests=fresh`   `given` sends no request id where none is given (for conformance).
- `max_connections`  of the asynchronous backend, 64 without it; the blocking one has one a thread.

Sending again. redis-py's own retries are off. A call whose reply is lost, or which meets a server
that is starting, busy or failing over, is sent again by us: the same strings, with the same request
id, with exponential backoff and full jitter, until the deadline. An operation that takes a request
id and has none gets a fresh one, made once for all its sends. So it happens once, however often it
is sent (`qmodel.contract.operations` says why for each). See resend.py.

Connections are our own: a list of idle ones, the last used first. It is not redis-py's pool,
because that asks before each use whether a connection is still good, which costs a system call; here
a bad one shows itself, and the call is sent again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis import connection as connections
from redis import exceptions as raised
from redis.backoff import NoBackoff
from redis.retry import Retry

from qmodel.backends.bundle import events_key, wake_key
from qmodel.backends.redis.resend import FAILURES, Attempts, code_of, is_unloaded, may_pass, server_error
from qmodel.backends.redis.round_trip import exchange
from qmodel.backends.redis.setup import (
    Dialect,
    Found,
    Options,
    Talk,
    Warned,
    diagnose,
    loading,
    options_of,
    setup,
)
from qmodel.contract.arguments import TIME, Name
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError
from qmodel.model import engine
from qmodel.wire.codec import Unencodable, decode, encode

if TYPE_CHECKING:
    from qmodel.backends.redis.aio import AsyncRedisBackend

T = TypeVar("T")

CHUNK: Final = 500
"""Operations in one round trip: the server keeps all their replies in memory until they are read."""

LONGEST_WAIT: Final = 86_400.0
SHORTEST_WAIT: Final = 0.01
"""In seconds. BLPOP waits for ever at 0, which is what Redis 6 makes of less than a millisecond."""

_RESTARTING: Final = 0.5
"""How long a waiter sleeps when the server goes away under it; the pop that follows does the rest."""

_ASKS: Final = frozenset(spec.cls for spec in CATALOGUE.values() if any(a.name == "request" for a in spec.arguments))
_QUEUE: Final = Name()


# ---- what both backends share


def encoded(op: Operation, now: int | None, fresh: bool) -> list[str]:
    """An operation as it is sent, each time; with a request id of its own if it takes one."""
    args = encode(op, now)
    if fresh and not args[1] and type(op) in _ASKS:
        args[1] = secrets.token_hex(11)
    return args


def unencodable(op: Operation, now: int | None) -> Refusal:
    """Refuse what has no form on the wire, as the model does."""
    if now is not None and not TIME.accepts(now):
        return Refusal("BAD_ARGUMENT", (op.spec.name, "now"))
    bad = engine.fault(op)
    assert bad is not None, op
    return Refusal("BAD_ARGUMENT", (op.spec.name, bad))


class Batch:
    """Operations on their way in one round trip after the other, and the replies so far."""

    def __init__(self, ops: Sequence[Operation], now: int | None, dialect: Dialect, fresh: bool) -> None:
        self.replies: list[Any] = [None] * len(ops)
        self._left: list[tuple[int, Operation, bytes]] = []
        self._error: Exception | None = None
        for place, op in enumerate(ops):
            try:
                self._left.append((place, op, dialect.pack(type(op), encoded(op, now, fresh))))
            except Unencodable:
                self.replies[place] = unencodable(op, now)
        self._sent = 0

    def next(self) -> bytes:
        """What to send next; empty when there is nothing left."""
        sent = self._left[:CHUNK]
        self._sent = len(sent)
        return b"".join([packed for _, _, packed in sent])

    @property
    def expected(self) -> int:
        """How many replies to read for what was sent."""
        return self._sent

    def take(self, raw: list[Any]) -> None:
        """Keep the replies to what was sent; raises the first error that may pass, to send again
        from there."""
        for count, (reply, (place, op, _)) in enumerate(zip(raw, self._left, strict=False)):
            if isinstance(reply, Exception):
                if may_pass(reply):
                    del self._left[:count]
                    raise reply
                self._error = self._error or reply
            else:
                self.replies[place] = decode(op, reply)
        del self._left[: len(raw)]

    def finish(self, where: str) -> list[Any]:
        """The replies of all; raises the first error that sending again would not have helped."""
        if self._error is not None:
            raise server_error(self._error, where) from self._error
        return self.replies


def blocking_pop(prefix: str, queues: Sequence[str], timeout: float) -> tuple[str, ...] | None:
    """The command on which an idle worker waits; None if no queue can have work."""
    known = [wake_key(prefix, name) for name in dict.fromkeys(queues) if _QUEUE.accepts(name)]
    return ("BLPOP", *known, f"{timeout:.3f}") if known else None


def blocking_read(prefix: str, after: int, timeout: float) -> tuple[str, ...]:
    """The command on which one waits for an event after a sequence number."""
    return ("XREAD", "COUNT", "1", "BLOCK", f"{timeout * 1000:.0f}", "STREAMS", events_key(prefix), f"{after}-0")


def wait_of(timeout: float) -> float:
    """A time to wait that BLPOP and XREAD take."""
    return min(max(timeout, SHORTEST_WAIT), LONGEST_WAIT)


def settings(options: Options, retry: Any, **others: Any) -> dict[str, Any]:
    """The arguments of a connection of redis-py."""
    given = {name: value for name, value in options.connection.items() if name != "connection_class"}
    return {**given, "retry": retry, **others}


def follow(error: Exception, connection: dict[str, Any]) -> None:
    """Turn to the node of a cluster that has the keys, if that is what the server says."""
    if code_of(error) == "MOVED":
        host, _, port = str(error).split()[-1].rpartition(":")
        connection.update(host=host or connection.get("host"), port=int(port))


def closed(where: str) -> ConnectError:
    """The error of one who uses a backend that was closed."""
    return ConnectError(f"This connection to {where} was closed.", "Open another.")


def unknown_option(error: TypeError) -> ConnectError:
    """The error of a URL with an option that a connection of redis-py does not have."""
    return ConnectError(
        f"redis-py does not take an option of the URL: {error}.",
        "See the head of qmodel/backends/redis/backend.py and the arguments of redis.Connection.",
    )


def is_hopeless(error: Exception) -> bool:
    """Whether not to wait at start: nobody is there, or he does not want us."""
    return code_of(error) in ("", "NOAUTH") or not may_pass(error)


# ---- the blocking backend


class RedisBackend:
    """Executes operations on a server; any number of threads may use it, also after a fork.

    A call is sent again until the deadline, as the head of this file says. `warnings` is what
    connecting found that should be known.
    """

    reads = True  # `execute` can be told how

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

        `read` makes that of what the server sent: who reads many events makes columns of it, and no objects.
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

        Also False, a little later, when the server goes away meanwhile, and when another thread
        closes the backend. Who is interrupted after he was woken takes the wake-up with him.
        """
        timeout = wait_of(timeout)
        return self._block(blocking_pop(self.options.prefix, queues, timeout), timeout)

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True) or `timeout` passed (False);
        also False when the server goes away meanwhile, or the backend is closed."""
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
            self._closed.wait(min(max(left, 0), _RESTARTING))
            return False

    def close(self) -> None:
        """Close all connections; those who wait are woken, with False."""
        self._closed.set()
        for connection in list(self._waiting):
            _hang_up(connection)
        self._forget()

    # ---- connections

    def _connect(self) -> Found:
        attempts = Attempts(self.options.deadline, self.options.where)
        while True:
            try:
                return self._talk(setup(self.options))
            except TypeError as error:
                raise unknown_option(error) from None
            except FAILURES as error:
                if is_hopeless(error):
                    raise diagnose(error, self.options) from error
                follow(error, self._settings)
                time.sleep(attempts.delay(error))

    def _talk(self, talk: Talk[T]) -> T:
        """Have a conversation with the server."""
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
        """An idle connection, or else a new one; it connects when it is first used."""
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
        """Keep a connection for the next call; not when the backend was closed meanwhile, so that
        nobody goes on with it."""
        self._idle.append(connection)
        if self._closed.is_set():
            self._forget()

    def _forget(self) -> None:
        """Close all idle connections: what broke one has likely broken them all."""
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
            # The server answers in time, unless it is gone without a word.
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
    """Read one reply; an error reply as an exception object."""
    try:
        return connection.read_response()
    except raised.ResponseError as error:
        return error


def _hang_up(connection: Any) -> None:
    """Wake the thread that reads from a connection; it closes it."""
    line = getattr(connection, "_sock", None)
    if line is not None:
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)


_OPEN: weakref.WeakSet[RedisBackend] = weakref.WeakSet()


def _after_fork() -> None:
    """Leave the connections to the parent: two processes on one would read each other's replies."""
    for backend in list(_OPEN):
        backend._waiting.clear()
        backend._forget()


os.register_at_fork(after_in_child=_after_fork)


def connect(url: str) -> RedisBackend:
    """Open a URL; raises ConnectError with what is wrong, and what to do."""
    return RedisBackend(options_of(url))


def connect_async(url: str) -> AsyncRedisBackend:
    """Open a URL for an event loop; the server is looked at when it is first used."""
    from qmodel.backends.redis.aio import AsyncRedisBackend

    return AsyncRedisBackend(options_of(url))
