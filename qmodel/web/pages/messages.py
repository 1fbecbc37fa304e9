"""The messages that are kept for later subscribers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.client.cursor import Cursor
from qmodel.contract import operations as ops
from qmodel.contract.redaction import shown
from qmodel.present.fields import BadInput
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE


def index(request: Request) -> Response:
    """List the messages, oldest first, from the one after `after`."""
    site = site_of(request)
    if site.source.client.shards:
        return _of_shards(request)
    after = queries.whole(request, "after", most=10**13)
    found = site.source.ask(ops.Messages(after, PAGE + 1))
    following = found[PAGE - 1].seq if len(found) > PAGE else 0
    return site.page(request, "messages.html", messages=found[:PAGE], after=after, following=following)


def _of_shards(request: Request) -> Response:
    """List the messages of all shards by their moments, from the place `after` in each of them."""
    site, after = site_of(request), queries.text(request, "after")
    try:
        cursor = Cursor.read(after)
        found = shown(site.source.client.messages(cursor, PAGE))
    except ValueError as error:
        raise BadInput(str(error)) from None
    more = site.source.client.messages(Cursor(cursor.places), 1)
    return site.page(request, "messages.html", messages=found, after=after, following=str(cursor) if more else "")
