"""The supervisor of a worker with several processes: it loads the app, forks the processes, and replaces dead ones.

Signals to the supervisor are forwarded to the processes. A process that dies is replaced, after a pause that doubles
while processes die soon; one that was stopped by remote control, or has found nothing more to do in a burst, is not.
The jobs of a dead process are given back at once (`orphans.py`). When the supervisor itself dies, the processes are
told to stop: on Linux by the system, elsewhere by a pipe that closes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from typing import Any, Final, Protocol

from qmodel.errors import QmodelError
from qmodel.processes import die_with_parent, signal_name
from qmodel.worker.connection import Connection
from qmodel.worker.orphans import give_back
from qmodel.worker.settings import Settings

log = logging.getLogger("qmodel.worker")

SOON: Final = 10.0
"""A process that dies within so many seconds is replaced after a pause."""

LONGEST_PAUSE: Final = 30.0

RETRY: Final = 5.0
"""Seconds after which a fork that the system refused is tried again."""

LOOK: Final = 0.05
"""Seconds between two looks for a process that has ended, while another one is to start after its pause."""

STOPPED_REMOTELY: Final = 64
"""The exit status of a process that was stopped by remote control: it is not replaced."""

_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervised(Protocol):
    """A worker, as the supervisor sees it."""

    connection: Connection
    settings: Settings
    stopped_remotely: bool

    def name_of_process(self, index: int, pid: int) -> str:
        """Give the name of one of several processes."""

    def become_process(self, index: int) -> None:
        """Become one of several processes."""

    def run(self) -> None:
        """Perform jobs until the worker is stopped."""


def supervise(worker: Supervised) -> None:
    """Run as many processes as the worker's settings say, until a signal ends them.

    Raises ConnectError when the server refuses the connection, before any process is started.
    """
    worker.connection.connect()
    _Supervisor(worker).run()


class _Supervisor:
    """The processes by their ids, each with its index and its start time; and when those of other indexes start."""

    def __init__(self, worker: Supervised) -> None:
        self._worker = worker
        self._living: dict[int, tuple[int, float]] = {}
        self._due: dict[int, float] = {}
        self._stopping = False
        self._pause = 0.0
        self._alive, self._held_open = os.pipe()

    def run(self) -> None:
        before = {number: signal.signal(number, self._forward) for number in _FORWARDED}
        try:
            for index in range(self._worker.settings.processes):
                self._fork(index)
            while self._living or self._due:
                self._await()
                self._start_due()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._alive)
            os.close(self._held_open)

    def _forward(self, number: int, frame: object) -> None:
        self._stopping = True
        for pid in self._living:
            with contextlib.suppress(ProcessLookupError):  # it has ended a moment ago
                os.kill(pid, number)

    def _await(self) -> None:
        """Wait until a process ends, or a moment if one is to start; note its replacement, unless all are to stop."""
        pid, status = os.waitpid(-1, os.WNOHANG if self._due else 0) if self._living else (0, 0)
        if not pid:
            time.sleep(LOOK)
            return
        index, began = self._living.pop(pid, (0, 0.0))
        how = os.waitstatus_to_exitcode(status)
        reason = f"was killed by {signal_name(-how)}" if how < 0 else f"ended with the status {how}"
        if began and how not in (0, STOPPED_REMOTELY):
            give_back(self._worker.connection, self._worker.name_of_process(index, pid), reason)
        is_through = how == 0 and self._worker.settings.burst
        if not began or self._stopping or is_through or how == STOPPED_REMOTELY:
            return
        soon = time.monotonic() - began < SOON
        self._pause = min(max(2 * self._pause, 0.5), LONGEST_PAUSE) if soon else 0.0
        log.error("Process %d of the worker %s; another one starts in %g s.", pid, reason, self._pause)
        self._due[index] = time.monotonic() + self._pause

    def _start_due(self) -> None:
        """Start each process that has paused long enough; none once the supervisor is told to stop."""
        for index in [index for index, at in self._due.items() if self._stopping or at <= time.monotonic()]:
            del self._due[index]
            self._fork(index)

    def _fork(self, index: int) -> None:
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # a signal that has come is handled by now
        if self._stopping:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
            return
        try:
            pid = os.fork()
        except OSError as error:  # no memory, or too many processes: the others go on meanwhile
            log.error("A process cannot be started (%s); it is tried again in %g s.", error.strerror, RETRY)
            self._due[index] = time.monotonic() + RETRY
        else:
            if not pid:
                self._work(parent, index)
            self._living[pid] = index, time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)

    def _work(self, parent: int, index: int) -> Any:
        """Run one of the processes, and exit."""
        status = 1
        try:
            os.setpgid(0, 0)  # a Ctrl-C in the terminal goes to the supervisor, which forwards it
            for number in _FORWARDED:
                signal.signal(number, signal.SIG_DFL)
            die_with_parent(parent, signal.SIGTERM)
            os.close(self._held_open)
            if sys.platform != "linux":
                threading.Thread(target=self._end_with, daemon=True).start()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
            self._worker.become_process(index)
            self._worker.run()
            status = STOPPED_REMOTELY if self._worker.stopped_remotely else 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except QmodelError as error:
            log.critical("%s", error)
        except BaseException as error:
            log.critical("The worker failed: %s", error, exc_info=error)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _end_with(self) -> None:
        """Stop when the supervisor is gone, and with it the other end of the pipe."""
        os.read(self._alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)
