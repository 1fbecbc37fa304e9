"""The inbox of a worker's thread: attempts that have ended, and calls of other threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Final

from qmodel import runtime
from qmodel.worker.attempt import Attempt

UNWINDING: Final = 1.0
"""Seconds that aborted jobs get to clean up before they are given back."""


class Inbox:
    """Messages of any thread; the worker's own one handles them."""

    def __init__(self) -> None:
        self._messages: SimpleQueue[Attempt | Callable[[], None]] = runtime.SimpleQueue()
        self.put = self._messages.put

    def receive(self, seconds: float) -> Iterator[Attempt]:
        """Make the calls, and yield the attempts, in their order; wait for the first message at most `seconds`."""
        try:
            message = self._messages.get(timeout=seconds)
            while True:
                if type(message) is Attempt:
                    yield message
                else:
                    message()  # type: ignore[operator]
                message = self._messages.get_nowait()
        except Empty:
            return

    def unwound(self, most: int) -> Iterator[Attempt]:
        """Yield the attempts that end within `UNWINDING`, at most `most`."""
        until = runtime.monotonic() + UNWINDING
        while most > 0 and (left := until - runtime.monotonic()) > 0:
            try:
                message = self._messages.get(timeout=left)
            except Empty:
                return
            if type(message) is Attempt:
                most -= 1
                yield message
