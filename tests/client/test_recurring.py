"""Recurring jobs, as an application sees them."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

import qmodel
from qmodel import Client
from qmodel.errors import DataError, ScheduleNotFound

DAY = 86_400


def test_a_recurring_job_puts_runs_that_say_whose_they_are(client: Client) -> None:
    queue = client.queues["q"]
    daily = queue.recur("Report", {"of": "day"}, interval=DAY, jid="daily", priority=-1, retries=2, tags=["a", "b"])

    assert (daily.jid, daily.queue, daily.klass, daily.data) == ("daily", "q", "Report", {"of": "day"})
    assert (daily.interval, daily.priority, daily.retries, daily.backlog) == (timedelta(days=1), -1, 2, 0)
    assert (daily.runs, daily.tags) == (0, ("a", "b"))
    assert (queue.counts.recurring, queue.counts.due) == (1, 1)
    run = queue.peek()
    assert run is not None and client.jobs.get("daily-1") is None
    job = queue.pop()
    assert job is not None and job.jid == run.jid == "daily-1"
    assert (job.data, job.priority, job.retries, job.tags) == ({"of": "day"}, -1, 2, ("a", "b"))
    assert job.spawned_from == "daily"
    assert queue.pop() is None
    assert daily.refresh().runs == 1
    assert job.ready_at is not None and daily.next_at == job.ready_at + timedelta(days=1)


def test_what_is_updated_is_of_the_runs_to_come(client: Client) -> None:
    queue = client.queues["q"]
    often = queue.recur("K", interval=DAY, offset=DAY, text="not JSON", backlog=3)

    often.update(klass="L", data=[1], interval=60, priority=5, retries=0, queue="r", backlog=1)
    often.tag("x", "y", "x")
    often.untag("y", "z")
    assert (often.klass, often.data, often.interval.seconds, often.priority) == ("L", [1], 60, 5)
    assert (often.retries, often.queue, often.backlog, often.tags) == (0, "r", 1, ("x",))
    assert [one.jid for one in client.queues["r"].recurring()] == [often.jid]
    assert queue.recurring().total == 0
    assert queue.fire() == client.queues["r"].fire() == 0


def test_a_job_recurs_until_it_does_no_more(client: Client) -> None:
    queue = client.queues["q"]
    queue.recur("K", interval=DAY, jid="a")
    queue.recur("L", interval=DAY, jid="a")

    assert queue.fire() == 1
    assert client.recurring["a"].klass == "L"
    assert client.recurring["a"].unrecur()
    assert not client.recurring.unrecur("a")
    assert client.recurring.get("a") is None
    assert [job.jid for job in queue.waiting()] == ["a-1"]
    with pytest.raises(ScheduleNotFound, match="no recurring job a"):
        _ = client.recurring["a"]


def test_data_that_are_not_json_are_told(client: Client) -> None:
    odd = client.queues["q"].recur("K", interval=1, offset=DAY, text="{", jid="odd")

    assert odd.text == "{"
    with pytest.raises(DataError):
        _ = odd.data
    assert repr(odd).startswith("<RecurringJob odd") or repr(odd).startswith("<AsyncRecurringJob odd")
    with pytest.raises(TypeError):
        client.queues["q"].recur("K", 1, interval=1, text="1")


PATIENCE = 60.0
"""Seconds after which the test no longer waits."""


def test_an_idle_worker_wakes_when_a_run_is_due(client_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmodel.client.sync.LONGEST_SLEEP", 1000.0)  # it never looks by itself
    backend = "memory://recurring" if client_url == "memory://" else client_url
    taken: list[str] = []

    def idle() -> None:
        queue = qmodel.Client(backend).queues["q"]
        for _ in range(3):
            job = queue.pop(timeout=10 * PATIENCE)
            assert job is not None
            taken.append(job.jid)
            job.complete()

    thread = threading.Thread(target=idle, daemon=True)
    thread.start()
    time.sleep(0.3)
    recurring = qmodel.Client(backend).queues["q"].recur("K", interval=0.4, offset=0.4, jid="r")
    thread.join(PATIENCE)
    recurring.unrecur()
    assert taken == ["r-1", "r-2", "r-3"]
