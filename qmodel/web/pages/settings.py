"""The options of the namespace."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.contract.settings import OPTIONS
from qmodel.web.site import site_of


def show(request: Request) -> Response:
    """Show the options and their values."""
    site = site_of(request)
    found = site.source.ask(ops.Config())
    return site.page(request, "settings.html", settings=found, options=OPTIONS)
