"""Work that a test lets happen, written once and driven from plain and from asynchronous tests.

What has to be decided (what is due, what is popped, what an outcome changes) is a generator that talks to the queue
and yields each attempt that is to be performed; the driver performs it, here or in the event loop, and sends back what
came of it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Attempt(Protocol):
    """One attempt at a job, which somebody has to perform."""

    def run(self) -> Any:
        """Perform it; give what came of it."""

    async def arun(self) -> Any:
        """Perform it in the running event loop; give what came of it."""


Steps = Generator[Attempt, Any, T]
"""Yields attempts, is sent what came of each, and returns a T."""


def drive(steps: Steps[T]) -> T:
    """Perform the attempts of some steps, one after the other."""
    try:
        attempt = next(steps)
        while True:
            attempt = steps.send(attempt.run())
    except StopIteration as end:
        done: T = end.value
        return done
    finally:
        steps.close()


async def adrive(steps: Steps[T]) -> T:
    """The same in the running event loop."""
    try:
        attempt = next(steps)
        while True:
            attempt = steps.send(await attempt.arun())
    except StopIteration as end:
        done: T = end.value
        return done
    finally:
        steps.close()
