"""The comfortable paths: a program in another language can put jobs, and be a worker, by them alone."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from qmodel.client.sync import Client
from qmodel.http import create
from qmodel.http.api import Limits
from tests.http.conftest import HERE
from tests.http.test_operations import problem


def put(api: TestClient, given: Any, queue: str = "q", **headers: str) -> Any:
    """Put a job, or several."""
    return api.post(f"/v1/queues/{quote(queue, safe='')}/jobs", json=given, headers=headers)


def pop(api: TestClient, queue: str = "q", **given: Any) -> list[Any]:
    """Lease jobs."""
    found = api.post(f"/v1/queues/{queue}/pop", json={"worker": "w"} | given)
    assert found.status_code == 200, found.text
    jobs: list[Any] = found.json()["jobs"]
    return jobs


def test_a_worker_can_live_on_http(api: TestClient, jobs: Client) -> None:
    made = put(api, {"klass": "Send", "data": {"to": "ada"}, "priority": -1, "tags": ["t"]})
    assert made.status_code == 201
    jid = made.json()["jid"]
    job = pop(api)[0]
    assert (job["jid"], job["data"], job["priority"], job["tags"]) == (jid, {"to": "ada"}, -1, ["t"])

    def act(what: str, **given: Any) -> Any:
        return api.post(f"/v1/jobs/{jid}/{what}", json={"token": job["token"]} | given)

    assert act("heartbeat").json()["reply"]["revoked"] is False
    assert act("progress", progress="half").json() == {"reply": jid}
    assert act("retry", delay_ms=0, group="oops", message="m").json() == {"reply": 4}
    job = pop(api)[0]
    assert act("complete", result=[1, {"x": None}]).json() == {"reply": "complete"}
    assert act("complete", result=[1, {"x": None}]).json() == {"reply": "complete"}  # sent again
    assert problem(act("fail", group="g", message="late")) == (409, "LOCK_LOST")
    assert jobs.jobs[jid].wait(timeout=1) == [1, {"x": None}]
    assert api.get(f"/v1/jobs/{jid}").json()["result"] == [1, {"x": None}]


@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("/v1/jobs/a/wait?timout=0", "Did you mean timeout?"),
        ("/v1/jobs/a?x=1", "There are none."),
        ("/v1/queues/q?x=1", "There are none."),
        ("/v1/events?queues=q", "Did you mean queue?"),
    ],
)
def test_a_name_in_the_query_that_means_nothing_is_refused(api: TestClient, path: str, action: str) -> None:
    found = api.get(path)
    assert (found.status_code, found.json()["code"], found.json()["next_step"]) == (400, "UNKNOWN_ARGUMENT", action)


def test_what_python_stores_and_what_http_stores_is_the_same(api: TestClient, jobs: Client) -> None:
    data = {"ü": [1, 2.5, True, None], "deep": {"x": []}}
    here = jobs.queues["q"].put("K", data)
    there = put(api, {"klass": "K", "data": data}).json()["jid"]
    assert jobs.jobs[there].text == jobs.jobs[here.jid].text
    assert api.get(f"/v1/jobs/{here.jid}").json()["data"] == data


def test_text_that_is_no_json_goes_and_comes_as_text(api: TestClient, jobs: Client) -> None:
    put(api, {"jid": "a", "klass": "K", "data_text": "not {json"})
    found = api.get("/v1/jobs/a").json()
    assert (found["data"], found["data_text"], jobs.jobs["a"].text) == (None, "not {json", "not {json")
    assert problem(put(api, {"klass": "K", "data_text": None})) == (400, "BAD_JSON")
    for data in (1, None):
        assert problem(put(api, {"klass": "K", "data": data, "data_text": "x"})) == (400, "BAD_JSON")
    for text in ("NaN", "1e999", "[" * 100_000):
        jobs.queues["q"].put("K", text=text, jid="odd")
        assert api.get("/v1/jobs/odd").json()["data_text"] == text


def test_null_is_data_too(api: TestClient, jobs: Client) -> None:
    put(api, {"jid": "a", "klass": "K", "data": 1})
    assert api.post("/v1/jobs/a/update", json={"data": None}).status_code == 200
    assert jobs.jobs["a"].text == "null"


def test_the_place_of_a_new_job_is_told(api: TestClient) -> None:
    made = put(api, {"jid": "a/b?c", "klass": "K"}, "with/slash")
    where = made.request.url.join(made.headers["location"])
    assert api.get(str(where)).json()["jid"] == "a/b?c"
    assert api.get("/v1/queues/with%2Fslash").json()["waiting"] == 1
    assert problem(api.get("/v1/jobs/nobody")) == (404, "JOB_NOT_FOUND")


def test_many_jobs_are_put_in_one_step_or_none(api: TestClient, jobs: Client) -> None:
    made = put(api, [{"klass": "K", "jid": "a"}, {"klass": "K", "depends": ["a"]}])
    assert made.status_code == 201 and len(made.json()["jobs"]) == 2
    assert problem(put(api, [{"klass": "K"}, {"klass": ""}])) == (400, "BAD_ARGUMENT")
    assert problem(put(api, [])) == (400, "BAD_ARGUMENT")
    assert jobs.queues["q"].length() == 2


def test_a_job_that_another_stands_for_is_not_made(api: TestClient) -> None:
    first = put(api, {"klass": "K", "unique": "key"})
    second = put(api, {"klass": "K", "unique": "key"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json() == {"jid": first.json()["jid"], "deduplicated": True}


def test_a_key_counts_for_one_path(api: TestClient, jobs: Client) -> None:
    for key in ("order-17", "with, blanks", "x" * 500):
        first = put(api, {"klass": "K"}, "one", **{"Idempotency-Key": key}).json()["jid"]
        other = put(api, {"klass": "K"}, "two", **{"Idempotency-Key": key}).json()["jid"]
        again = put(api, {"klass": "K"}, "one", **{"Idempotency-Key": key}).json()["jid"]
        assert first == again != other
        for jid in (first, other):
            api.post(f"/v1/jobs/{jid}/log", json={"message": "noted"}, headers={"Idempotency-Key": key})
            assert [stage.what for stage in jobs.jobs[jid].history] == ["put", "log"]


def test_a_pop_under_one_key_gives_the_same_jobs_again(api: TestClient) -> None:
    put(api, [{"klass": "K"}, {"klass": "K"}])
    key = {"Idempotency-Key": "p1"}
    first, second = (api.post("/v1/queues/q/pop", json={"worker": "w"}, headers=key).json() for _ in range(2))
    assert first["jobs"][0]["jid"] == second["jobs"][0]["jid"]
    assert len(pop(api, count=10)) == 1


def test_a_pop_waits_for_a_job(api: TestClient, jobs: Client) -> None:
    threading.Timer(0.2, lambda: jobs.queues["q"].put("K", jid="late")).start()
    assert [job["jid"] for job in pop(api, timeout=20)] == ["late"]
    assert pop(api, timeout=0.01) == []
    some = api.post("/v1/pop", json={"queues": ["x", "y"], "worker": "w", "timeout": 0.01})
    assert some.json() == {"jobs": []}


@pytest.mark.parametrize("timeout", [-1, "long", "nan", True, []])
def test_a_timeout_is_a_number_of_seconds(api: TestClient, timeout: Any) -> None:
    found = api.post("/v1/queues/q/pop", json={"worker": "w", "timeout": timeout})
    assert problem(found) == (400, "BAD_JSON")
    assert problem(api.get("/v1/jobs/a/wait", params={"timeout": str(timeout)})) == (400, "BAD_JSON")


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (lambda job: job.complete({"n": 1}), {"outcome": "completed", "result": {"n": 1}}),
        (lambda job: job.fail("g", "why"), {"outcome": "failed", "group": "g", "message": "why"}),
        (lambda job: job.cancel(), {"outcome": "canceled"}),
    ],
)
def test_waiting_tells_how_a_job_ended(api: TestClient, jobs: Client, end: Any, outcome: dict[str, Any]) -> None:
    jobs.queues["q"].put("K", jid="a")
    job = jobs.queues["q"].pop()
    assert job is not None
    soon = api.get("/v1/jobs/a/wait?timeout=0.01")
    assert (soon.status_code, soon.json()) == (202, {"jid": "a", "outcome": None})
    timer = threading.Timer(0.2, lambda: end(job))
    timer.start()
    found = api.get("/v1/jobs/a/wait?timeout=20")
    timer.join()
    assert (found.status_code, found.json()) == (200, {"jid": "a"} | outcome)


def test_waiting_for_what_never_was_is_a_404(api: TestClient) -> None:
    assert problem(api.get("/v1/jobs/nobody/wait?timeout=5")) == (404, "JOB_NOT_FOUND")


def test_a_result_that_is_no_json_is_told_as_text(api: TestClient, jobs: Client) -> None:
    put(api, {"klass": "K", "jid": "a"})
    job = pop(api)[0]
    api.post("/v1/jobs/a/complete", json={"token": job["token"], "result_text": "plain"})
    assert api.get("/v1/jobs/a/wait").json() == {
        "jid": "a",
        "outcome": "completed",
        "result": None,
        "result_text": "plain",
    }


def test_jobs_are_searched_and_canceled(api: TestClient) -> None:
    put(api, [{"klass": "K", "jid": "a"}, {"klass": "K", "jid": "b", "depends": ["a"]}])
    found = api.get("/v1/jobs?queue=q&state=waiting").json()
    assert [job["jid"] for job in found["jobs"]] == ["a"]
    assert problem(api.get("/v1/jobs")) == (400, "TOO_WIDE")
    assert problem(api.delete("/v1/jobs/a")) == (409, "HAS_DEPENDENTS")
    assert sorted(api.delete("/v1/jobs/a?cascade=true").json()["canceled"]) == ["a", "b"]
    assert api.delete("/v1/jobs/a").json() == {"canceled": []}


def test_queues_are_listed_and_paused(api: TestClient, jobs: Client) -> None:
    put(api, {"klass": "K"})
    assert api.post("/v1/queues/q/pause", json={"reason": "deploy"}).json() == {"reply": 1}
    assert [one["paused"] for one in api.get("/v1/queues").json()["queues"]] == [True]
    assert pop(api) == []
    assert api.post("/v1/queues/q/unpause").json() == {"reply": 1}
    assert len(pop(api)) == 1


def test_more_may_not_wait_than_the_server_bears(url: str) -> None:
    for limits, status in ((Limits(waiting=0), (503, "BUSY")), (Limits(waiting_each=0), (429, "TOO_MANY_WAITING"))):
        with TestClient(create(url, writable=True, limits=limits), base_url=HERE) as api:
            found = api.post("/v1/queues/q/pop", json={"worker": "w", "timeout": 1})
            assert problem(found) == status
            assert found.headers["retry-after"] == "1"
            assert problem(api.get("/v1/events")) == status


def test_a_wait_is_no_longer_than_the_server_bears(url: str) -> None:
    with TestClient(create(url, writable=True, limits=Limits(wait_seconds=0.05)), base_url=HERE) as api:
        assert pop(api, timeout=3600) == []


def test_a_job_is_put_for_a_moment(api: TestClient) -> None:
    for at in ("2126-01-31T12:00:00+01:00", 4_925_530_800_000):
        jid = put(api, {"klass": "K", "at": at}).json()["jid"]
        assert api.get(f"/v1/jobs/{jid}").json()["ready_at"] == 4_925_530_800_000
    naive = put(api, {"klass": "K", "at": "2126-01-31T12:00:00"})
    assert problem(naive) == (400, "BAD_ARGUMENT")
    assert naive.json()["next_step"] == "Add Z for UTC, or an offset such as +01:00."
    assert problem(put(api, [{"klass": "K", "at": "soon"}])) == (400, "BAD_ARGUMENT")
    assert problem(put(api, {"klass": "K", "at": 5, "delay_ms": 1})) == (400, "BAD_ARGUMENT")


def test_a_complete_job_is_deleted_if_that_is_asked_for(api: TestClient, jobs: Client) -> None:
    job = jobs.queues["q"].put("K")
    held = jobs.queues["q"].pop()
    assert held is not None and held.complete() == "complete"
    assert api.delete(f"/v1/jobs/{job.jid}").json() == {"canceled": []}
    assert api.delete(f"/v1/jobs/{job.jid}?complete=true").json() == {"canceled": [job.jid]}
    assert api.get(f"/v1/jobs/{job.jid}").status_code == 404


def test_figures_by_job_type_are_read(api: TestClient, jobs: Client) -> None:
    put(api, [{"klass": "Send", "jid": f"s{number}"} for number in range(3)])
    job, *_ = pop(api, count=2)
    said = {"token": job["token"], "group": "g", "message": "m"}
    assert api.post(f"/v1/jobs/{job['jid']}/fail", json=said).is_success
    found = api.get("/v1/types").json()
    (send,) = found["types"]
    assert (send["klass"], send["put"], send["popped"], send["failed"]) == ("Send", 3, 2, 1)
    assert send["groups"] == {"g": 1}
    assert send["wait"].keys() == {"samples", "p50", "p95", "p99"}
    assert api.get("/v1/types?events=1").json()["events"] == 1
    for wrong in ("events=0", "events=x", "events=10001", "jid=a"):
        refused = api.get(f"/v1/types?{wrong}")
        assert (refused.status_code, refused.json()["code"]) == (400, "UNKNOWN_ARGUMENT")


def test_a_number_of_thousands_of_digits_is_refused(api: TestClient) -> None:
    found = api.get(f"/v1/types?events={'0' * 5000}1")
    assert (found.status_code, found.json()["code"]) == (400, "UNKNOWN_ARGUMENT")
