"""URLs of servers: which servers they name, and the options that they take.

    redis://user:password@host:6379/0?prefix={shop}:ql:&deadline=10
    redis+cluster://user:password@host1:7001,host2:7002,host3/0?prefix={shop}:ql:
    redis+sentinel://host1,host2:26379,host3/mymaster/0?prefix=shop:ql:
    redis+cluster://host1,host2,host3/0?name=shop&shards=64

A cluster is found through any of the named nodes, and a master through any of the named sentinels. With TLS a URL
begins with `rediss+cluster` or `rediss+sentinel`; `valkey` and `valkeys` mean the same as `redis` and `rediss`. A name
instead of a prefix is that of a deployment (deployment.py).
"""

from __future__ import annotations

import importlib
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

import redis.connection

from qmodel.backends import parts_of, without_password
from qmodel.backends.layouts import LAYOUT, read_layout
from qmodel.backends.redis.confirm import Confirm, confirm_of
from qmodel.contract.routing import Layout
from qmodel.errors import ConnectError

_PREFIX: Final = re.compile(r"[\w.:-]*(\{[\w.:-]+\})?[\w.:-]*:\Z", re.ASCII)
_SCHEMES: Final = {"valkey": "redis", "valkeys": "rediss"}
_PORTS: Final = {"cluster": 6379, "sentinel": 26379}
_REFUSED: Final = ("decode_responses", "encoding", "encoding_errors", "retry", "retry_on_timeout")


class Address(NamedTuple):
    """Where a node listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a URL; `connection` is for redis-py.

    `kind` is "server", "cluster" or "sentinel". `seeds` are the nodes, or sentinels, that the URL names; `service` is
    the name of the master, and `sentinel` are the settings of connections to sentinels. A deployment has a `name`;
    `layout` is that of the URL, or None if the URL leaves it to the deployment.
    """

    where: str
    kind: str = "server"
    seeds: tuple[Address, ...] = ()
    service: str = ""
    sentinel: dict[str, Any] = field(default_factory=dict)
    prefix: str = "ql:"
    name: str = ""
    layout: Layout | None = None
    deadline: float = 60.0
    connect_deadline: float | None = None
    functions: bool = True
    accept_eviction: bool = False
    load: str = "newer"
    fresh_requests: bool = True
    max_connections: int = 64
    max_age: float = math.inf
    confirm: Confirm | None = None
    connection: dict[str, Any] = field(default_factory=dict)

    @property
    def also(self) -> frozenset[str]:
        """Codes of errors that may pass here: a provider gives another password when the old one has ended."""
        return frozenset(("NOAUTH",)) if "credential_provider" in self.connection else frozenset()

    @property
    def first_deadline(self) -> float:
        """For how many seconds the first connection is tried."""
        return self.deadline if self.connect_deadline is None else self.connect_deadline


def options_of(url: str) -> Options:
    """Read a URL. Raises ConnectError if it is bad."""
    try:
        parts = parts_of(url)
    except ValueError as error:
        raise ConnectError(f"'{without_password(url)}' is not a URL of a server: {error}.", _EXAMPLE) from None
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    own, theirs, sentinel = _shared_out(parts.query)
    base, _, kind = parts.scheme.partition("+")
    own["seeds"], parts = _seeds(parts, kind, where)
    if kind:
        own.update(kind=kind, sentinel=sentinel)
    if kind == "sentinel":
        own["service"], parts = _service(parts, where)
    _check_names(own)
    scheme = _SCHEMES.get(base, base)
    if scheme != "unix" and not _DATABASE.fullmatch(parts.path):
        raise ConnectError(
            f"'{where}' has no number of a database in its path.",
            "Write /0, or leave it out; ?prefix=shop: is the name of a namespace.",
        )
    connection = _connection(f"{scheme}://{parts.netloc}{parts.path}?{urlencode(theirs)}", where)
    if (credentials := own.pop("credentials", None)) is not None:
        connection["credential_provider"] = _provider(credentials)
    defaults: dict[str, Any] = {"socket_timeout": 5.0, "socket_connect_timeout": 2.0 if kind else 5.0, "protocol": 2}
    if scheme != "unix":
        defaults["socket_keepalive"] = True
    return Options(where, connection={**defaults, **connection}, **own)


