"""The app: its routes, what every answer carries, and what becomes of errors."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from qmodel import __version__
from qmodel.errors import ConnectError, QmodelError, RefusedError
from qmodel.http.app import application
from qmodel.http.guard import FIELD, Denied, Guard
from qmodel.lifecycle import STATES
from qmodel.web import flash
from qmodel.web.formats import FILTERS, relative
from qmodel.web.headers import Gate
from qmodel.web.source import BadInput, Source

HERE = Path(__file__).parent

NAVIGATION = (
    ("/", "Overview"),
    ("/queues", "Queues"),
    ("/jobs", "Jobs"),
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
"""The pages that each page leads to."""

CODES = {"BAD_ARGUMENT": 400, "JOB_NOT_FOUND": 404, "SCHEDULE_NOT_FOUND": 404, "SUBSCRIPTION_NOT_FOUND": 404}
"""The status of a page whose operation is refused; 409 otherwise."""


class Site:
    """What all pages share: where the jobs are, who may do what, and the templates."""

    def __init__(self, source: Source, guard: Guard, *, prefix: str) -> None:
        self.source = source
        self.guard = guard
        self.writable = guard.writable
        self.prefix = f"/{prefix.strip('/')}".rstrip("/")
        self.version = _sum_of_assets()

    def root(self, request: Request) -> str:
        """What stands before every path: the mount's, and the proxy's."""
        return self.prefix + str(request.scope.get("root_path", "")).rstrip("/")

    def link(self, request: Request, path: str, **query: Any) -> str:
        """A link to a page; what is empty is left out of its query."""
        given = {name: value for name, value in query.items() if value not in (None, "", 0, False)}
        return self.root(request) + path + (f"?{urlencode(given)}" if given else "")

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """Fill a template."""
        now = values.pop("now", None) or self.source.now()
        here = request.url.path.removeprefix(self.root(request)) or "/"
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
                writable=self.writable,
                token=self.guard.token(request) if self.writable else "",
                where=self.source.where,
                said=request.cookies.get(flash.NAME, ""),
                **values,
            )
        )
        response = HTMLResponse(made, status)
        if flash.NAME in request.cookies:
            response.delete_cookie(flash.NAME, path=self.root(request) or "/")
        return response

    def failed(self, request: Request, status: int, title: str, sentence: str, next_step: str = "") -> Response:
        """The page that says what went wrong and what to do."""
        values = {"title": title, "sentence": sentence, "next_step": next_step}
        return self.page(request, "error.html", status, now=time.time_ns() // 1_000_000, **values)


def make(
    client_or_url: Any, *, writable: bool, auth: str | None, prefix: str, hosts: Sequence[str] | None
) -> Starlette:
    """Make the app, as `qmodel.web.create` says."""
    from qmodel.web.pages import ROUTES

    site = Site(Source(client_or_url), Guard(auth, writable, hosts=hosts), prefix=prefix)
    api = application(site.source.shared, writable=writable, auth=auth, hosts=hosts)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with api.router.lifespan_context(api):
            yield
        site.source.close()

    app = Starlette(
        routes=[*ROUTES, Mount("/static", StaticFiles(directory=HERE / "static")), Mount("/api", api)],
        middleware=[Middleware(Gate, guard=site.guard, deny=partial(_denied, site))],
        exception_handlers=_handlers(site),
        lifespan=lifespan,
    )
    app.state.site, app.state.closing = site, api.state.api.closing
    return app


def _denied(site: Site, request: Request, error: HTTPException) -> Response:
    sentence, next_step = getattr(error, "sentence", error.detail), getattr(error, "next_step", "")
    response = site.failed(request, error.status_code, "Not allowed", sentence, next_step)
    response.headers.update(error.headers or {})
    return response


def _handlers(site: Site) -> dict[Any, Callable[[Request, Any], Response]]:
    """What becomes of each kind of error."""

    def refused(request: Request, error: RefusedError) -> Response:
        status = CODES.get(error.code, 409)
        return site.failed(request, status, f"Refused: {error.code}", error.sentence, error.next_step)

    def unreachable(request: Request, error: ConnectError) -> Response:
        return site.failed(request, 503, "The jobs cannot be reached", error.sentence, error.next_step)

    def other(request: Request, error: QmodelError | ValueError) -> Response:
        return site.failed(request, 400, "That did not work", str(error))

    def http(request: Request, error: HTTPException) -> Response:
        if isinstance(error, Denied):
            return _denied(site, request, error)
        title = "There is no such page" if error.status_code == 404 else "That did not work"
        return site.failed(request, error.status_code, title, error.detail if error.status_code != 404 else "")

    return {
        RefusedError: refused,
        ConnectError: unreachable,
        QmodelError: other,
        BadInput: other,
        HTTPException: http,
    }


@lru_cache
def _templates() -> Environment:
    """The templates, which escape whatever they are given, and take nothing that they are not."""
    found = Environment(
        loader=PackageLoader("qmodel.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(FILTERS)
    found.globals.update(states=STATES, version=__version__, navigation=NAVIGATION, field=FIELD)
    return found


@lru_cache
def _sum_of_assets() -> str:
    """What changes when an asset does, so that browsers may keep them."""
    found = hashlib.sha256()
    for path in sorted((HERE / "static").rglob("*.*")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def site_of(request: Request) -> Site:
    """The site that a request came to."""
    found: Site = request.app.state.site
    return found
