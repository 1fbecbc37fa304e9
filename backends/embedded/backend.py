"""`embedded://`: the Lua library in this process, on a keyspace in memory, without a server.

It executes the same text as a server would. It serves to test the library, bindings and other code against Lua without
a server; `memory://`, the model, is faster. Each connection to `embedded://` gets a namespace of its own;
`embedded://name` is the same namespace for the whole process.

The library is loaded once in a process. A namespace is a keyspace; each step gives its keyspace to the library, so one
lock serves all namespaces. Each idle worker sleeps in a `Waiter`, as in memory.py. A wake-up that a step left in a
queue's list goes to the waiter that waits longest; this stands for the BLPOP of a client of a server.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost, ReplyError
from qmodel.backends.embedded.keyspace import Keyspace
from qmodel.backends.wait import AsyncWaits, EventWaiters, Waiter, Waits
from qmodel.contract.arguments import TIME
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, CorruptError
from qmodel.model import engine
from qmodel.wire.codec import Unencodable, decode, encode

PREFIX: Final = "ql:"
_EVENTS: Final = bundle.events_key(PREFIX).encode()
_FUNCTIONS: Final = {spec.cls: bundle.function_name(name) for name, spec in CATALOGUE.items()}
_LOCK: Final = threading.Lock()
MOST: Final = 100
"""The most operations of a call."""


@cache
def _host() -> LuaHost:
    host = LuaHost(limit=0)
    host.load(bundle.library())
    return host


class Namespace:
    """A keyspace, and the waiters for its queues and events."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.keyspace = Keyspace(clock)
        self._waiting: dict[Waiter, None] = {}
        self._following = EventWaiters()

    @property
    def host(self) -> LuaHost:
        """The Lua state that has the library: one for all namespaces of the process."""
        return _host()

    def call(self, function: str, args: list[str]) -> Any:
        """Make one step, and wake the waiters that it left wake-ups for."""
        with _LOCK:
            host = self.host
            if host.keyspace is not self.keyspace:
                host.keyspace = self.keyspace
            self.keyspace.touched.clear()
            raw = host.fcall(function, (PREFIX,), args)
            if self._waiting and self.keyspace.touched:
                self._hand_out()
            if self._following and _EVENTS in self.keyspace.touched:
                self._following.wake()
            return raw

    def enter(self, waiter: Waiter) -> None:
        """Add a waiter for its queues. It may be woken at once."""
        with _LOCK:
            self._waiting[waiter] = None
            self._hand_out()

    def follow(self, waiter: Waiter, after: int) -> None:
        """Add a waiter for an event after a sequence number. It may be woken at once."""
        with _LOCK:
            self._following.add(waiter)
            if self.keyspace.execute("XRANGE", _EVENTS, f"{after + 1}-0".encode(), b"+", b"COUNT", b"1"):
                self._following.wake()

    def leave(self, waiter: Waiter) -> bool:
        """Remove a waiter; say whether it was woken."""
        with _LOCK:
            self._waiting.pop(waiter, None)
            self._following.remove(waiter)
            return waiter.handed is not None

    def give_back(self, waiter: Waiter) -> None:
        """Pass on the wake-up of a waiter that was interrupted and will not use it."""
        if self.leave(waiter) and waiter.handed:
            with _LOCK:
                self.keyspace.execute("RPUSH", bundle.wake_key(PREFIX, waiter.handed).encode(), b"1")
                self._hand_out()

    def _hand_out(self) -> None:
        for waiter in list(self._waiting):
            for queue in waiter.queues:
                key = bundle.wake_key(PREFIX, queue).encode()
                if self.keyspace.execute("LPOP", key) is not None:
                    del self._waiting[waiter]
                    if waiter.wake():
                        waiter.handed = queue
                    else:  # its event loop was closed: the wake-up is for another one
                        self.keyspace.execute("RPUSH", key, b"1")
                    break


