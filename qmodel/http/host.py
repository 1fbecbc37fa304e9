"""Serving an application with uvicorn: `qmodel http` and `qmodel web`.

It prints the URL when it listens, and stops at SIGINT and SIGTERM: streams end at once, other requests may continue
for a few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from qmodel.errors import LocalError
from qmodel.http.shutdown import Closing

GRACE_SECONDS = 5

HEADER_SECONDS = 10.0
"""Seconds in which the headers of a request must arrive, from the beginning of the connection or of the request."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address to listen on: a host, and a port or 0 for any free port."""

    host: str = "127.0.0.1"
    port: int = 8000

    def bind(self) -> socket.socket:
        """Listen; raise ConnectError if the address cannot be used."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=2048)
        except OSError as error:
            raise LocalError(
                f"Cannot listen at {self.host}:{self.port}: {error.strerror or error}.",
                "Give another --port, or 0 for any that is free.",
            ) from error


class HeaderTimeout(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
    """A connection that is closed when the headers of a request do not arrive in time.

    uvicorn limits only the time between requests. A client that sends a byte now and then could hold connections for
    ever, without a password.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait(transport)

    def data_received(self, data: bytes) -> None:
        """Read bytes; begin to wait when they are the beginning of headers, and end when these are complete."""
        super().data_received(data)
        cycle: Any = getattr(self, "cycle", None)
        if cycle is not None and not cycle.response_complete:
            self._end_wait()
        elif self._timer is None:
            self._wait(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._end_wait()
        super().connection_lost(exc)

    def _wait(self, transport: asyncio.Transport) -> None:
        self._timer = asyncio.get_running_loop().call_later(HEADER_SECONDS, transport.close)

    def _end_wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Server(uvicorn.Server):
    """A server that, when it stops, ends its streams before it waits for other requests."""

    def __init__(self, config: uvicorn.Config, closing: Closing) -> None:
        super().__init__(config)
        self._closing = closing

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


@contextlib.contextmanager
def _last_signal() -> Iterator[None]:
    """Ignore the signal that uvicorn raises again at its end: a requested stop is a success."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, lambda *_: None) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def serve(app: Any, address: Address, ready: Callable[[str], None], closing: Closing) -> None:
    """Serve an application until a signal; call `ready` with the URL, and set `closing` when it is to end."""
    bound = address.bind()
    host, port = bound.getsockname()[:2]
    config = uvicorn.Config(
        app,
        http=HeaderTimeout,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )
    with bound, _last_signal():
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        _Server(config, closing).run(sockets=[bound])
