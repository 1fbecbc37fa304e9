"""Measure which mutants the closed graph notices by itself, without generated and directed histories.

    python -m tools.mutation.graph [--side lua|model] [--only FILE] [--sample N] [--seed S] [--seconds N]
                                   [--directly | --lines | --bounds]

A mutant is first tried on histories with one edge of each shape. If none of them notices it, families are searched
whose histories run its line, or else its function or file: with one job and with two, where each operation is tried
with every budget that is too small for it too, and in pairs. Each search tries all mutants that are left, on every edge
(`together.py`). What is not noticed is printed, and what no small scope can notice is counted apart (`bounds.py`).
`--directly` leaves out the histories, whose search takes longer than that of the mutants, and searches all families:
level by level and then astray, first with one job, then with two, then with budgets. `--lines` only prints the lines
with mutants that no history runs: they show best what the alphabet lacks. `--bounds` only proves that no history
reaches half of any bound.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.conformance.graph import plan
from qmodel.conformance.graph.alphabet import every_budget, every_failure, explored, pair
from qmodel.conformance.graph.compare import LuaCorner, with_units
from qmodel.conformance.graph.explore import Search
from qmodel.conformance.graph.plan import ONE, PAIR_EDGES, TWO, Run
from qmodel.conformance.histories.script import Named
from tools.mutation import bounds, model, python, replay, suite
from tools.mutation.__main__ import all_mutants, sampled
from tools.mutation.loaded import LIMIT
from tools.mutation.mutants import Mutant
from tools.mutation.together import STUCK, Judge, Loaded, LuaJudge, ModelJudge
from tools.mutation.triage import Triage, path

EDGES = 10_000
"""The most edges of each search of a family, with every budget that is too small for an operation."""

LATER = 4
"""How many of these families, for each mutant, are searched before those that have no histories of shapes."""

IN_PAIRS = 5
"""How many of the families that run a mutant's line most often are searched in pairs."""

SILENT_RUNS = 3
"""In how many searches a mutant is tried by itself if it left other content silently there."""

SECONDS = 120.0
"""The most seconds of the processor for a search of a mutant by itself."""

BY_SERVERS: Final = {("state/epochs", name) for name in ("digits", "is_foreign", "own_of", "next_", "remember")}
"""The functions that no operation runs: by them a server notices a lost tail, and begins an epoch by itself."""

_BEGIN: Final = re.compile(r"(?:def|class|(?:local )?function) ")
"""How a function begins at the left margin."""


class Graph:
    """The closed graph as a judge of mutants."""

    def __init__(self, side: str, named: Sequence[Named], edges: int = EDGES) -> None:
        self.side, self.named, self._edges = side, named, edges
        self.recorded = replay.Recording(named) if side == "lua" else model.Recording(named)
        self._sizes = Counter(map(_family, named))
        self._loaded: dict[int, Loaded] = {}
        self._right = cache(lambda units: LuaCorner(with_units(None, units)))

    def judge(self, mutants: Sequence[Mutant], seconds: float = 1e9) -> dict[Mutant, str]:
        """Tell what notices each mutant: `shapes`, a search, or nothing; searches take about `seconds` in all.

        What a search notices is printed at once.
        """
        by = {mutant: "shapes" if self.recorded.judge(mutant).kills else "" for mutant in mutants}
        left = [mutant for mutant in mutants if not by[mutant]]
        silent: Counter[Mutant] = Counter()
        end = time.process_time() + seconds
        for run in self.runs(left):
            left = [mutant for mutant in left if not by[mutant]]
            if not left or time.process_time() > end:
                break
            for mutant in self._noticed(run, left, silent):
                by[mutant] = f"{run.family.name} {run.scope}"
                print(f"noticed by a search of {by[mutant]}: {mutant}", flush=True)
        return by

    def unrun(self, mutants: Iterable[Mutant]) -> list[str]:
        """List the lines with mutants that no history runs."""
        found = {f"{path(one)}:{one.line} {one.was}": None for one in mutants if not self._histories_of(one)}
        return list(found)

    def runs(self, mutants: Sequence[Mutant]) -> Iterator[Run]:
        """List what is searched for these mutants: the families with histories that run the line of one, or else its
        function, or its file, first those where the largest part does; with one job and with two, and some in pairs.
        Without any histories, list all families.
        """
        yield from plan.costed() if self.side == "lua" else ()
        if not self.named:
            yield from _all(self._edges)
            return
        found, ranked = explored(), [self._ranked(mutant) for mutant in mutants]
        places = {name: LATER for name, family in found.items() if family.calls or name not in self._sizes}
        for one in ranked:
            for place, name in enumerate(one):
                places[name] = min(place, places.get(name, place))
        for name in sorted(places, key=lambda name: places[name]):
            family = found[name] if found[name].units or found[name].calls else every_budget(name)
            yield Run(family, ONE, self._edges)
            if family.scope >= TWO:
                yield Run(family, TWO, self._edges)
        daily = ([name for name in one if not found[name].night][:IN_PAIRS] for one in ranked)
        both = {two: None for one in daily for two in combinations(one, 2)}
        yield from (Run(pair(*two), ONE, PAIR_EDGES) for two in both)

    def _ranked(self, mutant: Mutant) -> list[str]:
        """List the families of the histories that run a mutant's line, or else its function, or its file; first those
        where the largest part of the histories does.
        """
        around = (mutant, self._function(mutant), self._whole(mutant))
        histories = next(filter(None, map(self._histories_of, around)), set[int]())
        counted = Counter(_family(self.named[number]) for number in histories)
        return sorted(counted, key=lambda name: (-counted[name] / self._sizes[name], name))

    def _histories_of(self, mutant: Mutant) -> set[int]:
        """Find the histories that run a mutant's line."""
        if isinstance(self.recorded, replay.Recording):
            return {self.recorded.steps[step].history for step in self.recorded.steps_of(mutant)}
        return set(self.recorded.histories_of(mutant))

    def _noticed(self, run: Run, left: Sequence[Mutant], silent: Counter[Mutant]) -> list[Mutant]:
        """Search with all mutants that are left, and then with each by itself that left other content silently."""
        tried = [mutant for mutant in left if not ((run.family.units or run.family.budgets) and _is_budget(mutant))]
        judge = self.searched(run, tried)
        found = [mutant for mutant in tried if mutant not in judge.left]
        dearer = [mutant for mutant in judge.left if mutant in judge.dearer and run in plan.costed()]
        for mutant in dict.fromkeys((*judge.silent, *dearer)):
            silent[mutant] += 1
            if silent[mutant] <= SILENT_RUNS and self.finds(mutant, run):
                found.append(mutant)
        return found

    def searched(self, run: Run, mutants: Sequence[Mutant]) -> Judge:
        """Search with these mutants on every edge."""
        if isinstance(self.recorded, replay.Recording):
            judge = LuaJudge(self.recorded, mutants, run.family.units, self._loaded.setdefault(run.family.units, {}))
            self._run(run, judge)
            return judge
        with ModelJudge(mutants) as watched:
            self._run(run._replace(family=run.family._replace(calls=0, fails=False)), watched)
        return watched

    def _run(self, run: Run, judge: Judge) -> None:
        found = Search(run.family, run.scope, judge, edges=run.edges, strays=run.strays).run().findings
        assert not found, found[0]

    def finds(self, mutant: Mutant, run: Run) -> bool:
        """Tell whether a search of a mutant by itself notices it."""
        family = run.family
        if self.side == "model":
            run = run._replace(family=family._replace(setup=model.own(family.setup)))
            with model.planted(mutant.file, mutant.apply(python.read(mutant.file))) as bad:
                return bool(bad) or self._search(run, self._right(family.units))
        texts = {mutant.file: mutant.apply(self.recorded.texts[mutant.file])}
        corner = LuaCorner(with_units(texts, family.units))
        corner.limit(LIMIT)
        return self._search(run, corner)

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

    def _search(self, run: Run, corner: LuaCorner) -> bool:
        try:
            with model._limited(SECONDS + STUCK):
                limits: Any = {"limit": SECONDS, "edges": run.edges, "strays": run.strays}
                found = Search(run.family, run.scope, corner, **limits).run()
                return bool(found.findings or run.costs_otherwise(found))
        except Exception:  # it takes too long, or fails where the right code does not: in the setup of the family
            return True


