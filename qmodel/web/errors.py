"""What goes wrong, as pages: what was refused, what cannot be reached, what is not allowed, what broke."""

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
"""The status of a page whose operation is refused; 409 otherwise."""


def refused(request: Request, error: RefusedError) -> Response:
    """An operation was refused."""
    status, title = CODES.get(error.code, 409), f"Refused: {error.code}"
    return site_of(request).failed(request, status, title, error.sentence, error.next_step)


def unreachable(request: Request, error: ConnectError) -> Response:
    """There is no server."""
    return site_of(request).failed(request, 503, "The jobs cannot be reached", error.sentence, error.next_step)


def wrong(request: Request, error: QmodelError | BadInput) -> Response:
    """Something in the request cannot be."""
    return site_of(request).failed(request, 400, "That did not work", str(error))


def denied(request: Request, error: HTTPException) -> Response:
    """The guard did not let it pass."""
    sentence, next_step = getattr(error, "sentence", error.detail), getattr(error, "next_step", "")
    response = site_of(request).failed(request, error.status_code, "Not allowed", sentence, next_step)
    response.headers.update(error.headers or {})
    return response


def nowhere(request: Request, error: HTTPException) -> Response:
    """There is no such page, or it takes no such request."""
    if isinstance(error, Denied):
        return denied(request, error)
    is_missing = error.status_code == 404
    title = "There is no such page" if is_missing else "That did not work"
    return site_of(request).failed(request, error.status_code, title, "" if is_missing else error.detail)


def broken(request: Request, error: Exception) -> Response:
    """A mistake of ours, or a server that says what no client expects."""
    sentence, next_step = f"{type(error).__name__}: {error}", "The log of this server says more."
    response = site_of(request).failed(request, 500, "Something broke here", sentence, next_step)
    response.headers.update(HEADERS)  # this one is answered outside the gate
    return response


HANDLERS: dict[Any, Callable[[Request, Any], Response]] = {
    Exception: broken,
    RefusedError: refused,
    ConnectError: unreachable,
    QmodelError: wrong,
    BadInput: wrong,
    HTTPException: nowhere,
}
"""What becomes of each kind of error."""
