"""Hears what a worker is told from afar (`qmodel/client/remote.py`): to be quiet, to go on, to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from qmodel.client import remote
from qmodel.contract.operations import MetadataGet
from qmodel.errors import ConnectError

if TYPE_CHECKING:
    from qmodel.worker.worker import Worker

log = logging.getLogger("qmodel.worker")

EVERY: Final = 2.0
"""Seconds between two looks; an idle worker looks for jobs twice as often."""

FEW: Final = 100
"""One look reads what all workers were told. Where those are more than so many, looks are the rarer for it: else a
thousand workers that are told something at once would keep the server at nothing but this."""


class Hearing:
    """Looks for signals to a worker, in a thread of its own."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._closed = threading.Event()
        self._heeded = ""
        self._told = 0
        self._thread = threading.Thread(target=self._run, name="qmodel-hearing", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(EVERY * max(self._told / FEW, 1)):
            try:
                self._look()
            except ConnectError:
                continue
            except Exception:
                log.exception("Signals were not looked for; that is tried again.")

    def _look(self) -> None:
        client, worker = self._worker.line.client, self._worker
        signals = dict(client.execute(MetadataGet(remote.SIGNALS)))
        self._told = len(signals)
        signal = signals.get(worker.name, "")
        if signal == self._heeded or signal not in remote.ANSWERS:
            return
        if stops := signal in ("stop", "stop now"):
            worker.dismissed = True
        else:
            self._let(worker.quiet, signal == "quiet")
        client.execute(remote.answered(worker.name, signal))
        self._heeded = signal
        if stops:
            now = signal == "stop now"
            worker.stop(now, within=None if now else worker.settings.grace)

    def _let(self, do: Callable[[bool], None], what: bool) -> None:
        """Have the worker do something, and wait until no round trip is under way any more that began before."""
        done = threading.Event()
        do(what)
        self._worker.tell(done.set)
        while not done.wait(EVERY) and not self._closed.is_set():
            pass
