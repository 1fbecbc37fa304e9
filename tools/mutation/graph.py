"""Measure which mutants the closed graph notices by itself, without generated and directed histories.

    python -m tools.mutation.graph [--side lua|model] [--only FILE] [--sample N] [--seed S] [--seconds N] [--families N]
                                   [--lines | --bounds]

A mutant is first tried on histories with one edge of each shape. If none of them notices it, families whose histories
run its line, or else its function or file, are searched: with one job, with two jobs, in pairs, and with small budgets.
What is not noticed is printed, and what no small scope can notice is counted apart (`bounds.py`). `--lines` only prints
the lines with mutants that no history runs: they show best what the alphabet lacks. `--bounds` only proves that no
history reaches half of any bound.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Final

from qmodel.backends import bundle
from qmodel.conformance.graph.alphabet import explored, pair, scarce
from qmodel.conformance.graph.compare import LuaCorner, with_units
from qmodel.conformance.graph.explore import Search
from qmodel.conformance.graph.plan import ONE, PAIR_EDGES, TWO, Run
from qmodel.conformance.histories.script import Named
from tools.mutation import bounds, model, python, replay, suite
from tools.mutation.__main__ import all_mutants, sampled
from tools.mutation.mutants import Mutant
from tools.mutation.triage import Triage, path

FAMILIES = 8
"""How many families are searched for a mutant with all edges, besides those with a small budget."""

BROAD_EDGES = 1_500
"""The most edges of a search of each other family that runs the mutant's line."""

IN_PAIRS = 5
"""How many of these are searched in pairs."""

WITH_BUDGETS = 4
"""How many of these are searched with small budgets too."""

BUDGETS: Final = range(3, 25)
"""These budgets: a mutant that counts a unit too many or too few differs at one of them only."""

BUDGET_EDGES = 1_500
"""The most edges of a search with such a budget."""

EDGES = 5_000
"""The most edges of each search of a family with its usual budget."""

SECONDS = 120.0
"""The most seconds of the processor for a search."""

BY_SERVERS: Final = {("state/epochs", name) for name in ("digits", "is_foreign", "own_of", "next_", "remember")}
"""The functions that no operation runs: by them a server notices a lost tail, and begins an epoch by itself."""

STUCK = 30.0
"""A mutant on which one edge takes more seconds loops for ever."""

_BEGIN: Final = re.compile(r"(?:def|class|(?:local )?function) ")
"""How a function begins at the left margin."""


class Graph:
    """The closed graph as a judge of mutants."""

    def __init__(self, side: str, named: Sequence[Named], families: int = FAMILIES, edges: int = EDGES) -> None:
        self.side, self.named, self._families, self._edges = side, named, families, edges
        self.recorded = replay.Recording(named) if side == "lua" else model.Recording(named)
        self._sizes = Counter(_family(one) for one in named)
        self._last: Mutant | None = None
        self._names: set[str] = set()
        self._right = cache(lambda units: LuaCorner(with_units(None, units)))

    def notices(self, mutant: Mutant) -> str:
        """Tell what notices a mutant: `shapes`, `search`, or nothing."""
        if self.recorded.judge(mutant).kills:
            return "shapes"
        return "search" if any(self._finds(mutant, run) for run in self._where(mutant)) else ""

    def unrun(self, mutants: Iterable[Mutant]) -> list[str]:
        """List the lines with mutants that no history runs."""
        found = {f"{path(one)}:{one.line} {one.was}": None for one in mutants if not self._histories_of(one)}
        return list(found)

    def _where(self, mutant: Mutant) -> list[Run]:
        """List what is searched: first the families in which the largest part of the histories runs the mutant's line,
        or else its function, or its file.
        """
        around = (mutant, self._function(mutant), self._whole(mutant))
        histories = next(filter(None, map(self._histories_of, around)), set[int]())
        counted = Counter(_family(self.named[number]) for number in histories)
        ranked = sorted(counted, key=lambda name: (-counted[name] / self._sizes[name], name))
        chosen = ranked[: self._families]
        found = explored()
        wide = [name for name in chosen if found[name].scope >= TWO]
        both = combinations([name for name in chosen if not found[name].night][:IN_PAIRS], 2)
        small = [family for family in found.values() if family.units or family.calls]
        budgets = [scarce(name, units) for name in chosen[:WITH_BUDGETS] for units in BUDGETS]
        return [
            *(Run(found[name], ONE, self._edges) for name in chosen),
            *(Run(found[name], TWO, self._edges) for name in wide),
            *(Run(family, scope, self._edges) for family in small for scope in (ONE, TWO)),
            *(Run(found[name], ONE, BROAD_EDGES) for name in ranked[self._families :]),
            *(Run(pair(one, other), ONE, PAIR_EDGES) for one, other in both),
            *(Run(family, min(family.scope, TWO), BUDGET_EDGES) for family in budgets),
        ]

    def _histories_of(self, mutant: Mutant) -> set[int]:
        """Find the histories that run a mutant's line."""
        if isinstance(self.recorded, replay.Recording):
            return {self.recorded.steps[step].history for step in self.recorded.steps_of(mutant)}
        return set(self.recorded.histories_of(mutant))

    def _finds(self, mutant: Mutant, run: Run) -> bool:
        family = run.family
        if self.side == "model":
            compared = self._operations_of(mutant)
            with model.planted(mutant.file, mutant.apply(python.read(mutant.file))) as bad:
                return bool(bad) or self._search(run, self._right(family.units), compared)
        assert isinstance(self.recorded, replay.Recording)
        if family.units and mutant.file == "state/budget" and "budget.UNITS =" in mutant.was:
            return False  # the small budget is a change of the same line
        texts = {mutant.file: mutant.apply(self.recorded.texts[mutant.file])}
        corner = LuaCorner(with_units(texts, family.units))
        corner.limit(replay.LIMIT)
        return self._search(run, corner, self._operations_of(mutant))

    def _operations_of(self, mutant: Mutant) -> Container[str] | None:
        """Name the operations that can differ: those that run a mutant's line, or else its file; None if any can."""
        if isinstance(self.recorded, model.Recording):
            if mutant != self._last:
                self._last, self._names = mutant, self.recorded.operations_of(mutant)
            return self._names or None
        steps = self.recorded.steps_of(mutant) or self.recorded.steps_of(self._whole(mutant))
        return {self.recorded.steps[step].step.op.spec.name for step in steps} or None

    def _whole(self, mutant: Mutant) -> Mutant:
        """Give a mutant that stands for all lines of the file."""
        return replace(mutant, first=1, last=self.recorded.texts[mutant.file].count("\n"))

    def _function(self, mutant: Mutant) -> Mutant:
        """Give a mutant that stands for all lines of the function."""
        lines = self.recorded.texts[mutant.file].split("\n")
        at = [number for number, line in enumerate(lines, 1) if _BEGIN.match(line)]
        first = max((number for number in at if number <= mutant.line), default=1)
        last = min((number for number in at if number > mutant.line), default=len(lines))
        return replace(mutant, first=first, last=last - 1)

    def _search(self, run: Run, corner: LuaCorner, compared: Container[str] | None = None) -> bool:
        try:
            with model._limited(SECONDS + STUCK):
                search = Search(run.family, run.scope, corner, limit=SECONDS, edges=run.edges, compared=compared)
                return bool(search.run().findings)
        except Exception:  # it takes too long, or fails where the right code does not: in the setup of the family
            return True


