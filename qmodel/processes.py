"""Work in several processes of this machine.

They are started anew (spawn), not forked: a fork copies locks that threads hold, those of a progress bar say. So a work
is an importable function, and the program that asks for it must not begin anew when it is imported. They end with the
one that started them, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Who performs a function for each of some things, such as `map`, a pool of processes, or Spark; gives the results in
any order.
"""

_SET_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of <sys/prctl.h>."""


def die_with_parent(parent: int, by: int = signal.SIGKILL) -> None:
    """Let this process be sent a signal when the one that started it is gone, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_DEATH_SIGNAL, int(by), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def spread(work: Callable[[T], R], items: Iterable[T], count: int) -> Iterator[R]:
    """What `work` gives for each of the items, in the order in which it is done; with one process it is done here.

    An item is begun only when a process is free, so whoever stops asking stops the work. Raises what `work` raises, and
    QmodelError where a process ends in the middle.
    """
    with processes(count, signal.SIG_DFL) as run:
        yield from run(work, items)


@contextmanager
def processes(count: int, interrupted: signal.Handlers = signal.SIG_IGN, consequence: str = "") -> Iterator[Run]:
    """So many processes, until the block ends; they perform what `spread` does, as often as one likes.

    `interrupted` is what Ctrl-C does to them: nothing, where the one that waits for them brings to an end what was
    begun, or SIG_DFL, and they end without a word. `consequence` is said where one of them ends in the middle.
    """
    if count == 1:
        yield map
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(count, get_context("spawn"), _begin, (os.getpid(), interrupted))
    try:
        yield partial(_run, pool, count, consequence)
    finally:
        pool.shutdown(cancel_futures=True)


def _run(
    pool: ProcessPoolExecutor, count: int, consequence: str, work: Callable[[T], R], items: Iterable[T]
) -> Iterator[R]:
    from concurrent.futures import FIRST_COMPLETED, wait
    from concurrent.futures.process import BrokenProcessPool

    left = iter(items)
    try:
        running = {pool.submit(work, item) for item in islice(left, count + 1)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(work, item) for item in islice(left, len(done))}
            yield from (one.result() for one in done)
    except BrokenProcessPool:
        said = "A process ended in the middle of its work: was it killed, or is memory short?"
        raise QmodelError(f"{said} {consequence}".rstrip()) from None


def _begin(parent: int, interrupted: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, interrupted)
    die_with_parent(parent)
