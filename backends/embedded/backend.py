"""`embedded://`: the Lua library in this process, on a keyspace in memory, without a server.

It executes what a server would, the very same text, and so serves to test the library, bindings, and
whatever else should meet Lua without a server; `memory://`, the model, is faster. `embedded://` is
a namespace of its own for each that connects; `embedded://name` is the same one for all in this process.

The library is loaded once in a process. A namespace is a keyspace, which is put under the library
for each step, so one lock serves all namespaces. Idle workers sleep each in a waiter of his own, as
in memory.py; a wake-up left in a queue's list by a step goes to the longest waiting, which stands
for the BLPOP that a client of a server does.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost
from qmodel.backends.embedded.keyspace import Keyspace
from qmodel.backends.wait import AsyncWaits, Followers, Waiter, Waits
from qmodel.contract.arguments import TIME
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError
from qmodel.model import engine
from qmodel.wire.codec import Unencodable, decode, encode

PREFIX: Final = "ql:"
_EVENTS: Final = bundle.events_key(PREFIX).encode()
_FUNCTIONS: Final = {spec.cls: bundle.function_name(name) for name, spec in CATALOGUE.items()}
_LOCK: Final = threading.Lock()


@cache
def _host() -> LuaHost:
    host = LuaHost(limit=0)
    host.load(bundle.library())
    return host


class Namespace:
    """A keyspace, and those who wait for its queues."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.keyspace = Keyspace(clock)
        self._waiting: dict[Waiter, None] = {}
        self._following = Followers()

    def call(self, function: str, args: list[str]) -> Any:
        """Make one step, and wake those for whom it left a wake-up."""
        with _LOCK:
            host = _host()
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
        """Let someone wait; he may be woken at once."""
        with _LOCK:
            self._waiting[waiter] = None
            self._hand_out()

    def follow(self, waiter: Waiter, after: int) -> None:
        """Let someone wait for an event after a sequence number; he may be woken at once."""
        with _LOCK:
            self._following.enter(waiter)
            if self.keyspace.execute("XRANGE", _EVENTS, f"{after + 1}-0".encode(), b"+", b"COUNT", b"1"):
                self._following.wake()

    def leave(self, waiter: Waiter) -> bool:
        """Let someone wait no more; say whether he was woken."""
        with _LOCK:
            self._waiting.pop(waiter, None)
            self._following.strike(waiter)
            return waiter.handed is not None

    def give_back(self, waiter: Waiter) -> None:
        """Leave to others the wake-up of someone who was interrupted and will not use it."""
        if self.leave(waiter) and waiter.handed:
            with _LOCK:
                self.keyspace.execute("RPUSH", bundle.wake_key(PREFIX, waiter.handed).encode(), b"1")
                self._hand_out()

    def _hand_out(self) -> None:
        for waiter in list(self._waiting):
            for queue in waiter.queues:
                key = bundle.wake_key(PREFIX, queue).encode()
                if self.keyspace.execute("LPOP", key) is not None:
                    waiter.handed = queue
                    del self._waiting[waiter]
                    waiter.wake()
                    break


class EmbeddedBackend(Waits[Namespace]):
    """Executes operations by the Lua library in this process; any number of threads may use it."""

    def __init__(self, namespace: Namespace | None = None) -> None:
        self.namespace = Namespace() if namespace is None else namespace

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return _execute(self.namespace, op, now)

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [_execute(self.namespace, op, now) for op in ops]

    def close(self) -> None:
        """Do nothing: a private namespace goes with its last user, a named one stays."""


class AsyncEmbeddedBackend(AsyncWaits[Namespace]):
    """The same for an event loop, on the same namespaces. No operation takes longer than its step."""

    def __init__(self, namespace: Namespace | None = None) -> None:
        self.namespace = Namespace() if namespace is None else namespace

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return _execute(self.namespace, op, now)

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [_execute(self.namespace, op, now) for op in ops]

    async def close(self) -> None:
        """Do nothing: a private namespace goes with its last user, a named one stays."""


def _execute(namespace: Namespace, op: Operation, now: int | None) -> Any:
    try:
        args = encode(op, now)
    except Unencodable:
        moment = now is None or TIME.accepts(now)
        bad = engine.fault(op) if moment else "now"
        return Refusal("BAD_ARGUMENT", (op.spec.name, str(bad)))
    return decode(op, namespace.call(_FUNCTIONS[type(op)], args))


_NAMED: dict[str, Namespace] = {}
_URL: Final = re.compile(r"embedded://([\w.-]*)/?\Z")


def namespace(url: str) -> Namespace:
    """The namespace of a URL: a new one for `embedded://`, always the same for `embedded://name`."""
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
