"""The job types, with figures from the newest events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.web import queries
from qmodel.web.site import site_of

SPANS = (1000, 2000, 5000)
"""How many events the figures may come from."""


def index(request: Request) -> Response:
    """List the job types of the newest events, busiest first."""
    site = site_of(request)
    events = queries.whole(request, "events", SPANS[1], 10_000) or SPANS[1]
    return site.page(request, "types.html", found=site.source.client.job_types(events), span=events, spans=SPANS)
