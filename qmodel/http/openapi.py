"""`/openapi.json`: the requests and responses of this server, as OpenAPI 3.1, from the catalogue and the paths."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from qmodel.contract.operations import CATALOGUE
from qmodel.http.problems import MEDIA_TYPE, OWN, STATUS
from qmodel.http.routes import RESOURCES, Resource, by_operation
from qmodel.http.schemas import EVENT_ID, Schema, components, of_kind, operation_id, ref
from qmodel.version import __version__

_IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Send the same key again after a lost answer: the repetition changes nothing.",
    "schema": {"type": "string"},
}
_LAST_EVENT_ID: Schema = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last message received; it takes precedence over `after`.",
    "schema": EVENT_ID,
}
_ALWAYS = ("BAD_ARGUMENT", "UNAUTHORIZED", "WRONG_HOST", "UNREACHABLE", "INTERNAL")
_OF_BODY = ("BAD_JSON", "UNKNOWN_ARGUMENT", "MISSING_ARGUMENT", "TOO_LARGE", "NOT_JSON", "SLOW_REQUEST")


@cache
def document() -> dict[str, Any]:
    """Make the whole description."""
    paths: dict[str, dict[str, Any]] = {}
    for resource in (*RESOURCES, *by_operation()):
        paths.setdefault(resource.path, {})[resource.method.lower()] = _operation(resource)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "qmodel",
            "version": __version__,
            "description": "A job queue. docs/catalogue.md describes each operation.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "."}],
        "security": [{"basic": []}, {"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(resource: Resource) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation_id(resource.method, resource.path),
        "summary": resource.summary,
        "tags": [_tag(resource)],
        "parameters": _parameters(resource),
        "responses": _responses(resource),
    }
    if resource.body is not None:
        needed = bool(resource.body.get("required", True))
        found["requestBody"] = {"required": needed, "content": {"application/json": {"schema": resource.body}}}
    return found


def _tag(resource: Resource) -> str:
    return resource.path.split("/")[2]


def _parameters(resource: Resource) -> list[Schema]:
    found: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": _named(name, resource.acts)}
        for name in re.findall(r"\{(\w+)\}", resource.path)
    ]
    for name, schema in (resource.query or {}).items():
        required = bool(schema.get("x-required"))
        plain = {key: value for key, value in schema.items() if key != "x-required"}
        found.append({"name": name, "in": "query", "required": required, "schema": plain})
    if resource.writes:
        found.append(_IDEMPOTENCY_KEY)
    if resource.path == "/v1/events":
        found.append(_LAST_EVENT_ID)
    return found


def _named(name: str, acts: tuple[str, ...]) -> Schema:
    """Make the schema of a part of a path: the argument of that name, of one of these operations or else of any."""
    specs = (*(CATALOGUE[act] for act in acts), *CATALOGUE.values())
    return of_kind(next(a.kind for spec in specs for a in spec.arguments if a.name == name))


def _responses(resource: Resource) -> dict[str, Schema]:
    kind = "text/event-stream" if resource.path == "/v1/events" else "application/json"
    schema = {"type": "string"} if resource.path == "/v1/events" else resource.reply
    found: dict[str, Schema] = {
        str(status): {"description": _DONE[status], "content": {kind: {"schema": schema}}}
        for status in resource.statuses
    }
    for status, codes in sorted(_refusals(resource).items()):
        found[str(status)] = {
            "description": ", ".join(codes),
            "content": {MEDIA_TYPE: {"schema": ref("Problem")}},
        }
    return found


_DONE = {200: "Done.", 201: "Made.", 202: "It has not ended."}


def _refusals(resource: Resource) -> dict[int, list[str]]:
    codes = [*_ALWAYS, *resource.codes, *(code for name in resource.acts for code in CATALOGUE[name].refusals)]
    codes += _OF_BODY if resource.body is not None else ("BAD_JSON", "UNKNOWN_ARGUMENT", "MISSING_ARGUMENT")
    codes += ("READ_ONLY", "FORGED") if resource.writes else ()
    codes += ("TOO_MANY_WAITING", "BUSY") if resource.waits else ()
    found: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        found.setdefault(STATUS.get(code) or OWN[code][0], []).append(code)
    return found