def _family(named: Named) -> str:
    return named.name.split()[1]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tools.mutation.graph", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--side", choices=("lua", "model"), help="one side only")
    parser.add_argument("--only", default="", metavar="FILE", help="files with this in their name, as ops/put")
    parser.add_argument("--sample", type=int, default=200, metavar="N", help="how many mutants, for a seed the same")
    parser.add_argument("--seed", default="fixed sample", metavar="S", help="any text, for another sample")
    parser.add_argument("--seconds", type=float, default=1e9, help="time limit of each side")
    parser.add_argument("--families", type=int, default=FAMILIES, metavar="N", help="how many are searched")
    parser.add_argument("--edges", type=int, default=EDGES, metavar="N", help="the most edges of a search")
    parser.add_argument("--lines", action="store_true", help="only print the lines that no history of a shape runs")
    parser.add_argument("--bounds", action="store_true", help="only tell whether a history reaches half of a bound")
    given = parser.parse_args()
    named = suite.shapes()
    if given.bounds:
        with bounds.halved() as found:
            print("halved:", *found)
        reached = bounds.reached(model.Recording(named))
        print(f"{len(named)} histories:", "some notice it" if reached else "none notices it")
        return int(reached)
    for side in [given.side] if given.side else ["lua", "model"]:
        judge = Graph(side, named, given.families, given.edges)
        mutants = judged(side, given.only)
        if given.lines:
            print("\n".join(judge.unrun(mutants)))
        else:
            counted = count(judge, sampled(side, mutants, given.sample, given.seed), given.seconds)
            print(
                f"{side}: {counted.total()} mutants, {counted['shapes']} noticed by shapes, "
                f"{counted['search']} by searches; {counted['bound']} of the others are of bounds out of reach"
            )
    return 0


def judged(side: str, only: str = "") -> list[Mutant]:
    """List the mutants of one side that an operation can show, in files with `only` in their names."""
    triage = Triage()
    mutants = [one for one in all_mutants(side, only) if triage.entry(one) is None]
    return [one for one in mutants if is_verb_or_noun(one) and not is_of_servers(one)]


def count(judge: Graph, mutants: Sequence[Mutant], seconds: float) -> Counter[str]:
    """Count by what mutants are noticed, for at most `seconds`; prints those that nothing notices."""
    counted: Counter[str] = Counter()
    end = time.monotonic() + seconds
    for mutant in mutants:
        by = judge.notices(mutant) or ("bound" if bounds.of(mutant) else "")
        counted[by] += 1
        if not by:
            print(mutant, flush=True)
        if time.monotonic() > end:
            break
    return counted


def is_of_servers(mutant: Mutant) -> bool:
    """Tell whether a mutant is of a function that servers call by themselves: no operation does."""
    text = python.read(mutant.file) if mutant.side == "model" else bundle.read(mutant.file)
    begun = re.findall(r"^(?:def|(?:local )?function) ([\w.]+)", "\n".join(text.split("\n")[: mutant.line]), re.M)
    return bool(begun) and (mutant.file.removeprefix("model/"), begun[-1].rpartition(".")[2]) in BY_SERVERS


def is_verb_or_noun(mutant: Mutant) -> bool:
    """Tell whether a mutant is of a file that both sides have: not of how the library writes keys and repairs them."""
    file = mutant.file.removeprefix("model/")
    return file.startswith("ops/") or (f"model/{file}" in python.MUTATED and file in bundle.FILES)


if __name__ == "__main__":
    sys.exit(main())
