"""What the edges of a search cost the library: which way handled each, and how many commands it called (costs.txt).

Reply, events and state are the same whether an operation of a plain job is done in a shorter way of the library or by
the verb; only the cost differs. So the cost is compared with a table, which has for each search, and each operation in
it, how many edges took a way, and how many commands these called in all:

    ## plain 1x1
    put verb 57/399 plain 19/76

The reads of a search are summed up as `reads`. An operation behind others in one call is `call:put`, and in a row
`row:put`; there the ways and the commands are those of all of them. A change of cost is recorded with
`./dev costs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final

from qmodel.conformance.graph.compare import Cost
from qmodel.contract.operations import Operation

READS: Final = "reads"
"""What stands for all operations that read."""

_HEAD: Final = "# Made by `./dev costs` from the library; costs.py describes the notation.\n"


class Costs:
    """The costs of the edges of one search."""

    def __init__(self) -> None:
        self._by: dict[str, dict[str, list[int]]] = {}

    def add(self, name: str, cost: Cost) -> None:
        """Add an edge."""
        way, commands = cost
        sums = self._by.setdefault(name, {}).setdefault(way, [0, 0])
        sums[0] += 1
        sums[1] += commands

    def lines(self) -> dict[str, str]:
        """Write the costs of each operation."""
        return {name: " ".join(self._ways(name)) for name in sorted(self._by)}

    def _ways(self, name: str) -> Iterator[str]:
        for way, (edges, commands) in sorted(self._by[name].items()):
            yield f"{way} {edges}/{commands}"


def name_of(op: Operation, where: str = "") -> str:
    """Give the name under which the cost of an operation is kept, which is done behind others in a call or in a row."""
    return f"{where}:{op.spec.name}" if where else READS if op.spec.reads else op.spec.name


@cache
def recorded() -> dict[str, dict[str, str]]:
    """Read the table: for each search, the line of each operation."""
    text = resources.files(__package__).joinpath("costs.txt").read_text(encoding="utf-8")
    parts = (part.splitlines() for part in text.split("\n## ")[1:])
    return {search: dict(line.split(" ", 1) for line in lines if line) for search, *lines in parts}


def dumps(table: dict[str, dict[str, str]]) -> str:
    """Write a table as `recorded` gives it."""
    return _HEAD + "".join(
        f"\n## {search}\n" + "".join(f"{name} {said}\n" for name, said in lines.items())
        for search, lines in table.items()
    )


def differences(search: str, found: Costs) -> list[str]:
    """List where the costs of a search are not those of the table."""
    before, now = recorded().get(search, {}), found.lines()
    return [
        f"{search}: {name} took {now.get(name, 'no edge')}, and before {before.get(name, 'no edge')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
