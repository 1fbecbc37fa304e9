"""Measure which mutants the closed graph notices by itself, without generated and directed histories.

    python -m tools.mutation.graph [--side lua|model] [--sample N] [--seconds N]

A mutant is first tried on histories with one edge of each shape. If none of them notices it, the families whose
histories run its line are searched, and that with a small budget. What the graph does not notice is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from qmodel.backends import bundle
from qmodel.conformance.graph.alphabet import Scope, explored
from qmodel.conformance.graph.compare import LuaCorner, with_units
from qmodel.conformance.graph.explore import Search
from qmodel.conformance.graph.plan import ONE, TWO
from qmodel.conformance.histories.script import Named
from tools.mutation import model, python, replay, suite
from tools.mutation.__main__ import all_mutants, sampled
from tools.mutation.mutants import Mutant
from tools.mutation.triage import Triage

FAMILIES = 5
"""How many families are searched for a mutant, besides the one with a small budget."""

EDGES = 4_000
"""The most edges of each of these searches."""

SECONDS = 30.0
"""The most seconds of the processor for the searches for one mutant; a mutant that takes longer loops for ever."""


class Graph:
    """The closed graph as a judge of mutants."""

    def __init__(self, side: str, named: Sequence[Named]) -> None:
        self.side, self.named = side, named
        self.recorded = replay.Recording(named) if side == "lua" else model.Recording(named)

    def notices(self, mutant: Mutant) -> str:
        """Tell what notices a mutant: `shapes`, `search`, or nothing."""
        if self.recorded.judge(mutant).kills:
            return "shapes"
        try:
            with model._limited(SECONDS):
                return "search" if any(self._finds(mutant, *where) for where in self._where(mutant)) else ""
        except model.TooLong:
            return "search"

    def _where(self, mutant: Mutant) -> list[tuple[str, Scope]]:
        recorded = self.recorded
        if isinstance(recorded, replay.Recording):
            histories = [recorded.steps[step].history for step in recorded.steps_of(mutant)]
        else:
            histories = recorded.histories_of(mutant)
        counted = Counter(self.named[number].name.split()[1] for number in set(histories))
        chosen = [name for name, _ in counted.most_common(FAMILIES)] if len(counted) < len(explored()) // 2 else []
        chosen = chosen or ["plain", "bulk", "depends", "requests"]
        return [*((name, ONE) for name in chosen), *((name, TWO) for name in chosen), ("budget", TWO)]

    def _finds(self, mutant: Mutant, name: str, scope: Scope) -> bool:
        family = explored()[name]
        if self.side == "lua":
            assert isinstance(self.recorded, replay.Recording)
            if family.units and mutant.file == "state/budget":
                return False  # the small budget is a change of the same file
            texts = {mutant.file: mutant.apply(self.recorded.texts[mutant.file])}
            corner = LuaCorner(with_units(texts, family.units))
            return bool(Search(family, scope, corner, edges=EDGES).run().findings)
        with model.planted(mutant.file, mutant.apply(python.read(mutant.file))) as bad:
            return bool(
                bad or Search(family, scope, LuaCorner(with_units(None, family.units)), edges=EDGES).run().findings
            )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tools.mutation.graph", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--side", choices=("lua", "model"), help="one side only")
    parser.add_argument("--sample", type=int, default=200, metavar="N", help="how many mutants, always the same")
    parser.add_argument("--seconds", type=float, default=1e9, help="time limit of each side")
    given = parser.parse_args()
    named = suite.shapes()
    triage = Triage()
    for side in [given.side] if given.side else ["lua", "model"]:
        judge = Graph(side, named)
        mutants = [one for one in all_mutants(side) if is_verb_or_noun(one) and triage.entry(one) is None]
        counted: Counter[str] = Counter()
        end = time.monotonic() + given.seconds
        for mutant in sampled(side, mutants, given.sample):
            by = judge.notices(mutant)
            counted[by] += 1
            if not by:
                print(mutant, flush=True)
            if time.monotonic() > end:
                break
        print(
            f"{side}: {counted.total()} mutants, {counted['shapes']} noticed by shapes, {counted['search']} by searches"
        )
    return 0


def is_verb_or_noun(mutant: Mutant) -> bool:
    """Tell whether a mutant is of a file that both sides have: not of how the library writes keys and repairs them."""
    file = mutant.file.removeprefix("model/")
    return file.startswith("ops/") or (f"model/{file}" in python.MUTATED and file in bundle.FILES)


if __name__ == "__main__":
    sys.exit(main())
