"""Apps whose jobs are in this process, and a function that performs them one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from qmodel import App
from qmodel.app import Outcome, perform

Work = Callable[..., list[Outcome]]
_NUMBERS = itertools.count(1)


@pytest.fixture
def app() -> Iterator[App]:
    with App(f"memory://telemetry-{next(_NUMBERS)}") as app:
        yield app


@pytest.fixture
def work(app: App) -> Work:
    """Perform all ready jobs of a queue, as a worker would."""

    def do(queue: str = "default", worker: str = "w1") -> list[Outcome]:
        outcomes = []
        while job := app.client.queues[queue].pop(worker=worker):
            outcomes.append(perform(app, job))
            app.client.execute(outcomes[-1].operation(job))
        return outcomes

    return do
