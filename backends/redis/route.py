"""Where the master of a namespace is, and whom to ask when it is there no longer.

One namespace lives on one master: on the server of the URL, on the owner of its slot in a cluster, or on the master
that sentinels name. This module does no input and output: a backend asks each of `to_ask` in turn, until `learn` has
understood an answer.

A cluster is also found from a plain `redis://` URL: by what the server says of itself, or by MOVED. As long as the
server of such a URL serves, it is used, even if its cluster announces another address for it.

MOVED is followed at once. ASK is never followed: the keys of the slot are moving one by one, and an operation must not
run on a part of its keys. The call is sent to the same node again until the slot has moved as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import redis.connection
from redis import exceptions as raised
from redis.crc import key_slot

from qmodel import runtime
from qmodel.backends.redis.resend import LONGEST_DELAY, code_of
from qmodel.backends.redis.url import Address, Options
from qmodel.errors import ConnectError

BETWEEN: Final = 0.1
"""The least number of seconds between two searches for the master: all threads of a process share one."""

LONGEST_PAUSE: Final = 0.5
"""The longest pause before a resend, in seconds, where another node may take over meanwhile."""

_STAYS: Final = frozenset(("ASK", "TRYAGAIN", "BUSY", "NOREPLICAS", "NOAUTH"))
"""Errors of a node that is the right one all the same."""


class Line:
    """The connections to one node: the idle ones of calls, and those of waiters.

    A line is over when another one takes its place. Who still has one of its connections closes it after use.
    """

    def __init__(self, settings: dict[str, Any], seconds: float) -> None:
        self.settings = settings
        self.idle: list[Any] = []
        self.waiting: list[Any] = []
        self.over = False
        self._until = runtime.monotonic() + seconds

    @property
    def at(self) -> tuple[Any, ...]:
        """The address, to compare lines by."""
        return (self.settings.get("host"), self.settings.get("port"), self.settings.get("path"))

    @property
    def old(self) -> bool:
        """Whether its connections have reached the greatest age that the URL allows them."""
        return runtime.monotonic() > self._until


class Route:
    """The way to the master of one namespace."""

    def __init__(self, options: Options) -> None:
        self.kind = options.kind
        self.master: Address | None = None
        self._options = options
        self._nodes: list[Address] = []
        self._asked_at = 0.0
        self._slot = key_slot(options.prefix.encode())

    # ---- connections

    @property
    def is_routed(self) -> bool:
        """Whether another node may become the master."""
        return self.kind != "server"

    @property
    def is_lost(self) -> bool:
        """Whether the master must be looked for before the first connection."""
        return self.is_routed and self.master is None

    def lose(self) -> None:
        """Forget where the master is."""
        self.master = None

    @property
    def longest_pause(self) -> float:
        """The longest pause before a resend, in seconds."""
        return LONGEST_DELAY if self.kind == "server" else LONGEST_PAUSE

    def settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """Give the settings of a connection to the master, from those of the URL."""
        return given if self.master is None else _at(given, self.master)

    def asking(self, given: dict[str, Any], address: Address) -> dict[str, Any]:
        """Give the settings of a connection on which to ask where the master is."""
        found = _at(given, address)
        if self.kind == "sentinel":
            for name in ("db", "username", "password", "credential_provider"):
                found.pop(name, None)
            found.update(self._options.sentinel)
        return found

    # ---- the search

    def is_due(self, error: BaseException) -> bool:
        """Whether to look for the master after this error. Threads that fail together look once."""
        if self.kind == "server" or code_of(error) in _STAYS:
            return False
        return runtime.monotonic() - self._asked_at >= BETWEEN

    def to_ask(self) -> Iterator[Address]:
        """Give the nodes to ask, the one that failed last."""
        known = runtime.sample(self._nodes, len(self._nodes)) + list(self._options.seeds)
        first = [address for address in dict.fromkeys(known) if address != self.master]
        yield from first
        if self.master is not None and self.kind == "cluster":
            yield self.master

    @property
    def question(self) -> tuple[str, ...]:
        """The command that asks where the master is."""
        if self.kind == "sentinel":
            return ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._options.service)
        return ("CLUSTER", "SLOTS")

    def learn(self, asked: Address, reply: Any) -> bool:
        """Take an answer; say whether it names the master."""
        found = self._named(reply) if self.kind == "sentinel" else self._owner(asked, reply)
        if found is None:
            return False
        self.master, self._asked_at = found, runtime.monotonic()
        return True

    def note(self, asked: Address | None, reply: Any) -> None:
        """Take what a node of the plain URL said about its cluster, and stay with that node."""
        self.kind = "cluster"
        if asked is not None and isinstance(reply, list):
            self._owner(asked, reply)

    def follow(self, error: BaseException) -> bool:
        """Go where MOVED says; say whether the error was that."""
        if code_of(error) != "MOVED":
            return False
        host, _, port = str(error).split()[-1].rpartition(":")
        self.kind = "cluster"
        before = self.master or next(iter(self._options.seeds), None)
        self.master = Address(host or (before.host if before else "localhost"), int(port))
        if before is not None and before not in self._nodes:
            self._nodes.append(before)
        return True

    def _named(self, reply: Any) -> Address | None:
        if not isinstance(reply, list) or len(reply) != 2:
            return None
        return Address(_text(reply[0]), int(reply[1]))

    def _owner(self, asked: Address, reply: Any) -> Address | None:
        """Find the owner of the slot in a reply of CLUSTER SLOTS, and keep the addresses of all nodes."""
        if not isinstance(reply, list):
            return None
        nodes, owner = [], None
        for first, last, *served in reply:
            # An unknown host is that of the node that was asked.
            here = [Address(_text(one[0]).strip("?") or asked.host, int(one[1])) for one in served]
            nodes += here
            if first <= self._slot <= last:
                owner = here[0]
        self._nodes = list(dict.fromkeys(nodes))
        return owner

    def unknown(self, error: BaseException | None) -> BaseException:
        """Make the error of a search in which nobody named the master."""
        self._asked_at = runtime.monotonic()
        where = self._options.where
        code = code_of(error) if error is not None else ""
        if code == "NOPERM":
            right = "+sentinel|get-master-addr-by-name" if self.kind == "sentinel" else "+cluster|slots"
            return ConnectError(f"The user of {where} may not ask where the master is.", f"Grant {right}.")
        if self.kind == "sentinel" and code == "ERR":
            return ConnectError(
                f"{where} names a server that is no sentinel: {error}.", "Name sentinels, or write redis:// in the URL."
            )
        if self.kind == "cluster" and code == "ERR":
            return ConnectError(f"{where} is no cluster: {error}.", "Write redis:// in the URL.")
        if error is not None:
            return error
        if self.kind == "sentinel":
            return raised.ConnectionError(f"no sentinel knows a master of the name {self._options.service}")
        return raised.ClusterDownError(f"no node serves slot {self._slot}")


def _at(given: dict[str, Any], address: Address) -> dict[str, Any]:
    """Give the settings of a URL with another address."""
    found = {name: value for name, value in given.items() if name != "path"}
    return {**found, "host": address.host, "port": address.port}


def class_of(options: Options, settings: dict[str, Any], module: Any = redis.connection) -> Any:
    """Give the class of a connection with these settings; a node that is not on the URL's socket has a port."""
    name = options.connection.get("connection_class", redis.connection.Connection).__name__
    if name == "UnixDomainSocketConnection" and "path" not in settings:
        name = "Connection"
    return runtime.connection_class(getattr(module, name))


def _text(raw: Any) -> str:
    return "" if raw is None else raw.decode() if isinstance(raw, bytes) else str(raw)
