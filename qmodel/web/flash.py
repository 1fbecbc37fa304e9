"""The outcome of an action, shown on the next page: a cookie carries it, and that page deletes the cookie."""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.responses import Response

NAME = "qmodel-said"
MOST = 600


def say(response: Response, text: str, path: str, *, secure: bool) -> None:
    """Show a message on the next page."""
    short = text if len(text) <= MOST else text[: MOST - 1] + "…"
    response.set_cookie(
        NAME, quote(short), max_age=60, path=path or "/", secure=secure, httponly=True, samesite="strict"
    )


def read(cookie: str) -> str:
    """Read the message. A cookie may come from anywhere; the template escapes it like any other text."""
    return unquote(cookie)[: MOST + 1]
