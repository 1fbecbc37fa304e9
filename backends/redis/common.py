"""What the blocking and the asynchronous backend share: everything but input and output."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from qmodel import runtime
from qmodel.backends.bundle import events_key, ready_keys, wake_key
from qmodel.backends.redis.resend import code_of, may_pass, server_error
from qmodel.backends.redis.setup import Dialect, packed
from qmodel.backends.redis.url import OWN, Options
from qmodel.contract.arguments import TIME, Name
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, NotConfirmed, did_you_mean
from qmodel.model import engine
from qmodel.wire.codec import Unencodable, decode, encode

CHUNK: Final = 500
"""Operations in one round trip: the server keeps all their replies in memory until they are read."""

ANY_EPOCH: Final = (1 << 64) - 1
"""The greatest second part of the id of an event: a wait after event 41 ends with 42, whatever their epochs are."""

SOME: Final = 4
"""From how many operations in a row on they go together in one call."""

MOST: Final = 100
"""The most operations in one call."""

MOST_BYTES: Final = 1_000_000
"""The most bytes of arguments in one call of several operations: the server copies all of them at once."""

LONGEST_WAIT: Final = 86_400.0
SHORTEST_WAIT: Final = 0.01
"""Limits of a wait, in seconds. BLPOP waits for ever at 0, and Redis 6 rounds less than a millisecond down to 0."""

RESTART_PAUSE: Final = 0.5
"""How long a waiter sleeps, in seconds, when its server goes away. The pop after it reconnects."""

_TAKES_REQUEST: Final = frozenset(
    spec.cls for spec in CATALOGUE.values() if any(a.name == "request" for a in spec.arguments)
)
_QUEUE: Final = Name()


def encoded(op: Operation, now: int | None, fresh: bool) -> list[str]:
    """Encode an operation for the wire. If `fresh`, add a request id where the operation takes one and has none."""
    args = encode(op, now)
    if fresh and not args[1] and type(op) in _TAKES_REQUEST:
        args[1] = runtime.token_hex(11)
    return args


def unencodable(op: Operation, now: int | None) -> Refusal:
    """Refuse an operation that has no form on the wire, as the model refuses it."""
    if now is not None and not TIME.accepts(now):
        return Refusal("BAD_ARGUMENT", (op.spec.name, "now"))
    bad = engine.fault(op)
    assert bad is not None, op
    return Refusal("BAD_ARGUMENT", (op.spec.name, bad))


class Sent(NamedTuple):
    """What the next round trip sends: the bytes, the number of replies to them, and of how many operations."""

    packed: bytes
    expected: int
    operations: int
    several: bool = False


class Batch:
    """Operations that are sent in several round trips, and the replies so far.

    Operations that write go together in one call, `SOME` of them or more: a call costs the server more than a plain
    operation. Such a call may leave its last operations to the next one, so it ends the round trip.
    """

    def __init__(self, ops: Sequence[Operation], now: int | None, dialect: Dialect, fresh: bool) -> None:
        self.replies: list[Any] = [None] * len(ops)
        self._left: list[tuple[int, Operation, list[str]]] = []
        self._error: Exception | None = None
        self._dialect = dialect
        self._ops, self._now = list(ops), now
        for place, op in enumerate(ops):
            try:
                args = encoded(op, now, fresh)
                self._left.append((place, op, args))
                if type(op) in _TAKES_REQUEST:
                    self._ops[place] = replace(cast(Any, op), request=args[1])
            except Unencodable:
                self.replies[place] = unencodable(op, now)
        self._several = True
        self._sent: Sent | None = None

    def next(self) -> bytes:
        """Give the bytes to send next; empty when nothing is left."""
        if self._sent is None:
            self._sent = self._next()
        return self._sent.packed

    @property
    def expected(self) -> int:
        """How many replies the last bytes will get."""
        return self._sent.expected if self._sent else 0

    def _next(self) -> Sent:
        writes = self._writes(0)
        if writes >= SOME or 1 < writes == len(self._left):
            calls = [(op, args) for _, op, args in self._left[:writes]]
            return Sent(self._dialect.pack_calls(calls), 1, writes, several=True)
        places = range(min(CHUNK, len(self._left) - SOME + 1))
        count = next((at for at in places if self._writes(at) >= SOME), CHUNK)
        alone = self._left[:count]
        return Sent(b"".join([self._dialect.pack(type(op), args) for _, op, args in alone]), len(alone), len(alone))

    def _writes(self, first: int) -> int:
        """Count the operations from a place on that one call can have."""
        if not self._several:
            return 0
        count, size = 0, 0
        for _, op, args in self._left[first : first + MOST]:
            size += sum(map(len, args))
            if op.spec.reads or size > MOST_BYTES:
                break
            count += 1
        return count

    def take(self, raw: list[Any]) -> None:
        """Keep the replies to the last bytes. Raises the first error that a resend may cure."""
        sent, self._sent = self._sent, None
        assert sent is not None
        if sent.several:
            raw = self._replies_of(raw[0], sent.operations)
        for count, (reply, (place, op, _)) in enumerate(zip(raw, self._left, strict=False)):
            if isinstance(reply, Exception):
                if may_pass(reply):
                    del self._left[:count]
                    raise reply
                self._error = self._error or reply
            else:
                self.replies[place] = decode(op, reply)
        del self._left[: len(raw)]

    def _replies_of(self, reply: Any, count: int) -> list[Any]:
        """Give the replies to the operations of a call. A full server refuses the call, but not every operation."""
        if not isinstance(reply, Exception):
            return cast(list[Any], reply)
        if code_of(reply) == "OOM":
            self._several = False
            return []
        return [reply] * (1 if may_pass(reply) else count)

    def refuse_unconfirmed(self, what: str, options: Options) -> None:
        """Raise NotConfirmed, unless every operation that was sent was refused: those changed nothing."""
        if all(isinstance(reply, Refusal | None) for reply in self.replies):
            return
        raise NotConfirmed(options.where, what, options.deadline, self._ops, self.replies)

    def finish(self, where: str) -> list[Any]:
        """Give all replies. Raises the first error that a resend would not have cured."""
        if self._error is not None:
            raise server_error(self._error, where) from self._error
        return self.replies


class Probe:
    """Asks with one plain command whether queues have anything that is ready, or becomes ready by itself.

    Any error means that they may: the look that follows finds out what is wrong.
    """

    expected = 1

    def __init__(self, prefix: str, queues: Sequence[str]) -> None:
        keys = [key for name in queues for key in ready_keys(prefix, name)]
        self.found = False
        self._left = packed(("EXISTS", *keys))

    def next(self) -> bytes:
        """Give the bytes to send next; empty when nothing is left."""
        return self._left

    def take(self, raw: list[Any]) -> None:
        """Keep the reply."""
        self.found, self._left = raw[0] != 0, b""


def blocking_pop(prefix: str, queues: Sequence[str], timeout: float) -> tuple[str, ...] | None:
    """Write the command on which an idle worker waits; None if none of the names can be a queue's."""
    known = [wake_key(prefix, name) for name in dict.fromkeys(queues) if _QUEUE.accepts(name)]
    return ("BLPOP", *known, f"{timeout:.3f}") if known else None


