"""The checks of a deployment: where its shards are, and the checks of a namespace or of a server in each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from qmodel.client.sync import Client
from qmodel.doctor.findings import OK, Asked, Check, Finding
from qmodel.present.numbers import counted


class OfShard:
    """A shard as the subject of the checks of a namespace."""

    def __init__(self, at: Asked, shard: int) -> None:
        self._at, self._shard = at, shard
        backend: Any = at.client.backend
        self.client = Client(backend.shards[shard])

    @property
    def url(self) -> str:
        """The URL of the deployment."""
        return self._at.url

    @property
    def url_from(self) -> str:
        """The source of that URL."""
        return self._at.url_from

    @property
    def look_at_keys(self) -> bool:
        """Whether all keys are to be checked."""
        return self._at.look_at_keys


def is_deployment(at: Asked) -> bool:
    """Whether the URL leads to a deployment."""
    return bool(at.client.shards)


def spread(at: Asked) -> Iterator[Finding]:
    """Show where the shards of a deployment are, with the prefixes of their keys."""
    backend: Any = at.client.backend
    shards: Sequence[Any] = at.client.shards
    if not hasattr(backend, "neighbours"):
        yield Finding(OK, f"a deployment of {counted(len(shards), 'shard')} in this process")
        return
    nodes: dict[str, list[int]] = {}
    for number, shard in enumerate(shards):
        nodes.setdefault(_name(shard.at), []).append(number)
    yield Finding(
        OK, f"deployment {backend.options.name}: {counted(len(shards), 'shard')} on {counted(len(nodes), 'node')}"
    )
    for name, some in nodes.items():
        prefixes = " ".join(shards[number].options.prefix for number in some)
        yield Finding(OK, f"{name} has {counted(len(some), 'shard')}: {prefixes}")


def _name(at: dict[str, Any]) -> str:
    return str(at["path"]) if "path" in at else f"{at.get('host', 'localhost')}:{at.get('port', 6379)}"


def in_each_shard(check: Check) -> Check:
    """Make a check of all shards from one of a namespace."""
    return _in_some(check, lambda backend: range(len(backend.shards)), "shard")


def on_each_node(check: Check) -> Check:
    """Make a check of all nodes from one of a server."""

    def one_of_each(backend: Any) -> Sequence[int]:
        if not hasattr(backend, "neighbours"):
            return ()
        return sorted({backend.neighbours(shard)[0] for shard in range(len(backend.shards))})

    return _in_some(check, one_of_each, "node of shard")


def _in_some(check: Check, chosen: Callable[[Any], Sequence[int]], what: str) -> Check:
    def checked(at: Asked) -> Iterator[Finding]:
        found: dict[Any, list[tuple[int, Finding]]] = {}
        shards = chosen(at.client.backend)
        for shard in shards:
            for finding in check(OfShard(at, shard)):
                key = finding.level, finding.what, finding.fix, shard if finding.resolve else None
                found.setdefault(key, []).append((shard, finding))
        for some in found.values():
            _, finding = some[0]
            everywhere = len(some) == len(shards) > 1
            numbers = ", ".join(str(shard) for shard, _ in some)
            where = f"each {what.partition(' ')[0]}" if everywhere else f"{what} {numbers}"
            yield finding._replace(what=f"{where}: {finding.what}")

    checked.__name__ = check.__name__
    return checked
