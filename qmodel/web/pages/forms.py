"""The targets of forms: `/do` performs an action, `/bulk` a bulk action.

The guard checks both twice: writing must be allowed and the request must come from this site; and the form must carry
the token of a page of this server.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from qmodel.present.actions import ACTIONS, Stepwise, question
from qmodel.present.fields import BadInput, Fields
from qmodel.web import flash
from qmodel.web.actions import LEADS, go_on, perform
from qmodel.web.forms import read
from qmodel.web.site import Site, site_of

LOG = logging.getLogger("qmodel.web")

INSIDE = re.compile(r"/(?![/\\])[ -~]*")
"""A path of this site, and of no other."""


def posted(handle: Callable[[Site, Request, Fields], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Make the endpoint of a form: read and verify it, and handle it in a thread."""

    async def endpoint(request: Request) -> Response:
        site = site_of(request)
        form = await read(request)
        site.guard.verify(request, form.fields)
        return await run_in_threadpool(handle, site, request, form)

    return endpoint


@posted
def do(site: Site, request: Request, form: Fields) -> Response:
    """Perform an action, or ask its question first."""
    name = form.text("action")
    action = ACTIONS.get(name)
    if action is None:
        raise BadInput(f"There is no action '{name[:40]}'.")
    site.check(request, name)
    if action.question and not form.text("confirmed"):
        kept = [(one, value) for one, value in form.pairs if one != "csrf"]
        asked = question(action, form)
        return site.page(request, "confirm.html", asks=asked, action=action, fields=kept, back=_next(form))
    if isinstance(action, Stepwise):
        return _part(site, request, form, name, action)
    sentence = perform(site.source.client, action, form)
    note(request, name, sentence)
    return _on(site, request, form, sentence, LEADS.get(name, ""))


def _part(site: Site, request: Request, form: Fields, name: str, action: Stepwise) -> Response:
    """Do a part of an action, and show how far it has come; redirect, as after others, if the first part was all."""
    step, leads = go_on(site.source.client, action, form), LEADS.get(name, "")
    sentence = action.tell(form, step)
    note(request, name, sentence)
    if not step.more and not form.text("done"):
        return _on(site, request, form, sentence, leads)
    kept = [(one, value) for one, value in form.pairs if one not in ("csrf", "done", "cursor", "confirmed")]
    back = leading(form, leads)
    return site.page(request, "parts.html", step=step, told=sentence, fields=kept, back=back)


def note(request: Request, action: str, told: str) -> None:
    """Log an action and its caller."""
    who = request.client.host if request.client is not None else "somebody"
    LOG.info("%s by %s: %s", action, who, told, extra={"action": action, "who": who})


def _next(form: Fields) -> str:
    """Give the page that the form came from, if it is one of this site."""
    found = form.text("next")
    return found if INSIDE.fullmatch(found) else "/"


def leading(form: Fields, leads: str) -> str:
    """Give the next page: that of the form, or `leads` if that page is about something that may be deleted."""
    back = _next(form)
    about_one = leads and back.partition("?")[0] + "s" == leads
    return leads if about_one else back


def _on(site: Site, request: Request, form: Fields, told: str, leads: str) -> Response:
    """Redirect to the next page, and show the outcome there."""
    response = RedirectResponse(site.root(request) + leading(form, leads), 303)
    flash.say(response, told, site.root(request), secure=request.url.scheme == "https")
    return response
