"""Backends execute operations.

A backend takes an operation of the catalogue and returns its reply or a Refusal; it decides nothing. `open_backend`
finds it by the URL's scheme. Other packages plug in backends by entry points of the group `qmodel.backends`. The entry
point's module has a function `connect(url: str) -> Backend`, and may have `connect_async(url: str) -> AsyncBackend`.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, urlsplit

from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError, not_installed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Backend(Protocol):
    """Executes operations, and lets idle workers sleep until there is work."""

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (ms; default: the backend's clock); give its reply or Refusal."""

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, each as a step of its own; with a server, in one round trip."""

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True), or `timeout` seconds have passed (False).

        The caller has just popped each of these queues with `wait` and got nothing.
        """

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there is an event after a sequence number (True), or `timeout` seconds have passed (False)."""

    def close(self) -> None:
        """Release the backend's connections."""


class AsyncBackend(Protocol):
    """A backend for an event loop."""

    async def execute(self, op: Operation, now: int | None = None) -> Any: ...

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]: ...

    async def wait(self, queues: Sequence[str], timeout: float) -> bool: ...

    async def wait_events(self, after: int, timeout: float) -> bool: ...

    async def close(self) -> None: ...


BUILT_IN: dict[str, tuple[str, str]] = {
    "memory": ("qmodel.backends.memory", ""),
    "embedded": ("qmodel.backends.embedded.backend", "conformance"),
    "redis": ("qmodel.backends.redis.connect", "redis"),
    "rediss": ("qmodel.backends.redis.connect", "redis"),
    "unix": ("qmodel.backends.redis.connect", "redis"),
    "valkey": ("qmodel.backends.redis.connect", "redis"),
    "valkeys": ("qmodel.backends.redis.connect", "redis"),
    "redis+cluster": ("qmodel.backends.redis.connect", "redis"),
    "rediss+cluster": ("qmodel.backends.redis.connect", "redis"),
    "valkey+cluster": ("qmodel.backends.redis.connect", "redis"),
    "valkeys+cluster": ("qmodel.backends.redis.connect", "redis"),
    "redis+sentinel": ("qmodel.backends.redis.connect", "redis"),
    "rediss+sentinel": ("qmodel.backends.redis.connect", "redis"),
    "valkey+sentinel": ("qmodel.backends.redis.connect", "redis"),
    "valkeys+sentinel": ("qmodel.backends.redis.connect", "redis"),
}
"""Scheme: the module that connects, and the extra that it needs.

pyproject.toml has the same list as entry points. The copy is here because a checkout on PYTHONPATH has no metadata, and
because `memory://` should open without reading the metadata of all installed packages. No plug-in can replace these.
"""

ENTRY_POINTS = "qmodel.backends"


def open_backend(url: str) -> Backend:
    """Open the backend of a URL: `memory://`, `redis://host:6379/0`, or a scheme of an installed package.

    Raises ConnectError if the URL is bad or its scheme is unknown.
    """
    connect: Callable[[str], Backend] = _find(url, "connect")
    return connect(url)


def open_async_backend(url: str) -> AsyncBackend:
    """Open the asynchronous backend of a URL, as `open_backend` does."""
    connect: Callable[[str], AsyncBackend] = _find(url, "connect_async")
    return connect(url)


def confirming(backend: Any, replicas: int, local: bool) -> Any:
    """Make a backend on the same connections whose calls replicas, or the server's disk, confirm.

    Jobs in this process have neither, and are as safe before a confirmation as after it: they stay as they are.
    """
    if type(backend).__module__ in (module for module, extra in BUILT_IN.values() if extra != "redis"):
        return backend
    make = getattr(backend, "confirming", None)
    if make is None:
        raise ConnectError(f"A {type(backend).__name__} confirms nothing.", "Use confirmed() with a server.")
    return make(replicas, local)


def schemes() -> list[str]:
    """List every scheme that can be opened here, the built-in ones first."""
    return list(dict.fromkeys((*BUILT_IN, *(point.name for point in _plugged_in()))))


