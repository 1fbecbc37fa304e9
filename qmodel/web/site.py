"""The common parts of all pages: navigation, templates, links, and permission."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from qmodel.contract.lifecycle import STATES
from qmodel.http.guard import FIELD, Denied, Guard
from qmodel.present.actions import ACTIONS
from qmodel.present.durations import relative
from qmodel.version import __version__
from qmodel.web import flash
from qmodel.web.filters import FILTERS
from qmodel.web.source import Source

HERE = Path(__file__).parent

LOG = logging.getLogger("qmodel.web")

NAVIGATION = (
    ("/", "Overview"),
    ("/queues", "Queues"),
    ("/jobs", "Jobs"),
    ("/types", "Job types"),
    ("/failures", "Failures"),
    ("/workers", "Workers"),
    ("/schedules", "Schedules"),
    ("/throttles", "Throttles"),
    ("/requests", "Requests"),
    ("/subscriptions", "Subscriptions"),
    ("/tags", "Tags"),
    ("/stats", "Statistics"),
    ("/events", "Events"),
    ("/settings", "Settings"),
    ("/doctor", "Doctor"),
)
"""The pages in the navigation."""

UNDER = {
    "/flow": "/jobs",
    "/unique": "/jobs",
    "/klass": "/types",
    "/bulk": "/jobs",
    "/messages": "/subscriptions",
}
"""The entry of the navigation for pages with other names."""

May = Callable[[Request, str], bool]
"""Says whether a caller may perform an action, by name; for the empty name, whether they may perform any."""


Decode = Callable[[str, str], str]
"""Makes the text to show from a job type and stored data."""


class Site:
    """The state of the app: the source of the jobs, the guard, the permissions, and the prefix."""

    def __init__(self, source: Source, guard: Guard, *, prefix: str, may: May | None, decode: Decode | None) -> None:
        self.source = source
        self.guard = guard
        self._may = may
        self._decode = decode
        self.prefix = f"/{prefix.strip('/')}".rstrip("/")
        self.version = _sum_of_assets()

    def decode(self, klass: str, text: str) -> str:
        """Make the text to show of stored data; these themselves if that fails: the rest of the page needs neither."""
        if self._decode is None:
            return text
        try:
            return self._decode(klass, text)
        except Exception:
            LOG.exception("The data of a job of type %r were not decoded.", klass)
            return text

    def root(self, request: Request) -> str:
        """Give the prefix of every path: the mount's and the proxy's."""
        return self.prefix + str(request.scope.get("root_path", "")).rstrip("/")

    def allows(self, request: Request, action: str = "") -> bool:
        """Say whether the caller may perform an action, or any at all."""
        return self.guard.writable and (self._may is None or self._may(request, action))

    def check(self, request: Request, action: str) -> None:
        """Raise Denied if an action is not allowed."""
        if not self.allows(request, action):
            raise Denied(403, "FORBIDDEN", f"You may not do that ({action}).", "Ask the operator of these pages.")

    def link(self, request: Request, path: str, **query: Any) -> str:
        """Make a link to a page; empty values are left out of its query."""
        given = {name: value for name, value in query.items() if value not in (None, "", 0, False)}
        return self.root(request) + path + (f"?{urlencode(given)}" if given else "")

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """Fill a template."""
        now = values.pop("now", None) or self.source.now()
        here = "/" + request.url.path.removeprefix(str(request.scope.get("root_path", ""))).lstrip("/")
        writable, where = self.allows(request), values.pop("where", self.source.where)
        made = (
            _templates()
            .get_template(template)
            .render(
                url=partial(self.link, request),
                asset=lambda name: self.link(request, f"/static/{name}", v=self.version),
                here=here + (f"?{request.url.query}" if request.url.query else ""),
                path=here,
                reloads=request.method == "GET",
                now=now,
                relative=lambda at: relative(at, now),
                writable=writable,
                allowed=partial(self.allows, request),
                token=self.guard.token(request) if writable else "",
                where=where,
                said=request.cookies.get(flash.NAME, ""),
                **values,
            )
        )
        response = HTMLResponse(made, status)
        if flash.NAME in request.cookies:
            response.delete_cookie(flash.NAME, path=self.root(request) or "/")
        return response

    def failed(self, request: Request, status: int, title: str, sentence: str, next_step: str = "") -> Response:
        """Make an error page: what went wrong, and what to do; whoever is denied does not see where the jobs are."""
        values = {"title": title, "sentence": sentence, "next_step": next_step}
        values |= {"where": ""} if status in (401, 403) else {}
        return self.page(request, "error.html", status, now=time.time_ns() // 1_000_000, **values)


@lru_cache
def _templates() -> Environment:
    """Load the templates; they escape every value, and raise an error for an undefined one."""
    found = Environment(
        loader=PackageLoader("qmodel.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(FILTERS)
    found.globals.update(states=STATES, version=__version__, navigation=NAVIGATION, under=UNDER, field=FIELD)
    found.globals.update(actions=ACTIONS)
    return found


@lru_cache
def _sum_of_assets() -> str:
    """Hash the assets: their links change with them, so that browsers may cache them."""
    found = hashlib.sha256()
    for path in sorted((HERE / "static").rglob("*.*")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def site_of(request: Request) -> Site:
    """Give the site of a request."""
    found: Site = request.app.state.site
    return found
