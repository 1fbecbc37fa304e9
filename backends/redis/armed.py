"""Waiting for several shards at once: a command that blocks on a connection for each of them, and one selector.

A wake-up is an element of a list, and BLPOP takes it. So a BLPOP that is no longer wanted is ended with CLIENT UNBLOCK,
and if it has taken a wake-up meanwhile, that is pushed back for another idle worker.
"""

from __future__ import annotations

import contextlib
import selectors
from collections.abc import Sequence
from typing import Any, Final

from redis import exceptions as raised

from qmodel import runtime
from qmodel.backends.redis.resend import FAILURES
from qmodel.backends.redis.setup import Talk, packed
from qmodel.errors import ConnectError

_ID: Final = "qmodel_id"
"""The attribute of a connection that holds its id."""


class Armed:
    """The shards that are waited for. One thread at a time may use it, but for `connections`."""

    def __init__(self, shards: Sequence[Any]) -> None:
        self._shards = shards
        self._selector = runtime.selector()
        self._pending: dict[int, tuple[Any, Any]] = {}

    @property
    def pending(self) -> list[int]:
        """The shards that have not answered."""
        return list(self._pending)

    def give_up(self) -> list[int]:
        """Give up what is awaited from nodes that failed since, or that the shard has left; give these shards.

        A node that vanished without a word would never answer.
        """
        found = [shard for shard, (line, _) in self._pending.items() if line is not self._shards[shard]._line]
        for shard in found:
            self._hang_up(shard)
        return found

    @property
    def connections(self) -> list[Any]:
        """The connections on which something is awaited."""
        return [connection for _, connection in list(self._pending.values())]

    def watch(self, line: Any) -> None:
        """Let `ring` return when something can be read from a socket."""
        self._selector.register(line, selectors.EVENT_READ, None)

    def arm(self, shard: int, command: tuple[str, ...]) -> bool:
        """Send a command that blocks to a shard; say whether its node was reached."""
        backend = self._shards[shard]
        line = backend._line
        connection = None
        try:
            connection = backend._open(line, line.waiting)
            if not hasattr(connection, _ID):
                connection.send_command("CLIENT", "ID", check_health=False)
                setattr(connection, _ID, _number(connection.read_response()))
            connection.send_command(*command, check_health=False)
            self._selector.register(connection._sock, selectors.EVENT_READ, shard)
        except BaseException as error:
            if connection is not None:
                connection.disconnect()
            if not isinstance(error, FAILURES):
                raise
            self._recover(shard, error)
            return False
        self._pending[shard] = (line, connection)
        return True

    def ring(self, timeout: float | None) -> list[tuple[int, Any]]:
        """Wait until a shard answers, at most so many seconds; give the shards that did, with reply or exception."""
        rung = []
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                key.fileobj.recv(4096)  # type: ignore[union-attr]
            else:
                rung.append((key.data, self._read(key.data)))
        return rung

    def _read(self, shard: int) -> Any:
        line, connection = self._pending.pop(shard)
        self._selector.unregister(connection._sock)
        try:
            reply = connection.read_response()
        except raised.ResponseError as error:
            self._keep(shard, line, connection)
            self._recover(shard, error)
            return error
        except FAILURES as error:
            connection.disconnect()
            self._recover(shard, error)
            return error
        self._keep(shard, line, connection)
        return reply

    def _keep(self, shard: int, line: Any, connection: Any) -> None:
        """Keep a connection for the next wait, unless its line has ended or the backend was closed meanwhile."""
        line.waiting.append(connection)
        if line.over or self._shards[shard]._closed.is_set():
            with contextlib.suppress(ValueError):  # who ended the line, or closed, may have taken it
                line.waiting.remove(connection)
            connection.disconnect()

    def _recover(self, shard: int, error: BaseException) -> None:
        with contextlib.suppress(*FAILURES, ConnectError):
            self._shards[shard].recover(error)

    def disarm(self) -> None:
        """End all commands that are still blocked, and push back the wake-ups that they have taken."""
        self.give_up()  # another node would end nothing there
        lines: dict[int, list[int]] = {}
        for shard, (line, _) in self._pending.items():
            lines.setdefault(id(line), []).append(shard)
        for shards in lines.values():
            unblock = [packed(("CLIENT", "UNBLOCK", getattr(self._pending[shard][1], _ID))) for shard in shards]
            said: list[Any] = []
            with contextlib.suppress(*FAILURES, ConnectError):
                said = self._shards[shards[0]]._send_many(b"".join(unblock), len(unblock))
            answered = {key.data for key, _ in self._selector.select(0)}
            for shard, ended in zip(shards, said or [0] * len(shards), strict=True):
                if ended == 1 or shard in answered:
                    self.give_back(shard, self._read(shard))
                else:  # an old connection, which the server does not know any more, would never be answered
                    self._hang_up(shard)
        self._selector.close()

    def give_back(self, shard: int, reply: Any) -> None:
        """Push back the wake-up that BLPOP has taken, if it has."""
        if isinstance(reply, list) and isinstance(reply[0], bytes):  # not the events that XREAD gives
            with contextlib.suppress(*FAILURES, ConnectError):
                self._shards[shard]._talk(pushing(reply[0]))

    def _hang_up(self, shard: int) -> None:
        _, connection = self._pending.pop(shard)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection._sock)
        connection.disconnect()


def _number(reply: Any) -> str:
    return str(int(reply))


def pushing(key: Any) -> Talk[None]:
    """Give back a wake-up."""
    yield ("RPUSH", key.decode() if isinstance(key, bytes) else str(key), "1")
