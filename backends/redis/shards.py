"""The shards of a deployment: where they are, and what they share.

A shard is a namespace, `{shop:3.0}:`, and a backend of one namespace executes its calls (backend.py, aio.py). The
shards of a deployment share the connections to each node, what one of them has learned about the nodes, and which
nodes have the library. This module does no input and output.

The prefix of shard i is `{name:i.k}:` with the least k that puts its slot into the i-th N-th of all slots. So nodes
with equal ranges of slots have equal numbers of shards. Shard 0 has the same prefix for every N, because its k counts
for the greatest N. It holds the definition of the deployment: whoever comes with another N finds it, and is refused.

The definition is metadata of the klass `KLASS`, as signals to workers are: no other code than the engine writes a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

from redis.crc import key_slot

from qmodel.backends.layouts import differs, read_layout, written
from qmodel.backends.redis.route import Line, Route
from qmodel.backends.redis.url import Address, Options
from qmodel.contract.operations import MetadataGet, MetadataSet, PopAny
from qmodel.contract.routing import MOST_SHARDS, SLOTS, Layout
from qmodel.errors import ConnectError
from qmodel.model.deployment.plans import destination

KLASS: Final = "qmodel.deployment"
_KEY: Final = "layout"
_CREATION: Final = "qmodel.deployment"
"""The request id of the creation. All who create a deployment at the same time use this one, so the first one wins."""


@lru_cache(maxsize=4096)
def prefix_of(name: str, shard: int, shards: int) -> str:
    """Give the prefix of a shard.

    >>> prefix_of("shop", 0, 8) == prefix_of("shop", 0, 64), prefix_of("shop", 3, 8)
    (True, '{shop:3.11}:')
    """
    parts, number = shards if shard else MOST_SHARDS, 0
    while True:
        prefix = f"{{{name}:{shard}.{number}}}:"
        if key_slot(prefix.encode()) * parts // SLOTS == shard:
            return prefix
        number += 1


def options_of_shard(options: Options, shard: int, shards: int) -> Options:
    """Give the options of the namespace that is a shard."""
    where = f"Shard {shard} of {options.where}"
    return replace(options, prefix=prefix_of(options.name, shard, shards), name="", layout=None, where=where)


def shards_of(layout: Layout, queues: tuple[str, ...]) -> Sequence[int]:
    """List the shards that may have a job of one of the queues."""
    to = destination(layout, PopAny(queues, "w")) if queues else "turn"
    return [to] if type(to) is int else range(layout.shards)


# ---- the definition


def definition() -> MetadataGet:
    """Make the operation that reads the definition in shard 0."""
    return MetadataGet(KLASS)


def layout_in(entries: Sequence[tuple[str, str]]) -> Layout | None:
    """Read a layout in the definition; None if there is no deployment."""
    text = dict(entries).get(_KEY)
    return None if text is None else read_layout(dict(parse_qsl(text)))


def creation(layout: Layout) -> MetadataSet:
    """Make the operation that creates a deployment, unless somebody else creates it at the same time."""
    return MetadataSet(KLASS, _KEY, written(layout), _CREATION)


def check(options: Options, there: Layout | None) -> Layout:
    """Compare the layout of a URL with that of the deployment; give the deployment's."""
    if there is None:
        raise ConnectError(
            f"There is no deployment {options.name} at {options.where}.",
            f"Whoever creates it says how many shards it has: ?name={options.name}&shards=64.",
        )
    if options.layout not in (None, there):
        raise differs(f"The deployment {options.name}", there)
    return there


# ---- what shards share


class Shard(Protocol):
    """A backend of one namespace, as far as this module needs to know it."""

    _line: Line
    _route: Route


class Nodes:
    """The connections to the nodes, and what is known about them."""

    def __init__(self, given: dict[str, Any], max_age: float) -> None:
        self.shards: list[Any] = []
        self.prepared: set[tuple[Any, ...]] = set()
        self._given = given
        self._max_age = max_age
        self._lines: dict[tuple[Any, ...], Line] = {}
        self._told: tuple[Address, Any] | None = None

    @property
    def lines(self) -> list[Line]:
        """The lines to all nodes that were ever used."""
        return list(self._lines.values())

    def add(self, shard: Shard) -> None:
        """Add a shard, and tell it what others have learned."""
        self.shards.append(shard)
        if self._told is not None:
            Route.learn(shard._route, *self._told)
        self.place(shard)

    def learned(self, asked: Address, reply: Any) -> None:
        """Tell all shards what a node has answered."""
        self._told = asked, reply
        for shard in list(self.shards):
            Route.learn(shard._route, asked, reply)
            self.place(shard)

    def place(self, shard: Shard) -> None:
        """Let a shard use the node that its route leads to."""
        line = Line(shard._route.settings(self._given), self._max_age)
        shard._line = self._lines.setdefault(line.at, line)

    def renew(self, old: Line) -> None:
        """Use new connections to a node in place of old ones."""
        line = Line(old.settings, self._max_age)
        old.over = True
        self._lines[line.at] = line
        for shard in list(self.shards):
            if shard._line is old:
                shard._line = line

    def forget(self) -> list[Line]:
        """Begin without connections; give the lines that were used so far."""
        before, self._lines = self.lines, {}
        for shard in list(self.shards):
            self.place(shard)
        return before


class Prepared:
    """Of a shard: whether the library of its node was looked at is known to all shards."""

    _line: Line
    _of: Any

    @property
    def _prepared(self) -> bool:
        return self._line.at in self._of.nodes.prepared

    @_prepared.setter
    def _prepared(self, value: bool) -> None:
        if value:
            self._of.nodes.prepared.add(self._line.at)


class ShardRoute(Route):
    """The way to the master of a shard. What it learns, all shards learn."""

    def __init__(self, options: Options, nodes: Nodes) -> None:
        super().__init__(options)
        self._all = nodes

    def learn(self, asked: Address, reply: Any) -> bool:
        """Take an answer for all shards; say whether it names the master of this one."""
        found = super().learn(asked, reply)
        self._all.learned(asked, reply)
        return found
