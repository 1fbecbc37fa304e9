"""Declares the schedules of the app, and keeps those that recur by cron going; any worker does, and none has to be
alone.
"""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, Final

from qmodel.errors import ConnectError
from qmodel.worker.connection import Line

if TYPE_CHECKING:
    from qmodel.app import App

log = logging.getLogger("qmodel.worker")

AHEAD: Final = 3600.0
"""Seconds for which the moments of cron expressions are told in advance."""

EVERY: Final = 600.0
"""Seconds between two looks; a few workers may be gone without a run being late."""


class Schedules:
    """Looks after what recurs, in a thread of its own."""

    def __init__(self, line: Line, app: App) -> None:
        self._line = line
        self._app = app
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qmodel-schedules", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._closed.set()

    def _run(self) -> None:
        pause, told = 0.0, False
        while not self._closed.wait(pause):
            try:
                if not told:
                    self._app.tell_schedules()
                    told = True
                self._line.client.advance_schedules(AHEAD)
                pause = random.uniform(EVERY / 2, EVERY)
            except ConnectError:
                pause = 5.0
            except ImportError as error:
                log.error("There are cron schedules, which need the package %s.", error.name)
                return
            except Exception:
                log.exception("The schedules were not advanced; that is tried again in ten minutes.")
                pause = EVERY
