"""Tasks in processes of this machine: what Spark does on many."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from qmodel.errors import QmodelError
from qmodel.pipeline.committing import Run
from qmodel.worker.zygote import die_with_parent


@contextmanager
def processes(count: int) -> Iterator[Run]:
    """Perform tasks in so many processes, which end with the block; with one, in this process itself.

    Raises QmodelError where one of them ends in the middle.
    """
    if count == 1:
        yield map
        return
    with ProcessPoolExecutor(count, get_context("spawn"), _begin, (os.getpid(),)) as pool:

        def run(function: Callable[[Any], Any], things: Iterable[Any]) -> Iterable[Any]:
            try:
                yield from pool.map(function, things)
            except BrokenProcessPool:
                raise QmodelError(
                    "A process ended in the middle of its work: was it killed, or is memory short? Nothing was added."
                ) from None

        yield run


def _begin(parent: int) -> None:
    """Leave Ctrl-C to the one that waits for this process, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
