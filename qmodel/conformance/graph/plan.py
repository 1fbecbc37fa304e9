"""Which families are searched in which scopes: in the gate, and at night."""

from __future__ import annotations

from itertools import combinations
from typing import Final, NamedTuple

from qmodel.conformance.graph.alphabet import Family, Scope, explored, families, pair
from qmodel.conformance.graph.compare import LuaCorner, with_units
from qmodel.conformance.graph.explore import Explored, Finding, Search
from qmodel.conformance.graph.server import ServerCorner

ONE: Final = Scope(1, 1)
"""The scope of most families in the gate."""


TWO: Final = Scope(2, 1)
"""The scope for what needs two jobs."""

LARGE: Final = ("schedules_changed", "schedules_cron", "settings", "requests")
"""The families that are searched at night only: with one job already, each has some 20,000 edges or more."""

TWO_EDGES: Final = 100_000
"""The most edges of a family with two jobs; some families do not close with so few."""

PAIR_EDGES: Final = 2_000
"""The most edges of a pair of families; there are about 1,400."""


class Run(NamedTuple):
    """A search: a family, a scope, and the most edges and seconds of the processor that it may take, 0 for any."""

    family: Family
    scope: Scope
    edges: int = 0
    limit: float = 0.0

    def search(self, lua: bool, server: ServerCorner | None = None, pairs: float = 0.0) -> Explored:
        """Search it; with `lua`, every edge is compared with the library in this process."""
        corner = LuaCorner(with_units(None, self.family.units)) if lua else None
        server = None if self.family.units else server  # its library has the usual budget
        return Search(self.family, self.scope, corner, server, pairs, self.limit, edges=self.edges).run()


def gate() -> list[Run]:
    """Give the searches of the gate: each family with one job, but for what needs two."""
    chosen = {name: family for name, family in explored().items() if name not in LARGE}
    found = [Run(family, TWO if name == "fans" else ONE) for name, family in chosen.items()]
    return [*found, Run(explored()["plain"], Scope(2, 1)), Run(explored()["plain"], Scope(1, 2))]


def chosen(names: tuple[str, ...], scope: Scope | None, limit: float, night: bool) -> list[Run]:
    """Give the searches that a command line asks for."""
    runs = at_night() if night else gate()
    if names:
        runs = [Run(_named(name), scope or ONE) for name in names]
    return [run._replace(scope=scope or run.scope, limit=limit or run.limit) for run in runs]


def _named(name: str) -> Family:
    one, _, other = name.partition("+")
    return pair(one, other) if other else families()[one]


def at_night() -> list[Run]:
    """Give the searches of the night: each family with two workers, and with two jobs; and every pair of families."""
    families = explored().values()
    large = [Run(explored()[name], ONE) for name in LARGE]
    wide = [Run(family, Scope(1, 2)) for family in families if family.scope >= Scope(1, 2)]
    wide += [Run(family, TWO, TWO_EDGES) for family in families if family.scope >= TWO]
    return [
        *gate(),
        *large,
        *wide,
        *(Run(pair(one, other), ONE, PAIR_EDGES) for one, other in combinations(explored(), 2)),
    ]


def hunt(texts: dict[str, str] | None = None) -> Finding | None:
    """Look for a fault that is planted in the model, or in files of the library; give the first finding.

    Most faults are found within seconds: so every family is searched for a second before any is searched longer, and
    those of two jobs are never searched to the end.
    """
    families = explored().values()
    runs = [Run(family, ONE, 1.0) for family in families] + [Run(family, TWO, 3.0) for family in families]
    for run in [*runs, *(Run(family, ONE, 10.0) for family in families)]:
        corner = LuaCorner(with_units(texts, run.family.units))
        found = Search(run.family, run.scope, corner, limit=run.limit).run()
        if found.findings:
            return found.findings[0]
    return None
