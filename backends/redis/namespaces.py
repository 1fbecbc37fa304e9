"""The namespaces of a server, found by the keys of their events, and those of a deployment: its shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import redis

from qmodel.backends.bundle import events_key
from qmodel.backends.layouts import LAYOUT
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


def urls_of_shards(url: str, shards: Sequence[Any]) -> list[str]:
    """Give the URLs of the shards of a deployment, in order; of a namespace, which has none, its own."""
    return [with_prefix(url, shard.options.prefix) for shard in shards] or [url]


def with_prefix(url: str, prefix: str) -> str:
    """Give the URL of another namespace on the same server or cluster, or of a shard of a deployment.

    >>> with_prefix("redis://host/0?prefix=a:&deadline=5", "b:")
    'redis://host/0?deadline=5&prefix=b%3A'
    """
    base, _, query = url.partition("?")
    other = ("prefix", "name", *LAYOUT)
    options = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in other]
    return f"{base}?{urlencode([*options, ('prefix', prefix)])}"
