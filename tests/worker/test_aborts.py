"""Attempts that are aborted before they begin."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from qmodel.app import App, Context
from qmodel.app.outcome import Outcome, Retried
from qmodel.contract.operations import Pop
from qmodel.worker.attempt import Abort, Attempt
from qmodel.worker.loop import AsyncRunner
from qmodel.worker.threads import ThreadRunner
from tests.worker.support import until


@pytest.fixture
def app() -> App:
    made = App("memory://")

    @made.job
    async def work() -> None:
        pass

    return made


def popped(app: App, count: int) -> list[Attempt]:
    """Put jobs and pop them."""
    for _ in range(count):
        app.jobs["work"].put()
    return [Attempt(job, time.monotonic()) for job in app.client.execute(Pop("default", "w", count))]


def test_an_attempt_that_is_aborted_before_its_task_begins_frees_its_slot(app: App) -> None:
    ended: list[Attempt] = []
    runner = AsyncRunner(app, 1, ended.append)
    runner.start()
    busy = threading.Event()
    runner._loop.call_soon_threadsafe(busy.wait)  # a coroutine that computes holds the loop
    first, second = popped(app, 2)
    runner.run([first])
    runner.abort(first, Abort("revoked", "It was revoked."))
    busy.set()
    until(lambda: ended == [first])
    assert first.outcome is None
    runner.run([second])
    until(lambda: ended == [first, second])
    runner.close()


@pytest.mark.parametrize("kind", [AsyncRunner, ThreadRunner])
def test_hooks_get_the_context_of_an_attempt_whose_time_was_over_before_it_began(app: App, kind: Any) -> None:
    heard: list[tuple[Context, Outcome]] = []
    app.on("failure")(lambda context, outcome: heard.append((context, outcome)))
    ended: list[Attempt] = []
    runner = kind(app, 1, ended.append)
    (attempt,) = popped(app, 1)
    runner.abort(attempt, Abort("timeout", "It ran for longer than its timeout of 1 s."))
    runner.run([attempt])
    runner.start()
    until(lambda: ended)
    runner.close()
    ((context, outcome),) = heard
    assert context.jid == attempt.jid and isinstance(outcome, Retried) and outcome.group == "TimedOut"
