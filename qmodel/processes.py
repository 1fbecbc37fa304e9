"""Work in several processes of this machine.

The processes are spawned, not forked: a fork copies locks that threads hold, for example those of a progress bar. So
the work must be an importable function, and importing the main program must not start it again. The processes end with
their parent, however that ends.
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
"""Calls a function for each of some items, such as `map`, a pool of processes, or Spark. The results come in any order.
"""

_SET_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of <sys/prctl.h>."""


def die_with_parent(parent: int, by: int = signal.SIGKILL) -> None:
    """Have the system send this process a signal when its parent ends, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_DEATH_SIGNAL, int(by), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def signal_name(number: int) -> str:
    """Name a signal. Most real-time signals have no names.

    >>> signal_name(9), signal_name(36)
    ('SIGKILL', 'signal 36')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def spread(work: Callable[[T], R], items: Iterable[T], count: int) -> Iterator[R]:
    """Yield the result of `work` for each item, as each is done. With a count of 1 the work is done in this process.

    An item is started only when a process is free, so the work stops when the caller stops reading. Raises the
    exceptions of `work`, and QmodelError if a process dies.
    """
    with processes(count, signal.SIG_DFL) as run:
        yield from run(work, items)


@contextmanager
def processes(count: int, interrupted: signal.Handlers = signal.SIG_IGN, consequence: str = "") -> Iterator[Run]:
    """Keep `count` processes until the block ends; they do the work of any number of `spread`s.

    `interrupted` is what Ctrl-C does to them: SIG_IGN if the parent finishes the started work, or SIG_DFL, which ends
    them without a message. `consequence` is added to the message if one of them dies.
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
