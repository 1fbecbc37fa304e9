"""The jobs of a worker that is measured from outside."""

from __future__ import annotations

import os
import resource
import time

from qmodel import App

app = App()


@app.job(queue="watched")
def began() -> int:
    """Give the time at which this job starts, by the clock that all processes share."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@app.job(queue="watched")
def size() -> int:
    """Give the memory of the worker, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@app.job(queue="watched")
def nothing(text: str) -> None:
    """Do nothing."""


@app.job(queue="noted")
def noted(number: int) -> None:
    """Append a number to the file of this worker."""
    with open(os.environ["BENCH_NOTES"], "ab", buffering=0) as file:
        file.write(b"%d\n" % number)
