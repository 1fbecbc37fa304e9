"""A deduplication key."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.web import queries
from qmodel.web.site import site_of


def show(request: Request) -> Response:
    """Show a key, the job that holds it, and the job that comes next."""
    site = site_of(request)
    key = queries.needed(request, "key")
    held = site.source.ask(ops.UniqueGet(key))
    known = site.source.known(jid for jid in (held.jid, held.next) if jid) if held is not None else {}
    return site.page(request, "unique.html", key=key, held=held, known=known)
