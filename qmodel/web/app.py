"""The app: routes, middleware, and error handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from qmodel.http.app import application
from qmodel.http.guard import Guard
from qmodel.web.errors import HANDLERS, denied
from qmodel.web.headers import Gate
from qmodel.web.pages import ROUTES
from qmodel.web.site import HERE, Decode, May, Site
from qmodel.web.source import Source


def make(
    client_or_url: Any,
    *,
    writable: bool,
    auth: str | None,
    prefix: str,
    hosts: Sequence[str] | None,
    may: May | None,
    secret: str | None,
    decode: Decode | None,
) -> Starlette:
    """Make the app; `qmodel.web.create` explains the arguments."""
    guard = Guard(auth, writable, hosts=hosts, secret=secret)
    site = Site(Source(client_or_url), guard, prefix=prefix, may=may, decode=decode)
    api = application(site.source.shared, writable=writable and may is None, auth=auth, hosts=hosts)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with api.router.lifespan_context(api):
            yield
        site.source.close()

    app = Starlette(
        routes=[*ROUTES, Mount("/static", StaticFiles(directory=HERE / "static")), Mount("/api", api)],
        middleware=[Middleware(Gate, guard=site.guard, deny=denied)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    app.state.site, app.state.closing = site, api.state.api.closing
    return app
