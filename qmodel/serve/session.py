"""A session: one connection, what it has said of itself, and its commands one after the other.

Commands of a session are answered in their order. One that has to wait (for a wake-up, or for a backend behind the
server) holds up those after it, and nothing else. What a client does not read is not answered either: when so many
bytes of replies wait for it, its commands rest, and so does the reading from its line.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, cast

from qmodel.serve.resp import BEFORE_AUTH, Fault, Parser, Push, encode, write

if TYPE_CHECKING:
    from qmodel.serve.host import Host

LOG = logging.getLogger("qmodel.serve")

HELD: Final = 1 << 20
"""So many characters of replies are made before they are sent."""

MOST_UNREAD: Final = 32 << 20
"""So many bytes of messages from channels a client may leave unread before it is cut off."""

MOST_UNANSWERED: Final = 1 << 20
"""So many bytes of commands are read behind one that waits."""

LATER: Final = object()
"""In place of a reply: it comes later, through `resume`."""

NOTHING: Final = object()
"""In place of a reply: the command has said by itself what there was to say, or says nothing."""


class Session(asyncio.Protocol):
    """One connection."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.id = 0
        self.db = 0
        self.version = 2
        self.name = ""
        self.library = ""
        self.peer = ""
        self.trusted = not host.options.password
        self.queued: list[list[str]] | None = None
        self.spoiled = self.in_exec = False
        self.channels: set[str] = set()
        self.patterns: set[str] = set()
        self.parser = Parser(host.options.limits if self.trusted else BEFORE_AUTH)
        self.pending: deque[list[str]] = deque()
        self.waiting: Any = None
        self.closing = False
        self._busy = self._full = self._running = False
        self._out: list[str] = []
        self._held = self._unanswered = 0
        self._task: asyncio.Task[Any] | None = None
        self._transport: asyncio.Transport | None = None

    # ---- the line

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a new connection, or turn it away when there are too many."""
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "unix"
        if not self.host.enter(self):
            self.end("ERR max number of clients reached")

    def data_received(self, data: bytes) -> None:
        """Take what came, and answer what is complete."""
        if self.closing:
            return
        self._unanswered += len(data)
        self.pending += self.parser.feed(data)
        self.run()

    def connection_lost(self, error: Exception | None) -> None:
        """Forget all about it."""
        self.closing = True
        self.pending.clear()
        if self.waiting is not None:
            self.waiting.leave()
            self.waiting = None
        if self._task is not None:
            self._task.cancel()
        self.host.leave(self)

    def pause_writing(self) -> None:
        """Rest: the client does not read."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self.run()

    # ---- commands

    def run(self) -> None:
        """Answer commands for as long as nothing stands in the way; then send what was said."""
        if self._running:
            return
        self._running = True
        pending = self.pending
        while pending and not (self._busy or self._full or self.closing or self._held > HELD):
            words = pending.popleft()
            try:
                self.host.perform(self, words)
            except Exception:
                LOG.exception("%s from %s", words[0], self.peer)
                self.say(Fault("ERR the server failed at this command, and has logged why"))
        self._running = False
        if self.parser.error and not pending and not self._busy and not self.closing:
            self.host.malformed(self, self.parser.error)
            self.end(f"ERR Protocol error: {self.parser.error}")
        self.flush()

    def say(self, value: Any) -> None:
        """Reply, or push."""
        text = write(value, self.version)
        self._out.append(text)
        self._held += len(text)

    def wait_for(self, coming: Coroutine[Any, Any, Any]) -> None:
        """Let what follows wait until a reply has come."""
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
        """Let what follows wait until `resume`."""
        self._busy = True

    def resume(self, value: Any) -> None:
        """Give the reply that was waited for, and go on."""
        self._busy, self.waiting = False, None
        if not self.closing:
            if value is not NOTHING:
                self.say(value)
            self.run()

    # ---- sending

    def flush(self) -> None:
        """Send what was said; if the journal has something to write first, then after that."""
        if self._transport is None or self._transport.is_closing():
            self._out.clear()
            return
        if self._out and not self.host.withhold(self):
            self.send()
        self._pace()

    def send(self) -> None:
        """Send what was said, now."""
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
        """Read on only when most of what was read is done with: so a client cannot fill the server's memory.

        While a command waits a little is read on, for else nobody would see that the client is gone.
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
        """Send a message from a channel; cut off who does not read."""
        self.say(Push(message))
        if self._transport is not None and self._transport.get_write_buffer_size() > MOST_UNREAD:
            self._transport.abort()
        self.flush()

    def end(self, error: str = "") -> None:
        """Say a last word, and close."""
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
        """Close at once, whatever was to be said."""
        self.closing = True
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()

    @property
    def unsent(self) -> bool:
        """Whether anything is still to be said."""
        return bool(self._out)
