"""Map process signals to calls of the worker.

SIGINT (Ctrl-C): finish the running jobs; a second SIGINT gives them back. SIGTERM: finish within the grace period, then
give back. SIGHUP is handled like SIGTERM, because the terminal is gone. SIGUSR1 writes the stack of every thread to the
standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def signals(interrupted: Callable[[int], None], terminated: Callable[[], None]) -> Iterator[None]:
    """Handle signals in the main thread; in other threads change nothing.

    Calls `interrupted` with the number of interrupts so far, and `terminated` at SIGTERM and SIGHUP.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = 0

    def interrupt(number: int, frame: object) -> None:
        nonlocal interrupts
        interrupts += 1
        interrupted(interrupts)

    def terminate(number: int, frame: object) -> None:
        terminated()

    before: dict[int, Any] = {signal.SIGINT: signal.signal(signal.SIGINT, interrupt)}
    for other in (signal.SIGTERM, signal.SIGHUP):
        before[other] = signal.signal(other, terminate)
    with contextlib.suppress(RuntimeError, AttributeError, ValueError, OSError):  # the standard error is not a file
        faulthandler.register(signal.SIGUSR1)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
