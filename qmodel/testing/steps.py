"""Steps: code that is written once, and used by plain and by asynchronous tests.

A generator decides what is due, what is popped, and what an outcome changes. It talks to the queue, and yields each
attempt that is to be performed. The driver performs it, here or in the event loop, and sends its end back to the
generator.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Attempt(Protocol):
    """One attempt of a job, to be performed by the driver."""

    def run(self) -> Any:
        """Perform it; give its end."""

    async def arun(self) -> Any:
        """Perform it in the running event loop; give its end."""


Steps = Generator[Attempt, Any, T]
"""Yields attempts, receives the end of each, and returns a T."""


def drive(steps: Steps[T]) -> T:
    """Perform the attempts of a generator one after the other."""
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
    """Do the same in the running event loop."""
    try:
        attempt = next(steps)
        while True:
            attempt = steps.send(await attempt.arun())
    except StopIteration as end:
        done: T = end.value
        return done
    finally:
        steps.close()
