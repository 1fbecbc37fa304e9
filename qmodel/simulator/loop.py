"""An event loop in virtual time, over the simulated network. Sleeping passes the baton on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from qmodel.simulator.baton import Baton, Killed, Process, Strand
from qmodel.simulator.net import PORT, Link, Net


class _Selector:
    """In place of epoll: sleeps as a strand."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        """Sleep until woken, or until the timeout has passed."""
        baton = self._loop.baton
        self._loop.strand = baton.current
        if timeout is None:
            baton.block()
        elif timeout > 0:
            baton.block(baton.now + timeout)
        else:
            baton.pause()
        return []

    def close(self) -> None:
        """Close nothing."""


class Loop(asyncio.BaseEventLoop):
    """An event loop. It belongs to the strand that runs it."""

    def __init__(self, baton: Baton, net: Net) -> None:
        super().__init__()
        self.baton = baton
        self.net = net
        self.strand: Strand | None = None
        self._selector = _Selector(self)
        self._clock_resolution = 1e-6
        self.set_exception_handler(self._note)

    def run_forever(self) -> None:
        """Run, as any loop does. A killed process begins none of the tasks that have not begun."""
        try:
            super().run_forever()
        except Killed:
            for task in asyncio.all_tasks(self):
                coroutine = task.get_coro()
                if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:  # type: ignore[arg-type]
                    coroutine.close()
            raise

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Note an exception of a callback or a task that nobody handles; killed processes leave such tasks behind."""
        error, strand = context.get("exception"), self.strand
        if strand is not None and not strand.process.dead and error is not None and not isinstance(error, Killed):
            said = f"{strand.process.name}/{strand.name}: {type(error).__name__}: {error}"
            self.baton.errors.append(said)

    def time(self) -> float:
        """Read the virtual clock."""
        return self.baton.now

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        if self.strand is not None:
            self.baton.wake(self.strand)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str = "", port: int = PORT, **_: object
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to the server, over the simulated network."""
        process = self.baton.current.process
        await asyncio.sleep(self.net.delay() + self.net.parted(process, port))
        protocol = protocol_factory()
        transport: Transport = self.net.connect(lambda link: Transport(self, protocol, link, 0), process, port)
        protocol.connection_made(transport)
        return transport, protocol

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Any, host: str = "", port: int = PORT, **_: object
    ) -> Any:
        """Listen, on the simulated network."""
        process = self.baton.current.process

        def accept(link: Link) -> Transport:
            protocol = protocol_factory()
            transport = Transport(self, protocol, link, 1)
            transport.process = process
            self.call_soon_threadsafe(protocol.connection_made, transport)
            return transport

        self.net.listen(accept, process, port)
        return _Server(self.net, process, port)


class _Socket:
    def __init__(self, port: int) -> None:
        self._port = port

    def getsockname(self) -> tuple[str, int]:
        """Give the address."""
        return "127.0.0.1", self._port


class _Server:
    """What `create_server` returns."""

    def __init__(self, net: Net, process: Process, port: int) -> None:
        self._net = net
        self._process = process
        self.sockets = [_Socket(port)]

    def close(self) -> None:
        """Stop listening."""
        self._net.stop_listening(self._process)


class Transport(asyncio.Transport):
    """An end of a connection, for a protocol of an event loop."""

    def __init__(self, loop: Loop, protocol: Any, link: Link, side: int) -> None:
        super().__init__()
        self.process = loop.baton.current.process
        self._loop = loop
        self._protocol = protocol
        self._link = link
        self._side = side
        self._closing = self._paused = False
        self._unread: list[bytes] = []

    # ---- the network's side

    def receive(self, data: bytes) -> None:
        """Take bytes from the network."""
        self._soon(self._take, data)

    def finish(self) -> None:
        """Take the end."""
        self._soon(self._end)

    def fail(self, error: OSError) -> None:
        """Take a reset."""
        self._soon(self._lose, error)

    def _soon(self, act: Callable[..., object], *arguments: Any) -> None:
        if not (self.process.dead or self._loop.is_closed()):
            self._loop.call_soon_threadsafe(act, *arguments)

    def _take(self, data: bytes) -> None:
        if self._paused:
            self._unread.append(data)
        elif not self._closing:
            self._protocol.data_received(data)

    def _end(self) -> None:
        if not self._closing and not self._protocol.eof_received():
            self.close()

    def _lose(self, error: OSError | None) -> None:
        if self._protocol is not None:
            self._closing = True
            protocol, self._protocol = self._protocol, None
            protocol.connection_lost(error)

    # ---- the protocol's side

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Tell the address of the peer."""
        return ("127.0.0.1", 10_000 + self._link.number) if name == "peername" else default

    def write(self, data: Any) -> None:
        """Send bytes."""
        if not self._closing:
            self._link.send(self._side, bytes(data))

    def is_closing(self) -> bool:
        """Whether it is closed, or soon will be."""
        return self._closing

    def close(self) -> None:
        """Close."""
        if not self._closing:
            self._closing = True
            self._link.close(self._side)
            self._soon(self._lose, None)

    def abort(self) -> None:
        """Close."""
        self.close()

    def get_protocol(self) -> Any:
        """Give the protocol."""
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        """Set the protocol."""
        self._protocol = protocol

    def get_write_buffer_size(self) -> int:
        """Count the unsent bytes: none."""
        return 0

    def pause_reading(self) -> None:
        """Hold what arrives."""
        self._paused = True

    def resume_reading(self) -> None:
        """Hand over what was held."""
        self._paused = False
        unread, self._unread = self._unread, []
        for data in unread:
            self._soon(self._take, data)

    def is_reading(self) -> bool:
        """Whether it reads."""
        return not self._paused
