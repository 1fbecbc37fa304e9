"""The requests, and one of them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, Slice

STATES = ("open", "closed", "canceling", "done", "canceled")


DATA = 20_000
"""The characters of data to show."""

REASONS = {
    "canceled": "It was canceled by a call.",
    "deadline": "Its deadline passed.",
    "failed": "A sub-request failed.",
    "lapsed": "Its producer was silent for too long, so it was closed.",
}
"""Why a request was closed or canceled, in words."""


def index(request: Request) -> Response:
    """List the requests in a state, the one that is in it longest first."""
    site = site_of(request)
    state = queries.choice(request, "state", STATES, "open")
    offset = queries.whole(request, "offset")
    page = site.source.ask(ops.Requests(state, offset, PAGE))
    found = [one for one in site.source.ask_all(map(ops.RequestGet, page.jids)) if one is not None]
    part = Slice(found, offset, page.total, offset + PAGE < page.total)
    return site.page(request, "requests.html", found=part, state=state, of_request=STATES)


def show(request: Request) -> Response:
    """Show one request, its progress, and its sub-requests in their order."""
    site = site_of(request)
    id, offset = queries.needed(request, "id"), queries.whole(request, "offset")
    found = site.source.ask(ops.RequestGet(id))
    if found is None:
        raise HTTPException(404)
    page = site.source.ask(ops.RequestJobs(id, offset, PAGE))
    part = Slice(list(page.jobs), offset, found.total, page.next > 0)
    return site.page(request, "request.html", one=found, reasons=REASONS, found=part, most=DATA)
