"""Middleware and hooks: what an app does around every attempt of its jobs.

Middleware is part of the attempt: it may prepare something, see what the job raises, and raise itself. Hooks are told
what happened: one that raises is logged, and changes nothing.
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
"""What hooks are told of. That of `put` gets the job type and the headers, a dictionary of text to which it may add;
those of `before`, `after`, `failure` and `lost_lock` get the context and the outcome, which is None where there is none
yet; the others get the worker."""

Hook = TypeVar("Hook", bound=Callable[..., Any])


def logger() -> Logger:
    """Where it is told what nobody can be told otherwise; a producer that has nothing to tell does not load it."""
    import logging

    return logging.getLogger("qmodel.app")


class Hooks:
    """What is told of what."""

    def __init__(self) -> None:
        self._by_event: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}

    def add(self, event: str, hook: Callable[..., Any]) -> None:
        """Tell a function of an event. Raises DeclarationError for an unknown event, and for what has to be awaited."""
        if event not in self._by_event:
            raise DeclarationError(f"There is no event {event!r}.", hint(event, EVENTS, "There are"))
        if inspect.iscoroutinefunction(hook):
            raise DeclarationError(
                f"The hook {hook.__name__} has to be awaited, and nobody waits for hooks.",
                "Make it a plain function, or use app.middleware, which may be asynchronous.",
            )
        self._by_event[event].append(hook)

    def fire(self, event: Event, *told: Any) -> None:
        """Tell of an event; who raises is logged."""
        for hook in self._by_event[event]:
            try:
                hook(*told)
            except Exception:
                logger().exception("The hook %s of %r raised; it goes on without it.", hook, event)

    def __contains__(self, event: str) -> bool:
        """Whether anybody is told of an event."""
        return bool(self._by_event[event])


class Middleware:
    """One middleware: what opens a context manager for a context, and whether only an event loop can."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.asynchronous = inspect.isasyncgenfunction(function)
        self.open: Callable[[Any], Any] = function
        if self.asynchronous:
            self.open = asynccontextmanager(function)
        elif inspect.isgeneratorfunction(function):
            self.open = contextmanager(function)
        elif inspect.iscoroutinefunction(function):
            raise DeclarationError(
                f"The middleware {function.__name__} returns, and does not yield.",
                "Let it yield once, where the job is performed, or give a context manager.",
            )
