"""Blocking sockets on the simulated network, redis-py's connections on them, and what waits for several at once."""

from __future__ import annotations

import selectors
from typing import Any

import redis

from qmodel.simulator.baton import Baton
from qmodel.simulator.net import Link, Net
from qmodel.simulator.strands import Waiters


class Line:
    """What can be read from, and watched by a selector."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._inbox = bytearray()
        self._ended = False
        self._waiters = Waiters(baton)
        self.watchers: list[Waiters] = []

    @property
    def is_ready(self) -> bool:
        """Whether a read would not block."""
        return bool(self._inbox or self._ended)

    def _stir(self) -> None:
        """Wake the strand that reads, and those that watch."""
        self._waiters.wake()
        for watcher in self.watchers:
            watcher.wake()


class PairEnd(Line):
    """An end of a pair of connected sockets within a process."""

    peer: PairEnd

    def setblocking(self, blocking: bool) -> None:
        """Do nothing: it is only read when it is ready."""

    def send(self, data: bytes) -> int:
        """Send bytes to the other end."""
        if self.peer._ended:
            raise BrokenPipeError(32, "Broken pipe")
        self.peer._inbox += data
        self.peer._stir()
        self._baton.pause()
        return len(data)

    def recv(self, size: int) -> bytes:
        """Read bytes."""
        found = bytes(self._inbox[:size])
        del self._inbox[:size]
        return found

    def close(self) -> None:
        """Close it."""
        self._ended = True


def socketpair(baton: Baton) -> tuple[PairEnd, PairEnd]:
    """Make a pair of connected sockets."""
    one, other = PairEnd(baton), PairEnd(baton)
    one.peer, other.peer = other, one
    return one, other


class Selector:
    """As selectors.DefaultSelector, for reading. What is ready comes in the order of registration."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self._watched: dict[Any, Any] = {}
        self._waiters = Waiters(baton)

    def register(self, line: Any, events: int, data: Any = None) -> None:
        """Watch a socket."""
        self._watched[line] = data
        line.watchers.append(self._waiters)

    def unregister(self, line: Any) -> None:
        """Watch it no longer. Raises KeyError if it was not watched."""
        del self._watched[line]
        line.watchers.remove(self._waiters)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until a socket is ready, or until the timeout has passed; give those that are."""
        baton = self._baton
        until = None if timeout is None else baton.now + max(timeout, 0.0)
        baton.pause()
        while not any(line.is_ready for line in self._watched):
            if until is not None and baton.now >= until:
                return []
            self._waiters.wait(until)
        ready = [(line, data) for line, data in self._watched.items() if line.is_ready]
        return [
            (selectors.SelectorKey(line, 0, selectors.EVENT_READ, data), selectors.EVENT_READ) for line, data in ready
        ]

    def close(self) -> None:
        """Watch nothing any more."""
        for line in list(self._watched):
            self.unregister(line)


class Socket(Line):
    """What redis-py uses of a socket."""

    def __init__(self, baton: Baton, link: Link, timeout: float | None) -> None:
        super().__init__(baton)
        self.process = baton.current.process
        self._link = link
        self._timeout = timeout
        self._error: OSError | None = None

    # ---- the network's side

    def receive(self, data: bytes) -> None:
        """Take bytes from the network."""
        self._inbox += data
        self._stir()

    def finish(self) -> None:
        """Take the end."""
        self._ended = True
        self._stir()

    def fail(self, error: OSError) -> None:
        """Take a reset."""
        self._error = error
        self._ended = True
        self._stir()

    # ---- redis-py's side

    def settimeout(self, timeout: float | None) -> None:
        """Set the longest time that a read may take."""
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Give the longest time that a read may take."""
        return self._timeout

    def sendall(self, data: Any) -> None:
        """Send bytes."""
        self._baton.pause()
        if self._error is not None or self._link.closed[0]:
            raise self._error or BrokenPipeError(32, "Broken pipe")
        self._link.send(0, bytes(data))

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Read bytes; none at the end."""
        if not self.readable(self._timeout):
            raise TimeoutError("timed out")
        if not self._inbox and self._error is not None:
            raise self._error
        found = bytes(self._inbox[:size])
        del self._inbox[:size]
        return found

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        """Read bytes into a buffer; give their number."""
        found = self.recv(size or len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def readable(self, timeout: float | None) -> bool:
        """Wait until a read would not block (True), or until the timeout has passed."""
        until = None if timeout is None else self._baton.now + timeout
        while not self.is_ready:
            if until is not None and self._baton.now >= until:
                return False
            self._waiters.wait(until)
        return True

    @property
    def at_end(self) -> bool:
        """Whether there is nothing more to read."""
        return self._ended and not self._inbox

    def shutdown(self, how: int) -> None:
        """Close it; a strand that reads from it wakes."""
        self.close()

    def close(self) -> None:
        """Close it."""
        self._ended = True
        self._link.close(0)
        self._stir()

    def setsockopt(self, *_: object) -> None:
        """Set nothing."""


def connection_class(baton: Baton, net: Net) -> Any:
    """Make the class of blocking connections over the simulated network."""

    class SimulatedConnection(redis.connection.Connection):
        def _connect(self) -> Any:
            process = baton.current.process
            parted, limit = net.parted(process, self.port), self.socket_connect_timeout
            if limit is not None and parted > limit:
                _sleep(baton, limit)
                raise TimeoutError("timed out")
            _sleep(baton, net.delay() + parted)
            return net.connect(lambda link: Socket(baton, link, self.socket_timeout), process, self.port)

        def can_read(self, timeout: float = 0) -> bool:
            if self._sock is None:
                self.connect()  # type: ignore[no-untyped-call]
            reader = getattr(self._parser, "_reader", None)
            if reader is not None and reader.has_data():
                return True
            line: Any = self._sock
            if not line.readable(timeout):
                return False
            if line.at_end:
                raise redis.ConnectionError("Connection closed by server.")
            return True

    return SimulatedConnection


def _sleep(baton: Baton, seconds: float) -> None:
    until = baton.now + seconds
    while baton.now < until:
        baton.block(until)
