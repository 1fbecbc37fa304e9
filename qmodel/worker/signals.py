"""What signals mean to a worker.

SIGINT (Ctrl-C): finish what is at hand; again: give it back. SIGTERM: finish within the grace, then give back. SIGHUP
is taken for SIGTERM, for then the terminal is gone. SIGUSR1 writes what every thread is doing to the standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qmodel.worker.worker import Worker


@contextlib.contextmanager
def signals(worker: Worker) -> Iterator[None]:
    """Let signals stop a worker, in the main thread; elsewhere they are not ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = 0

    def interrupted(number: int, frame: object) -> None:
        nonlocal interrupts
        interrupts += 1
        worker.stop(now=interrupts > 1)

    def terminated(number: int, frame: object) -> None:
        worker.stop(within=worker.settings.grace)

    before: dict[int, Any] = {signal.SIGINT: signal.signal(signal.SIGINT, interrupted)}
    for other in (signal.SIGTERM, signal.SIGHUP):
        before[other] = signal.signal(other, terminated)
    with contextlib.suppress(RuntimeError, AttributeError, ValueError, OSError):  # a standard error that is no file
        faulthandler.register(signal.SIGUSR1)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
