"""Declare the app's schedules, and send the next times of cron expressions. Every worker does so, without a leader."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from qmodel import runtime
from qmodel.errors import ConnectError
from qmodel.worker.connection import Connection

if TYPE_CHECKING:
    from qmodel.app import App

log = logging.getLogger("qmodel.worker")

AHEAD: Final = 3600.0
"""Seconds for which the times of cron expressions are sent in advance."""

EVERY: Final = 600.0
"""Maximum seconds between two rounds; several rounds may be missed without a run being late."""


class Schedules:
    """Keeps schedules going, in its own thread."""

    def __init__(self, connection: Connection, app: App) -> None:
        self._connection = connection
        self._app = app
        self._closed = runtime.Event()
        self._thread = runtime.Thread(target=self._run, name="qmodel-schedules", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._closed.set()

    def _run(self) -> None:
        pause, declared = 0.0, False
        while not self._closed.wait(pause):
            try:
                if not declared:
                    self._app.tell_schedules(self._connection.client)  # the app's may be closed meanwhile
                    declared = True
                self._connection.client.advance_schedules(AHEAD)
                pause = runtime.uniform(EVERY / 2, EVERY)
            except ConnectError:
                pause = 5.0
            except ImportError as error:
                log.error("Cron schedules need the package %s, which is not installed.", error.name)
                return
            except Exception:
                log.exception("Advancing the schedules failed; it will be tried again in ten minutes.")
                pause = EVERY