def _plugged_in() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


def _find(url: str, function: str) -> Any:
    """Find the function that opens a URL."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise _not_a_url(url)
    name, extra = BUILT_IN.get(scheme) or _find_plugged_in(scheme)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise _missing(scheme, extra, error) from error
    found = getattr(module, function, None)
    if found is None:
        raise ConnectError(
            f"The backend of {scheme}:// has no {function}.",
            "Use qmodel.Client with it." if function == "connect_async" else "Ask its authors.",
        )
    return found


def _find_plugged_in(scheme: str) -> tuple[str, str]:
    for point in _plugged_in():
        if point.name == scheme:
            return point.module, ""
    known = schemes()
    close = difflib.get_close_matches(scheme.lower(), known, 1)
    raise ConnectError(
        f"No backend can open {scheme}:// URLs.",
        f"Did you mean {close[0]}://?" if close else f"It can open {_listed(known)}.",
    )


def _not_a_url(url: str) -> ConnectError:
    known = schemes()
    word = url.strip().rstrip(":/")
    close = difflib.get_close_matches(word.partition(":")[0].lower(), known, 1)
    if word in known or (close and ":" not in word and "." not in word):
        hint = f"Did you mean {close[0]}://?"
    elif word and not close:
        hint = f"Did you mean redis://{word}?"
    else:
        hint = "Write for example memory:// or redis://localhost:6379/0."
    return ConnectError(f"'{url}' is not a URL.", hint)


def _missing(scheme: str, extra: str, error: ImportError) -> ConnectError:
    if (error.name or "").startswith("qmodel"):
        return ConnectError(f"This qmodel has no backend for {scheme}://: {error}.", "Is the installation whole?")
    return not_installed(error, f"{scheme}:// needs", str(error.name), extra)


def _listed(known: list[str]) -> str:
    return ", ".join(f"{scheme}://" for scheme in known)


def with_option(url: str, name: str, value: object) -> str:
    """Add an option to the URL of a server that has neither this option nor a deadline.

    >>> with_option("redis://host:6379/0", "deadline", 5)
    'redis://host:6379/0?deadline=5'
    >>> with_option("redis://host?prefix=a:", "deadline", 5)
    'redis://host?prefix=a:&deadline=5'
    >>> with_option("redis://host?deadline=60", "connect_deadline", 5), with_option("memory://", "deadline", 5)
    ('redis://host?deadline=60', 'memory://')
    """
    scheme, _, rest = url.partition("://")
    module, _ = BUILT_IN.get(scheme, ("", ""))
    if module != "qmodel.backends.redis.connect" or "deadline=" in rest:
        return url
    return f"{url}{'&' if '?' in rest else '?'}{name}={value}"


def parts_of(url: str) -> SplitResult:
    """Split a URL that may name several nodes; newer Pythons refuse an address in brackets behind another one.

    >>> parts_of("redis+cluster://one:7001,[::1]:7002/0?prefix=shop:").netloc
    'one:7001,[::1]:7002'
    """
    scheme, _, rest = url.partition("://")
    hosts = re.split("[/?#]", rest, maxsplit=1)[0]
    if "," not in hosts:
        return urlsplit(url)
    return urlsplit(f"{scheme}://{rest.removeprefix(hosts)}")._replace(netloc=hosts)


def without_password(url: str) -> str:
    """Hide the password of a URL, so that it may be shown.

    >>> without_password("redis://user:secret@host:6379/0")
    'redis://user:***@host:6379/0'
    >>> without_password("redis+sentinel://a,b/main?sentinel_password=secret&prefix=shop:")
    'redis+sentinel://a,b/main?sentinel_password=***&prefix=shop:'
    """
    scheme, separator, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    host = re.sub(r"(?<=password=)[^&]+", "***", host)
    if at and ":" in user:
        user = f"{user.partition(':')[0]}:***"
    return f"{scheme}{separator}{user}{at}{host}"
