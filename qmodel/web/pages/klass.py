"""The metadata of a job type."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.site import site_of


def show(request: Request) -> Response:
    """Show the metadata of a job type."""
    site = site_of(request)
    name = queries.needed(request, "name")
    return site.page(request, "klass.html", name=name, entries=site.source.ask(ops.MetadataGet(name)))
