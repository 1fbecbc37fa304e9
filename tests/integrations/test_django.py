"""Django's tasks as jobs: real Django, a real worker, on the model and on a real server."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.servers import ROOT

BACKEND = "qmodel.integrations.django.QmodelBackend"


def at(url: str) -> dict[str, Any]:
    """Make the setting TASKS for jobs at a URL."""
    given = {"BACKEND": BACKEND, "QUEUES": ["default", "emails"]}
    options = {
        "default": {"url": url},
        "patient": {"url": url, "retries": 1, "backoff": 0},
        "careful": {"url": url, "on_commit": True},
        "written": {"url": url, "outbox": True},
    }
    return {alias: given | {"OPTIONS": one} for alias, one in options.items()}


if not settings.configured:
    settings.configure(
        USE_TZ=True,
        TIME_ZONE="UTC",
        INSTALLED_APPS=["tests.integrations.django_shop", "qmodel.integrations.django_outbox"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        TASKS=at("memory://"),
    )

import django  # noqa: E402  (after its settings)

django.setup()

from django.apps import apps  # noqa: E402
from django.core.management import CommandError, call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import override_settings  # noqa: E402

import qmodel.integrations.django as integration  # noqa: E402
from qmodel.app import load  # noqa: E402
from qmodel.integrations.django_outbox import jobs  # noqa: E402
from qmodel.worker import Worker  # noqa: E402
from tests.integrations.django_shop import tasks  # noqa: E402

Status = integration._base.TaskResultStatus


@pytest.fixture
def shop(url: str) -> Iterator[Any]:
    """Give the tasks, with backends at an empty namespace."""
    with override_settings(TASKS=at(url)):
        yield tasks


def work(alias: str = "default") -> None:
    """Perform the jobs, as a worker does."""
    app = integration.app_of(alias)
    worker = Worker(app, ["default", "emails"])
    thread = threading.Thread(target=worker.run)
    thread.start()
    jobs = app.client
    try:
        for queue in ("default", "emails"):
            while (counts := jobs.queues[queue].counts).waiting + counts.running + counts.scheduled:
                threading.Event().wait(0.01)
    finally:
        worker.stop()
        thread.join(30)


def test_a_task_is_performed_and_its_result_is_known(shop: Any) -> None:
    sent = shop.add.enqueue(1, y=2)
    assert (sent.status, sent.args, sent.kwargs) == (Status.READY, [1], {"y": 2})
    work()
    found = shop.add.get_result(sent.id)
    assert (found.status, found.return_value, found.args, found.kwargs) == (Status.SUCCESSFUL, 3, [1], {"y": 2})
    assert found.attempts == 1 and len(found.worker_ids) == 1
    assert found.enqueued_at <= found.started_at <= found.finished_at
    sent.refresh()
    assert sent.is_finished and sent.return_value == 3


def test_tasks_of_an_event_loop_are_enqueued_and_performed_in_one(shop: Any) -> None:
    async def enqueue() -> Any:
        sent = await shop.greet.aenqueue("Ada")
        assert (await shop.greet.aget_result(sent.id)).status == Status.READY
        return sent

    sent = asyncio.run(enqueue())
    work()
    assert shop.greet.get_result(sent.id).return_value == "Hello Ada"


def test_a_task_may_take_its_context(shop: Any) -> None:
    sent = shop.told.enqueue()
    work()
    assert shop.told.get_result(sent.id).return_value == [1, sent.id]


def test_an_exception_fails_a_task_and_is_told(shop: Any) -> None:
    sent, own = shop.order.enqueue("tea"), shop.divide.enqueue()
    work()
    found = shop.order.get_result(sent.id)
    assert found.status == Status.FAILED and found.attempts == 1
    assert found.errors[0].exception_class is tasks.OutOfStock
    assert "tea" in found.errors[0].traceback
    assert shop.divide.get_result(own.id).errors[0].exception_class is ZeroDivisionError
    with pytest.raises(ValueError, match="failed"):
        _ = found.return_value


def test_retries_are_an_option_of_the_backend(shop: Any) -> None:
    sent = shop.flaky.enqueue()
    work("patient")
    found = shop.flaky.get_result(sent.id)
    assert (found.status, found.attempts) == (Status.FAILED, 2)


def test_priority_queue_and_time_are_those_of_the_task(shop: Any) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    sent = shop.add.using(priority=-7, queue_name="emails", run_after=later).enqueue(1)
    job = integration.app_of("default").client.jobs[sent.id]
    assert (job.priority, job.queue, job.state) == (7, "emails", "scheduled")
    found = shop.add.get_result(sent.id)
    assert (found.task.priority, found.task.queue_name) == (-7, "emails")
    assert abs(found.task.run_after - later) < timedelta(minutes=1)
    assert json.loads(job.text) == {"args": [1], "kwargs": {}}


def test_a_task_of_a_transaction_is_put_with_it_or_not_at_all(shop: Any) -> None:
    careful = shop.add.using(backend="careful")
    with transaction.atomic():
        sent = careful.enqueue(1)
        with pytest.raises(integration._errors.TaskResultDoesNotExist):
            careful.get_result(sent.id)
    assert careful.get_result(sent.id).status == Status.READY
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        lost = careful.enqueue(2)
        _ = 1 / 0
    with pytest.raises(integration._errors.TaskResultDoesNotExist):
        careful.get_result(lost.id)
    assert asyncio.run(careful.aenqueue(3)).status == Status.READY


@pytest.fixture
def outbox() -> Iterator[Any]:
    """Give the rows of the outbox, in a database of memory."""
    call_command("migrate", verbosity=0)
    rows = apps.get_model("qmodel_outbox", "OutboxJob").objects
    yield rows
    rows.all().delete()


def test_a_task_of_the_outbox_is_a_row_until_it_is_relayed(shop: Any, outbox: Any) -> None:
    written = shop.add.using(backend="written")
    with transaction.atomic():
        sent = written.enqueue(1)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        written.enqueue(2)
        _ = 1 / 0
    assert [row.jid for row in outbox.all()] == [sent.id]
    with pytest.raises(integration._errors.TaskResultDoesNotExist):
        written.get_result(sent.id)
    told = io.StringIO()
    call_command("qmodel_outbox", "--alias", "written", "--once", stdout=told)
    assert told.getvalue() == "1 row became jobs, 0 were refused.\n"
    assert written.get_result(sent.id).status == Status.READY and not outbox.exists()


def test_a_row_that_is_refused_stays_with_its_reason(shop: Any, outbox: Any) -> None:
    client = integration.app_of("written").client
    bad, good = jobs.put(client.queues["q"].new("K", depends=["missing"]), client.queues["q"].new("K"))
    with pytest.raises(CommandError, match="says why"):
        call_command("qmodel_outbox", "--alias", "written", "--once", stdout=io.StringIO())
    assert [(row.jid, "missing" in row.refused) for row in outbox.all()] == [(bad, True)]
    assert client.jobs[good].state == "waiting"


def test_no_migration_of_the_outbox_is_missing() -> None:
    call_command("makemigrations", "qmodel_outbox", check=True, dry_run=True, verbosity=0)


def test_the_option_needs_its_application(shop: Any) -> None:
    def found() -> list[str]:
        return [one.id for one in integration._backend("written").check()]

    assert "qmodel.E001" not in found()
    with override_settings(INSTALLED_APPS=["tests.integrations.django_shop"]):
        assert "qmodel.E001" in found()


def test_the_framework_is_told_of_each_task(shop: Any) -> None:
    heard: list[tuple[str, str, str]] = []
    names = ("task_enqueued", "task_started", "task_finished")
    hearers = {}
    for name in names:

        def hear(sender: type, task_result: Any, _name: str = name, **rest: Any) -> None:
            heard.append((_name, task_result.id, str(task_result.status)))

        hearers[name] = hear
        getattr(integration._signals, name).connect(hear)
    try:
        sent, bad = shop.add.enqueue(1), shop.divide.enqueue()
        work()
    finally:
        for name in names:
            getattr(integration._signals, name).disconnect(hearers[name])
    assert [(name, status) for name, jid, status in heard if jid == sent.id] == [
        ("task_enqueued", "READY"),
        ("task_started", "RUNNING"),
        ("task_finished", "SUCCESSFUL"),
    ]
    assert ("task_finished", bad.id, "FAILED") in heard


def test_a_result_that_there_is_not_is_said_so(shop: Any) -> None:
    for result_id in ("nobody", "with blanks", ""):
        with pytest.raises(integration._errors.TaskResultDoesNotExist):
            shop.add.get_result(result_id)
    integration.app_of("default").client.queues["default"].put("Other", jid="other")
    with pytest.raises(integration._errors.TaskResultDoesNotExist, match="Other"):
        shop.add.get_result("other")
    sent = shop.divide.enqueue()
    with pytest.raises(integration._errors.TaskResultMismatch):
        shop.add.get_result(sent.id)


def test_what_cannot_be_is_refused_when_it_is_said(shop: Any) -> None:
    with pytest.raises(integration.InvalidTask, match="not valid"):
        shop.add.using(queue_name="other").enqueue(1)
    with pytest.raises(TypeError, match="Unsupported"):
        shop.add.enqueue(object())
    wrong = override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": {"retrys": 3}}})
    with wrong, pytest.raises(integration.InvalidTask, match="Did you mean"):
        shop.add.enqueue(1)


def test_a_worker_finds_the_app_by_its_name(shop: Any) -> None:
    shop.add.enqueue(1)
    assert "tests.integrations.django_shop.tasks.add" in load("qmodel.integrations.django:app").jobs


@pytest.mark.parametrize(
    ("settings_module", "said"),
    [
        ("", "Set DJANGO_SETTINGS_MODULE"),
        ("nosuch.settings", "There is no module 'nosuch'"),
        ("plain", "is a DummyBackend"),
        ("wrong", "Could not find backend"),
    ],
)
def test_a_worker_without_settings_is_told_in_a_sentence(settings_module: str, said: str, tmp_path: Path) -> None:
    backends = {"plain": f"{integration.FRAMEWORK}.backends.dummy.DummyBackend", "wrong": "no.such.Backend"}
    for name, backend in backends.items():
        text = f"SECRET_KEY = 'x'\nTASKS = {{'default': {{'BACKEND': {backend!r}}}}}\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT)} | ({"DJANGO_SETTINGS_MODULE": settings_module} if settings_module else {})
    command = [sys.executable, "-m", "qmodel", "worker", "qmodel.integrations.django:app"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_place_that_no_worker_reaches_is_warned_of(shop: Any) -> None:
    backend = integration._backend("default")
    assert [one.id for one in backend.check()] == (["qmodel.W001"] if backend.app.url.startswith("memory:") else [])
