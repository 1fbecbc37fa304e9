"""The messages that are kept for later subscribers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE


def index(request: Request) -> Response:
    """List the messages, oldest first, from the one after `after`."""
    site = site_of(request)
    after = queries.whole(request, "after", most=10**13)
    found = site.source.ask(ops.Messages(after, PAGE + 1))
    following = found[PAGE - 1].seq if len(found) > PAGE else 0
    return site.page(request, "messages.html", messages=found[:PAGE], after=after, following=following)
