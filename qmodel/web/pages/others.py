"""Requests, subscriptions, messages, what is noted for a klass, events, options, and what the doctor finds."""

from __future__ import annotations

from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.contract.settings import OPTIONS
from qmodel.doctor import CHECKS, examine, invariants
from qmodel.errors import SubscriptionNotFound
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, Slice, cut

REQUEST_STATES = ("open", "closed", "canceling", "done", "canceled")

EVENTS = 100
"""The events of a page."""

FINDINGS = 200
"""The most that the doctor says on a page."""


def requests(request: Request) -> Response:
    """The requests in a state, longest in it first."""
    site = site_of(request)
    state = queries.choice(request, "state", REQUEST_STATES, "open")
    offset = queries.whole(request, "offset")
    page = site.source.ask(ops.Requests(state, offset, PAGE))
    found = [one for one in site.source.ask_all(map(ops.RequestGet, page.jids)) if one is not None]
    part = Slice(found, offset, page.total, offset + PAGE < page.total)
    return site.page(request, "requests.html", found=part, state=state, of_request=REQUEST_STATES)


def request(request: Request) -> Response:
    """One request, and how far it has come."""
    site = site_of(request)
    found = site.source.ask(ops.RequestGet(queries.needed(request, "id")))
    if found is None:
        raise HTTPException(404)
    return site.page(request, "request.html", one=found)


def subscriptions(request: Request) -> Response:
    """The subscriptions, oldest first."""
    site = site_of(request)
    offset = queries.whole(request, "offset")
    found = cut(site.source.ask(ops.Subscriptions(offset, PAGE + 1)), offset)
    return site.page(request, "subscriptions.html", found=found)


def subscription(request: Request) -> Response:
    """One subscription."""
    site = site_of(request)
    name = queries.needed(request, "name")
    found = site.source.ask(ops.SubscriptionGet(name))
    if found is None:
        raise SubscriptionNotFound(Refusal("SUBSCRIPTION_NOT_FOUND", (name,)))
    return site.page(request, "subscription.html", one=found)


def messages(request: Request) -> Response:
    """The messages that are kept, oldest first, or those after one."""
    site = site_of(request)
    after = queries.whole(request, "after", most=10**13)
    found = site.source.ask(ops.Messages(after, PAGE + 1))
    following = found[PAGE - 1].seq if len(found) > PAGE else 0
    return site.page(request, "messages.html", messages=found[:PAGE], after=after, following=following)


def klass(request: Request) -> Response:
    """What is noted for a klass."""
    site = site_of(request)
    name = queries.needed(request, "name")
    return site.page(request, "klass.html", name=name, entries=site.source.ask(ops.MetadataGet(name)))


def events(request: Request) -> Response:
    """The events, latest first, or those before one."""
    site = site_of(request)
    before = queries.whole(request, "before", most=10**13) or site.source.ask(ops.Newest()) + 1
    first = max(before - EVENTS, 1)
    found = [event for event in site.source.ask(ops.Events(first - 1, EVENTS)) if event.seq < before]
    return site.page(request, "events.html", events=found[::-1], first=first if first > 1 and found else 0)


def settings(request: Request) -> Response:
    """The options of the namespace."""
    site = site_of(request)
    found = site.source.ask(ops.Config())
    return site.page(request, "settings.html", settings=found, options=OPTIONS)


def tags(request: Request) -> Response:
    """The tags that several jobs have, and the tracked jobs."""
    site = site_of(request)
    offset = queries.whole(request, "offset")
    found, tracked = site.source.ask_all([ops.TopTags(offset, PAGE + 1), ops.Tracked(0, PAGE)])
    return site.page(request, "tags.html", found=cut(found, offset), tracked=tracked)


def unique(request: Request) -> Response:
    """A key, and the job that stands for others under it."""
    site = site_of(request)
    key = queries.needed(request, "key")
    held = site.source.ask(ops.UniqueGet(key))
    known = site.source.known(jid for jid in (held.jid, held.next) if jid) if held is not None else {}
    return site.page(request, "unique.html", key=key, held=held, known=known)


class Patient(NamedTuple):
    """What the doctor is to look at. The keys are not: that would hold up everybody else."""

    url: str
    client: Client
    url_from: str = "the start of these pages"
    look_at_keys: bool = False


def doctor(request: Request) -> Response:
    """What the doctor finds."""
    site = site_of(request)
    checks = tuple(check for check in CHECKS if check is not invariants)
    found = list(examine(Patient(site.source.where, site.source.client), checks))
    return site.page(request, "doctor.html", findings=found[:FINDINGS], left=max(len(found) - FINDINGS, 0))
