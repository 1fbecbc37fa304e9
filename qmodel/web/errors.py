"""Error pages: refusals, unreachable servers, denied requests, bad input, and internal errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from qmodel.errors import ConnectError, QmodelError, RefusedError
from qmodel.http.guard import Denied
from qmodel.present.fields import BadInput
from qmodel.web.headers import HEADERS
from qmodel.web.site import site_of

CODES = {"BAD_ARGUMENT": 400, "JOB_NOT_FOUND": 404, "SCHEDULE_NOT_FOUND": 404, "SUBSCRIPTION_NOT_FOUND": 404}
"""The status of the page of a refusal, by code; 409 for all others."""


def refused(request: Request, error: RefusedError) -> Response:
    """Make the page of a refused operation."""
    status, title = CODES.get(error.code, 409), f"Refused: {error.code}"
    return site_of(request).failed(request, status, title, error.sentence, error.next_step)


def unreachable(request: Request, error: ConnectError) -> Response:
    """Make the page of an unreachable server."""
    return site_of(request).failed(request, 503, "The jobs cannot be reached", error.sentence, error.next_step)


def wrong(request: Request, error: QmodelError | BadInput) -> Response:
    """Make the page of a request that cannot be read."""
    return site_of(request).failed(request, 400, "That did not work", str(error))


def denied(request: Request, error: HTTPException) -> Response:
    """Make the page of a request that the guard denied."""
    sentence, next_step = getattr(error, "sentence", error.detail), getattr(error, "next_step", "")
    response = site_of(request).failed(request, error.status_code, "Not allowed", sentence, next_step)
    response.headers.update(error.headers or {})
    return response


def nowhere(request: Request, error: HTTPException) -> Response:
    """Make the page for an unknown path, or a wrong method."""
    if isinstance(error, Denied):
        return denied(request, error)
    is_missing = error.status_code == 404
    title = "There is no such page" if is_missing else "That did not work"
    return site_of(request).failed(request, error.status_code, title, "" if is_missing else error.detail)


def broken(request: Request, error: Exception) -> Response:
    """Make the page of an internal error, or of an unexpected reply of the server."""
    sentence, next_step = f"{type(error).__name__}: {error}", "See the log of this server."
    response = site_of(request).failed(request, 500, "Something broke here", sentence, next_step)
    response.headers.update(HEADERS)  # this handler runs outside the gate
    return response


HANDLERS: dict[Any, Callable[[Request, Any], Response]] = {
    Exception: broken,
    RefusedError: refused,
    ConnectError: unreachable,
    QmodelError: wrong,
    BadInput: wrong,
    HTTPException: nowhere,
}
"""The handler of each kind of error."""
