"""One round trip on a connection of redis-py, without its detours.

For a call of some tens of microseconds redis-py spends three on each reply: it asks for the address for an error that
does not come, for the protocol, and four times what kind of thing the reply is. Where the reply is read by hiredis, in
the protocol's second version, we write to the socket and ask hiredis ourselves. That rests on what is inside redis-py,
so it is done only with versions whose inside is known, and the public way is taken with all others.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

import redis
from redis import exceptions as raised

KNOWN: Final = ("5.", "6.", "7.", "8.")
"""The versions of redis-py of which it is known."""

_SIZE: Final = 65_536

_parser: Any = None
"""The class that reads by hiredis."""

_more: Any = None
"""What hiredis gives, by redis-py's wish, while a reply is not yet whole."""

if redis.__version__.startswith(KNOWN):
    with contextlib.suppress(ImportError, AttributeError):
        from redis._parsers import hiredis as _inside

        _parser, _more = _inside._HiredisParser, _inside.NOT_ENOUGH_DATA


def exchange(connection: Any, packed: bytes) -> Any:
    """Send a packed call and read its reply; raises what redis-py raises, or the OSError that it would hide."""
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
