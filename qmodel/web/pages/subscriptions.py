"""The subscriptions, and one of them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.errors import SubscriptionNotFound
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, cut


def index(request: Request) -> Response:
    """List the subscriptions, oldest first."""
    site = site_of(request)
    offset = queries.whole(request, "offset")
    found = cut(site.source.ask(ops.Subscriptions(offset, PAGE + 1)), offset)
    return site.page(request, "subscriptions.html", found=found)


def show(request: Request) -> Response:
    """Show one subscription."""
    site = site_of(request)
    name = queries.needed(request, "name")
    found = site.source.ask(ops.SubscriptionGet(name))
    if found is None:
        raise SubscriptionNotFound(Refusal("SUBSCRIPTION_NOT_FOUND", (name,)))
    return site.page(request, "subscription.html", one=found)
