"""JSON Schemas (2020-12) of requests and responses over HTTP, made from the catalogue.

Unlike the schemas of the conformance kit they bound values: nobody sends invalid ones on purpose here.
"""

from __future__ import annotations

import re
from typing import Any

from qmodel.contract import schema as kit
from qmodel.contract.arguments import (
    POLICIES,
    Awaited,
    Choice,
    Dependency,
    Digits,
    Flag,
    Id,
    Kind,
    Label,
    ListOf,
    Name,
    Operations,
    Text,
    Whole,
)
from qmodel.contract.events import EVENTS, OPTIONAL, WHOLE
from qmodel.contract.operations import CATALOGUE, Argument, Spec
from qmodel.contract.refusals import EVERY_REASON
from qmodel.http.problems import OWN

Schema = dict[str, Any]

ANY: Schema = {}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
DIGITS: Schema = {"type": "string", "pattern": "^[0-9]{1,30}$"}
"""A token: longer than the numbers of JavaScript."""

EVENT_ID: Schema = {
    "type": "string",
    "pattern": r"^([0-9]{1,14}(-[0-9]{1,16})?|[0-9]{1,14}\.[0-9]{0,16}(,[0-9]{1,14}\.[0-9]{0,16})*)$",
}
"""The id of a message: a sequence number, mostly with its epoch; in a deployment, both of each shard."""

FILLED = {("put", "jid"), ("put", "data")}
"""Required arguments that may be left out: a new job gets an id, and empty data."""


def ref(name: str) -> Schema:
    """Reference a component by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: dict[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    """Make an object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def array(items: Schema) -> Schema:
    """An array."""
    return {"type": "array", "items": items}


# ---- arguments


def of_kind(kind: Kind) -> Schema:
    """Make the schema of a value of a kind."""
    if isinstance(kind, Operations):
        name = kind.of.lower()
        return {"type": "array", "items": ref(f"{name}_inside"), "minItems": 1, "maxItems": 1000}
    if isinstance(kind, ListOf):
        return {"type": "array", "items": of_kind(kind.item), "minItems": kind.least, "maxItems": kind.most}
    if isinstance(kind, Digits):
        return DIGITS | {"type": ["string", "integer"], "minimum": 0}
    if isinstance(kind, Whole):
        return {"type": "integer", "minimum": kind.low, "maximum": kind.high}
    if isinstance(kind, Flag):
        return {"type": "boolean"}
    if isinstance(kind, Choice):
        return {"type": "string", "enum": list(kind.words)}
    return _text(kind) | {"description": kind.expected}


_REQUEST = "[A-Za-z0-9.:_-]{1,64}"
"""The id of a request within a dependency."""


def _text(kind: Kind) -> Schema:
    if isinstance(kind, Name):
        return {"type": "string", "minLength": 1, "maxLength": kind.most, "pattern": r"^[^\u0000-\u001f\u007f]+$"}
    if isinstance(kind, Id):
        return {"type": "string", "minLength": 1, "maxLength": kind.most, "pattern": "^[!-~]+$"}
    if isinstance(kind, Label):
        return {"type": "string", "minLength": 1, "maxLength": kind.most, "pattern": "^[A-Za-z0-9.:_-]+$"}
    if isinstance(kind, Dependency):
        policies = "|".join(POLICIES)
        to_request = f"{_REQUEST} request( ({policies}))?"
        return {"type": "string", "pattern": f"^([!-~]{{1,128}}( ({policies})( [!-~]{{1,64}})?)?|{to_request})$"}
    if isinstance(kind, Awaited):
        return {"type": "string", "pattern": f"^([!-~]{{1,128}}|{_REQUEST} request)$"}
    return {"type": "string", "maxLength": kind.most} if isinstance(kind, Text) else {"type": "string"}


def of_argument(argument: Argument, *, required: bool) -> Schema:
    """Make the schema of an argument; an optional one may be null."""
    found = of_kind(argument.kind)
    if required:
        return found
    default = (
        {"default": argument.default} if argument.kind.accepts(argument.default) and argument.default != () else {}
    )
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    return found | {"type": [found["type"], "null"]} | default


def is_required(spec: Spec, argument: Argument) -> bool:
    """Say whether an argument is required."""
    return argument.required and (spec.name, argument.name) not in FILLED


