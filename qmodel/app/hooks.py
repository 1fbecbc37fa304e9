"""Middleware and hooks: code that an app runs around every attempt of its jobs.

Middleware is part of the attempt: it may prepare something, see the job's exception, and raise one itself. Hooks cannot
change the outcome; exceptions in them are logged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from qmodel.app.errors import DeclarationError
from qmodel.errors import hint

if TYPE_CHECKING:
    from logging import Logger

Event = Literal["put", "before", "after", "failure", "lost_lock", "worker_start", "worker_stop"]
EVENTS: Final[tuple[str, ...]] = ("put", "before", "after", "failure", "lost_lock", "worker_start", "worker_stop")
"""The events of hooks. A hook of `put` gets the job type and the headers, a dictionary of texts that it may extend.
Hooks of `before`, `after`, `failure` and `lost_lock` get the context and the outcome, or None before there is one. The
others get the worker.
"""

Hook = TypeVar("Hook", bound=Callable[..., Any])


def logger() -> Logger:
    """Give the logger `qmodel.app`. A producer that logs nothing does not import `logging`."""
    import logging

    return logging.getLogger("qmodel.app")


class Hooks:
    """The hooks of an app by event."""

    def __init__(self) -> None:
        self._by_event: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}

    def add(self, event: str, hook: Callable[..., Any]) -> None:
        """Add a hook. Raises DeclarationError for an unknown event and for an asynchronous function."""
        if event not in self._by_event:
            raise DeclarationError(f"There is no event {event!r}.", hint(event, EVENTS, "There are"))
        if inspect.iscoroutinefunction(hook):
            raise DeclarationError(
                f"The hook {hook.__name__} is asynchronous, and hooks are not awaited.",
                "Make it a plain function, or use app.middleware, which may be asynchronous.",
            )
        self._by_event[event].append(hook)

    def fire(self, event: Event, *arguments: Any) -> None:
        """Call the hooks of an event. An exception in one is logged."""
        for hook in self._by_event[event]:
            try:
                hook(*arguments)
            except Exception:
                logger().exception("The hook %s of %r raised; the job continues without it.", hook, event)

    def __contains__(self, event: str) -> bool:
        """Whether an event has hooks."""
        return bool(self._by_event[event])


class Middleware:
    """A middleware: opens a context manager for a context, and says whether that needs an event loop."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.asynchronous = inspect.isasyncgenfunction(function)
        self.open: Callable[[Any], Any] = function
        if self.asynchronous:
            self.open = asynccontextmanager(function)
        elif inspect.isgeneratorfunction(function):
            self.open = contextmanager(function)
        elif inspect.iscoroutinefunction(function):
            raise DeclarationError(
                f"The middleware {function.__name__} is a coroutine function that does not yield.",
                "Yield once, where the job is performed, or give a context manager.",
            )
