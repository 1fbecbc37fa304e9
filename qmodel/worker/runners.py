"""Runners: perform attempts in threads, in an event loop, or in a process for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from qmodel.worker.attempt import Abort, Attempt
from qmodel.worker.settings import Settings

if TYPE_CHECKING:
    from qmodel.app import App


class Runner(Protocol):
    """Performs attempts."""

    def start(self) -> None:
        """Start its threads or processes."""

    def run(self, attempts: list[Attempt]) -> None:
        """Perform attempts, each as soon as there is a free slot."""

    def waiting(self) -> int:
        """Count the attempts that have not begun."""

    def take_back(self) -> list[Attempt]:
        """Remove the attempts that have not begun, and return them."""

    def abort(self, attempt: Attempt, abort: Abort) -> None:
        """Abort a running attempt."""

    def close(self) -> None:
        """Stop its threads or processes."""


def open_runner(settings: Settings, app: App, on_end: Callable[[Attempt | Callable[[], None]], None]) -> Runner:
    """Make the runner that the settings name; it calls `on_end` with each attempt that has ended."""
    if settings.runner == "thread":
        from qmodel.worker.threads import ThreadRunner

        return ThreadRunner(app, settings.concurrency, on_end)
    if settings.runner == "async":
        from qmodel.worker.loop import AsyncRunner

        return AsyncRunner(app, settings.concurrency, on_end)
    from qmodel.worker.forks import ForkRunner

    return ForkRunner(app, settings.concurrency, on_end, settings.memory)
