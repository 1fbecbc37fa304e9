"""`python -m tools.docs.figures RECORD`: make the figures of docs/proof.md from a record of searches."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from qmodel.conformance.graph.alphabet import explored
from tools.docs.proof import COUNTS, FIGURES


def distilled(lines: Iterable[str]) -> dict[str, Any]:
    """Make the figures from a record: the last line of each search, and the pairs of families added up."""
    last = {(one["family"], one["scope"]): one for one in map(json.loads, lines)}
    families = [one for one in last.values() if "+" not in one["family"]]
    both = [one for one in last.values() if "+" in one["family"]]
    apart: Counter[str] = Counter()
    for one in last.values():
        apart.update(one.pop("apart"))
        one.pop("code")
        one["cpu"] = round(one["cpu"], 1)
    return {
        "searches": sorted(families, key=lambda one: (str(one["scope"]), list(explored()).index(one["family"]))),
        "pairs": {
            "searches": len(both),
            "closed": sum(one["closed"] for one in both),
            "findings": [finding for one in both for finding in one["findings"]],
            **{name: round(sum(one[name] for one in both), 1) for name in COUNTS},
        },
        "apart": dict(sorted(apart.items())),
    }


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as record:
        FIGURES.write_text(json.dumps(distilled(record), indent=1) + "\n", encoding="utf-8")
