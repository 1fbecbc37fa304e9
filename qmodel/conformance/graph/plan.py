"""Which families are searched in which scopes: in the gate, and at night."""

from __future__ import annotations

import difflib
import math
import random
import re
import time
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple

from qmodel.conformance.graph import costs
from qmodel.conformance.graph.alphabet import (
    Family,
    Scope,
    every_budget,
    every_failure,
    explored,
    families,
    pair,
    scarce,
)
from qmodel.conformance.graph.compare import LuaCorner, with_units
from qmodel.conformance.graph.explore import Search
from qmodel.conformance.graph.findings import Explored, Finding
from qmodel.conformance.graph.server import ServerCorner

ONE: Final = Scope(1, 1)
"""The scope of most families in the gate."""


TWO: Final = Scope(2, 1)
"""The scope for what needs two jobs."""

OF_TWO: Final = frozenset(("fans", "cursors"))
"""The families that say nothing about one job alone."""

LARGE: Final = frozenset(("requests_that_jobs_wait_for",))
"""The families that do not close with 60,000 edges in the scope of the gate: the night gives them no more."""

GATE_EDGES: Final = 2_000
"""The most edges of a family in the gate; half of the families close with so many, the others at night only."""

TWO_EDGES: Final = 60_000
"""The most edges of a family with two jobs; some families do not close with so few."""

ROW_EDGES: Final = 24_000
"""The most edges of a family that executes three operations in a row: a state has hundreds of these."""

COST_EDGES: Final = 500
"""With so many edges the costs of a family of the night are compared; those of the gate with all of its edges there."""

PAIR_EDGES: Final = 1_000
"""The most edges of a pair of families; there are about 1,800."""

SCARCE: Final = (5, 8, 12, 18)
"""The budgets of an operation with which families are searched at night: enough for one job, and not for all."""

SCARCE_EDGES: Final = 2_500
"""The most edges of a family with such a budget."""

EACH_EDGES: Final = 10_000
"""The most edges of a family where each operation is tried with every budget that is too small for it."""


LISTED: Final = "`qmodel conformance graph --edges 1` lists those of the gate."
"""Where a name is looked up that is like no other."""


OTHER_COST: Final = "the library's cost differs from the table (./dev costs records it)"
"""What a finding says about a search whose operations cost otherwise, or took other ways."""


FAIL_EDGES: Final = 4_000
"""The most edges of a family where each command of an operation fails."""


LEAST: Final = 0.05
"""The least time of a search, in seconds of the processor: enough for the edges of its first state."""

VARIANTS: Final = {"each": every_budget, "fails": every_failure}
"""What may stand after the / of a family's name, besides a budget."""


class Run(NamedTuple):
    """A search: a family, a scope, and the most edges and seconds of the processor that it may take, 0 for any.

    It may stray from its levels (`explore.py`).
    """

    family: Family
    scope: Scope
    edges: int = 0
    limit: float = 0.0
    strays: bool = False

    def search(self, lua: bool, server: ServerCorner | None = None, pairs: float = 0.0) -> Explored:
        """Search it; with `lua`, every edge is compared with the library in this process."""
        corner = _library(self.family.units) if lua else None
        server = None if self.family.units else server  # its library has the usual budget
        limits: Any = {"limit": self.limit, "edges": self.edges, "strays": self.strays}
        found = Search(self.family, self.scope, corner, server, pairs, **limits).run()
        if lua and not found.findings and (lines := self.costs_otherwise(found)):
            found.findings.append(Finding(OTHER_COST, lines, []))
        if found.findings:
            _library.cache_clear()  # a call that was broken off may leave something behind in it
        return found

    def costs_otherwise(self, found: Explored) -> list[str]:
        """List how the costs of this search differ from the table, if it has it."""
        return costs.differences(f"{self.family.name} {self.scope}", found.costs) if self in costed() else []


@cache
def _library(units: int) -> LuaCorner:
    """Give the library for families of this budget; it is compiled once."""
    return LuaCorner(with_units(None, units))


def gate() -> list[Run]:
    """Give the searches of the gate: each family with one job, but for `OF_TWO`, and for what needs two workers.

    Large families are searched a little, and those of the night not at all.
    """
    return [run._replace(edges=GATE_EDGES) for run in _narrow() if not run.family.night]


@cache
def costed() -> tuple[Run, ...]:
    """Give the searches that have costs in the table: those of the gate, and of each family of the night a little."""
    return (*gate(), *(run._replace(edges=COST_EDGES) for run in _narrow() if run.family.night))


