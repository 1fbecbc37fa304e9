"""An event loop for each thread that performs asynchronous jobs, kept from one attempt to the next.

Opening a loop for each attempt would cost more than most attempts, and the connections of `app.aclient`, which belong
to a loop, would be reopened each time. Tasks that an attempt leaves running are cancelled at its end, as `asyncio.run`
does.
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
    """The loop of one thread. It is closed when the thread ends."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.process = os.getpid()

    def __del__(self) -> None:
        if self.process == os.getpid():  # a forked child must not close its parent's loop
            with contextlib.suppress(Exception):
                self.runner.close()


_OWN = threading.local()


def run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in the loop of this thread. If a loop is running here already, use a new thread."""
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
    """Cancel leftover tasks, and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
