"""The target of a test: the model in this process, or a separate namespace on a server."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import NamedTuple

from qmodel.backends import AsyncBackend, Backend, open_async_backend, open_backend
from qmodel.errors import ConnectError


class Target(NamedTuple):
    """A backend, a function that opens an asynchronous one for the same jobs, and the cleanup."""

    url: str
    backend: Backend
    open_async: Callable[[], AsyncBackend]

    def clean(self) -> None:
        """Delete the test's keys on a server; the model is freed with its last user."""
        prefix = prefix_of(self.url)
        if not prefix:
            return
        import redis

        from qmodel.backends.redis.url import options_of

        at = options_of(self.url).connection  # the URL may have options of qmodel, which redis-py refuses
        with redis.Redis.from_pool(redis.ConnectionPool(**at)) as server:
            keys = list(server.scan_iter(f"{prefix}*", 1000))
            for start in range(0, len(keys), 1000):
                server.unlink(*keys[start : start + 1000])


def open_target(url: str) -> Target:
    """Open an empty target: a new model for `memory://`, or a new namespace on a server."""
    name = secrets.token_hex(8)
    if url.startswith("memory://"):
        from qmodel.backends.memory import AsyncMemoryBackend, MemoryBackend, namespace

        made = namespace("memory://")
        return Target(url, MemoryBackend(made), lambda: AsyncMemoryBackend(made))
    if "prefix=" in url:
        raise ConnectError(f"The URL {url} has a prefix.", "Leave it out: each test makes its own namespace.")
    url += f"{'&' if '?' in url else '?'}prefix={PREFIX}{name}:"
    return Target(url, open_backend(url), lambda: open_async_backend(url))


PREFIX = "qmodel-test-"
"""The beginning of the keys of tests on a server."""


def prefix_of(url: str) -> str:
    """Read the prefix of a target on a server from its URL; empty for the model."""
    return url.rpartition("prefix=")[2] if "prefix=" in url else ""
