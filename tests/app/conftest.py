"""An app on every backend: in this process, and on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qmodel import App
from qmodel.app import Outcome, perform
from tests.servers import NOTHING_FOUND, Candidate, Server, chosen_servers, running

Perform = Callable[[App], Outcome]


@pytest.fixture(
    scope="session",
    params=["memory", *(chosen_servers() or [None])[:1]],
    ids=lambda one: one if isinstance(one, str) else one.name if one else "none",
)
def place(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Where the jobs are: this process, or a private server."""
    if request.param == "memory":
        yield Server("memory", "memory://")
        return
    candidate: Candidate | None = request.param
    if candidate is None:
        pytest.skip(NOTHING_FOUND)
    with running(candidate) as started:
        yield started


@pytest.fixture
def app(place: Server) -> Iterator[App]:
    """An app in an empty namespace."""
    if place.name != "memory":
        with place.client() as connection:
            connection.flushdb()
    with App(place.url) as made:
        yield made


def perform_next(app: App, queue: str = "default") -> Outcome:
    """Perform the next job of a queue, and tell the engine what became of it."""
    job: Any = app.client.queues[queue].pop()
    assert job is not None, "no job is ready"
    outcome = perform(app, job)
    app.client.execute(outcome.operation(job))
    return outcome
