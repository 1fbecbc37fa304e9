"""Throttles in use: jobs hold them or are parked at them, their window is not empty, or their bucket is not full.

Every throttle with limits, with jobs, or with a window or a bucket under its family is listed by its name. A throttle
enters the list with its first job, and leaves it when nothing is left to keep. So pages are read by name, without a
search of all keys.
"""

from __future__ import annotations

from qmodel.model.state import budget, throttles
from qmodel.model.state.store import Store


def known(store: Store, match: str, after: str, most: int) -> list[str]:
    """The first listed throttles that begin as a pattern, by name, after a name."""
    begin = match.partition("*")[0]
    return sorted(name for name in store.throttles if name.startswith(begin) and name > after)[:most]


def has(store: Store, now: int, name: str) -> bool:
    """Whether a throttle is in use now."""
    throttle = throttles.of(store, name)
    if throttles.running(store, name) or throttle.queues or throttles.used(throttle, now):
        return True
    return not throttles.is_full(throttle, now)


def showing(store: Store, name: str) -> int:
    """The units for showing a throttle."""
    return budget.of_throttle(throttles.running(store, name), len(throttles.of(store, name).queues))
