"""The application: the paths, the guard before them, and the answers for unknown paths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from qmodel.contract import operations as ops
from qmodel.http import operations
from qmodel.http.api import Answer, Api, Call, Endpoint, Limits, as_json, respond_to
from qmodel.http.guard import Guard
from qmodel.http.openapi import document
from qmodel.http.routes import RESOURCES, describe
from qmodel.http.schedules import keep_going
from qmodel.version import __version__


def application(
    client_or_url: Any,
    *,
    writable: bool = False,
    auth: str | None = None,
    hosts: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Starlette:
    """Make the application; `qmodel.http.create` explains the arguments."""
    api = Api(client_or_url, Guard(auth, writable, hosts=hosts), limits or Limits())

    made = Starlette(
        routes=[
            Route("/health", _health(api), methods=["GET"]),
            Route("/", api.endpoint(_index, writes=False), methods=["GET"]),
            Route("/openapi.json", api.endpoint(_describe, writes=False), methods=["GET"]),
            *_resources(api),
            Route("/v1/operations", api.endpoint(operations.perform_many, writes=False), methods=["POST"]),
            Route("/v1/operations/{name}", _operation(api), methods=["GET", "POST"]),
        ],
        lifespan=_lifespan(api),
        exception_handlers={404: _not_a_path, 405: _not_a_path, Exception: _not_a_path},
    )
    made.router.redirect_slashes = False
    made.add_middleware(AsSent)
    made.state.api = api
    return made


def _lifespan(api: Api) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Run the background work of the server: a writable one computes the next moments of cron expressions."""

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with api.lifespan():
            going = asyncio.ensure_future(keep_going(api.client)) if api.guard.writable else None
            yield
            if going is not None:
                going.cancel()

    return lifespan


def _resources(api: Api) -> Iterator[Route]:
    """Make a route for each path, with all its methods: other methods get 405 with an Allow header."""
    methods: dict[str, dict[str, Endpoint]] = {}
    for one in RESOURCES:
        methods.setdefault(one.path, {})[one.method] = api.endpoint(
            one.handler, writes=one.writes, query=one.query or {}
        )
    for path, endpoints in methods.items():
        if "GET" in endpoints:
            endpoints["HEAD"] = endpoints["GET"]

        async def answer(request: Request, endpoints: dict[str, Endpoint] = endpoints) -> Response:
            return await endpoints[request.method](request)

        yield Route(path, answer, methods=list(endpoints))


def _operation(api: Api) -> Endpoint:
    perform, look = (api.endpoint(one, writes=False) for one in (operations.perform, operations.look))

    async def answer(request: Request) -> Response:
        return await (perform if request.method == "POST" else look)(request)

    return answer


async def _index(call: Call) -> Any:
    paths = [describe(one) for one in RESOURCES]
    return {"qmodel": __version__, "openapi": "openapi.json", "writable": call.api.guard.writable, "paths": paths}


async def _describe(call: Call) -> Any:
    return Answer(document(), headers={"Cache-Control": "no-cache"})


def _health(api: Api) -> Any:
    """Say whether the backend can be reached, and nothing else; this needs no password."""

    async def health(request: Request) -> Response:
        try:
            async with asyncio.timeout(api.limits.answer_seconds):
                await api.client.execute(ops.Newest())
        except TimeoutError:
            return respond_to(api.late())
        except Exception as error:
            return respond_to(error)
        return as_json({"ok": True})

    return health


async def _not_a_path(request: Request, error: Exception) -> Response:
    return respond_to(error)


class AsSent:
    """Match paths as they were sent, so that a name may have any character: `/` is `%2F` in a path."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        raw = scope.get("raw_path")
        if raw and scope["type"] == "http":
            scope = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}
        await self.app(scope, receive, send)
