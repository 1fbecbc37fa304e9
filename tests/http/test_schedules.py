"""What recurs, over HTTP."""

from __future__ import annotations

import time
from typing import Any

import pytest
from starlette.testclient import TestClient

from qmodel.client.cron import spec
from qmodel.client.sync import Client
from qmodel.contract.operations import Recur
from qmodel.http import create
from tests.http.conftest import HERE
from tests.http.test_operations import problem

JOB: dict[str, Any] = {"queue": "q", "klass": "K", "data": {"x": 1}}


def test_a_job_recurs_by_a_cron_expression_and_its_next_moment_is_known(api: TestClient, jobs: Client) -> None:
    made = api.put("/v1/schedules/daily", json=JOB | {"cron": "0 9 * * 1-5", "tz": "Europe/Berlin"})
    assert made.status_code == 200, made.text
    assert (made.json()["kind"], made.json()["data"], made.json()["cron"]) == (
        "cron",
        {"x": 1},
        "0 9 * * 1-5 Europe/Berlin",
    )
    assert made.json()["next_at"] > time.time() * 1000
    assert api.get("/v1/schedules/daily").json() == made.json()
    assert jobs.recurring["daily"].data == {"x": 1}


def test_or_at_an_interval_or_after_each_run(api: TestClient) -> None:
    assert api.put("/v1/schedules/a", json=JOB | {"interval_ms": 1000}).json()["kind"] == "interval"
    assert api.put("/v1/schedules/a", json=JOB | {"after_ms": 1000}).json()["kind"] == "after"
    run = api.post("/v1/queues/q/pop", json={"worker": "w", "timeout": 20}).json()["jobs"][0]
    assert (run["jid"], run["data"]) == ("a-1", {"x": 1})
    assert api.delete("/v1/schedules/a").json() == {"removed": True}
    assert api.delete("/v1/schedules/a").json() == {"removed": False}
    assert problem(api.get("/v1/schedules/a")) == (404, "SCHEDULE_NOT_FOUND")


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ({}, "BAD_JSON"),
        ({"interval_ms": 1, "cron": "* * * * *"}, "BAD_JSON"),
        ({"cron": "every day"}, "BAD_ARGUMENT"),
        ({"cron": "* * * * *", "tz": "Mars/Base"}, "BAD_ARGUMENT"),
        ({"interval_ms": 0}, "BAD_ARGUMENT"),
        ({"interval_ms": 5, "kind": "cron"}, "UNKNOWN_ARGUMENT"),
    ],
)
def test_what_is_no_time_is_refused(api: TestClient, when: dict[str, Any], code: str) -> None:
    assert problem(api.put("/v1/schedules/a", json=JOB | when)) == (400, code)


def test_a_server_keeps_the_expressions_of_others_going(url: str, jobs: Client) -> None:
    jobs.execute(Recur("q", "theirs", "K", "", 0, kind="cron", cron=spec("* * * * *", "UTC")))
    jobs.execute(Recur("q", "broken", "K", "", 0, kind="cron", cron="no expression"))
    with TestClient(create(url), base_url=HERE) as api:
        assert api.get("/v1/schedules/theirs").json()["next_at"] == 0
    with TestClient(create(url, writable=True), base_url=HERE) as api:
        until = time.monotonic() + 60
        while not (known := api.get("/v1/schedules/theirs").json()["next_at"]) and time.monotonic() < until:
            time.sleep(0.01)
        assert known