def blocking_read(prefix: str, after: int, timeout: float) -> tuple[str, ...]:
    """Write the command that waits for an event after a sequence number."""
    last = f"{after}-{ANY_EPOCH}"
    return ("XREAD", "COUNT", "1", "BLOCK", f"{timeout * 1000:.0f}", "STREAMS", events_key(prefix), last)


def wait_of(timeout: float) -> float:
    """Limit a time to wait to what BLPOP and XREAD take."""
    return min(max(timeout, SHORTEST_WAIT), LONGEST_WAIT)


def settings(options: Options, retry: Any, **others: Any) -> dict[str, Any]:
    """Give the arguments for a connection of redis-py."""
    given = {name: value for name, value in options.connection.items() if name != "connection_class"}
    if not given.keys() & {"lib_name", "lib_version", "driver_info"}:
        others |= _driver()
    return {**given, "retry": retry, **others}


@functools.cache
def _driver() -> dict[str, Any]:
    """What redis-py tells the server of itself. It would read its version from the file system for each connection."""
    try:
        from redis.driver_info import DriverInfo
    except ImportError:  # before redis-py 7.2
        return {}
    return {"driver_info": DriverInfo()}


def closed(where: str) -> ConnectError:
    """Make the error for the use of a closed backend."""
    return ConnectError(f"This connection to {where} was closed.", "Open another.")


def check_settings(connection: Any, settings: dict[str, Any]) -> None:
    """Refuse a URL option that neither this backend nor a connection of redis-py takes."""
    try:
        connection(**settings)
    except TypeError as error:
        known = {name for cls in connection.__mro__ for name in inspect.signature(cls.__init__).parameters}
        unknown = min(settings.keys() - known, default="")
        close = did_you_mean(unknown, [*OWN, *known])
        told = f"A URL takes no option {unknown}." if unknown else f"redis-py refuses an option of the URL: {error}."
        there_are = f"There are {', '.join(sorted(OWN))}, and those of redis.Connection."
        raise ConnectError(told, f"Did you mean {close}?" if close else there_are) from None


def check_namespace(options: Options) -> None:
    """Refuse the URL of a deployment where that of a namespace is needed."""
    if options.name:
        raise ConnectError(
            f"{options.where} leads to a deployment, {options.name}, but this needs one namespace.",
            "Give the URL of one of its shards, with prefix= instead of name=; `qmodel doctor` lists their prefixes.",
        )
