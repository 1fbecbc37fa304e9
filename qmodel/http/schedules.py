"""Schedules over HTTP, and the computation of the next moments of cron expressions.

The engine knows no calendar: a client has to compute the next moments of an expression now and then
(`qmodel/client/cron.py`). Workers in Python do this. If all workers are in other languages, only this server can, so a
writable one does it: at once for schedules that are put here, and for all others every few minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import warnings
from typing import Any

from qmodel.client.aio import AsyncClient
from qmodel.client.cron import CronNotInstalled, spec
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.errors import QmodelError, ScheduleNotFound
from qmodel.http import parse
from qmodel.http.api import Call
from qmodel.http.problems import Problem
from qmodel.http.resources import decoded, stored
from qmodel.http.schemas import Schema, of_argument, of_operation
from qmodel.wire.plain import plain

EVERY = 300.0
"""Seconds between two computations; each covers the next hour."""

log = logging.getLogger("qmodel.http")


def body() -> Schema:
    """The arguments of a schedule: those of `recur`, but its kind follows from the other arguments."""
    found = of_operation(CATALOGUE["recur"], without=("jid", "kind", "due_at", "request"), free=True)
    interval = next(a for a in CATALOGUE["recur"].arguments if a.name == "interval_ms")
    found["properties"] |= {
        "interval_ms": of_argument(interval, required=True),
        "after_ms": of_argument(interval, required=True) | {"description": "Milliseconds after the end of each run."},
        "cron": {"type": "string", "description": "A cron expression of five fields, or six with the seconds first."},
        "tz": {"type": ["string", "null"], "description": "Its time zone.", "default": "UTC"},
    }
    ways = [{"required": [name]} for name in ("interval_ms", "after_ms", "cron")]
    either = [{"not": {"required": ["data", "data_text"]}}]
    return found | {"required": ["queue", "klass"], "oneOf": ways, "allOf": either}


def shown(schedule: replies.Schedule) -> dict[str, Any]:
    """Represent a recurring job."""
    found: dict[str, Any] = plain(schedule)
    found["data"], text = decoded(found["data"])
    return found if text is None else found | {"data_text": text}


async def put(call: Call) -> dict[str, Any]:
    """Create a recurring job, or change one."""
    given = stored(parse.an_object(await call.body()))
    op = parse.operation(CATALOGUE["recur"], {"data": "", **_times(given), "jid": call.name("jid")}, call.key)
    assert isinstance(op, ops.Recur)
    await call.ask(op)
    if op.kind == "cron":
        await advance(call.client)
    return await _shown(call)


def _times(given: dict[str, Any]) -> dict[str, Any]:
    """Make the arguments of recur from an interval, a time after each run, or an expression with a time zone."""
    for name in ("kind", "due_at"):
        if name in given:
            raise Problem("UNKNOWN_ARGUMENT", f"A schedule has no argument {name!r}.", _WAYS, {"argument": name})
    after, cron, tz = (given.pop(name, None) for name in ("after_ms", "cron", "tz"))
    if sum(one is not None for one in (after, cron, given.get("interval_ms"))) != 1:
        raise Problem("BAD_JSON", "The recurrence is missing, or given twice.", _WAYS)
    if after is not None:
        return given | {"kind": "after", "interval_ms": after}
    if cron is None:
        return given | {"kind": "interval"}
    try:
        return given | {"kind": "cron", "interval_ms": 0, "cron": spec(str(cron), str(tz or "UTC"))}
    except (ValueError, CronNotInstalled) as error:
        raise Problem("BAD_ARGUMENT", f"{error}.", "See docs/http.md.", {"argument": "cron"}) from None


_WAYS = "Give one of interval_ms, after_ms and cron."


async def get(call: Call) -> dict[str, Any]:
    """Show a recurring job."""
    return await _shown(call)


async def _shown(call: Call) -> dict[str, Any]:
    jid = call.name("jid")
    found: replies.Schedule | None = await call.ask(ops.RecurGet(jid))
    if found is None:
        raise ScheduleNotFound(Refusal("SCHEDULE_NOT_FOUND", (jid,)))
    return shown(found)


async def remove(call: Call) -> dict[str, Any]:
    """Delete a recurring job; runs that were enqueued stay."""
    op = parse.operation(CATALOGUE["unrecur"], {"jid": call.name("jid")}, call.key)
    return {"removed": bool(await call.ask(op))}


# ---- moments


async def advance(client: AsyncClient) -> None:
    """Compute the next moments of all expressions that need them; skip expressions that cannot be read."""
    with warnings.catch_warnings(), contextlib.suppress(CronNotInstalled):
        warnings.simplefilter("ignore", RuntimeWarning)
        await client.advance_schedules()


async def keep_going(client: AsyncClient) -> None:
    """Do so for ever."""
    while True:
        try:
            await advance(client)
        except QmodelError as error:
            log.warning("The next moments of schedules were not computed: %s", error)
        await asyncio.sleep(EVERY)
