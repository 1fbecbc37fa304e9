"""The middleware of all pages: the guard, and the headers of every response.

The content security policy allows only assets of this server: no inline scripts or styles, nothing from other hosts, no
frames. So even an unescaped text on a page cannot do harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

KEEP = "public, max-age=31536000, immutable"
"""The cache control of assets: their links change when they do."""


class Gate:
    """Asks the guard first, and sets the headers of every response."""

    def __init__(self, app: ASGIApp, guard: Any, deny: Callable[[Request, HTTPException], Response]) -> None:
        self.app = app
        self.guard = guard
        self.deny = deny

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        inside = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        if scope["type"] != "http" or inside.startswith("/api/"):  # the API has its own guard and headers
            await self.app(scope, receive, send)
            return
        request = Request(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                is_asset = inside.startswith("/static/") and message["status"] in (200, 304)
                headers.setdefault("cache-control", KEEP if is_asset else "no-store")
            await send(message)

        try:
            self.guard.check(request)
        except HTTPException as denied:
            await self.deny(request, denied)(scope, receive, with_headers)
            return
        await self.app(scope, receive, with_headers)
