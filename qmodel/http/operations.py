"""Every operation of the catalogue by its name: `POST /v1/operations/<name>`, and those that only read by GET, too."""

from __future__ import annotations

from qmodel.http import reading
from qmodel.http.api import Call
from qmodel.http.problems import Problem, meant
from qmodel.operations import CATALOGUE, Operation, Spec
from qmodel.plain import plain


def spec_of(name: str) -> Spec:
    """An operation by its name, or a Problem."""
    if name not in CATALOGUE:
        raise Problem(
            "UNKNOWN_OPERATION",
            f"There is no operation {name[:100]!r}.",
            meant(name, CATALOGUE, "GET /openapi.json lists them."),
            {"operation": name[:100]},
        )
    return CATALOGUE[name]


async def perform(call: Call) -> dict[str, object]:
    """Execute an operation with the arguments of the body."""
    spec = spec_of(call.name("name"))
    if not spec.reads:
        call.api.guard.check(call.request, writes=True)
    given = reading.an_object(await call.body())
    return await _reply(call, reading.operation(spec, given, call.key))


async def look(call: Call) -> dict[str, object]:
    """Execute an operation that only reads, with the arguments of the query."""
    spec = spec_of(call.name("name"))
    if not spec.reads:
        raise Problem("METHOD_NOT_ALLOWED", f"{spec.name} changes something.", "Use POST.", headers={"Allow": "POST"})
    return await _reply(call, reading.from_query(spec, call.query()))


async def _reply(call: Call, op: Operation) -> dict[str, object]:
    return {"reply": plain(await call.client.execute(op))}
