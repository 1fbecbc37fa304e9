"""Write the table of what the operations of the closed graph cost: `python -m tools.costs`, or `./dev costs`.

    ./dev costs [family] ...       search these families again, or all

A change of cost has to be recorded deliberately, so nothing else writes the table. It prints what has changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from qmodel.conformance.graph import costs, plan
from qmodel.conformance.graph.costs import Costs

FILE = Path(costs.__file__).with_name("costs.txt")


def main(names: list[str]) -> int:
    """Search, print the differences, and write the table."""
    table = costs.recorded()
    found = {}
    for run in plan.costed():
        search = f"{run.family.name} {run.scope}"
        if names and run.family.name not in names and search in table:
            found[search] = table[search]
        else:
            those = _searched(run)
            for line in costs.differences(search, those):
                print(line)
            found[search] = those.lines()
    FILE.write_text(costs.dumps(found), encoding="utf-8")
    return 0


def _searched(run: plan.Run) -> Costs:
    """Search, and give the costs, which alone may be wrong."""
    found = run.search(lua=True)
    wrong = [str(one) for one in found.findings if one.what != plan.OTHER_COST]
    assert not wrong, wrong[0]
    return found.costs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
