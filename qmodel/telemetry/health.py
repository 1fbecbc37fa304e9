"""Health probes over HTTP: whether a process is alive, and whether it is ready.

A process is *alive* if its main loop runs: it calls `tick` in each round, also while the server is away, and the last
call was within `patience`. A dead process should be restarted. A process is *ready* if it is alive and reaches its
server. If it is not ready, wait: a restart does not bring the server back.

A readiness check may hang together with its server. So it runs in a separate thread, one at a time, and a check that
does not return within `deadline` counts as failed.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PATIENCE = 60.0
"""Maximum seconds between two ticks; an idle worker ticks at least every 10 seconds."""

DEADLINE = 2.0
"""Maximum seconds of a readiness check: less than the default timeout of probes."""


class Report(NamedTuple):
    """The result of a probe, and facts by name."""

    ok: bool
    facts: dict[str, object]


class Health:
    """The health of this process.

    `check` returns if the server can be reached, and raises otherwise; without a check, a process that is alive is
    ready. `patience` and `deadline` are seconds.
    """

    def __init__(
        self, check: Callable[[], object] | None = None, *, patience: float = PATIENCE, deadline: float = DEADLINE
    ) -> None:
        self._check = check
        self._patience = patience
        self._deadline = deadline
        self._ticked = time.monotonic()
        self._asking: _Asking | None = None
        self._lock = threading.Lock()

    def tick(self) -> None:
        """Record another round of the main loop."""
        self._ticked = time.monotonic()

    def live(self) -> Report:
        """Say whether the last tick was within the patience."""
        since = time.monotonic() - self._ticked
        facts: dict[str, object] = {"seconds_since_tick": round(since, 3)}
        if since <= self._patience:
            return Report(True, facts)
        return Report(False, {**facts, "why": f"the loop has not run for more than {self._patience:g} s"})

    def ready(self) -> Report:
        """Say whether the process is alive and the server answers."""
        alive = self.live()
        if not alive.ok or self._check is None:
            return alive
        with self._lock:
            if self._asking is None or self._asking.done.is_set():
                self._asking = _Asking(self._check)
            asking = self._asking
        if not asking.done.wait(self._deadline):
            return Report(False, {**alive.facts, "why": f"the server has not answered within {self._deadline:g} s"})
        return Report(not asking.why, {**alive.facts, "why": asking.why} if asking.why else alive.facts)


class _Asking:
    """One check, in a daemon thread."""

    def __init__(self, check: Callable[[], object]) -> None:
        self.done = threading.Event()
        self.why = ""
        self._check = check
        threading.Thread(target=self._ask, name="qmodel-ready", daemon=True).start()

    def _ask(self) -> None:
        try:
            self._check()
        except Exception as error:
            self.why = getattr(error, "sentence", "") or f"{type(error).__name__}: {error}"
        finally:
            self.done.set()


# ---- over HTTP

Page = Callable[[], tuple[str, bytes]]
"""Makes a page: its content type and its body."""


class Endpoint:
    """A small HTTP server with its own threads: `/live`, `/ready`, and the given pages."""

    def __init__(self, health: Health, host: str, port: int, pages: dict[str, Page]) -> None:
        self._server = _Server(host, port)
        self._server.pages = {"/live": lambda: _of(health.live()), "/ready": lambda: _of(health.ready())}
        self._server.pages |= {path: _found(page) for path, page in pages.items()}
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="qmodel-health", daemon=True).start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


def serve(health: Health, port: int, host: str = "127.0.0.1", *, metrics: Page | None = None) -> Endpoint:
    """Serve `/live` and `/ready` with 200 or 503, and `/metrics` if given; port 0 chooses a free port.

    Raises OSError when the port is taken. Probes from outside of this machine or container need the host `0.0.0.0`.
    Clients can read the names of queues in the metrics, and can change nothing.
    """
    return Endpoint(health, host, port, {"/metrics": metrics} if metrics else {})


def _of(report: Report) -> tuple[int, str, bytes]:
    body = json.dumps({"ok": report.ok, **report.facts}) + "\n"
    return (200 if report.ok else 503), "application/json", body.encode()


def _found(page: Page) -> Callable[[], tuple[int, str, bytes]]:
    return lambda: (200, *page())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    pages: dict[str, Callable[[], tuple[int, str, bytes]]]

    def __init__(self, host: str, port: int) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that is gone: a probe ends when the server of the jobs takes too long to answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10  # seconds that a client may take to ask

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        page = self.server.pages.get(path)
        try:
            status, kind, body = page() if page else (404, "text/plain", self._known())
        except Exception as error:
            status, kind, body = 500, "text/plain", f"{type(error).__name__}: {error}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def _known(self) -> bytes:
        return f"The pages are {', '.join(sorted(self.server.pages))}.\n".encode()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: probes come every few seconds."""
