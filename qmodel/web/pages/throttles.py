"""The throttles, and one of them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, Slice, cut


def index(request: Request) -> Response:
    """List the throttles with limits, and those that are in use, by name."""
    site = site_of(request)
    offset, match = queries.whole(request, "offset"), queries.text(request, "match") or "*"
    found = cut(site.source.ask(ops.Throttles(offset, PAGE + 1)), offset)
    page = site.source.ask(ops.ThrottlesUsed(match, queries.text(request, "cursor"), PAGE))
    used = Slice(list(page.throttles), 0, None, False, page.cursor)
    return site.page(request, "throttles.html", found=found, used=used, match=match)


def show(request: Request) -> Response:
    """Show one throttle, and the jobs that hold its slots."""
    site = site_of(request)
    name = queries.needed(request, "name")
    throttle = site.source.ask(ops.ThrottleGet(name))
    holders = site.source.jobs(throttle.holders)
    return site.page(request, "throttle.html", throttle=throttle, holders=holders)
