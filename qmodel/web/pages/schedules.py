"""The schedules, and one of them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.errors import ScheduleNotFound
from qmodel.web import queries
from qmodel.web.job_lists import spread
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, Slice

RUNS = 10
"""The last runs of a schedule to show."""


def index(request: Request) -> Response:
    """List the schedules by queue, next due first; or those of one queue."""
    site = site_of(request)
    offset, queue = queries.whole(request, "offset"), queries.text(request, "queue")
    queues = [site.source.ask(ops.Queue(queue))] if queue else site.source.all_queues()
    lengths = [(one.name, one.recurring) for one in queues]
    pages = site.source.ask_all(ops.Recurring(name, at, most) for name, at, most in spread(lengths, offset, PAGE))
    found = site.source.ask_all(ops.RecurGet(jid) for page in pages for jid in page.jids)
    total = sum(length for _, length in lengths)
    there = [one for one in found if one is not None]
    last = site.source.known(f"{one.jid}-{one.runs}" for one in there if one.runs)
    part = Slice(there, offset, total, offset + PAGE < total)
    return site.page(request, "schedules.html", found=part, queue=queue, last=last)


def show(request: Request) -> Response:
    """Show one schedule and its last runs."""
    site = site_of(request)
    jid = queries.needed(request, "jid")
    schedule = site.source.ask(ops.RecurGet(jid))
    if schedule is None:
        raise ScheduleNotFound(Refusal("SCHEDULE_NOT_FOUND", (jid,)))
    numbers = range(schedule.runs, max(schedule.runs - RUNS, 0), -1)
    runs = site.source.jobs([f"{jid}-{number}" for number in numbers])
    return site.page(request, "schedule.html", schedule=schedule, runs=runs)
