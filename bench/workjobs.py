"""Define the jobs of a worker that is measured from outside."""

from __future__ import annotations

import resource
import time

from qmodel import App

app = App()


@app.job(queue="watched")
def began() -> int:
    """Give the moment at which it began, by the clock that all processes share."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@app.job(queue="watched")
def size() -> int:
    """Give how many bytes of memory the worker uses."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@app.job(queue="watched")
def nothing(text: str) -> None:
    """Do nothing."""
