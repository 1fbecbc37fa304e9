"""The paths, in one table: the server and its OpenAPI description are made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from qmodel.client import job_types
from qmodel.contract.events import EVENTS
from qmodel.contract.operations import CATALOGUE, Spec
from qmodel.http import events, operations, resources, schedules
from qmodel.http.api import Handler
from qmodel.http.schemas import ANY, EVENT_ID, TEXT, Schema, array, of_kind, of_operation, of_reply, record, ref

SECONDS: Schema = {"type": ["number", "null"], "minimum": 0, "description": "The seconds to wait at most."}


@dataclass(frozen=True, slots=True)
class Resource:
    """One method of one path: its summary, its input and output, and the operations that may refuse it."""

    method: str
    path: str
    summary: str
    handler: Handler
    reply: Schema
    acts: tuple[str, ...] = ()
    query: dict[str, Schema] | None = None
    body: Schema | None = None
    statuses: tuple[int, ...] = (200,)
    codes: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return not all(CATALOGUE[name].reads for name in self.acts)

    @property
    def waits(self) -> bool:
        """Whether it may wait."""
        return (
            "timeout" in (self.query or {})
            or "timeout" in (self.body or {}).get("properties", {})
            or (self.handler is events.follow)
        )


def _query(spec: Spec, without: Sequence[str] = ()) -> dict[str, Schema]:
    """Describe the arguments of an operation as a query."""
    return {
        a.name: of_kind(a.kind) | ({"x-required": True} if a.required else {})
        for a in spec.arguments
        if a.name not in without
    }


_JOBS = record({"jobs": array(ref("JobShown"))})
_PUT = of_operation(CATALOGUE["put"], without=("queue", "request"), free=True)
_POP = of_operation(CATALOGUE["pop_any"], without=("wait", "request"))
_POP["properties"]["timeout"] = SECONDS
_POP_ONE = _POP | {
    "properties": {name: schema for name, schema in _POP["properties"].items() if name != "queues"},
    "required": ["worker"],
}
_FOLLOW: dict[str, Schema] = {
    "after": EVENT_ID
    | {"description": "The id of the last message received; 0 for all events that are kept. Default: the newest."},
    "event": array({"enum": list(EVENTS)}) | {"description": "Only events of this kind; may be repeated."},
    "queue": array(TEXT) | {"description": "Only events of this queue; may be repeated."},
    "jid": array(TEXT) | {"description": "Only events of this job; may be repeated."},
}
WHOLE: Schema = {"type": "integer"}
_DURATIONS = record(dict.fromkeys(job_types.Durations._fields, WHOLE))
_TYPE = record(
    {"klass": TEXT, "per_minute": {"type": "number"}, "wait": _DURATIONS, "run": _DURATIONS}
    | dict.fromkeys(("put", "popped", "completed", "failed", "retried", "lost"), WHOLE)
    | {"groups": {"type": "object", "additionalProperties": WHOLE}}
)
_TYPES = record({"types": array(_TYPE), **dict.fromkeys(("events", "begin_at", "end_at", "unknown"), WHOLE)})
_FOUND = record({"jobs": array(ref("JobShown")), "cursor": TEXT})

ON_JOBS = (
    "complete", "fail", "retry", "release", "heartbeat", "progress", "log", "promote", "delay", "priority", "update",
    "track", "untrack", "tag_add", "tag_remove", "depends_on", "depends_off",
)  # fmt: skip
"""The operations on one job that have a path below it."""

ON_QUEUES = ("pause", "unpause")
"""The operations on queues that have a path below one."""


def _on_job(name: str) -> Resource:
    spec = CATALOGUE[name]
    body = of_operation(spec, without=("jid", "request"), free=True)
    path = f"/v1/jobs/{{jid}}/{name.replace('_', '-')}"
    return Resource("POST", path, spec.summary, partial(resources.act, name=name), of_reply(spec), (name,), body=body)


def _on_queue(name: str) -> Resource:
    spec = CATALOGUE[name]
    body = of_operation(spec, without=("queues", "request"))
    path = f"/v1/queues/{{queue}}/{name}"
    act = partial(resources.on_queue, name=name)
    return Resource("POST", path, spec.summary, act, of_reply(spec), (name,), body=body)


RESOURCES: tuple[Resource, ...] = (
    Resource(
        "POST",
        "/v1/queues/{queue}/jobs",
        "Put a job into a queue, or an array of up to 1000 jobs in one step.",
        resources.put,
        {"anyOf": [ref("Put"), record({"jobs": array(ref("Put"))})]},
        ("put", "put_many"),
        body={"anyOf": [_PUT, array(_PUT) | {"minItems": 1, "maxItems": 1000}]},
        statuses=(201, 200),
    ),
    Resource(
        "POST",
        "/v1/queues/{queue}/pop",
        "Lease the next jobs of a queue to a worker, or wait for them.",
        resources.pop,
        _JOBS,
        ("pop_any",),
        body=_POP_ONE,
    ),
    Resource(
        "POST",
        "/v1/pop",
        "Lease the next jobs of several queues to a worker, or wait for them.",
        resources.pop_any,
        _JOBS,
        ("pop_any",),
        body=_POP,
    ),
    Resource(
        "GET",
        "/v1/jobs",
        CATALOGUE["search"].summary,
        resources.search,
        _FOUND,
        ("search",),
        query=_query(CATALOGUE["search"]),
    ),
    Resource(
        "GET", "/v1/jobs/{jid}", "Show a job.", resources.get, ref("JobShown"), ("get",), codes=("JOB_NOT_FOUND",)
    ),
    Resource(
        "DELETE",
        "/v1/jobs/{jid}",
        "Cancel a job; a job that does not exist, or is complete, is skipped.",
        resources.cancel,
        record({"canceled": array(TEXT)}),
        ("cancel",),
        query={"cascade": {"type": "boolean"}, "complete": {"type": "boolean"}},
    ),
    Resource(
        "GET",
        "/v1/jobs/{jid}/wait",
        "Wait until a job has ended, and give its outcome; 202 if it has not ended.",
        resources.wait,
        ref("Ended"),
        ("get",),
        query={"timeout": SECONDS | {"type": "number", "default": 30}},
        statuses=(200, 202),
        codes=("JOB_NOT_FOUND",),
    ),
    *map(_on_job, ON_JOBS),
    Resource(
        "GET",
        "/v1/types",
        "Compute figures by job type from the newest events: counts, jobs in a minute, percentiles of waits and runs.",
        resources.types,
        _TYPES,
        ("events", "newest", "multiget"),
        query={"events": WHOLE | {"default": job_types.EVENTS, "minimum": 1, "maximum": resources.MOST_EVENTS}},
    ),
    Resource(
        "GET",
        "/v1/queues",
        CATALOGUE["queues"].summary,
        resources.queues,
        record({"queues": array(ref("QueueCounts"))}),
        ("queues",),
        query=_query(CATALOGUE["queues"]),
    ),
    Resource("GET", "/v1/queues/{queue}", CATALOGUE["queue"].summary, resources.queue, ref("QueueCounts"), ("queue",)),
    *map(_on_queue, ON_QUEUES),
    Resource(
        "PUT",
        "/v1/schedules/{jid}",
        "Create or change a recurring job: at an interval, by a cron expression, or a time after the end of each run.",
        schedules.put,
        ref("ScheduleShown"),
        ("recur",),
        body=schedules.body(),
    ),
    Resource(
        "GET",
        "/v1/schedules/{jid}",
        "Show a recurring job.",
        schedules.get,
        ref("ScheduleShown"),
        ("recur_get",),
        codes=("SCHEDULE_NOT_FOUND",),
    ),
    Resource(
        "DELETE",
        "/v1/schedules/{jid}",
        CATALOGUE["unrecur"].summary,
        schedules.remove,
        record({"removed": {"type": "boolean"}}),
        ("unrecur",),
    ),
    Resource(
        "GET",
        "/v1/events",
        "Stream the events, as server-sent events: without gaps, resumable by Last-Event-ID.",
        events.follow,
        ANY,
        ("events",),
        query=_FOLLOW,
    ),
)
"""The resource paths."""


def _operation(spec: Spec, method: str) -> Resource:
    path = f"/v1/operations/{spec.name}"
    if method == "GET":
        return Resource("GET", path, spec.summary, operations.look, of_reply(spec), (spec.name,), query=_query(spec))
    body = of_operation(spec)
    return Resource("POST", path, spec.summary, operations.perform, of_reply(spec), (spec.name,), body=body)


_MANY = Resource(
    "POST",
    "/v1/operations",
    "Execute up to 1000 operations in order, each as a step of its own: a refusal does not stop the others.",
    operations.perform_many,
    record({"replies": array({"anyOf": [record({"reply": ANY}), record({"problem": ref("Problem")})]})}),
    ("put",),
    body=array({"type": "object", "properties": {"op": {"enum": list(CATALOGUE)}}, "required": ["op"]})
    | {"minItems": 1, "maxItems": 1000},
)


def by_operation() -> list[Resource]:
    """A path for each operation of the catalogue; for those that only read, also by GET; and one for many of them."""
    posts = [_MANY, *(_operation(spec, "POST") for spec in CATALOGUE.values())]
    return posts + [_operation(spec, "GET") for spec in CATALOGUE.values() if spec.reads]


def describe(resource: Resource) -> dict[str, Any]:
    """Describe a resource, for the list at `/`."""
    return {"method": resource.method, "path": resource.path, "summary": resource.summary}
