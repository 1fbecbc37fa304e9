"""An event loop for each thread that performs what has to be awaited, kept from one attempt to the next.

Opening a loop for each attempt would cost more than most of them, and the connections of `app.aclient`, which belong to
a loop, would be opened anew each time. What an attempt leaves running is cancelled at its end, as `asyncio.run` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Kept:
    """The loop of one thread; it is closed with the thread."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.process = os.getpid()

    def __del__(self) -> None:
        if self.process == os.getpid():  # a child must not close what its parent has
            with contextlib.suppress(Exception):
                self.runner.close()


_OWN = threading.local()


def run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in the loop of this thread; beside one that runs already, in another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(make)
    found: list[T] = []
    raised: list[BaseException] = []

    def beside() -> None:
        try:
            found.append(asyncio.run(make()))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]


def _run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    kept: _Kept | None = getattr(_OWN, "kept", None)
    if kept is None or kept.process != os.getpid():
        kept = _OWN.kept = _Kept()
    try:
        return kept.runner.run(make())
    finally:
        loop = kept.runner.get_loop()
        if left := asyncio.all_tasks(loop):
            loop.run_until_complete(_end(left))


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks that nobody waits for any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