def _all(edges: int) -> Iterator[Run]:
    """List the searches of all families, which stray: those of the gate first."""
    found = sorted(explored().values(), key=lambda family: family.night)
    yield from (Run(family, ONE, edges, strays=True) for family in found)
    yield from (Run(family, TWO, edges, strays=True) for family in found if family.scope >= TWO)
    several = (family for family in found if not family.calls and not family.units)
    yield from (Run(every_budget(family.name), ONE, edges, strays=True) for family in several)
    yield from (Run(every_failure(family.name), ONE, min(edges, plan.FAIL_EDGES)) for family in found)


def _is_budget(mutant: Mutant) -> bool:
    """Tell whether a mutant changes the line that a small budget changes too."""
    return mutant.file.endswith("state/budget") and "UNITS = " in mutant.was


def _family(named: Named) -> str:
    return named.name.split()[1]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tools.mutation.graph", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--side", choices=("lua", "model"), help="one side only")
    parser.add_argument("--only", default="", metavar="FILE", help="files with this in their name, as ops/put")
    parser.add_argument("--sample", type=int, default=200, metavar="N", help="how many mutants, for a seed the same")
    parser.add_argument("--seed", default="fixed sample", metavar="S", help="any text, for another sample")
    parser.add_argument("--seconds", type=float, default=1e9, help="processor time limit of the searches of each side")
    parser.add_argument("--edges", type=int, default=EDGES, metavar="N", help="the most edges of a search")
    parser.add_argument("--directly", action="store_true", help="search all families, and take no histories of shapes")
    parser.add_argument("--lines", action="store_true", help="only print the lines that no history of a shape runs")
    parser.add_argument("--bounds", action="store_true", help="only tell whether a history reaches half of a bound")
    given = parser.parse_args()
    named = [] if given.directly else suite.shapes()
    if given.bounds:
        with bounds.halved() as found:
            print("halved:", *found)
        reached = bounds.reached(model.Recording(named))
        print(f"{len(named)} histories:", "some notice it" if reached else "none notices it")
        return int(reached)
    for side in [given.side] if given.side else ["lua", "model"]:
        judge = Graph(side, named, given.edges)
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
    """Count by what mutants are noticed, and print those that nothing notices."""
    counted: Counter[str] = Counter()
    for mutant, by in judge.judge(mutants, seconds).items():
        kind = by if by == "shapes" else "search" if by else "bound" if bounds.of(mutant) else ""
        counted[kind] += 1
        if not kind:
            print(f"not noticed: {mutant}")
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