class EmbeddedBackend(Waits[Namespace]):
    """Executes operations with the Lua library in this process. Any number of threads may use it."""

    def __init__(self, namespace: Namespace | None = None) -> None:
        self.namespace = Namespace() if namespace is None else namespace

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return _execute(self.namespace, op, now)

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own. Those that write share calls, as on a server."""
        return _execute_many(self.namespace, ops, now)

    def close(self) -> None:
        """Do nothing. A private namespace ends with its last user; a named one stays."""


class AsyncEmbeddedBackend(AsyncWaits[Namespace]):
    """Executes operations with the Lua library, for an event loop. It shares the namespaces with EmbeddedBackend."""

    def __init__(self, namespace: Namespace | None = None) -> None:
        self.namespace = Namespace() if namespace is None else namespace

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return _execute(self.namespace, op, now)

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own. Those that write share calls, as on a server."""
        return _execute_many(self.namespace, ops, now)

    async def close(self) -> None:
        """Do nothing. A private namespace ends with its last user; a named one stays."""


def _execute(namespace: Namespace, op: Operation, now: int | None) -> Any:
    try:
        args = encode(op, now)
    except Unencodable:
        return _unencodable(op, now)
    try:
        raw = namespace.call(_FUNCTIONS[type(op)], args)
    except ReplyError as error:
        raise _raised(error) from None
    return decode(op, raw)


def _unencodable(op: Operation, now: int | None) -> Refusal:
    moment = now is None or TIME.accepts(now)
    bad = engine.fault(op) if moment else "now"
    return Refusal("BAD_ARGUMENT", (op.spec.name, str(bad)))


def _raised(error: ReplyError) -> Exception:
    return CorruptError.read(str(error)) if error.code == CorruptError.code else error


def _execute_many(namespace: Namespace, ops: Sequence[Operation], now: int | None) -> list[Any]:
    """Execute operations; after an error in one the others are executed too, and the first error is raised."""
    replies: list[Any] = [None] * len(ops)
    for together, row in groupby(range(len(ops)), lambda at: _may_share(ops[at], now)):
        if together:
            _call_several(namespace, [(at, ops[at]) for at in row], now, replies)
        else:
            for at in row:
                try:
                    replies[at] = _execute(namespace, ops[at], now)
                except (ReplyError, CorruptError) as error:
                    replies[at] = error
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def _may_share(op: Operation, now: int | None) -> bool:
    """Whether an operation writes, and can be encoded."""
    try:
        return not op.spec.reads and bool(encode(op, now))
    except Unencodable:
        return False


def _call_several(namespace: Namespace, left: list[tuple[int, Operation]], now: int | None, replies: list[Any]) -> None:
    """Execute operations in as few calls as possible: one may leave its last ones to the next."""
    while left:
        words = []
        for _, op in left[:MOST]:
            args = encode(op, now)
            words += [op.spec.name, str(len(args)), *args]
        found = namespace.call(bundle.CALLS, words)
        for (at, op), raw in zip(left, found, strict=False):
            replies[at] = _raised(raw) if isinstance(raw, ReplyError) else decode(op, raw)
        del left[: len(found)]


_NAMED: dict[str, Namespace] = {}
_URL: Final = re.compile(r"embedded://([\w.-]*)/?\Z")


def namespace(url: str) -> Namespace:
    """Find the namespace of a URL: a new one for `embedded://`, always the same for `embedded://name`."""
    found = _URL.match(url)
    if found is None:
        raise ConnectError(
            f"'{url}' is not an embedded URL.",
            "Write embedded:// or embedded://name, where the name has letters, digits, . _ - only.",
        )
    if not found[1]:
        return Namespace()
    with _LOCK:
        return _NAMED.setdefault(found[1], Namespace())


def connect(url: str) -> EmbeddedBackend:
    """Open an embedded URL."""
    return EmbeddedBackend(namespace(url))


def connect_async(url: str) -> AsyncEmbeddedBackend:
    """Open an embedded URL for an event loop."""
    return AsyncEmbeddedBackend(namespace(url))
