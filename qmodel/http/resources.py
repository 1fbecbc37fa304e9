"""The resource paths: queues, jobs and leases, with data and results as JSON.

Each handler here is one or two operations. Arguments have the catalogue's names and units; beside them `data` and
`result` are any JSON, which is stored as the Python client stores it, so that both read each other's jobs. Stored text
that is not JSON is sent and received as `data_text` and `result_text`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from qmodel.client import job_types
from qmodel.client.convert import encode
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.errors import (
    DataError,
    JobCanceled,
    JobExpired,
    JobFailed,
    JobNotFound,
    JobRevoked,
    NotEnded,
    QmodelError,
    ResultNotKept,
)
from qmodel.http import parse
from qmodel.http.api import Answer, Call
from qmodel.http.parse import an_object
from qmodel.http.problems import Problem
from qmodel.wire.plain import plain

TEXTS = {"data": "data_text", "result": "result_text"}
"""The arguments that are stored as JSON, and their names for any other text."""

MOST_EVENTS = 10_000
"""The most events that figures of job types come from."""


# ---- jobs as JSON


def shown(job: replies.Job) -> dict[str, Any]:
    """Represent a job."""
    found: dict[str, Any] = plain(job)
    for name, raw in TEXTS.items():
        found[name], text = decoded(found[name])
        if text is not None:
            found[raw] = text
    found["options"] = dict(job.options)
    found["attempts"] = [plain(one) for one in job.attempts]
    return found


def decoded(text: str) -> tuple[Any, str | None]:
    """Parse a stored text as JSON; give the text itself if it is not JSON."""
    try:
        return (json.loads(text, parse_constant=_fail, parse_float=parse.finite) if text else None), None
    except (ValueError, RecursionError):
        return None, text


def _fail(word: str) -> float:
    raise ValueError(word)


def stored(given: Mapping[str, Any], needed: str = "") -> dict[str, Any]:
    """Encode the arguments that may be any JSON as the text that is stored.

    Null means a missing argument, except for the argument that is `needed`.
    """
    found = dict(given)
    for name, raw in TEXTS.items():
        if name in found and raw in found:
            raise Problem("BAD_JSON", f"Both {name} and {raw} are given.", f"Give {name}, or any other text as {raw}.")
        if raw in found:
            found[name] = found.pop(raw)
            if type(found[name]) is not str:
                raise Problem("BAD_JSON", f"{raw} is not a text.", f"Give other values as {name}.")
        elif found.get(name) is not None or (name == needed and name in found):
            found[name] = _encoded(found[name])
    return found


def _encoded(value: Any) -> str:
    try:
        return encode(value)
    except RecursionError:
        raise DataError("nested too deeply") from None


# ---- put


async def put(call: Call) -> Answer:
    """Put a job into a queue, or an array of up to 1000 jobs in one step."""
    queue, body = call.name("queue"), await call.body()
    if isinstance(body, list):
        return await _put_many(call, queue, body)
    given = stored(an_object(body)) | {"queue": queue}
    op = parse.operation(CATALOGUE["put"], given, call.key)
    assert isinstance(op, ops.Put)
    return _put(op, await call.ask(op))


def _put(op: ops.Put, jid: str) -> Answer:
    new = jid == op.jid
    headers = {"Location": f"../../jobs/{quote(jid, safe='')}"}
    return Answer({"jid": jid, "deduplicated": not new}, 201 if new else 200, headers)


async def _put_many(call: Call, queue: str, body: list[Any]) -> Answer:
    jobs = [stored(an_object(one, "job")) | {"queue": queue} for one in body]
    op = parse.operation(CATALOGUE["put_many"], {"jobs": jobs}, call.key)
    assert isinstance(op, ops.PutMany)
    stand = await call.ask(op)
    made = [{"jid": jid, "deduplicated": jid != one.jid} for one, jid in zip(op.jobs, stand, strict=True)]
    return Answer({"jobs": made}, 201)


# ---- pop


async def pop(call: Call) -> Any:
    """Lease the next jobs of a queue, or wait for them."""
    return await _pop(call, an_object(await call.body()) | {"queues": [call.name("queue")]})


async def pop_any(call: Call) -> Any:
    """Lease the next jobs of several queues, or wait for them."""
    return await _pop(call, an_object(await call.body()))


async def _pop(call: Call, body: dict[str, Any]) -> Any:
    seconds = call.seconds(body.pop("timeout", None))
    op = parse.operation(CATALOGUE["pop_any"], body, call.key)
    assert isinstance(op, ops.PopAny)
    if op.wait is not False:
        raise Problem("UNKNOWN_ARGUMENT", "A worker that waits needs a timeout.", "Give timeout, in seconds.")
    found = await call.ask(op)  # refuses invalid arguments
    if not found and seconds:
        work = call.client.pop(op.queues, op.count, worker=op.worker, timeout=seconds, request=op.request)
        found = [one.raw for one in await call.waiting(work, seconds)]
    if found and not op.request and await call.request.is_disconnected():
        await call.client.execute_many([ops.Release(job.jid, job.token) for job in found])
    return {"jobs": [shown(job) for job in found]}


# ---- one job


async def get(call: Call) -> dict[str, Any]:
    """Show a job."""
    return shown(await _job(call))


async def _job(call: Call) -> replies.Job:
    jid = call.name("jid")
    job: replies.Job | None = await call.ask(ops.Get(jid))
    if job is None:
        raise JobNotFound(Refusal("JOB_NOT_FOUND", (jid,)))
    return job


async def wait(call: Call) -> Answer:
    """Wait until a job has ended, and give its outcome."""
    jid, seconds = call.name("jid"), call.seconds(call.request.query_params.get("timeout"), 30)
    found = (await call.waiting(call.client.wait([jid], seconds), seconds))[0]
    if isinstance(found, JobNotFound):
        raise found
    ended = ended_as(found)
    if ended["outcome"] == "completed" and isinstance(found, DataError):
        ended = {"outcome": "completed", "result": None, "result_text": (await _job(call)).result}
    return Answer({"jid": jid} | ended, 202 if isinstance(found, NotEnded) else 200)


def ended_as(found: Any) -> dict[str, Any]:
    """Represent the outcome of a job."""
    if isinstance(found, NotEnded):
        return {"outcome": None}
    if isinstance(found, JobFailed):
        kinds: tuple[tuple[type[JobFailed], str], ...] = ((JobRevoked, "revoked"), (JobExpired, "expired"))
        outcome = next((word for cls, word in kinds if isinstance(found, cls)), "failed")
        return {"outcome": outcome, "group": found.group, "message": found.message}
    if isinstance(found, JobCanceled):
        return {"outcome": "canceled"}
    if isinstance(found, ResultNotKept):
        return {"outcome": "not_kept"}
    return {"outcome": "completed", "result": None if isinstance(found, QmodelError) else found}


async def act(call: Call, name: str) -> Any:
    """Execute an operation on the job of the path."""
    given = stored(an_object(await call.body()), "data" if name == "update" else "") | {"jid": call.name("jid")}
    op = parse.operation(CATALOGUE[name], given, call.key)
    return {"reply": plain(await call.ask(op))}


async def cancel(call: Call) -> Any:
    """Cancel a job; one that is not there is passed over, and a complete one unless the query asks for it."""
    op = parse.from_query(CATALOGUE["cancel"], [("jids", call.name("jid")), *call.query()], call.key)
    return {"canceled": plain(await call.ask(op))}


async def search(call: Call) -> Any:
    """Find jobs."""
    found = await call.ask(parse.from_query(CATALOGUE["search"], call.query()))
    return {"jobs": [shown(job) for job in found.jobs], "cursor": found.cursor}


async def types(call: Call) -> Any:
    """Compute figures by job type."""
    given = dict(call.query())
    text = given.pop("events", str(job_types.EVENTS))
    if given or not text.isdecimal() or len(text) > 8 or not 1 <= int(text) <= MOST_EVENTS:
        sentence = f"The only argument is events, a whole number from 1 to {MOST_EVENTS}."
        raise Problem("UNKNOWN_ARGUMENT", sentence, "Leave it out, or give another number.")
    return job_types.as_json(await call.client.job_types(int(text)))


# ---- queues


async def queues(call: Call) -> Any:
    """List the queues with their counts."""
    given = call.query()
    op = parse.from_query(CATALOGUE["queues"], given or [("count", str(MOST))])
    return {"queues": plain(await call.ask(op))}


async def queue(call: Call) -> Any:
    """Show the counts of a queue."""
    return plain(await call.ask(ops.Queue(call.name("queue"))))


async def on_queue(call: Call, name: str) -> Any:
    """Execute an operation of several queues on the queue of the path."""
    given = an_object(await call.body()) | {"queues": [call.name("queue")]}
    return {"reply": plain(await call.ask(parse.operation(CATALOGUE[name], given, call.key)))}
