"""The events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.site import site_of

EVENTS = 100
"""The events on a page."""


def index(request: Request) -> Response:
    """List the events, newest first, up to the one before `before`."""
    site = site_of(request)
    if site.source.client.shards:  # each shard numbers its own, so there is no page before the latest
        return site.page(request, "events.html", events=site.source.latest(EVENTS)[::-1], first=0)
    before = queries.whole(request, "before", most=10**13) or site.source.ask(ops.Newest()).seq + 1
    first = max(before - EVENTS, 1)
    found = [event for event in site.source.ask(ops.Events(first - 1, EVENTS)) if event.seq < before]
    return site.page(request, "events.html", events=found[::-1], first=first if first > 1 and found else 0)
