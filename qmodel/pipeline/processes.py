"""Tasks in processes of this machine: what Spark does on many."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from qmodel.pipeline.committing import Run


@contextmanager
def processes(count: int) -> Iterator[Run]:
    """Perform tasks in so many processes, which end with the block; with one, in this process itself."""
    if count == 1:
        yield map
        return
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        yield pool.map
