"""Workers of one slot, whose server is full, or away while they ask for a job."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from qmodel.app import App
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError
from tests.backends.helpers import Starter
from tests.worker.support import PATIENCE, until, working


@pytest.mark.parametrize("namespace", ["prefix=full:", "name=full&shards=2"])
def test_a_full_server_is_drained_by_a_worker_of_one_slot(private: Starter, namespace: str) -> None:
    begun, enough = threading.Event(), threading.Event()
    with private() as server, server.client() as raw:
        app = App(f"{server.url}?{namespace}")

        @app.job
        def rest() -> None:
            begun.set()
            enough.wait(PATIENCE)

        first, second = rest.put(), rest.put()
        with working(app, concurrency=1):
            assert begun.wait(PATIENCE)
            held = next(job for job in (first, second) if app.client.jobs[job.jid].state == "running")
            raw.config_set("maxmemory", 1)
            enough.set()
            until(lambda: app.client.jobs[held.jid].state == "complete", "the end of the job that was held")
            raw.config_set("maxmemory", 0)
            assert app.client.wait([first, second], timeout=PATIENCE) == [None, None]


def test_an_outage_before_its_pop_is_no_part_of_a_jobs_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app, tried = App(url), threading.Event()

    @app.job(timeout=1.5)
    def rest() -> float:
        began = time.monotonic()
        while time.monotonic() < began + 0.3:
            time.sleep(0.01)
        return time.monotonic() - began

    def away(operations: Sequence[Operation]) -> list[Any]:
        tried.set()
        raise ConnectError("It is away.", "Wait.")

    with working(app) as worker:
        until(app.client.workers.counts, "the worker")
        with monkeypatch.context() as outage:
            outage.setattr(worker.connection.client, "execute_many", away)
            assert tried.wait(PATIENCE)
            time.sleep(2.5)  # its pop is under way for longer than the job may take
            job = rest.put()
        assert job.wait(timeout=PATIENCE) >= 0.3
        assert [one.outcome for one in app.client.jobs[job.jid].attempts] == ["completed"]
