"""`redis://`, `rediss://`, `unix://`, `valkey://`, `valkeys://`, and with `+cluster` or `+sentinel`: each operation is
one Lua call.

    redis://user:password@host:6379/0?prefix={shop}:ql:&deadline=10

The URL takes these options; all others go to redis-py:

- `prefix=ql:`       the start of all keys: a namespace. A hash tag keeps it in one cluster slot.
- `deadline=60`      for how many seconds a call is resent, and a first connection retried, before ConnectError.
- `connect_deadline` the same for the first connection alone, where a person waits for it.
- `confirm`          `1` to `9`: a call returns when so many replicas have it; `local`: when it is on the server's disk.
- `credentials`      `module:name` of a redis.CredentialProvider, which each new connection asks for a password.
- `max_age`          closes connections that are older than so many seconds, for passwords that end.
- `functions=yes`    `no` runs the library as a script; servers without functions always do.
- `load=newer`       when to load the library: see setup.py; `always` and `never` are for deployments.
- `eviction=refuse`  `accept` connects to a server that deletes jobs when its memory is full.
- `requests=fresh`   `given` adds no request ids (for conformance).
- `max_connections`  of the asynchronous backend, 64 by default; the blocking one has one per thread.
- `sentinel_username`, `sentinel_password`  for sentinels that have users of their own.

Resending. redis-py's own retries are off. If the reply of a call is lost, or the server is starting, busy or failing
over, this backend sends the call again: the same strings with the same request id, with exponential backoff and full
jitter, until the deadline. An operation that takes a request id and has none gets a fresh one, made once for all its
sends. So an operation takes effect once, however often it is sent (`qmodel.contract.operations` gives the reason for
each). See resend.py; route.py says how the master is found again, and confirm.py how replicas confirm a call.

Connections. The backend keeps its own list of idle connections and uses the last used one first. redis-py's pool asks
before each use whether a connection is still good, which costs a system call. Here a broken connection fails, and the
call is resent.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from redis import exceptions as raised
from redis.backoff import NoBackoff
from redis.retry import Retry

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
from qmodel.backends.redis.confirmed import Confirming, confirming
from qmodel.backends.redis.confirmed import Talk as Packets
from qmodel.backends.redis.resend import FAILURES, Attempts, is_of_connection, is_unloaded, may_pass, server_error
from qmodel.backends.redis.round_trip import exchange
from qmodel.backends.redis.route import Line, Route, class_of
from qmodel.backends.redis.setup import (
    Dialect,
    Found,
    Talk,
    Warned,
    failed,
    is_hopeless,
    loading,
    setup,
)
from qmodel.backends.redis.url import Address, Options, options_of
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError
from qmodel.wire.codec import Unencodable, decode

T = TypeVar("T")


class RedisBackend:
    """Executes operations on a server. Any number of threads may use it, also after a fork.

    A call is resent until the deadline (see the head of this file). `warnings` lists what a user should know about the
    server.
    """

    reads = True  # `execute` takes a reader

    def __init__(self, options: Options, route: Route | None = None) -> None:
        check_namespace(options)
        self.options = options
        self.warnings: tuple[Warned, ...] = ()
        self._fresh = options.fresh_requests
        self._confirm = options.confirm
        self._given = _given(options)
        self._route = route or Route(options)
        self._line = Line(self._given, options.max_age)
        self._seeking = runtime.Lock()
        self._prepared = False
        self._ages = options.max_age < math.inf
        self._waiting: set[Any] = set()
        self._closed = runtime.Event()
        OPEN.add(self)
        self._dialect = Dialect(options.prefix, options.functions)
        self.found = self._connect()
        self.warnings = self.found.warnings
        if self.found.functions != options.functions:
            self._dialect = Dialect(options.prefix, self.found.functions)

    @property
    def at(self) -> dict[str, Any]:
        """The settings of a connection to the server that is used now."""
        return self._line.settings

    def silent_seeds(self) -> list[Address]:
        """Ask each node, or sentinel, that the URL names; list those that do not say where the master is."""
        return [address for address in self.options.seeds if not self._answers(address)]

    def _answers(self, address: Address) -> bool:
        try:
            return Route(self.options).learn(address, self._ask(address))
        except FAILURES:
            return False

    # ---- the protocol

    def execute(self, op: Operation, now: int | None = None, read: Callable[[Operation, Any], Any] = decode) -> Any:
        """Execute one operation at `now` (ms; default: the server's clock); give its reply or Refusal.

        `read` decodes what the server sent. A caller that reads many events decodes them to columns instead of objects.
        """
        if self._confirm is not None and type(op) in WRITES:
            return self.execute_many((op,), now)[0]
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

    def execute_many(
        self, ops: Sequence[Operation], now: int | None = None, confirm: Confirm | None = None
    ) -> list[Any]:
        """Execute operations in order, each a step of its own, 500 in one round trip. `confirm` replaces the URL's."""
        confirm = confirm or self._confirm
        if confirm is not None and any(type(op) in WRITES for op in ops):
            return self._execute_confirmed(ops, now, confirm)
        batch = Batch(ops, now, self._dialect, self._fresh)
        self._send_batch(batch)
        return batch.finish(self.options.where)

    def _send_batch(self, batch: Batch) -> None:
        while packed := batch.next():
            try:
                batch.take(self._send_many(packed, batch.expected))
            except FAILURES as error:
                self._send_again(error, lambda: batch.take(self._send_many(batch.next(), batch.expected)))

    def _execute_confirmed(self, ops: Sequence[Operation], now: int | None, confirm: Confirm) -> list[Any]:
        batch = Batch(ops, now, self._dialect, self._fresh)
        while batch.next():
            attempts = self._attempts()

            def send(attempts: Attempts = attempts) -> None:
                self._converse(confirming(batch, self._dialect.mark, confirm, attempts, self.options))

            try:
                send()
            except FAILURES as error:
                self._send_again(error, send, attempts)
        return batch.finish(self.options.where)

    def confirming(self, replicas: int = 0, local: bool = False) -> Confirming:
        """Give a backend on the same connections that confirms each call: by replicas, or by the server's disk."""
        confirm = asked(replicas, local)
        check_confirm(confirm, self.found.facts, self.options.where)
        return Confirming(self, confirm)

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
        began = runtime.monotonic()
        try:
            return self._wait(command, timeout)
        except ConnectError:
            if self._closed.is_set():  # before there was a connection to wait on
                return False
            raise
        except FAILURES as error:
            if not may_pass(error):
                raise server_error(error, self.options.where) from error
            left = began + timeout - runtime.monotonic()
            self._closed.wait(min(max(left, 0), RESTART_PAUSE))
            return False

    def close(self) -> None:
        """Close all connections. Waiters wake up with False."""
        self._closed.set()
        for connection in list(self._waiting):
            hang_up(connection)
        self._forget(self._line)

    # ---- connections

    def _attempts(self) -> Attempts:
        """Begin the tries of a call."""
        return Attempts(self.options.deadline, self.options.where, self._route.longest_pause, self.options.also)

    def _connect(self) -> Found:
        attempts = Attempts(self.options.first_deadline, self.options.where)
        while True:
            try:
                check_settings(class_of(self.options, self._given), self._given)
                if self._route.is_lost:
                    self._seek()
                    self._go()
                found = self._talk(setup(self.options, self._route))
                self._prepared = True
                return found
            except FAILURES as error:
                delay = attempts.pause()
                if delay is None or is_hopeless(error, self.options, self._route.is_routed):
                    raise failed(error, self.options, self._route.is_routed) from error
                self._forget(self._line)
                if self._route.follow(error):
                    self._go()
                else:
                    self._route.lose()
                runtime.sleep(delay)

    def _follow(self, error: BaseException) -> None:
        """Go where the master is now: after MOVED at once, after other errors when somebody says so."""
        if is_of_connection(error):
            self._forget(self._line)
        with self._seeking:
            if not self._route.follow(error) and self._route.is_due(error):
                with contextlib.suppress(*FAILURES, ConnectError):
                    self._seek()
            if self._go():
                self._prepared = False
            if not self._prepared:  # its library may be missing, or an older one
                self._talk(loading(self._dialect.functions, self.options))
                self._prepared = True

    def _seek(self) -> None:
        """Ask where the master is. Raises the last error if nobody says."""
        seek(self._route, self._ask)

    def _ask(self, address: Address) -> Any:
        return _ask(self.options, self._route, address)

    def _go(self) -> bool:
        """Use the node that the route names; say whether it is another one than before."""
        line = Line(self._route.settings(self._given), self.options.max_age)
        return line.at != self._line.at and self._change(line)

    def _change(self, line: Line) -> bool:
        before, self._line = self._line, line
        before.over = True
        self._forget(before)
        return True

    def _talk(self, talk: Talk[T]) -> T:
        """Run a dialogue with the server: send each command that `talk` gives, and send it the reply."""
        line = self._line
        connection = self._open(line, line.idle)
        reply: Any = None
        try:
            while True:
                connection.send_command(*talk.send(reply))
                reply = reply_of(connection)
                if isinstance(reply, Exception) and may_pass(reply) and not is_unloaded(reply):
                    raise reply
        except StopIteration as end:
            self._keep(line, connection)
            found: T = end.value
            return found
        except BaseException:
            connection.disconnect()
            raise

    def _open(self, line: Line, idle: list[Any]) -> Any:
        """Take an idle connection, or make a new one, which connects at its first use."""
        try:
            return idle.pop()
        except IndexError:
            if self._closed.is_set():
                raise closed(self.options.where) from None
            return _made(self.options, line.settings)

    def _keep(self, line: Line, connection: Any) -> None:
        """Keep a connection for the next call, unless its line has ended or the backend was closed meanwhile."""
        line.idle.append(connection)
        if line.over or self._closed.is_set():
            self._forget(line)
        elif self._ages and line.old:
            self._change(Line(line.settings, self.options.max_age))

    def _forget(self, line: Line) -> None:
        """Close all idle connections: what broke one has probably broken all."""
        for idle in (line.idle, line.waiting):
            while idle:
                with contextlib.suppress(IndexError):  # another thread has taken the last one
                    idle.pop().disconnect()

    def leave_to_parent(self) -> None:
        """Leave the connections to the parent process, after a fork: two processes on one connection would read each
        other's replies.
        """
        self._waiting.clear()
        self._seeking = runtime.Lock()
        self._forget(self._line)

    def recover(self, error: BaseException) -> None:
        """Do what makes a resend after this error possible: load the library, or go where the master is now."""
        if is_unloaded(error):
            self._talk(loading(self._dialect.functions, self.options))
        else:
            self._follow(error)

    # ---- sending

    def _send(self, packed: bytes) -> Any:
        line = self._line
        try:
            connection = line.idle.pop()
        except IndexError:
            connection = self._open(line, line.idle)
        try:
            raw = exchange(connection, packed)
        except raised.ResponseError:
            self._keep(line, connection)
            raise
        except BaseException:
            connection.disconnect()
            raise
        self._keep(line, connection)
        return raw

    def _send_many(self, packed: bytes, count: int) -> list[Any]:
        line = self._line
        connection = self._open(line, line.idle)
        try:
            connection.send_packed_command((packed,), check_health=False)
            raw = [reply_of(connection) for _ in range(count)]
        except BaseException:
            connection.disconnect()
            raise
        self._keep(line, connection)
        return raw

    def _converse(self, talk: Packets) -> None:
        """Send what `talk` gives, on one connection, and send it the replies."""
        line = self._line
        connection = self._open(line, line.idle)
        try:
            packed, count = next(talk)
            while True:
                connection.send_packed_command((packed,), check_health=False)
                packed, count = talk.send([reply_of(connection) for _ in range(count)])
        except StopIteration:
            self._keep(line, connection)
        except BaseException:
            connection.disconnect()
            raise

    def _send_again(self, error: Exception, send: Callable[[], T], attempts: Attempts | None = None) -> T:
        attempts = attempts or self._attempts()
        while True:
            delay = attempts.delay(error)
            try:
                self._closed.wait(delay)
                self.recover(error)
                return send()
            except FAILURES as again:
                error = again

    def _wait(self, command: tuple[str, ...], timeout: float) -> bool:
        line = self._line
        connection = self._open(line, line.waiting)
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
        line.waiting.append(connection)
        if line.over:
            self._forget(line)
        return woken


def seek(route: Route, ask: Callable[[Address], Any]) -> None:
    """Ask one node after the other where the master is. Raises the last error if nobody says."""
    last: BaseException | None = None
    for address in route.to_ask():
        try:
            if route.learn(address, ask(address)):
                return
        except FAILURES as error:
            last = error
    raise route.unknown(last)


def settings_of_master(url: str) -> dict[str, Any]:
    """Find the master that a URL leads to; give the settings of a connection to it, with its class."""
    options = options_of(url)
    check_namespace(options)
    route = Route(options)
    if route.is_routed:
        try:
            seek(route, lambda address: _ask(options, route, address))
        except FAILURES as error:
            raise failed(error, options, True) from error
    found = route.settings(_given(options))
    return {**found, "connection_class": class_of(options, found)}


def _given(options: Options) -> dict[str, Any]:
    return settings(options, Retry(NoBackoff(), 0))


def _ask(options: Options, route: Route, address: Address) -> Any:
    """Ask a node, or a sentinel, where the master is."""
    connection = _made(options, route.asking(_given(options), address))
    try:
        connection.send_command(*route.question)
        return connection.read_response()
    finally:
        connection.disconnect()


def _made(options: Options, settings: dict[str, Any]) -> Any:
    """Make a connection, which connects at its first use."""
    made = class_of(options, settings)(**settings)
    # redis-py 5.0.1 drops this one on unix sockets, and would then wait for ever.
    made.socket_timeout = options.connection["socket_timeout"]
    return made


def reply_of(connection: Any) -> Any:
    """Read one reply; an error reply is returned as an exception object."""
    try:
        return connection.read_response()
    except raised.ResponseError as error:
        return error


def hang_up(connection: Any) -> None:
    """Wake the thread that reads from a connection; that thread closes it."""
    line = getattr(connection, "_sock", None)
    if line is not None:
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)


OPEN: weakref.WeakSet[Any] = weakref.WeakSet()
"""The backends that have connections of their own."""


def _after_fork() -> None:
    for backend in list(OPEN):
        backend.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
