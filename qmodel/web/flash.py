"""The outcome of an action, shown on the next page: a cookie carries it, and that page deletes the cookie."""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.responses import Response

NAME = "qmodel-said"

MORE = quote("…")
MOST = 600
"""The most characters of a message."""

MOST_SENT = 3000
"""The most characters of the cookie's value; browsers drop a cookie of more than 4096 bytes without a word."""


def say(response: Response, text: str, path: str, *, secure: bool) -> None:
    """Show a message on the next page."""
    response.set_cookie(
        NAME, written(text), max_age=60, path=path or "/", secure=secure, httponly=True, samesite="strict"
    )


def written(text: str) -> str:
    """Write a message as a cookie has it; a long one is cut between two characters.

    >>> written("50 % done"), len(written("日" * 600))
    ('50%20%25%20done', 2997)
    """
    parts, left = [quote(one, safe="") for one in text[: MOST + 1]], MOST_SENT
    if len(parts) <= MOST and sum(map(len, parts)) <= left:
        return "".join(parts)
    kept, left = "", left - len(MORE)
    for part in parts[: MOST - 1]:
        if len(part) > left:
            break
        kept, left = kept + part, left - len(part)
    return kept + MORE


def read(cookie: str) -> str:
    """Read the message. A cookie may come from anywhere; the template escapes it like any other text."""
    return unquote(cookie)[: MOST + 1]
