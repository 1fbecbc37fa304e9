"""Namespaces for drivers: a server, and new namespaces on it for one driver each."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from qmodel.backends import parts_of
from qmodel.conformance.kit.vectors import Outcome, outcome
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import Pop, Workers

SCHEMES = ("redis", "rediss", "unix", "valkey", "valkeys")


def is_server(url: str) -> bool:
    """Whether a URL leads to a server, by itself or through a cluster or sentinels."""
    return parts_of(url).scheme.partition("+")[0] in SCHEMES


class Namespaces:
    """Fresh prefixes on one server, where the library is loaded; `close` deletes what drivers left under them.

    A URL of another scheme is given to the drivers unchanged: only they can interpret it.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._backend: Any = None
        self._made = 0
        self._within: tuple[str, Any] = ("", None)
        base = ""
        if is_server(url):
            from qmodel.backends.redis.backend import RedisBackend
            from qmodel.backends.redis.url import options_of

            options = options_of(url)
            self._backend = RedisBackend(options)  # loads the library
            self._options = options
            self.url, base = _theirs(url), options.prefix
        self._base = f"{base}kit-{secrets.token_hex(4)}:"

    def fresh(self) -> str:
        """Give a prefix that was not used before."""
        self._made += 1
        return f"{self._base}{self._made}:"

    @property
    def ours(self) -> bool:
        """Tell whether the kit can execute operations here itself."""
        return self._backend is not None

    def execute(self, prefix: str, step: Step) -> Outcome:
        """Execute one operation by the kit itself."""
        return outcome(self._in(prefix).execute(step.op, step.now))

    def seen(self, prefix: str, worker: str, *, pop: bool = True) -> int:
        """Pop from an empty queue at the server's time; give the time at which a worker was last seen."""
        there = self._in(prefix)
        if pop:
            there.execute(Pop("clock", worker))
        known = {one.name: one.seen_at for one in there.execute(Workers())}
        return int(known.get(worker, -1))

    def _in(self, prefix: str) -> Any:
        """Open a backend of the kit itself in a namespace."""
        from qmodel.backends.redis.backend import RedisBackend

        if self._within[0] != prefix:
            self._leave()
            self._within = prefix, RedisBackend(replace(self._options, prefix=prefix, fresh_requests=False))
        return self._within[1]

    def _leave(self) -> None:
        if self._within[1] is not None:
            self._within[1].close()
        self._within = "", None

    def close(self) -> None:
        """Delete every key under the prefixes, and disconnect."""
        self._leave()
        if self._backend is None:
            return
        import redis

        from qmodel.backends.redis.route import class_of

        there = {**self._backend.at, "connection_class": class_of(self._options, self._backend.at)}
        with redis.Redis(connection_pool=redis.ConnectionPool(**there)) as client:
            try:
                keys = list(client.scan_iter(match=f"{_quoted(self._base)}*", count=1000))
            except redis.ResponseError:  # `qmodel serve` has no keys
                keys = []
                for made in range(1, self._made + 1):
                    client.execute_command("DEBUG", "QMODEL", "RESET", f"{self._base}{made}:")
            for at in range(0, len(keys), 500):
                client.delete(*keys[at : at + 500])
        self._backend.close()


def _quoted(text: str) -> str:
    """Quote a text as a pattern that matches only that text."""
    return "".join(f"\\{c}" if c in "*?[]\\" else c for c in text)


def _theirs(url: str) -> str:
    """Turn a URL into one that any Redis client understands: without our options and scheme names."""
    from qmodel.backends.redis.url import OWN

    parts = parts_of(url)
    scheme = parts.scheme.replace("valkey", "redis")
    query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name not in OWN])
    return f"{scheme}://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")


@contextmanager
def namespaces(url: str) -> Iterator[Namespaces]:
    """Open the namespaces of one run."""
    made = Namespaces(url)
    try:
        yield made
    finally:
        made.close()
