"""The suites that mutants are measured against: generated and directed histories, and those of the closed graph."""

from __future__ import annotations

from collections.abc import Sequence

from qmodel.conformance.compare.runner import draw
from qmodel.conformance.graph import plan
from qmodel.conformance.graph.alphabet import explored
from qmodel.conformance.graph.compare import LuaCorner
from qmodel.conformance.graph.explore import Search
from qmodel.conformance.graph.shapes import Shapes
from qmodel.conformance.histories import plain_rows as plain_rows_
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.directed.load import directed
from qmodel.conformance.histories.script import Named
from tools.mutation import kept
from tools.mutation.replay import PLAIN_ROW

HISTORIES = 300
STEPS = 60

BUDGETS = (3, 8, 14, 30)
"""Small budgets of an operation: the first is hardly enough for a job, the last one for several."""

SMALL = 30
"""How many histories are drawn for each of these budgets."""

SHORT = 80
"""Directed histories with as many steps at most are executed with them too."""

ROWS = 80
"""How many rows of plain calls are drawn."""

SHAPE_EDGES = 10_000
"""The most edges of a search in which shapes are looked for; more edges show hardly any new ones."""


def generated(histories: int = HISTORIES, steps: int = STEPS, *, seed: str = "mutation") -> list[Named]:
    """Draw the generated histories; any language can send their values. One in five has calls by the rules of qless."""
    return [
        Named(f"{seed} {number}", draw(RandomChooser(f"{seed} {number}"), steps, typed=False, qless=number % 5 == 4))
        for number in range(histories)
    ]


def plain_rows(histories: int = ROWS) -> list[Named]:
    """Draw rows of calls of which most are plain, every second one with the journal."""
    return [
        Named(f"{PLAIN_ROW}{seed}", plain_rows_.drawn(seed, STEPS, plain_rows_.JOURNALED if seed % 2 else ()))
        for seed in range(histories)
    ]


def quick() -> list[Named]:
    """Give the suite of `./dev mutate`: the generated histories, then the directed ones; of the Lua, plain rows too."""
    return [*generated(), *directed()]


def small() -> list[tuple[int, Named]]:
    """Give histories that are executed with a small budget: enough for one job, and for some."""
    found = [(units, named) for units in BUDGETS for named in generated(SMALL, seed=f"budget {units}")]
    short = [named for named in directed() if len(named.steps) <= SHORT]
    return found + [(units, Named(f"{named.name} within {units}", named.steps)) for units in BUDGETS for named in short]


def shapes() -> list[Named]:
    """Search each family with one job, and for a while with two; give a history for each shape of edge.

    Takes minutes, or seconds when the code is that of the last time (`kept.py`). A family with a budget of its own has
    no histories: elsewhere its operations would have the usual one.
    """
    found: list[Named] = []
    for name, family in explored().items():
        if not family.units:
            found += shapes_of(name)
    return found


def shapes_of(name: str) -> list[Named]:
    """Do the same for one family."""
    family = explored()[name]
    scopes = [scope for scope in (plan.ONE, plan.TWO) if scope.jobs <= max(family.scope.jobs, 1)]
    runs = [plan.Run(family, scope, SHAPE_EDGES) for scope in scopes]
    return kept.histories(runs, lambda: _searched(runs))


def _searched(runs: Sequence[plan.Run]) -> list[Named]:
    seen, found = Shapes(), list[Named]()
    for family, scope, edges, *_ in runs:
        search = Search(family, scope, LuaCorner(), shapes=seen, edges=edges)
        search.run()
        found += [Named(f"graph {family.name} {scope} {n}", steps) for n, steps in enumerate(search.histories())]
    return found
