"""The tags, and the tracked jobs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, cut


def index(request: Request) -> Response:
    """List the tags of several jobs, and the tracked jobs."""
    site = site_of(request)
    offset = queries.whole(request, "offset")
    found, tracked = site.source.ask_all([ops.TopTags(offset, PAGE + 1), ops.Tracked(0, PAGE)])
    return site.page(request, "tags.html", found=cut(found, offset), tracked=tracked)
