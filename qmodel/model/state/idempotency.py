"""Idempotency: the replies to recent requests, for operations that have no other way to recognise a repeated one."""

from __future__ import annotations

from typing import Any

from qmodel.model.state.store import Store

KEPT = 1000


def recall(store: Store, request: str) -> Any:
    """The remembered reply to a request, or None."""
    return store.requests.get(request)


def remember(store: Store, request: str, reply: Any) -> None:
    """Remember the reply to a request, and forget the oldest beyond 1000."""
    store.requests[request] = reply
    if len(store.requests) > KEPT:
        del store.requests[next(iter(store.requests))]
