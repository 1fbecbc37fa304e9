"""Where forms are sent: `/do` performs an action, `/bulk` goes through all jobs that fit a filter.

Both stand behind the guard twice: it refuses what changes something unless that is allowed and comes from here, and
asks for the token that only a page of this server carries.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from qmodel.web import flash
from qmodel.web.acting import ACTIONS, OWN, perform, question
from qmodel.web.forms import Form, read
from qmodel.web.site import Site, site_of
from qmodel.web.source import BadInput

LOG = logging.getLogger("qmodel.web")

INSIDE = re.compile(r"/(?![/\\])[ -~]*")
"""A path of this site, and nowhere else."""


def posted(handle: Callable[[Site, Request, Form], Response]) -> Callable[[Request], Awaitable[Response]]:
    """A page that takes a form: read and verified here, handled in a thread."""

    async def endpoint(request: Request) -> Response:
        site = site_of(request)
        form = await read(request)
        site.guard.verify(request, form.fields)
        return await run_in_threadpool(handle, site, request, form)

    return endpoint


@posted
def do(site: Site, request: Request, form: Form) -> Response:
    """Perform an action, or ask first."""
    name = form.text("action")
    if name not in ACTIONS and name not in OWN:
        raise BadInput(f"There is no action '{name[:40]}'.")
    site.check(request, name)
    asks = question(name, form)
    if asks:
        kept = [(one, value) for one, value in form.pairs if one != "csrf"]
        cascade = name == "cancel-jobs"
        return site.page(request, "confirm.html", asks=asks, fields=kept, cascade=cascade, back=_next(form))
    client = site.source.client
    told = OWN[name](client, form) if name in OWN else perform(client, ACTIONS[name], form)
    note(request, name, told)
    return _on(site, request, form, told, ACTIONS[name].leads if name in ACTIONS else "")


def note(request: Request, action: str, told: str) -> None:
    """Log who did what."""
    who = request.client.host if request.client is not None else "somebody"
    LOG.info("%s by %s: %s", action, who, told, extra={"action": action, "who": who})


def _next(form: Form) -> str:
    """The page that a form came from, if it is one of ours."""
    found = form.text("next")
    return found if INSIDE.fullmatch(found) else "/"


def _on(site: Site, request: Request, form: Form, told: str, leads: str) -> Response:
    """Go back to where the form was, or on, where that page is about what may be gone; and tell there what was done."""
    back = _next(form)
    about_one = leads and back.partition("?")[0] + "s" == leads
    response = RedirectResponse(site.root(request) + (leads if about_one else back), 303)
    flash.say(response, told, site.root(request), secure=request.url.scheme == "https")
    return response
