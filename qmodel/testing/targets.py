"""Where the jobs of a test are: the model in this process, or a namespace of its own on a server."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import NamedTuple

from qmodel.backends import AsyncBackend, Backend, open_async_backend, open_backend
from qmodel.errors import ConnectError


class Place(NamedTuple):
    """A backend, what opens asynchronous ones of the same jobs, and how to delete these in the end."""

    url: str
    backend: Backend
    open_async: Callable[[], AsyncBackend]

    def clean(self) -> None:
        """Delete all that the test has left on a server; the model goes with its last user."""
        prefix = prefix_of(self.url)
        if not prefix:
            return
        import redis

        with redis.Redis.from_url(without_prefix(self.url)) as server:
            keys = list(server.scan_iter(f"{prefix}*", 1000))
            for start in range(0, len(keys), 1000):
                server.unlink(*keys[start : start + 1000])


def place(url: str) -> Place:
    """An empty place: the model for `memory://`; on a server a namespace that nobody else has."""
    name = secrets.token_hex(8)
    if url.startswith("memory://"):
        from qmodel.backends.memory import AsyncMemoryBackend, MemoryBackend, namespace

        made = namespace("memory://")
        return Place(url, MemoryBackend(made), lambda: AsyncMemoryBackend(made))
    if "prefix=" in url:
        raise ConnectError(f"The URL {url} has a prefix.", "A test has a namespace of its own: leave it out.")
    url += f"{'&' if '?' in url else '?'}prefix={PREFIX}{name}:"
    return Place(url, open_backend(url), lambda: open_async_backend(url))


PREFIX = "qmodel-test-"
"""How the keys of tests begin on a server."""


def prefix_of(url: str) -> str:
    """The prefix of a place on a server, or nothing."""
    return url.rpartition("prefix=")[2] if "prefix=" in url else ""


def without_prefix(url: str) -> str:
    """The URL of the server itself."""
    return url.rpartition("prefix=")[0].rstrip("?&")
