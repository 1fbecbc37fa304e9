"""Opening the URL of a server: a namespace, or with `name=` a deployment of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.backends.redis.backend import RedisBackend
from qmodel.backends.redis.url import Options, options_of

if TYPE_CHECKING:
    from qmodel.backends.redis.aio import AsyncRedisBackend
    from qmodel.backends.redis.aio_deployment import AsyncRedisDeployment
    from qmodel.backends.redis.deployment import RedisDeployment


def connect(url: str) -> RedisBackend | RedisDeployment:
    """Open a URL. Raises ConnectError, which names the problem and the remedy."""
    options = options_of(url)
    if options.name:
        from qmodel.backends.redis.deployment import RedisDeployment

        return RedisDeployment(options)
    return RedisBackend(options)


def connect_async(url: str) -> AsyncRedisBackend | AsyncRedisDeployment:
    """Open a URL for an event loop. The server is checked by the first call."""
    return open_async(options_of(url))


def open_async(options: Options) -> AsyncRedisBackend | AsyncRedisDeployment:
    """Open the options of a URL for an event loop."""
    if options.name:
        from qmodel.backends.redis.aio_deployment import AsyncRedisDeployment

        return AsyncRedisDeployment(options)
    from qmodel.backends.redis.aio import AsyncRedisBackend

    return AsyncRedisBackend(options)
