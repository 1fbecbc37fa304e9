"""Where drivers work: a server, and namespaces on it that are theirs alone."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

SCHEMES = ("redis", "rediss", "unix", "valkey", "valkeys")


class Namespaces:
    """Fresh prefixes on one server, where the library is loaded; `close` deletes what drivers left under them.

    A URL of another scheme is given to drivers as it is: whatever is there is theirs to know.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._backend: Any = None
        self._made = 0
        base = ""
        if urlsplit(url).scheme in SCHEMES:
            from qmodel.backends.redis import RedisBackend
            from qmodel.backends.redis_setup import options_of

            options = options_of(url)
            self._backend = RedisBackend(options)  # loads the library
            self._connection = options.connection
            self.url, base = _theirs(url), options.prefix
        self._base = f"{base}kit-{secrets.token_hex(4)}:"

    def fresh(self) -> str:
        """A prefix that nobody used before."""
        self._made += 1
        return f"{self._base}{self._made}:"

    def close(self) -> None:
        """Delete every key under the prefixes, and hang up."""
        if self._backend is None:
            return
        import redis

        with redis.Redis(connection_pool=redis.ConnectionPool(**self._connection)) as client:
            keys = list(client.scan_iter(match=f"{_quoted(self._base)}*", count=1000))
            for at in range(0, len(keys), 500):
                client.delete(*keys[at : at + 500])
        self._backend.close()


def _quoted(text: str) -> str:
    """A text as a pattern that matches it alone."""
    return "".join(f"\\{c}" if c in "*?[]\\" else c for c in text)


def _theirs(url: str) -> str:
    """A URL as any client of Redis understands it: without our options and names for schemes."""
    from qmodel.backends.redis_setup import OWN

    parts = urlsplit(url)
    scheme = parts.scheme.replace("valkey", "redis")
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name not in OWN])
    return f"{scheme}://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")


@contextmanager
def namespaces(url: str) -> Iterator[Namespaces]:
    """The namespaces of one run."""
    made = Namespaces(url)
    try:
        yield made
    finally:
        made.close()
