"""A worker's measurements of its attempts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from qmodel import App, Context, Fail, Release
from qmodel.app import Outcome, perform
from qmodel.telemetry.prometheus import metrics, page
from tests.servers import ROOT
from tests.telemetry.conftest import Work


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_attempts_are_counted_by_how_they_ended(app: App, work: Work) -> None:
    registry = metrics(app)
    running: list[float | None] = []

    @app.job(name="Send", queue="mail", backoff=0, retries=1)
    def send(how: str, context: Context) -> None:
        running.append(value(registry, "qmodel_attempts_running", queue="mail", klass="Send"))
        if how == "raise":
            raise ValueError
        if how == "fail":
            raise Fail("Bounced")
        if how == "later" and not context.arguments.get("again"):
            raise Release(3600)

    for how in ("well", "raise", "fail", "later"):
        send.put(how)
    app.client.queues["mail"].put("Send", {"unknown": 1})
    work("mail")

    ended = {
        word: value(registry, "qmodel_attempts_total", queue="mail", klass="Send", outcome=word)
        for word in ("completed", "retried", "failed", "released")
    }
    # failed: a last attempt, one that asked to fail, and one with bad arguments, which has no duration
    assert ended == {"completed": 1, "retried": 1, "failed": 3, "released": 1}
    assert value(registry, "qmodel_attempt_seconds_count", queue="mail", klass="Send") == 5
    assert set(running) == {1}
    assert value(registry, "qmodel_attempts_running", queue="mail", klass="Send") == 0


def test_a_job_that_nobody_knows_is_counted_and_never_running(app: App) -> None:
    registry = metrics(app)
    app.client.queues["mail"].put("Sned")
    job = app.client.queues["mail"].pop()
    assert job is not None
    outcome: Outcome = perform(app, job)

    assert value(registry, "qmodel_attempts_total", queue="mail", klass="Sned", outcome=outcome.word) == 1
    assert value(registry, "qmodel_attempts_running", queue="mail", klass="Sned") is None


def test_lost_locks_are_counted(app: App, work: Work) -> None:
    registry = metrics(app)

    @app.job(name="Send")
    def send(context: Context) -> None:
        app.hooks.fire("lost_lock", context, None)

    send.put()
    work()
    assert value(registry, "qmodel_locks_lost_total", queue="default", klass="Send") == 1
    assert b"qmodel_locks_lost_total" in page(registry)()[1]


def test_an_app_is_measured_once(app: App, work: Work) -> None:
    registry = metrics(app)
    assert metrics(app) is registry is metrics(app, registry)
    with pytest.raises(ValueError, match="another registry"):
        metrics(app, CollectorRegistry())

    @app.job(name="Send")
    def send() -> None: ...

    send.put()
    work()
    assert value(registry, "qmodel_attempts_total", queue="default", klass="Send", outcome="completed") == 1


PROCESSES = """
import os
from qmodel import App
from qmodel.app import perform
from qmodel.telemetry.prometheus import metrics, page

app = App("memory://")
registry = metrics(app)

@app.job(name="Send")
def send() -> None: ...

def work():
    send.put()
    perform(app, app.client.queues["default"].pop())

child = os.fork()
work()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(page(registry)()[1].decode())
"""


def test_figures_of_several_processes_are_added_up_where_they_write_them_down(tmp_path: Path) -> None:
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROCESSES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert 'qmodel_attempts_total{klass="Send",outcome="completed",queue="default"} 2.0' in done.stdout
