"""The asynchronous client of a server, made from a URL, a client or an app."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from qmodel.client.aio import AsyncClient
from qmodel.client.sync import Client
from qmodel.errors import ConnectError

if TYPE_CHECKING:
    from qmodel.backends import AsyncBackend


def async_client(given: Any) -> AsyncClient:
    """Make the client of the event loop, for the jobs of a URL, a Client or an App; an AsyncClient is used as it is.

    Raises ConnectError for a backend without an asynchronous one.
    """
    if isinstance(given, AsyncClient):
        return given
    if isinstance(given, str):
        return AsyncClient(given)
    if isinstance(given, Client):
        return AsyncClient(_twin(given.backend))
    found = getattr(given, "aclient", None)
    if isinstance(found, AsyncClient):
        return found
    raise ConnectError(f"A {type(given).__name__} is no client.", "Give a URL, a Client, an AsyncClient or an App.")


def kept(given: Any) -> Any:
    """Give the URL or client; for a store in memory, which each client would have anew, a client that keeps it."""
    return Client(given) if given in ("memory://", "embedded://") else given


def _twin(backend: Any) -> AsyncBackend:
    """Make the asynchronous backend with the jobs of a synchronous one."""
    made: AsyncBackend
    if hasattr(backend, "namespace"):
        beside = getattr(sys.modules[type(backend).__module__], f"Async{type(backend).__name__}", None)
        if beside is not None:
            made = beside(backend.namespace)
            return made
    elif hasattr(backend, "options"):
        from qmodel.backends.redis.connect import open_async

        return open_async(backend.options)
    raise ConnectError(
        f"A server cannot share the {type(backend).__name__} of a Client.", "Give an AsyncClient, or the URL."
    )
