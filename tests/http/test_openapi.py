"""The description of the API: valid, complete, and true of what the server answers."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
from openapi_spec_validator.schemas import schema_v31
from starlette.testclient import TestClient

from qmodel.client.cursor import Cursor
from qmodel.client.sync import Client
from qmodel.contract.operations import CATALOGUE
from qmodel.http.events import Place
from qmodel.http.openapi import document
from qmodel.http.routes import RESOURCES

VALIDATOR = jsonschema.Draft202012Validator(dict(schema_v31))


def conforms(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is what a schema of the document says."""
    whole = schema | {"components": document()["components"]}
    return bool(jsonschema.Draft202012Validator(whole).is_valid(value))


def test_it_is_valid_openapi_3_1() -> None:
    chosen = ("put", "put_many", "search", "events", "config_set", "throttle_get")  # checking all takes ten seconds
    paths = {name: document()["paths"][f"/v1/operations/{name}"] for name in chosen}
    some = {path: item for path, item in document()["paths"].items() if "/operations/" not in path}
    few = document() | {"paths": some | {f"/v1/operations/{name}": item for name, item in paths.items()}}
    assert next(VALIDATOR.iter_errors(few), None) is None
    names = document()["components"]["schemas"]
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document())))
    assert used <= names.keys()


def test_a_fault_in_it_would_be_found() -> None:
    wrong = document() | {"paths": {"/x": {"get": {"responses": {"200": {"content": {}}}}}}}
    assert next(VALIDATOR.iter_errors(wrong), None) is not None


def test_it_has_every_operation_and_every_path(api: TestClient) -> None:
    paths = document()["paths"]
    for name, spec in CATALOGUE.items():
        methods = paths[f"/v1/operations/{name}"]
        assert set(methods) == ({"get", "post"} if spec.reads else {"post"})
    for one in RESOURCES:
        assert one.method.lower() in paths[one.path]
    assert api.get("/openapi.json").json() == document()
    names = [method["operationId"] for path in paths.values() for method in path.values()]
    assert len(set(names)) == len(names)


def test_what_the_server_answers_is_what_it_says(api: TestClient, jobs: Client) -> None:
    api.post("/v1/queues/q/jobs", json={"klass": "K", "jid": "a", "tags": ["t"], "data": {"x": 1}})
    jobs.jobs["a"].track()
    job = api.post("/v1/queues/q/pop", json={"worker": "w"}).json()["jobs"][0]
    api.post("/v1/jobs/a/fail", json={"token": job["token"], "group": "g", "message": "m"})
    api.post("/v1/queues/q/jobs", json={"klass": "K", "jid": "b", "lifo": True})
    asked = {"queue": "q", "jid": "a", "jids": ["a"], "group": "g", "tag": "t", "worker": "w", "klass": "K"}
    asked |= {"state": "failed", "option": "heartbeat"}
    seen = 0
    for name, spec in CATALOGUE.items():
        needed = {a.name for a in spec.arguments if a.required}
        if spec.reads and needed <= asked.keys():
            given = {name: asked[name] for name in needed} or {"queue": "q"} if name == "search" else {}
            found = api.post(f"/v1/operations/{name}", json={name: asked[name] for name in needed} | given)
            says = document()["paths"][f"/v1/operations/{name}"]["post"]["responses"][str(found.status_code)]
            (schema,) = (content["schema"] for content in says["content"].values())
            assert conforms(found.json(), schema), (name, found.text)
            seen += 1
    assert seen > 30
    for path in ("/v1/jobs/{jid}", "/v1/queues", "/v1/jobs", "/v1/jobs/{jid}/wait"):
        url = path.replace("{jid}", "a") + ("?queue=q" if path == "/v1/jobs" else "")
        schema = document()["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert conforms(api.get(url).json(), schema), path
    assert not conforms({"jid": 1}, {"$ref": "#/components/schemas/JobShown"})


def parameter(path: str, method: str, name: str) -> dict[str, Any]:
    """The schema of a parameter."""
    [schema] = [one["schema"] for one in document()["paths"][path][method]["parameters"] if one["name"] == name]
    return dict(schema)


def test_a_stream_continues_after_any_id_that_it_gives() -> None:
    place = Place(17, 1_735_689_600_123_456)
    cursor = Cursor([(90_000_000_000_000 - 1, 9 * 10**15 - 1), (0, None)])
    for name in ("after", "Last-Event-ID"):
        schema = parameter("/v1/events", "get", name)
        for text in (place.id, Place(17, None).id, str(cursor), "0"):
            assert conforms(text, schema), (name, text)
        for text in ("", "x", "17-", "-1", "17.3,", "1 7"):
            assert not conforms(text, schema), (name, text)


def test_a_job_is_canceled_by_its_path_alone(api: TestClient, jobs: Client) -> None:
    for jid in ("a", "b"):
        api.post("/v1/queues/q/jobs", json={"klass": "K", "jid": jid})
    found = api.delete("/v1/jobs/a?jids=b")
    assert (found.status_code, found.json()["code"]) == (400, "UNKNOWN_ARGUMENT")
    assert jobs.queues["q"].counts.waiting == 2
    names = {one["name"] for one in document()["paths"]["/v1/jobs/{jid}"]["delete"]["parameters"]}
    assert {"cascade", "complete"} <= names
    assert api.delete("/v1/jobs/a?complete=true&cascade=true").json() == {"canceled": ["a"]}


def test_a_problem_is_what_it_says(api: TestClient) -> None:
    schema = {"$ref": "#/components/schemas/Problem"}
    for found in (api.get("/nowhere"), api.post("/v1/jobs/a/complete", json={"token": 1})):
        assert conforms(found.json(), schema)
