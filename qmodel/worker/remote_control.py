"""Remote control: obey the signals that `qmodel/client/remote.py` sends to a worker: quiet, resume, stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol

from qmodel import runtime
from qmodel.client import remote
from qmodel.contract.operations import MetadataGet
from qmodel.errors import ConnectError
from qmodel.worker.connection import Connection
from qmodel.worker.profile import Profiler
from qmodel.worker.settings import Settings

log = logging.getLogger("qmodel.worker")

POLL_SECONDS: Final = 2.0
"""Seconds between two polls; an idle worker looks for jobs twice as often."""

FEW: Final = 100
"""One poll reads the signals of all workers. Above this number of signals, polls become proportionally rarer: otherwise
a thousand workers that get a signal at once would keep the server busy with these polls alone."""


class Controlled(Protocol):
    """A worker, as remote control sees it."""

    connection: Connection
    settings: Settings
    stopped_remotely: bool

    @property
    def name(self) -> str:
        """The name by which signals are addressed to it."""

    def quiet(self, quiet: bool = True) -> None:
        """Stop or resume taking jobs."""

    def stop(self, now: bool = False, *, within: float | None = None) -> None:
        """Stop the worker."""

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call a function in the worker's thread."""


class RemoteControl:
    """Polls for signals to a worker, in its own thread, and renews its profile, if it has one."""

    def __init__(self, worker: Controlled, profiler: Profiler | None = None) -> None:
        self._worker = worker
        self._profiler = profiler
        self._closed = runtime.Event()
        self._obeyed = ""
        self._signals = 0
        self._thread = runtime.Thread(target=self._run, name="qmodel-remote-control", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop polling."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(POLL_SECONDS * max(self._signals / FEW, 1)):
            try:
                self._poll()
            except ConnectError:
                continue
            except Exception:
                log.exception("The poll for remote signals failed; it will be repeated.")

    def _poll(self) -> None:
        client, worker = self._worker.connection.client, self._worker
        if self._profiler is not None:
            self._profiler.renew(client)
        signals = dict(client.execute(MetadataGet(remote.SIGNALS)))
        self._signals = len(signals)
        signal = signals.get(worker.name, "")
        if signal == self._obeyed or signal not in remote.ANSWERS:
            return
        if stops := signal in ("stop", "stop now"):
            worker.stopped_remotely = True
        else:
            self._set_quiet(signal == "quiet")
        client.execute(remote.answered(worker.name, signal))
        self._obeyed = signal
        if stops:
            now = signal == "stop now"
            worker.stop(now, within=None if now else worker.settings.grace)

    def _set_quiet(self, quiet: bool) -> None:
        """Quiet the worker or let it resume; return when every round trip that began earlier has ended."""
        done = runtime.Event()
        self._worker.quiet(quiet)
        self._worker.call_soon(done.set)
        while not done.wait(POLL_SECONDS) and not self._closed.is_set():
            pass