def _narrow() -> list[Run]:
    found = [
        Run(family, TWO if name in OF_TWO else ONE, TWO_EDGES if name in LARGE else _most(family))
        for name, family in explored().items()
    ]
    return [*found, *(Run(explored()[name], Scope(1, 2)) for name in ("plain", "workers"))]


def _most(family: Family, edges: int = 0) -> int:
    """Give the most edges of a family: the given number, 0 for any, but for those with rows of three."""
    return min(edges or ROW_EDGES, ROW_EDGES) if family.calls > 2 else edges


def chosen(names: tuple[str, ...], scope: Scope | None, limit: float, night: bool, edges: int = 0) -> list[Run]:
    """Give the searches that a command line asks for; of the night, those of the named families and of their pairs.
    A pair, or a family with budgets, that no night has is searched as it is.

    A ValueError says what is wrong with a name.
    """
    searched = [Run(_named(name), scope or ONE) for name in names]
    runs = at_night() if night else gate()
    if names and night:
        runs = [run for run in runs if {run.family.name, *re.split("[+/]", run.family.name)} & set(names)]
        found = {run.family.name for run in runs}
        runs += [run for run in searched if run.family.name not in found]
    elif names:
        runs = searched
    if edges:
        runs = [run._replace(edges=min(run.edges or edges, edges)) for run in runs]
    return [run._replace(scope=scope or run.scope, limit=limit or run.limit) for run in runs]


def within(runs: list[Run], seconds: float) -> Iterator[Run]:
    """Give searches, those of the fewest edges first, so that all of them together take a time of the processor.

    Each gets a share: the time that is left, by the searches that are left. What a small one leaves is for the others.
    """
    end = time.process_time() + seconds
    for done, run in enumerate(sorted(runs, key=lambda run: run.edges or math.inf)):
        share = max(end - time.process_time(), 0.0) / (len(runs) - done)
        yield run._replace(limit=min(run.limit or math.inf, max(share, LEAST)))


def _named(name: str) -> Family:
    """Give the family of a name: one alone, two with a + between them, or one with budgets or failures after a /."""
    one, sign, other = re.fullmatch(r"([^/+]*)([/+]?)(.*)", name, re.S).groups()  # type: ignore[union-attr]
    for part in (one, other) if sign == "+" else (one,):
        if part not in families():
            near = difflib.get_close_matches(part, families(), 1)
            raise ValueError(f"There is no family {part!r}." + (f" Did you mean {near[0]}?" if near else f" {LISTED}"))
    if sign != "/":
        return pair(one, other) if sign else families()[one]
    if other in VARIANTS:
        return VARIANTS[other](one)
    if re.fullmatch("[1-9][0-9]{0,3}", other):
        return scarce(one, int(other))
    raise ValueError(f"After the / of {name!r} stands `each`, `fails`, or a budget from 1 to 9999 units.")


def daily() -> list[str]:
    """Give the families that the gate searches too; pairs are made of these."""
    return [name for name, family in explored().items() if not family.night]


def at_night() -> list[Run]:
    """Give the searches of the night: the gate's to the end (but LARGE), pairs, wider scopes, and small budgets."""
    found = explored()
    pairs = list(combinations(daily(), 2))
    random.Random("pairs").shuffle(pairs)  # a night that is stopped has tried pairs of all families
    runs = [
        *_narrow(),
        *(
            Run(family, Scope(1, 2), _most(family, 2 * TWO_EDGES))
            for family in found.values()
            if family.scope >= Scope(1, 2)
        ),
        *(Run(pair(one, other), ONE, PAIR_EDGES) for one, other in pairs),
        *(
            Run(scarce(name, units), min(family.scope, TWO), SCARCE_EDGES)
            for name, family in found.items()
            if not family.calls  # a call leaves operations to the next one where the budget is small
            for units in SCARCE
        ),
        *(
            Run(every_budget(name), min(family.scope, TWO), EACH_EDGES)
            for name, family in found.items()
            if not family.calls and not family.units
        ),
        *(Run(every_failure(name), min(family.scope, TWO), FAIL_EDGES) for name, family in found.items()),
        *(Run(found[name], Scope(2, 2)) for name in ("plain", "delays")),
        *(Run(family, TWO, _most(family, TWO_EDGES)) for family in found.values() if family.scope >= TWO),
        Run(found["fans"], Scope(3, 1), 2 * TWO_EDGES),
    ]
    return list({(run.family.name, run.scope): run for run in reversed(runs)}.values())[::-1]
