"""What an action did, told on the next page: it travels in a cookie, which that page takes away."""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.responses import Response

NAME = "qmodel-said"
MOST = 600


def say(response: Response, text: str, path: str, *, secure: bool) -> None:
    """Let the next page tell something."""
    short = text if len(text) <= MOST else text[: MOST - 1] + "…"
    response.set_cookie(
        NAME, quote(short), max_age=60, path=path or "/", secure=secure, httponly=True, samesite="strict"
    )


def read(cookie: str) -> str:
    """What is to be told. A cookie may come from anywhere; a template escapes it like any other text."""
    return unquote(cookie)[: MOST + 1]
