"""A client with little work: it writes many calls at once, and only splits replies into their parts."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

Reply = Any


def pack(*parts: str | bytes) -> bytes:
    """Encode a command."""
    out = [b"*%d\r\n" % len(parts)]
    for part in parts:
        text = part if isinstance(part, bytes) else part.encode()
        out.append(b"$%d\r\n%s\r\n" % (len(text), text))
    return b"".join(out)


class ServerError(Exception):
    """Raised when the server replies with an error."""


class Incomplete(Exception):
    """Raised when the rest of a reply has not arrived."""


def parse(buffer: bytes, at: int) -> tuple[Reply, int]:
    """Decode a reply; give it, and the offset of the next one."""
    stop = buffer.find(b"\r\n", at)
    if stop < 0:
        raise Incomplete
    kind, after = buffer[at], stop + 2
    if kind == 43:  # +
        return buffer[at + 1 : stop], after
    if kind == 45:  # -
        return ServerError(buffer[at + 1 : stop].decode()), after
    size = int(buffer[at + 1 : stop])
    if kind == 58:  # :
        return size, after
    if size < 0:
        return None, after
    if kind == 36:  # $
        if len(buffer) < after + size + 2:
            raise Incomplete
        return buffer[after : after + size], after + size + 2
    items = []
    for _ in range(size):
        item, after = parse(buffer, after)
        items.append(item)
    return items, after


class Connection:
    """A connection to a server by its URL, `unix://path` or `redis://[[user]:password@]host[:port][/database]`."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        if at.scheme == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(at.path)
        else:
            self.socket = socket.create_connection((at.hostname or "localhost", at.port or 6379))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if at.password:
                self.call("AUTH", *filter(None, (at.username, at.password)))
            if database := at.path.strip("/"):
                self.call("SELECT", database)

    def exchange(self, commands: Iterable[bytes]) -> list[Reply]:
        """Send commands in one round trip; give their replies, or raise the first error."""
        sent = list(commands)
        self.socket.sendall(b"".join(sent))
        buffer, at = b"", 0
        replies: list[Reply] = []
        while len(replies) < len(sent):
            received = self.socket.recv(1 << 20)
            if not received:
                raise ConnectionError("the server has closed the connection")
            buffer, at = buffer[at:] + received, 0
            try:
                while len(replies) < len(sent):
                    reply, at = parse(buffer, at)
                    if isinstance(reply, ServerError):
                        raise reply
                    replies.append(reply)
            except Incomplete:
                pass
        return replies

    def call(self, *parts: str | bytes) -> Reply:
        """Send one command."""
        return self.exchange([pack(*parts)])[0]

    def close(self) -> None:
        self.socket.close()
