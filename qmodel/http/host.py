"""Serving an application with uvicorn: `qmodel http`, and whatever else has pages.

It says where it serves once it does, and stops at SIGINT and SIGTERM: streams end at once, other requests may go on for
a few seconds.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import uvicorn

from qmodel.errors import LocalError
from qmodel.http.shutdown import Closing

GRACE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a host and a port, 0 for any that is free."""

    host: str = "127.0.0.1"
    port: int = 8000

    def bind(self) -> socket.socket:
        """Listen there; raise ConnectError where that cannot be."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=2048)
        except OSError as error:
            raise LocalError(
                f"Nobody can listen at {self.host}:{self.port}: {error.strerror or error}.",
                "Give another --port, or 0 for any that is free.",
            ) from error


class _Server(uvicorn.Server):
    """A server that ends what goes on for ever before it waits for the rest."""

    def __init__(self, config: uvicorn.Config, closing: Closing) -> None:
        super().__init__(config)
        self._closing = closing

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


@contextlib.contextmanager
def _last_signal() -> Iterator[None]:
    """Let the signal that uvicorn raises again at its end do nothing: whoever asked a server to stop is content."""
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
    """Serve an application until a signal; `ready` is told the URL, and `closing` is set when it is to end."""
    bound = address.bind()
    host, port = bound.getsockname()[:2]
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )
    with bound, _last_signal():
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        _Server(config, closing).run(sockets=[bound])
