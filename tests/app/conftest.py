"""An app on every backend: in this process, and on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qmodel import App
from qmodel.app import Outcome, perform
from tests.servers import Server

Perform = Callable[[App], Outcome]


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
