"""Liveness: from every state, every job can still end.

The edges that count are those that users and workers make by themselves sooner or later: a pop, a completion, the end
of a pause or of a throttle, a tick of the clock. A job is unfinished unless it is complete or failed; one that waits
for a failed job, or for a request that ended badly, as its policy says, may wait.
"""

from __future__ import annotations

from typing import Final

from qmodel.contract.arguments import awaited_request
from qmodel.contract.operations import Operation
from qmodel.model.state import requests
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store

TICK: Final = True
"""A tick of the clock helps."""

HELPFUL: Final = frozenset(
    ("pop", "pop_any", "complete", "unpause", "throttle_unset", "unrecur", "request_close", "catch_up", "fire")
)
"""The operations that sooner or later somebody calls."""


def helps(op: Operation) -> bool:
    """Tell whether an operation counts."""
    return op.spec.name in HELPFUL


def is_blocked(store: Store, job: Job) -> bool:
    """Tell whether a job waits, directly or not, for a failed one, or for a request that ended badly."""
    return job.state == "depends" and any(_blocks(store, other) for other in job.dependencies)


def _blocks(store: Store, other: str) -> bool:
    """Tell whether what a job waits for never comes: a job, or a request, which waits for its sub-requests."""
    id = awaited_request(other)
    if not id:
        return store.jobs[other].state == "failed" or is_blocked(store, store.jobs[other])
    request = store.requested[id]
    return requests.has_ended(request) or any(is_blocked(store, store.jobs[jid]) for jid in request.unfinished)


def is_done(store: Store) -> bool:
    """Tell whether nothing is unfinished."""
    return all(job.state in ("complete", "failed") or is_blocked(store, job) for job in store.jobs.values())


class Graph:
    """The edges that count, backwards."""

    def __init__(self) -> None:
        self._back: dict[int, set[int]] = {}
        self._done: set[int] = set()
        self._all: set[int] = set()

    def add(self, state: int, store: Store) -> None:
        """Add a state."""
        self._all.add(state)
        if is_done(store):
            self._done.add(state)

    def edge(self, state: int, to: int) -> None:
        """Add an edge."""
        self._back.setdefault(to, set()).add(state)

    def stuck(self) -> set[int]:
        """Give the states from which no such edges lead to one where nothing is unfinished."""
        reached, left = set(self._done), list(self._done)
        while left:
            for state in self._back.get(left.pop(), ()):
                if state not in reached:
                    reached.add(state)
                    left.append(state)
        return self._all - reached
