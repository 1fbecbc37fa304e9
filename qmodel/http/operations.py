"""Every operation of the catalogue by its name: `POST /v1/operations/<name>`, and by GET for those that only read.

Several operations in one round trip: `POST /v1/operations`.
"""

from __future__ import annotations

from typing import Any

from qmodel.contract.arguments import MOST
from qmodel.contract.operations import CATALOGUE, Operation, Spec
from qmodel.contract.redaction import replied
from qmodel.errors import RefusedError
from qmodel.http import parse
from qmodel.http.api import Call, problem_of
from qmodel.http.problems import Problem, meant
from qmodel.wire.plain import plain


def spec_of(name: str) -> Spec:
    """Find an operation by its name, or raise a Problem."""
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
    given = parse.an_object(await call.body())
    return await _reply(call, parse.operation(spec, given, call.key))


async def perform_many(call: Call) -> dict[str, object]:
    """Execute the operations of an array in order, each as a step of its own; give the reply or problem of each."""
    body = await call.body()
    if not isinstance(body, list) or not 1 <= len(body) <= MOST:
        raise Problem("BAD_JSON", f"The body is no array of 1 to {MOST} operations.", 'Send [{"op": "newest"}].')
    keys = [None if call.key is None else f"{call.key[:56]}/{number}" for number in range(len(body))]
    found = [_one(parse.an_object(one, "operation"), key) for one, key in zip(body, keys, strict=True)]
    if not all(op.spec.reads for op in found):
        call.api.guard.check(call.request, writes=True)
    replies = await call.client.execute_many(found)
    return {"replies": [_outcome(replied(op, one)) for op, one in zip(found, replies, strict=True)]}


def _one(given: dict[str, Any], key: str | None) -> Operation:
    rest = dict(given)
    return parse.operation(spec_of(str(rest.pop("op", ""))), rest, key)


def _outcome(reply: Any) -> dict[str, object]:
    return {"problem": problem_of(reply).body} if isinstance(reply, RefusedError) else {"reply": plain(reply)}


async def look(call: Call) -> dict[str, object]:
    """Execute an operation that only reads, with the arguments of the query."""
    spec = spec_of(call.name("name"))
    if not spec.reads:
        raise Problem("METHOD_NOT_ALLOWED", f"{spec.name} changes something.", "Use POST.", headers={"Allow": "POST"})
    return await _reply(call, parse.from_query(spec, call.query()))


async def _reply(call: Call, op: Operation) -> dict[str, object]:
    return {"reply": plain(await call.ask(op))}
