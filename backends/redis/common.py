"""What the blocking and the asynchronous backend share: everything but input and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

from qmodel import runtime
from qmodel.backends.bundle import events_key, wake_key
from qmodel.backends.redis.resend import may_pass, server_error
from qmodel.backends.redis.setup import Dialect
from qmodel.backends.redis.url import Options
from qmodel.contract.arguments import TIME, Name
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, NotConfirmed
from qmodel.model import engine
from qmodel.wire.codec import Unencodable, decode, encode

CHUNK: Final = 500
"""Operations in one round trip: the server keeps all their replies in memory until they are read."""

ANY_EPOCH: Final = (1 << 64) - 1
"""The greatest second part of the id of an event: a wait after event 41 ends with 42, whatever their epochs are."""

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


class Batch:
    """Operations that are sent in several round trips, and the replies so far."""

    def __init__(self, ops: Sequence[Operation], now: int | None, dialect: Dialect, fresh: bool) -> None:
        self.replies: list[Any] = [None] * len(ops)
        self._left: list[tuple[int, Operation, bytes]] = []
        self._error: Exception | None = None
        self._ops, self._now = list(ops), now
        for place, op in enumerate(ops):
            try:
                args = encoded(op, now, fresh)
                self._left.append((place, op, dialect.pack(type(op), args)))
                if type(op) in _TAKES_REQUEST:
                    self._ops[place] = replace(cast(Any, op), request=args[1])
            except Unencodable:
                self.replies[place] = unencodable(op, now)
        self._sent = 0

    def next(self) -> bytes:
        """Give the bytes to send next; empty when nothing is left."""
        sent = self._left[:CHUNK]
        self._sent = len(sent)
        return b"".join([packed for _, _, packed in sent])

    @property
    def expected(self) -> int:
        """How many replies the last bytes will get."""
        return self._sent

    def take(self, raw: list[Any]) -> None:
        """Keep the replies to the last bytes. Raises the first error that a resend may cure."""
        for count, (reply, (place, op, _)) in enumerate(zip(raw, self._left, strict=False)):
            if isinstance(reply, Exception):
                if may_pass(reply):
                    del self._left[:count]
                    raise reply
                self._error = self._error or reply
            else:
                self.replies[place] = decode(op, reply)
        del self._left[: len(raw)]

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
    return {**given, "retry": retry, **others}


def closed(where: str) -> ConnectError:
    """Make the error for the use of a closed backend."""
    return ConnectError(f"This connection to {where} was closed.", "Open another.")


def check_settings(connection: Any, settings: dict[str, Any]) -> None:
    """Refuse a URL option that a connection of redis-py does not take."""
    try:
        connection(**settings)
    except TypeError as error:
        raise ConnectError(
            f"redis-py does not take an option of the URL: {error}.",
            "See the head of qmodel/backends/redis/url.py and the arguments of redis.Connection.",
        ) from None
