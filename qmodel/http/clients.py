"""The asynchronous client that a server uses, from whatever its caller has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from qmodel.client.aio import AsyncClient
from qmodel.client.sync import Client
from qmodel.errors import ConnectError

if TYPE_CHECKING:
    from qmodel.backends import AsyncBackend


def async_client(given: Any) -> AsyncClient:
    """A client for the event loop: of a URL, of a Client or an App with the same jobs; an AsyncClient is itself.

    Raises ConnectError where there is none.
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
    """What was given; of a place that would be an empty one each time, a client that keeps it."""
    return Client(given) if given in ("memory://", "embedded://") else given


def _twin(backend: Any) -> AsyncBackend:
    """The asynchronous backend with the same jobs as a synchronous one."""
    made: AsyncBackend
    if hasattr(backend, "namespace"):
        beside = getattr(sys.modules[type(backend).__module__], f"Async{type(backend).__name__}", None)
        if beside is not None:
            made = beside(backend.namespace)
            return made
    elif hasattr(backend, "options"):
        from qmodel.backends.redis.aio import AsyncRedisBackend

        return AsyncRedisBackend(backend.options)
    raise ConnectError(
        f"A server cannot share the {type(backend).__name__} of a Client.", "Give an AsyncClient, or the URL."
    )
