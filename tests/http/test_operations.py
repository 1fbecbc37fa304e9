"""Every operation by its name, and how what goes wrong is told."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from starlette.testclient import TestClient

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import EVERY_REASON
from qmodel.http import create
from qmodel.http.api import Limits
from qmodel.http.problems import AGAIN, OWN, STATUS
from qmodel.wire.plain import plain
from tests.http.conftest import HERE

JSON = {"Content-Type": "application/json"}


def problem(found: Any) -> tuple[int, str]:
    """The status and the code of a problem, which says of itself what it is."""
    assert found.headers["content-type"] == "application/problem+json"
    body = found.json()
    assert body["status"] == found.status_code
    assert body["detail"] == f"{body['title']} {body['next_step']}"
    return found.status_code, body["code"]


def test_an_operation_does_what_it_does_without_http(api: TestClient, jobs: Client) -> None:
    sent = api.post("/v1/operations/put", json={"queue": "q", "jid": "a", "klass": "K", "data": "x", "tags": ["t"]})
    assert (sent.status_code, sent.json()) == (200, {"reply": "a"})
    for op in (ops.Get("a"), ops.Queue("q"), ops.Tagged("t"), ops.Events(), ops.Stats("q")):
        given = {a.name: getattr(op, a.name) for a in op.spec.arguments}
        found = api.post(f"/v1/operations/{op.spec.name}", json=given)
        assert found.json() == {"reply": json.loads(json.dumps(plain(jobs.execute(op))))}


def test_a_whole_number_may_be_written_with_a_fraction_of_none(api: TestClient, jobs: Client) -> None:
    given = {"queue": "q", "jid": "a", "klass": "K", "priority": -2.0, "delay_ms": 1e3}
    assert api.post("/v1/operations/put", json=given).status_code == 200
    assert (jobs.jobs["a"].priority, jobs.jobs["a"].state) == (-2, "scheduled")


def test_operations_inside_others_are_objects(api: TestClient, jobs: Client) -> None:
    one = {"queue": "q", "jid": "b", "klass": "K"}
    assert api.post("/v1/operations/put_many", json={"jobs": [one]}).json() == {"reply": ["b"]}
    assert jobs.jobs["b"].klass == "K"


def test_many_are_done_in_order_and_each_for_itself(api: TestClient, jobs: Client) -> None:
    put = {"op": "put", "queue": "q", "klass": "K"}
    sent: list[dict[str, Any]] = [put, {"op": "promote", "jid": "nobody"}, {"op": "length", "queue": "q"}, put]
    key = {"Idempotency-Key": "many"}
    first, second = (api.post("/v1/operations", json=sent, headers=key).json()["replies"] for _ in range(2))
    assert [first[0], first[3]] == [second[0], second[3]]
    assert first[1]["problem"]["code"] == "JOB_NOT_FOUND"
    assert (first[2], jobs.queues["q"].length()) == ({"reply": 1}, 2)
    for bad in ([], {}, ["put"], [{"queue": "q"}], [{"op": "put"}]):
        assert problem(api.post("/v1/operations", json=bad))[0] in (400, 404)


def test_those_that_read_can_be_asked_by_get(api: TestClient, jobs: Client) -> None:
    jobs.queues["q"].put("K", jid="a")
    assert api.get("/v1/operations/waiting?queue=q&count=5").json() == {"reply": {"total": 1, "jids": ["a"]}}
    assert api.get("/v1/operations/multiget?jids=a&jids=b").json()["reply"][0]["jid"] == "a"
    assert problem(api.get("/v1/operations/cancel?jids=a")) == (405, "METHOD_NOT_ALLOWED")
    assert problem(api.get("/v1/operations/waiting?queue=q&count=many")) == (400, "BAD_ARGUMENT")


def test_what_is_sent_again_under_one_key_is_done_once(api: TestClient, jobs: Client) -> None:
    key = {"Idempotency-Key": "only once, please"}
    given: dict[str, Any] = {"queue": "q", "klass": "K"}
    first, second = (api.post("/v1/operations/put", json=given, headers=key).json() for _ in range(2))
    assert first == second
    many: dict[str, Any] = {"jobs": [given, given]}
    first, second = (api.post("/v1/operations/put_many", json=many, headers=key).json() for _ in range(2))
    assert first == second and len(set(first["reply"])) == 2
    assert jobs.queues["q"].length() == 3
    assert api.post("/v1/operations/put", json=given).json() != api.post("/v1/operations/put", json=given).json()
    count = {"klass": "K", "key": "n", "by": 1}
    for _ in range(2):
        assert api.post("/v1/operations/metadata_increment", json=count, headers=key).json() == {"reply": 1}


# ---- what goes wrong


def test_a_refusal_is_a_problem_with_its_facts(api: TestClient) -> None:
    found = api.post("/v1/operations/complete", json={"jid": "a", "token": 1})
    assert problem(found) == (404, "JOB_NOT_FOUND")
    assert found.json()["facts"] == {"jid": "a"}
    assert found.json()["type"] == "urn:qmodel:problem:JOB_NOT_FOUND"


def test_an_application_may_be_used_in_one_event_loop_after_the_other(url: str) -> None:
    app = create(url, writable=True)
    waits = {"worker": "w", "timeout": 0.05}
    for _ in range(2):
        with TestClient(app, base_url=HERE) as api:
            for _ in range(2):
                assert api.post("/v1/queues/q/pop", json=waits).json() == {"jobs": []}
    for _ in range(2):  # a loop for each request
        assert TestClient(app, base_url=HERE).post("/v1/queues/q/pop", json=waits).status_code in (200, 503)
    made = create(url, writable=True)
    for _ in range(2):
        assert TestClient(made, base_url=HERE).post("/v1/queues/q/pop", json=waits).json() == {"jobs": []}


def test_the_jobs_of_an_application_in_memory_stay_with_it() -> None:
    app = create("memory://", writable=True)
    for counted in (1, 2):
        with TestClient(app, base_url=HERE) as api:
            api.post("/v1/queues/q/jobs", json={"klass": "K"})
            assert api.get("/v1/queues/q").json()["waiting"] == counted


def test_every_refusal_has_a_status_and_every_own_code_is_none_of_theirs() -> None:
    assert STATUS.keys() == EVERY_REASON.keys()
    assert not OWN.keys() & EVERY_REASON.keys()
    assert AGAIN.keys() < OWN.keys()


@pytest.mark.parametrize(
    ("name", "given", "code", "said"),
    [
        ("put", {"quue": "q"}, "UNKNOWN_ARGUMENT", "Did you mean queue?"),
        ("put", {"queue": "q"}, "MISSING_ARGUMENT", "klass"),
        ("put", {"queue": 7, "klass": "K"}, "BAD_ARGUMENT", "1 to 128 bytes"),
        ("put", {"queue": "q", "klass": "K", "priority": 1.5}, "BAD_ARGUMENT", "whole number"),
        ("put", {"queue": "q", "klass": "K", "priority": True}, "BAD_ARGUMENT", "whole number"),
        ("put", {"queue": "q", "klass": "K", "data": {"x": 1}}, "BAD_ARGUMENT", "text"),
        ("put", {"queue": "q", "klass": "K", "tags": "t"}, "BAD_ARGUMENT", "values"),
        ("untrack", {"jid": "a", "request": {}}, "BAD_ARGUMENT", "1 to 64 visible"),
        ("untrack", {"jid": "a", "request": ""}, "BAD_ARGUMENT", "1 to 64 visible"),
        ("put", {"queue": "q\ud800", "klass": "K"}, "BAD_ARGUMENT", "1 to 128 bytes"),
        ("put_many", {"jobs": ["a"]}, "BAD_JSON", "put inside is not an object"),
        ("put_many", {"jobs": {}}, "BAD_ARGUMENT", "jobs"),
        ("config_set", {"option": "heartbet", "value": 1}, "UNKNOWN_OPTION", "heartbet"),
    ],
)
def test_what_is_wrong_is_said(api: TestClient, name: str, given: dict[str, Any], code: str, said: str) -> None:
    found = api.post(f"/v1/operations/{name}", content=json.dumps(given), headers=JSON)
    assert problem(found)[1] == code
    assert said in found.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"x"',
        b'{"queue": NaN}',
        b'{"queue": 1e999}',
        b"\xff",
        b"[" * 100_000,
        b'{"queue": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_object_is_refused(api: TestClient, body: bytes) -> None:
    found = api.post("/v1/operations/queue", content=body, headers=JSON)
    assert problem(found)[0] == 400


def test_an_unknown_operation_and_path_are_named(api: TestClient) -> None:
    assert problem(api.post("/v1/operations/putt", json={})) == (404, "UNKNOWN_OPERATION")
    assert "Did you mean put?" in api.post("/v1/operations/putt", json={}).text
    assert problem(api.get("/v2")) == (404, "NOT_FOUND")
    for path, methods in (("/v1/queues", "GET, HEAD"), ("/v1/jobs/a", "DELETE, GET, HEAD")):
        found = api.put(path)
        assert problem(found) == (405, "METHOD_NOT_ALLOWED")
        assert ", ".join(sorted(found.headers["allow"].split(", "))) == methods
    assert problem(api.get("/v1/jobs/%FF")) == (400, "BAD_JSON")


def test_a_body_must_say_that_it_is_json(api: TestClient) -> None:
    sent = api.post("/v1/operations/queue", content=b'{"queue": "q"}', headers={"Content-Type": "text/plain"})
    assert problem(sent) == (415, "NOT_JSON")


def test_a_body_may_not_be_too_large_nor_a_page_of_another_site_send_it(url: str) -> None:
    app = create(url, writable=True, limits=Limits(body=100))
    api = TestClient(app, base_url=HERE)
    assert problem(api.post("/v1/operations/queue", json={"queue": "q" * 100})) == (413, "TOO_LARGE")
    foreign = api.post("/v1/operations/put", json={}, headers={"Origin": "http://evil.example"})
    assert problem(foreign) == (403, "FORGED")


def test_without_writable_everything_can_be_looked_at_and_nothing_changed(url: str, jobs: Client) -> None:
    jobs.queues["q"].put("K", jid="a")
    with TestClient(create(url), base_url=HERE) as api:
        for name in CATALOGUE:
            found = api.post(f"/v1/operations/{name}", json={})
            assert (found.status_code == 403) == (not CATALOGUE[name].reads), name
        assert problem(api.delete("/v1/jobs/a")) == (403, "READ_ONLY")
        both = [{"op": "newest"}, {"op": "cancel", "jids": ["a"]}]
        assert problem(api.post("/v1/operations", json=both)) == (403, "READ_ONLY")
        assert api.post("/v1/operations", json=both[:1]).status_code == 200
        assert problem(api.post("/v1/queues/q/pop", json={"worker": "w"})) == (403, "READ_ONLY")
        assert api.get("/v1/jobs/a").json()["state"] == "waiting"


def test_a_password_is_asked_for_everywhere_but_for_health(url: str) -> None:
    with TestClient(create(url, auth="s3cr3t"), base_url="http://shop.example") as api:
        for path in ("/", "/openapi.json", "/v1/queues", "/v1/events", "/v1/operations/queues"):
            found = api.get(path)
            assert problem(found) == (401, "UNAUTHORIZED"), path
            assert "Bearer" in found.headers["www-authenticate"]
            if path != "/v1/events":
                assert api.get(path, headers={"Authorization": "Bearer s3cr3t"}).status_code == 200, path
        assert api.get("/health").json() == {"ok": True}


def test_who_changes_something_and_who_is_denied_is_logged(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "qmodel.http")
    with TestClient(create(url, auth="ada:s3cr3t", writable=True), base_url=HERE) as api:
        api.post("/v1/queues/q/jobs", json={"klass": "K"}, auth=("ada", "s3cr3t"))
        api.get("/v1/queues/q", auth=("ada", "s3cr3t"))
        api.get("/v1/queues/q", auth=("eve", "guess"))
    assert [record.getMessage() for record in caplog.records if record.name == "qmodel.http"] == [
        "testclient ada: POST /v1/queues/q/jobs, 201",
        "testclient eve: GET /v1/queues/q, 401",
    ]


def test_a_backend_that_is_away_is_a_503_and_says_to_try_again() -> None:
    with TestClient(create("redis://127.0.0.1:1/0?deadline=0.2"), base_url=HERE) as api:
        for path in ("/v1/queues", "/health"):
            found = api.get(path)
            assert problem(found) == (503, "UNREACHABLE")
            assert found.headers["retry-after"] == "1"


def test_a_backend_that_does_not_answer_is_not_waited_for_longer_than_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        app = create(url, writable=True, limits=Limits(answer_seconds=0.2))
        with TestClient(app, base_url=HERE) as api:
            assert problem(api.post("/v1/operations/put", json={"queue": "q", "klass": "K"})) == (503, "UNREACHABLE")
            assert problem(api.get("/v1/events")) == (503, "UNREACHABLE")
            assert problem(api.get("/health")) == (503, "UNREACHABLE")


@pytest.mark.parametrize("data", [5, -1.5, True])
@pytest.mark.parametrize("name", ["put", "complete", "fail", "heartbeat"])
def test_data_that_are_no_text_are_refused(api: TestClient, name: str, data: Any) -> None:
    given = {"queue": "q", "jid": "a", "klass": "K", "token": 1, "group": "g", "message": "m"}
    known = {argument.name for argument in CATALOGUE[name].arguments}
    sent = {one: value for one, value in given.items() if one in known} | {"data": data}
    assert problem(api.post(f"/v1/operations/{name}", json=sent)) == (400, "BAD_ARGUMENT")
