"""Values of a request's query."""

from __future__ import annotations

from starlette.requests import Request

from qmodel.present.fields import BadInput


def text(request: Request, name: str) -> str:
    """Give a text as it was sent, for a name may begin or end with blanks; empty if it is missing."""
    return request.query_params.get(name, "")


def needed(request: Request, name: str) -> str:
    """Give a text; raise BadInput if it is missing."""
    found = text(request, name)
    if not found:
        raise BadInput(f"This page needs ?{name}=... in its address.")
    return found


def whole(request: Request, name: str, default: int = 0, most: int = 10**9) -> int:
    """Give a whole number of at least 0; raise BadInput for anything else."""
    found = text(request, name).strip()
    if not found:
        return default
    if len(found) > 16 or not (found.isascii() and found.isdigit()) or int(found) > most:
        raise BadInput(f"{name} must be a whole number from 0 to {most:,}, not '{found[:40]}'.")
    return int(found)


def choice(request: Request, name: str, words: tuple[str, ...], default: str) -> str:
    """Give one of some words; raise BadInput for another one."""
    found = text(request, name).strip() or default
    if found not in words:
        raise BadInput(f"{name} must be one of {', '.join(filter(None, words))}, not '{found[:40]}'.")
    return found
