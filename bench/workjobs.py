"""The jobs of a worker that is measured from outside."""

from __future__ import annotations

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
