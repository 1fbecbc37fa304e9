"""Write the table of what the operations of the closed graph cost: `python -m tools.costs`, or `./dev costs`.

A change of cost has to be recorded deliberately, so nothing else writes the table. It prints what has changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from qmodel.conformance.graph import costs, plan
from qmodel.conformance.graph.findings import Explored

FILE = Path(costs.__file__).with_name("costs.txt")


def main() -> int:
    """Search, print the differences, and write the table."""
    found = {f"{run.family.name} {run.scope}": _searched(run).costs for run in plan.costed()}
    for search in costs.recorded().keys() - found.keys():
        print(f"{search}: no such search any more")
    for search, those in found.items():
        for line in costs.differences(search, those):
            print(line)
    FILE.write_text(costs.dumps(found.items()), encoding="utf-8")
    return 0


def _searched(run: plan.Run) -> Explored:
    """Search, and give what was found, of which only the cost may be wrong."""
    found = run.search(lua=True)
    wrong = [str(one) for one in found.findings if one.what != plan.OTHER_COST]
    assert not wrong, wrong[0]
    return found


if __name__ == "__main__":
    sys.exit(main())
