"""The namespaces of a server, found by the keys of their events."""

from __future__ import annotations

import redis

from qmodel.backends.bundle import events_key
from qmodel.backends.redis.backend import settings_of_master
from qmodel.backends.redis.url import options_of
from qmodel.errors import ConnectError


def namespaces(url: str, pattern: str) -> list[str]:
    """List the prefixes on a server that fit a pattern, such as `shop-*:`, and have events, in order.

    A pattern is that of SCAN: `*`, `?` and `[ab]`. All keys of the database are looked at, in many short reads. Raises
    ConnectError for a cluster, and if the server cannot be reached.
    """
    options = options_of(url)
    if options.kind == "cluster":
        raise ConnectError(f"{options.where} is a cluster.", "Read a namespace of it, by its prefix.")
    end = len(events_key(""))
    try:
        with redis.Redis(connection_pool=redis.ConnectionPool(**settings_of_master(url))) as server:
            found = {bytes(key)[:-end] for key in server.scan_iter(events_key(pattern), 10_000, _type="stream")}
            return sorted(prefix.decode() for prefix in found if server.exists(prefix + b"counters"))
    except (redis.RedisError, OSError) as error:
        raise ConnectError(f"{options.where} gave no list of its namespaces: {error}.", "Check the URL.") from None
