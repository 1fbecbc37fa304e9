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
from qmodel.web.actions import ACTIONS, OWN, Action, Own, perform
from qmodel.web.forms import Form, read
from qmodel.web.parts import PARTS, Part, go_on
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
    if name not in ACTIONS and name not in OWN and name not in PARTS:
        raise BadInput(f"There is no action '{name[:40]}'.")
    site.check(request, name)
    asks, ticks = question(name, form)
    if asks:
        kept = [(one, value) for one, value in form.pairs if one != "csrf"]
        return site.page(request, "confirm.html", asks=asks, fields=kept, ticks=ticks, back=_next(form))
    client = site.source.client
    if name in PARTS:
        return _part(site, request, form, name)
    told = OWN[name].do(client, form) if name in OWN else perform(client, ACTIONS[name], form)
    note(request, name, told)
    return _on(site, request, form, told, ACTIONS[name].leads if name in ACTIONS else "")


def _part(site: Site, request: Request, form: Form, name: str) -> Response:
    """Do a part of an action, and say how far it has come; go on as after others where the first part was all."""
    part = PARTS[name]
    step = go_on(site.source.client, part, form)
    told = part.tell(form, step)
    note(request, name, told)
    if not step.more and not form.text("done"):
        return _on(site, request, form, told, part.leads)
    kept = [(one, value) for one, value in form.pairs if one not in ("csrf", "done", "cursor", "confirmed")]
    back = leading(form, part.leads)
    return site.page(request, "parts.html", step=step, told=told, fields=kept, back=back)


def question(name: str, form: Form) -> tuple[str, tuple[str, str]]:
    """What is to be asked before an action, and the box beside it; nothing where nothing is, or it was answered."""
    if form.text("confirmed"):
        return "", ("", "")
    known: Action | Part | Own = ACTIONS.get(name) or PARTS.get(name) or OWN[name]
    given = {"dependency": "any other job", **form.fields}
    for field, one in (("jid", "job"), ("worker", "worker")):
        names = form.all(field)
        given[f"{one}s"] = f"{one} {names[0]}" if len(names) == 1 else f"these {len(names)} {one}s"
    try:
        return known.asks.format(**given), known.ticks
    except KeyError as missing:
        raise BadInput(f"The field {missing} is empty.") from None


def note(request: Request, action: str, told: str) -> None:
    """Log who did what."""
    who = request.client.host if request.client is not None else "somebody"
    LOG.info("%s by %s: %s", action, who, told, extra={"action": action, "who": who})


def _next(form: Form) -> str:
    """The page that a form came from, if it is one of ours."""
    found = form.text("next")
    return found if INSIDE.fullmatch(found) else "/"


def leading(form: Form, leads: str) -> str:
    """The page to go to: where the form was, or on, where that page is about what may be gone."""
    back = _next(form)
    about_one = leads and back.partition("?")[0] + "s" == leads
    return leads if about_one else back


def _on(site: Site, request: Request, form: Form, told: str, leads: str) -> Response:
    """Go back or on, and tell there what was done."""
    response = RedirectResponse(site.root(request) + leading(form, leads), 303)
    flash.say(response, told, site.root(request), secure=request.url.scheme == "https")
    return response
