"""A connection that sometimes loses packets, to test how clients react.

It loses a request, which is then not executed, or the reply to a request that was executed. The client cannot tell
which; it only sees that its connection is cut.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from urllib.parse import quote, urlencode

from qmodel.backends.redis.url import Options, options_of
from qmodel.errors import ConnectError


class LossyLine:
    """Carries bytes between clients and a server, over a socket of its own in a temporary folder.

    Each packet, in either direction, is lost with probability `lose`. A loss cuts the connection if `cuts` is true.
    Both may be changed while clients are connected. Clients connect to `url`; it has the options of the server's URL.
    """

    def __init__(self, server: str, lose: float = 0.0, seed: str = "") -> None:
        self._options = options_of(server)
        if self._options.connection.get("ssl") or "ssl_cert_reqs" in self._options.connection:
            raise ConnectError("Replies cannot be lost on a TLS connection.", "Use a server without TLS, or lose none.")
        self.lose = lose
        self.lost = 0
        self.cuts = True
        self._random = random.Random(seed)
        self._folder = tempfile.TemporaryDirectory(prefix="qmodel-")
        path = str(Path(self._folder.name) / "line")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(200)
        self.url = _url(path, self._options)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> LossyLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), self._connected() as server:
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for source in ready:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if self.loses(source is server):
                        self.lost += 1
                        if self.cuts:
                            return
                    else:
                        (server if source is client else client).sendall(data)

    def loses(self, reply: bool) -> bool:
        """Tell whether the next packet, a request or a reply, is lost."""
        return self.lose > 0 and self._random.random() < self.lose

    def _connected(self) -> socket.socket:
        at = self._options.connection
        if "path" in at:
            server = socket.socket(socket.AF_UNIX)
            server.connect(at["path"])
            return server
        return socket.create_connection((at.get("host", "localhost"), at.get("port", 6379)))


def _url(path: str, options: Options) -> str:
    """Make the URL of the line: its socket, and the server's credentials, database and prefix."""
    at = options.connection
    who = quote(at["username"]) + "@" if at.get("username") else ""
    query = {name: at[name] for name in ("db", "password") if at.get(name)}
    return f"unix://{who}{path}?{urlencode(query | {'prefix': options.prefix})}"
