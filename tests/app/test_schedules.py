"""Schedules that are declared: told once, whoever starts and however often."""

from __future__ import annotations

from datetime import timedelta

import pytest

from qmodel import App, Client
from qmodel.app import DeclarationError
from tests.app.conftest import perform_next


def test_schedules_are_told_to_the_engine(app: App) -> None:
    @app.job(queue="reports", every=60, priority=2, retries=1, tags=["daily"], arguments={"kind": "small"})
    def report(kind: str) -> str:
        return kind

    @app.job(cron="0 9 * * 1-5", tz="Europe/Berlin", missed="one", overlap="skip")
    def morning() -> None: ...

    @app.job(after=30)
    def again() -> None: ...

    report.schedule("big-report", {"kind": "big"}, every=3600)
    assert list(app.schedules) == ["schedule.report", "schedule.morning", "schedule.again", "big-report"]
    assert app.tell_schedules() == list(app.schedules)
    known = app.client.recurring["schedule.report"]
    assert (known.queue, known.klass, known.data) == ("reports", "report", {"kind": "small"})
    assert (known.interval.total_seconds(), known.priority, known.retries, known.tags) == (60, 2, 1, ("daily",))
    cron = app.client.recurring["schedule.morning"]
    assert (cron.cron, cron.tz, cron.missed, cron.overlap) == ("0 9 * * 1-5", "Europe/Berlin", "one", "skip")
    assert cron.next_at is not None
    assert app.client.recurring["schedule.again"].kind == "after"


def test_telling_again_changes_nothing(app: App) -> None:
    @app.job(every=3600)
    def tick() -> int:
        return 1

    app.tell_schedules()
    perform_next(app)
    before = app.client.recurring["schedule.tick"]
    app.tell_schedules()
    after = app.client.recurring["schedule.tick"]
    assert (after.next_at, after.runs) == (before.next_at, 1)
    assert app.client.queues["default"].pop() is None


def test_a_run_has_all_the_options_of_its_job_type(app: App) -> None:
    @app.job(every=3600, timeout=7, tags=["kind-{kind}"], arguments={"kind": "a"})
    def report(kind: str) -> str:
        return kind

    assert app.client.recurring.get("schedule.report") is None
    app.tell_schedules()
    perform_next(app)
    (job,) = (one for one in app.client.queues["default"].waiting() if one.klass == "report")
    assert (job.longest, job.tags, job.data) == (timedelta(seconds=7), ("kind-a",), {"kind": "a"})
    perform_next(app)
    assert job.refresh().result == "a"
    assert list(app.jobs) == ["schedule:report", "report"]


def test_a_run_that_must_not_overlap_waits_for_its_job(app: App) -> None:
    ran: list[int] = []

    @app.job(every=3600, overlap="skip", lease=30, retries=0)
    def sync() -> None:
        ran.append(1)
        raise ValueError

    app.tell_schedules()
    perform_next(app)
    assert app.client.recurring["schedule.sync"].unfinished == 1
    perform_next(app)
    perform_next(app)
    assert (len(ran), app.client.recurring["schedule.sync"].unfinished) == (1, 0)


def test_a_schedule_that_is_no_longer_declared_is_told_of(app: App, caplog: pytest.LogCaptureFixture) -> None:
    older = App("memory://")
    older.job(name="sync", every=60)(lambda: None)
    older.job(name="fetch", every=60, timeout=3)(lambda: None)
    with older.using(app.client):
        older.tell_schedules()
    app.job(name="sync")(lambda: None)
    app.job(name="fetch")(lambda: None)
    app.tell_schedules()
    assert sorted(record.args[1] for record in caplog.records if record.args) == ["schedule.fetch", "schedule.sync"]
    assert app.client.recurring.get("schedule.sync") is not None


def test_two_schedules_of_one_id_are_refused() -> None:
    app = App("memory://")
    one, two = app.job(name="one")(lambda: None), app.job(name="two")(lambda: None)
    one.schedule("mine", every=1)
    with pytest.raises(DeclarationError, match="schedule 'mine' already"):
        two.schedule("mine", every=1)


def test_a_name_that_is_no_id_has_one(app: App) -> None:
    app.job(name="täglich um neun", every=60)(lambda: None)
    (jid,) = app.tell_schedules()
    assert app.client.recurring[jid].klass == "täglich um neun"


def test_a_worker_tells_schedules_by_its_own_connection() -> None:
    app = App("memory://never-opened")

    @app.job(every=60)
    def tick() -> None: ...

    with Client("memory://") as client:
        assert app.tell_schedules(client) == list(app.schedules)
        assert [one.jid for one in client.queues["default"].recurring()] == list(app.schedules)
    with Client("memory://never-opened") as other:
        assert list(other.queues) == []
