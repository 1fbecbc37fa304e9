"""A session: one connection, its settings (database, protocol version, name), and its commands in order.

The commands of a session are answered in order. A command that waits (for a wake-up, or for a backend behind the
server) blocks the later commands of its own session, and nothing else. When a client does not read its replies, the
server stops executing its commands and stops reading from its connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from qmodel.serve.host import Host
from qmodel.serve.resp import BEFORE_AUTH, Fault, Parser, Push, encode, write

LOG = logging.getLogger("qmodel.serve")

HELD: Final = 1 << 20
"""Characters of replies that are collected before they are sent."""

MOST_UNREAD: Final = 32 << 20
"""Bytes of channel messages that a client may leave unread before its connection is closed."""

MOST_UNANSWERED: Final = 1 << 20
"""Bytes of commands that are read while an earlier command waits."""

PROTECTED: Final = (
    "DENIED qmodel serve is in protected mode: it has no password, so only this machine may connect. Start it with "
    "--password or --user; with --host 127.0.0.1, if other machines need no access; or with --no-protected-mode, if "
    "everybody in the network may do everything."
)
"""The reply to a connection from another machine, if there is no password."""

LATER: Final = object()
"""In place of a reply: the reply comes later, through `resume`."""

NOTHING: Final = object()
"""In place of a reply: the command has already written its replies, or has none."""


def is_local(peer: Any) -> bool:
    """Say whether an address of a peer is of this machine; those of unix sockets are.

    >>> is_local(("127.0.0.1", 5)), is_local(("::1", 5, 0, 0)), is_local(("::ffff:127.0.0.1", 5)), is_local("")
    (True, True, True, True)
    >>> is_local(("192.0.2.7", 5)), is_local(("fe80::1%eth0", 5))
    (False, False)
    """
    if not isinstance(peer, tuple):
        return True
    address = ipaddress.ip_address(peer[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


class Session(asyncio.Protocol):
    """One connection. `perform` executes a command, or says why it is not executed."""

    def __init__(self, host: Host, perform: Callable[[Session, list[str]], None]) -> None:
        self.host = host
        self._perform = perform
        self.id = 0
        self.db = 0
        self.version = 2
        self.name = ""
        self.library = ""
        self.peer = ""
        self.authenticated = not host.users
        self.queued: list[list[str]] | None = None
        self.spoiled = self.in_exec = False
        self.channels: set[str] = set()
        self.patterns: set[str] = set()
        self.parser = Parser(host.options.limits if self.authenticated else BEFORE_AUTH)
        self.pending: deque[list[str]] = deque()
        self.waiting: Any = None
        self.closing = False
        self._busy = self._full = self._running = False
        self._out: list[str] = []
        self._held = self._unanswered = 0
        self._task: asyncio.Task[Any] | None = None
        self._transport: asyncio.Transport | None = None

    # ---- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a new connection, or refuse it when there are too many."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "unix"
        if not self.host.enter(self):
            self.end("ERR max number of clients reached")
        elif self.host.is_protected and not is_local(peer):
            self.end(PROTECTED)

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes, and execute the complete commands."""
        if self.closing:
            return
        self._unanswered += len(data)
        self.pending += self.parser.feed(data)
        self.run()

    def refuse_web_page(self) -> None:
        """Close the connection without a reply: a browser sent it, on behalf of a page of any site."""
        LOG.warning(
            "Possible attack: %s sent POST or Host: as a command, as a web page would. Its connection is closed.",
            self.peer,
        )
        self.pending.clear()
        self.end()

    def connection_lost(self, error: Exception | None) -> None:
        """Cancel all work of the connection, and remove it."""
        self.closing = True
        self.pending.clear()
        if self.waiting is not None:
            self.waiting.leave()
            self.waiting = None
        if self._task is not None:
            self._task.cancel()
        self.host.leave(self)

    def pause_writing(self) -> None:
        """Stop executing commands: the client does not read its replies."""
        self._full = True

    def resume_writing(self) -> None:
        """Continue executing commands."""
        self._full = False
        self.run()

    # ---- commands

    def run(self) -> None:
        """Execute the pending commands until one has to wait; then send the collected replies."""
        if self._running:
            return
        self._running = True
        pending = self.pending
        while pending and not (self._busy or self._full or self.closing or self._held > HELD):
            words = pending.popleft()
            try:
                self._perform(self, words)
            except Exception:
                LOG.exception("%s from %s", words[0], self.peer)
                self.say(Fault("ERR the server failed at this command, and has logged why"))
        self._running = False
        if self.parser.error and not pending and not self._busy and not self.closing:
            self.host.malformed(self, self.parser.error)
            self.end(f"ERR Protocol error: {self.parser.error}")
        self.flush()

    def say(self, value: Any) -> None:
        """Collect a reply or a push message for sending."""
        text = write(value, self.version)
        self._out.append(text)
        self._held += len(text)

    def wait_for(self, coming: Coroutine[Any, Any, Any]) -> None:
        """Hold the following commands until a coroutine has given the reply."""
        self._busy = True
        self._task = task = asyncio.ensure_future(coming)
        self.host.tasks.add(task)
        task.add_done_callback(self._came)

    def _came(self, task: asyncio.Task[Any]) -> None:
        self.host.tasks.discard(task)
        self._task = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            LOG.error("a command from %s failed", self.peer, exc_info=error)
        self.resume(task.result() if error is None else Fault("ERR the server failed at this command"))

    def hold(self) -> None:
        """Hold the following commands until `resume`."""
        self._busy = True

    def resume(self, value: Any) -> None:
        """Reply to the command that waited, and continue with the following commands."""
        self._busy, self.waiting = False, None
        if not self.closing:
            if value is not NOTHING:
                self.say(value)
            self.run()

    # ---- sending

    def flush(self) -> None:
        """Send the collected replies; if the journal has to be written first, after that."""
        if self._transport is None or self._transport.is_closing():
            self._out.clear()
            return
        if self._out and not self.host.withhold(self):
            self.send()
        self._pace()

    def send(self) -> None:
        """Send the collected replies now."""
        if self._transport is None or self._transport.is_closing():
            self._out.clear()
            return
        out, self._out, self._held = self._out, [], 0
        self._transport.write(encode("".join(out)))
        if self.closing:
            self._transport.close()
        elif self.pending and not self._running:
            asyncio.get_running_loop().call_soon(self.run)

    def _pace(self) -> None:
        """Pause reading while many commands are pending, so that a client cannot fill the server's memory.

        While a command waits, reading goes on up to a limit: otherwise a closed connection would not be noticed.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not self.pending:
            self._unanswered = 0
        if self._full or (self.pending and (self._unanswered > MOST_UNANSWERED or not self._busy)):
            transport.pause_reading()
        elif not self.closing:
            transport.resume_reading()

    def push(self, *message: str) -> None:
        """Send a channel message; close the connection of a client that does not read."""
        self.say(Push(message))
        if self._transport is not None and self._transport.get_write_buffer_size() > MOST_UNREAD:
            self._transport.abort()
        self.flush()

    def end(self, error: str = "") -> None:
        """Send an error, if one is given, and close."""
        if error:
            self.say(Fault(error))
        self.closing = True
        if self._transport is not None and not self.host.withhold(self):
            self.send()
            self._transport.close()

    def break_off(self, value: Any) -> None:
        """Send half of a reply, and close."""
        text = write(value, self.version)
        self._out.append(text[: len(text) // 2])
        self.end()

    def cut(self) -> None:
        """Close at once, without sending the collected replies."""
        self.closing = True
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()

    @property
    def unsent(self) -> bool:
        """Whether collected replies are still to be sent."""
        return bool(self._out)
