"""Several processes of one worker: forked from one that has loaded the app, and does nothing but look after them.

Signals go to it, and it passes them on; one of the processes that dies is replaced, later each time that it dies soon,
unless it was told from afar to stop. When it is gone itself, the processes are told to end: on Linux by the system,
elsewhere by a pipe that closes.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from qmodel.errors import QmodelError
from qmodel.processes import die_with_parent

if TYPE_CHECKING:
    from qmodel.worker.worker import Worker

log = logging.getLogger("qmodel.worker")

SOON: Final = 10.0
"""Seconds: a process that dies within them is not replaced at once."""

LONGEST_PAUSE: Final = 30.0

DISMISSED: Final = 64
"""The status of a process that was told from afar to stop: nobody takes its place."""

_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def supervise(worker: Worker) -> None:
    """Have as many processes work as the worker's settings say, until a signal ends them.

    Raises ConnectError when there is a server that does not want us, before there are any.
    """
    worker.line.connect()
    _Supervisor(worker).run()


class _Supervisor:
    """The processes, each with its place among them, and the moment at which it began."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._living: dict[int, tuple[int, float]] = {}
        self._stopping = False
        self._pause = 0.0
        self._alive, self._held_open = os.pipe()

    def run(self) -> None:
        before = {number: signal.signal(number, self._pass_on) for number in _PASSED_ON}
        try:
            for place in range(self._worker.settings.processes):
                self._fork(place)
            while self._living:
                self._await()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._alive)
            os.close(self._held_open)

    def _pass_on(self, number: int, frame: object) -> None:
        self._stopping = True
        for pid in self._living:
            os.kill(pid, number)

    def _await(self) -> None:
        """Wait for one to end, and replace it unless they all are to."""
        pid, status = os.wait()
        place, began = self._living.pop(pid, (0, 0.0))
        how = os.waitstatus_to_exitcode(status)
        if not began or self._stopping or how == DISMISSED:
            return
        soon = time.monotonic() - began < SOON
        self._pause = min(max(2 * self._pause, 0.5), LONGEST_PAUSE) if soon else 0.0
        said = f"was killed by {signal.Signals(-how).name}" if how < 0 else f"ended with the status {how}"
        log.error("Process %d of the worker %s; another begins in %g s.", pid, said, self._pause)
        self._sleep(self._pause)
        if not self._stopping:
            self._fork(place)

    def _sleep(self, seconds: float) -> None:
        """Sleep, unless and until all are to end."""
        until = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < until:
            time.sleep(0.05)

    def _fork(self, place: int) -> None:
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        pid = os.fork()
        if not pid:
            self._work(parent, place)
        self._living[pid] = place, time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)

    def _work(self, parent: int, place: int) -> Any:
        """Be one of the processes."""
        status = 1
        try:
            os.setpgid(0, 0)  # a Ctrl-C in the terminal goes to the supervisor, which passes it on
            for number in _PASSED_ON:
                signal.signal(number, signal.SIG_DFL)
            die_with_parent(parent, signal.SIGTERM)
            os.close(self._held_open)
            if sys.platform != "linux":
                threading.Thread(target=self._end_with, daemon=True).start()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            self._worker.alone(place)
            self._worker.run()
            status = DISMISSED if self._worker.dismissed else 0
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
        """End when the supervisor is gone, and with it the other end of the pipe."""
        os.read(self._alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)
