"""Whether a process is alive and ready, told over HTTP to whoever keeps it running.

*Alive* is a process whose loop goes round: it calls `tick` each time, also while the server is away, and has done so
within `patience`. Who finds it dead should start it anew. *Ready* is one that is alive and reaches its server; who
finds it not ready should wait, for to start it anew does not bring the server back.

A check of readiness may hang with its server. So it runs in a thread of its own, one at a time, and what has not been
answered within `deadline` counts as a no.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PATIENCE = 60.0
"""In seconds: a worker sleeps 10 at most when there is nothing to do."""

DEADLINE = 2.0
"""In seconds: below what probes wait for by default."""


class Report(NamedTuple):
    """Whether all is well, and what there is to say, by name."""

    ok: bool
    facts: dict[str, object]


class Health:
    """What a process knows of its own health.

    `check` returns when the server can be reached, and raises otherwise; without one a process that is alive is ready.
    `patience` and `deadline` are seconds.
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
        """Say that the loop has gone round once more."""
        self._ticked = time.monotonic()

    def live(self) -> Report:
        """Whether the loop has gone round within the patience."""
        since = time.monotonic() - self._ticked
        facts: dict[str, object] = {"seconds_since_tick": round(since, 3)}
        if since <= self._patience:
            return Report(True, facts)
        return Report(False, {**facts, "why": f"the loop has not gone round for more than {self._patience:g} seconds"})

    def ready(self) -> Report:
        """Whether it is alive and the server answers."""
        alive = self.live()
        if not alive.ok or self._check is None:
            return alive
        with self._lock:
            if self._asking is None or self._asking.done.is_set():
                self._asking = _Asking(self._check)
            asking = self._asking
        if not asking.done.wait(self._deadline):
            return Report(
                False, {**alive.facts, "why": f"the server has not answered within {self._deadline:g} seconds"}
            )
        return Report(not asking.why, {**alive.facts, "why": asking.why} if asking.why else alive.facts)


class _Asking:
    """One check, in a thread that nobody waits for."""

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
"""Makes a page: its content type, and what it says."""


class Endpoint:
    """A small HTTP server: `/live`, `/ready`, and whatever else it was given. It answers in threads of its own."""

    def __init__(self, health: Health, host: str, port: int, pages: dict[str, Page]) -> None:
        self._server = _Server((host, port), _Handler)
        self._server.pages = {"/live": lambda: _of(health.live()), "/ready": lambda: _of(health.ready())}
        self._server.pages |= {path: _found(page) for path, page in pages.items()}
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="qmodel-health", daemon=True).start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Listen no longer."""
        self._server.shutdown()
        self._server.server_close()


def serve(health: Health, port: int, host: str = "127.0.0.1", *, metrics: Page | None = None) -> Endpoint:
    """Answer `/live` and `/ready` with 200 or 503, and `/metrics` if there are any; port 0 is any that is free.

    Raises OSError when the port is taken. Probes from outside of this machine or container need another host,
    `0.0.0.0`; whoever can reach it reads the names of queues in the metrics, and can change nothing.
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
        return f"There are {', '.join(sorted(self.server.pages))}.\n".encode()

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds: they are not logged."""
