"""A fast round trip on a connection of redis-py.

For a call of some tens of microseconds redis-py spends three on each reply: it formats the address for an error that
does not happen, checks the protocol, and checks the type of the reply four times. If hiredis reads the replies in
version 2 of the protocol, this module writes to the socket and calls hiredis itself. This depends on internals of
redis-py, so it is done only for known versions; all others use the public way.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

import redis
from redis import exceptions as raised

KNOWN: Final = ("5.", "6.", "7.", "8.")
"""The versions of redis-py with known internals."""

_SIZE: Final = 65_536

_parser: Any = None
"""redis-py's class that reads with hiredis."""

_more: Any = None
"""The object that hiredis returns, as redis-py configured it, while a reply is incomplete."""

if redis.__version__.startswith(KNOWN):
    with contextlib.suppress(ImportError, AttributeError):
        from redis._parsers import hiredis as _inside

        _parser, _more = _inside._HiredisParser, _inside.NOT_ENOUGH_DATA


def exchange(connection: Any, packed: bytes) -> Any:
    """Send a packed call and read its reply. Raises the errors of redis-py, or the OSError that it would hide."""
    line = getattr(connection, "_sock", None)
    if line is None or type(connection._parser) is not _parser or connection.protocol not in (2, "2"):
        connection.send_packed_command((packed,), check_health=False)
        return connection.read_response()
    line.sendall(packed)
    reader = connection._parser._reader
    reply = reader.gets()
    while reply is _more:
        received = line.recv(_SIZE)
        if not received:
            raise raised.ConnectionError("Connection closed by server.")
        reader.feed(received)
        reply = reader.gets()
    if isinstance(reply, Exception):
        raise reply
    return reply
