"""Work in several processes of this machine.

They are started anew (spawn), not forked: a fork copies locks that threads hold, those of a progress bar say. So a work
is an importable function, and the program that asks for it must not begin anew when it is imported.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

from qmodel.conformance import parts
from qmodel.conformance.parts import Campaign, Part
from qmodel.errors import QmodelError

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T], R], items: Iterable[T], processes: int) -> Iterator[R]:
    """What `work` gives for each of the items, in the order in which it is done; with one process it is done here.

    An item is begun only when a process is free, so whoever stops asking stops the work. Raises what `work` raises, and
    QmodelError where a process ends in the middle.
    """
    if processes == 1:
        yield from map(work, items)
        return
    left = iter(items)
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _in_process)
    try:
        running = {pool.submit(work, item) for item in islice(left, processes + 1)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(work, item) for item in islice(left, len(done))}
            yield from (one.result() for one in done)
    except BrokenProcessPool:
        raise QmodelError("A process ended in the middle of its work: was it killed, or is memory short?") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _in_process() -> None:
    """Let Ctrl-C end the process without a word: the one that waits for it says what there is to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class _Work:
    """A part of a campaign, by its range."""

    def __init__(self, what: Campaign) -> None:
        self.what = what

    def __call__(self, numbers: tuple[int, int]) -> Part:
        return parts.perform(self.what, *numbers)


def perform(what: Campaign, examples: int, processes: int, size: int = parts.HISTORIES) -> Iterator[Part]:
    """The parts of a campaign, as they are done."""
    try:
        yield from spread(_Work(what), parts.ranges(examples, size), processes)
    finally:
        parts.close()