def _shared_out(query: str) -> tuple[dict[str, Any], list[tuple[str, str]], dict[str, str]]:
    """Tell the options of this backend from those of redis-py, and from those of connections to sentinels."""
    own: dict[str, Any] = {}
    theirs, sentinel, shared = [], {}, {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in LAYOUT:
            shared[name] = value
        elif name in _OWN:
            to, read, expected = _OWN[name]
            try:
                own[to] = read(value)
            except (ValueError, KeyError):
                raise ConnectError(f"{name}={value} is not {expected}.", "Correct the URL.") from None
        elif name in _REFUSED:
            raise ConnectError(f"The URL must not set {name}.", f"Leave {name} out of it.")
        elif name in _SENTINEL:
            sentinel[name.removeprefix("sentinel_")] = value
        else:
            theirs.append((name, value))
    if shared:
        own["layout"] = read_layout(shared)
    return own, theirs, sentinel


def _check_names(own: dict[str, Any]) -> None:
    """Refuse a URL of both a namespace and a deployment, and a layout without a name."""
    if "name" in own and "prefix" in own:
        raise ConnectError(
            "The URL has a prefix, which is that of a namespace, and a name, which is that of a deployment.",
            "Leave out one of them.",
        )
    if "layout" in own and "name" not in own:
        raise ConnectError(
            "The URL has shards, but no name for the deployment.", "Write for example ?name=shop&shards=64."
        )


def _connection(plain: str, where: str) -> dict[str, Any]:
    """Let redis-py read a URL of one server."""
    try:
        connection = dict(redis.connection.parse_url(plain))  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise ConnectError(f"'{where}' is not a URL of a server: {error}.", _EXAMPLE) from None
    if plain.startswith("unix:") and not connection.get("path"):
        raise ConnectError(f"'{where}' names no socket.", _EXAMPLE)
    for name in ("socket_timeout", "socket_connect_timeout"):
        if connection.get(name, 1) <= 0:
            raise ConnectError(f"{name} must be above 0.", "Correct the URL.")
    return connection


def _seeds(parts: SplitResult, kind: str, where: str) -> tuple[tuple[Address, ...], SplitResult]:
    """Read the addresses of a URL; give them, and the URL with the first one alone."""
    if parts.scheme == "unix" or not parts.netloc:
        return (), parts
    user, at, hosts = parts.netloc.rpartition("@")
    if "," in hosts and not kind:
        raise ConnectError(
            f"'{where}' names several servers.",
            "Write redis+cluster:// or redis+sentinel://.",
        )
    try:
        found = [urlsplit(f"//{one}") for one in hosts.split(",")]
        seeds = tuple(Address(one.hostname or "localhost", one.port or _PORTS.get(kind, 6379)) for one in found)
    except ValueError as error:
        raise ConnectError(f"'{where}' is not a URL of a server: {error}.", _EXAMPLE) from None
    return seeds, parts._replace(netloc=f"{user}{at}{hosts.partition(',')[0]}")


def _service(parts: SplitResult, where: str) -> tuple[str, SplitResult]:
    """Read the name of a master from the path; give it, and the URL without it."""
    name, _, rest = unquote(parts.path).removeprefix("/").partition("/")
    if not name:
        raise ConnectError(
            f"'{where}' does not name the master.", "Write for example redis+sentinel://host1,host2,host3/mymaster/0."
        )
    return name, parts._replace(path=f"/{rest}")


def _provider(where: str) -> Any:
    """Make a provider of credentials from `module:name`: what has that name, or what it gives when called."""
    name, _, attribute = where.partition(":")
    try:
        found = getattr(importlib.import_module(name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConnectError(f"credentials={where} cannot be loaded: {error}.", _CREDENTIALS) from error
    made = found if hasattr(found, "get_credentials") and not isinstance(found, type) else found()
    if not hasattr(made, "get_credentials"):
        raise ConnectError(f"credentials={where} gives no provider: {type(made).__name__}.", _CREDENTIALS)
    return made


_CREDENTIALS: Final = "Name a redis.CredentialProvider, or a function that makes one, as module:name."
_DATABASE: Final = re.compile(r"(/[0-9]{0,4}/?)?", re.ASCII)
"""The path of a URL. Another one is no error to redis-py, which would use the database 0."""

_EXAMPLE: Final = "Write for example redis://localhost:6379/0 or unix:///run/redis.sock?db=0."


def _prefix(text: str) -> str:
    if not _PREFIX.match(text) or len(text) > 100:
        raise ValueError(text)
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,60}", text, re.ASCII):
        raise ValueError(text)
    return text


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86400:
        raise ValueError(text)
    return seconds


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise ValueError(text)
    return int(text)


def _age(text: str) -> float:
    seconds = _seconds(text)
    if seconds < 1:
        raise ValueError(text)
    return seconds


def _module_and_name(text: str) -> str:
    if not re.fullmatch(r"[\w.]+:\w+", text):
        raise ValueError(text)
    return text


def _one_of(text: str) -> str:
    return {"newer": "newer", "always": "always", "never": "never"}[text]


_OWN: Final[dict[str, tuple[str, Any, str]]] = {
    "prefix": (
        "prefix",
        _prefix,
        "a prefix: letters, digits, . _ : - and one {hash tag}, ending in a colon, as in ql: or {shop}:ql:",
    ),
    "name": ("name", _name, "the name of a deployment: letters, digits and . _ -, at most 60"),
    "deadline": ("deadline", _seconds, "a number of seconds up to 86400"),
    "connect_deadline": ("connect_deadline", _seconds, "a number of seconds up to 86400"),
    "functions": ("functions", {"yes": True, "no": False}.__getitem__, "yes or no"),
    "eviction": ("accept_eviction", {"accept": True, "refuse": False}.__getitem__, "accept or refuse"),
    "load": ("load", _one_of, "newer, always or never"),
    "requests": ("fresh_requests", {"fresh": True, "given": False}.__getitem__, "fresh or given"),
    "max_connections": ("max_connections", _positive, "a number above 0"),
    "max_age": ("max_age", _age, "a number of seconds from 1 to 86400"),
    "credentials": ("credentials", _module_and_name, "a module and a name, as in shop.secrets:provider"),
    "confirm": ("confirm", confirm_of, "a number of replicas from 1 to 9, or local"),
}

_SENTINEL: Final = ("sentinel_username", "sentinel_password")
"""The URL options for connections to sentinels, which may have users of their own."""

OWN: Final = frozenset((*_OWN, *_SENTINEL, *LAYOUT))
"""The URL options of this backend; all others go to redis-py."""
