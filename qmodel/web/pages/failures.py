"""The failure groups."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.pages.overview import latest_failures
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, cut


def index(request: Request) -> Response:
    """List the groups, each with its latest failed job."""
    site = site_of(request)
    offset = queries.whole(request, "offset")
    found = cut(site.source.ask(ops.FailedGroups(offset, PAGE + 1)), offset)
    return site.page(request, "failures.html", found=found, latest=latest_failures(site, found.items))