def of_operation(spec: Spec, *, without: tuple[str, ...] = (), free: bool = False) -> Schema:
    """Make the object of an operation's arguments, without those in the path or query.

    With `free`, data and result are any JSON, and other texts have names of their own.
    """
    given = [argument for argument in spec.arguments if argument.name not in without]
    properties = {a.name: of_argument(a, required=is_required(spec, a)) for a in given}
    if spec.name == "put":
        properties["at"] = _MOMENT
    texts = [name for name in ("data", "result") if free and name in properties]
    for name in texts:
        properties |= {name: _ANY_JSON, f"{name}_text": {"type": "string", "maxLength": 1 << 20}}
    needed = [a.name for a in given if is_required(spec, a) and a.name not in texts]
    found = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
    rules: list[Schema] = [{"not": {"required": [name, f"{name}_text"]}} for name in texts]
    for argument in given:
        if argument.name in texts and is_required(spec, argument):
            rules.append({"anyOf": [{"required": [argument.name]}, {"required": [f"{argument.name}_text"]}]})
    return found | ({"allOf": rules} if rules else {})


_MOMENT: Schema = {
    "type": ["integer", "string", "null"],
    "description": "Milliseconds since the epoch, or an ISO 8601 time with a time zone.",
}

_ANY_JSON: Schema = {"description": "Any JSON; stored as a text."}


# ---- replies


def of_reply(spec: Spec) -> Schema:
    """Make the schema of an operation's reply."""
    return record({"reply": _adapted(kit.of_reply(spec))})


def _adapted(schema: Any) -> Any:
    """Convert a schema of the kit: its definitions become components."""
    if isinstance(schema, dict):
        return {key: _adapted(value) for key, value in schema.items()} | (
            ref(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else {}
        )
    return [_adapted(one) for one in schema] if isinstance(schema, list) else schema


def components() -> dict[str, Schema]:
    """Make all components: records of replies, nested operations, events, jobs, problems."""
    found: dict[str, Schema] = {name: _adapted(schema) for name, schema in kit.records().items()}
    facts = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
    for name in ("Event", "Stage"):
        found[name]["properties"]["facts"] = facts
    found["Job"]["properties"]["token"] = DIGITS
    found["Sample"] = record(
        found["Sample"]["properties"] | {"variance": {"type": "number"}, "std": {"type": "number"}}
    )
    found["JobShown"] = _job(found["Job"])
    found["ScheduleShown"] = record(found["Schedule"]["properties"] | {"data": ANY, "data_text": TEXT}, ("data_text",))
    found |= {f"{event}_event": _event(event) for event in EVENTS}
    inner = {a.kind.of.lower() for s in CATALOGUE.values() for a in s.arguments if isinstance(a.kind, Operations)}
    found |= {f"{name}_inside": of_operation(CATALOGUE[name], without=()) for name in sorted(inner)}
    return found | {"Problem": _problem(), "Ended": _ended(), "Put": _put()}


def _job(job: Schema) -> Schema:
    """Make the schema of a job with its data and result as JSON."""
    properties = job["properties"] | {
        "data": ANY,
        "result": ANY,
        "data_text": TEXT,
        "result_text": TEXT,
        "options": {"type": "object", "additionalProperties": TEXT},
        "attempts": {"type": "array", "items": _attempt()},
    }
    return record(properties, ("data_text", "result_text"))


def _attempt() -> Schema:
    """Make the schema of one attempt of a job."""
    texts = dict.fromkeys(("worker", "outcome", "group", "message"), TEXT)
    return record({**texts, "token": DIGITS, "began_at": COUNT, "ended_at": COUNT})


def _event(event: str) -> Schema:
    facts = {name: {"type": "integer"} if name in WHOLE else TEXT for name in EVENTS[event]}
    facts |= {"token": DIGITS} if "token" in facts else {}
    optional = EVENTS[event][len(facts) - OPTIONAL.get(event, 0) :]
    said = record(facts, optional)
    properties = {"seq": COUNT, "at": COUNT, "event": {"const": event}, "facts": said, "epoch": COUNT}
    return record(properties)


def _problem() -> Schema:
    return record(
        {
            "type": {"type": "string", "format": "uri"},
            "title": TEXT,
            "status": {"type": "integer"},
            "detail": TEXT,
            "code": {"type": "string", "enum": [*EVERY_REASON, *OWN]},
            "facts": {"type": "object", "additionalProperties": TEXT},
            "next_step": TEXT,
        }
    )


def _ended() -> Schema:
    words = ["completed", "failed", "revoked", "expired", "canceled", "not_kept", None]
    properties = {"jid": TEXT, "outcome": {"type": ["string", "null"], "enum": words}, "result": ANY}
    more = {"result_text": TEXT, "group": TEXT, "message": TEXT}
    return record(properties | more, ("result", *more))


def _put() -> Schema:
    return record({"jid": TEXT, "deduplicated": {"type": "boolean"}})


def operation_id(method: str, path: str) -> str:
    """Name a method of a path, for generators of clients.

    >>> operation_id("POST", "/v1/jobs/{jid}/complete")
    'post_jobs_jid_complete'
    """
    return "_".join([method.lower(), *re.findall(r"\w+", path.removeprefix("/v1"))])
