"""`python -m tools.docs.figures RECORD [--add | --others]`: make the figures of docs/proof.md from recorded searches.

With `--add`, the record is of a later night: its searches of families replace earlier ones of the same scope. So do the
sums of its pairs of families, and of families with small budgets, if it has any: one record names each pair once, while
nothing tells which ones two sums have in common. With `--others`, none of its pairs is in the earlier sums, because one
of the two families was new: then the sums are added.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from qmodel.conformance.graph.alphabet import explored
from tools.docs.proof import COUNTS, FIGURES

KINDS = {"pairs": "+", "scarce": "/"}
"""What is added up, and what stands in the names of such searches."""


def distilled(lines: Iterable[str]) -> dict[str, Any]:
    """Make the figures from a record: the last line of each search, and the pairs of families added up."""
    last = {(one["family"], one["scope"]): one for one in map(json.loads, lines)}
    families = [one for one in last.values() if not re.search("[+/]", one["family"])]
    apart: Counter[str] = Counter()
    for one in last.values():
        apart.update(one.pop("apart"))
        one.pop("code")
        one.pop("compared", None)
        one["cpu"] = round(one["cpu"], 1)
    return {
        "searches": sorted(families, key=lambda one: (str(one["scope"]), list(explored()).index(one["family"]))),
        **{kind: _sum([one for one in last.values() if sign in one["family"]]) for kind, sign in KINDS.items()},
        "apart": dict(sorted(apart.items())),
    }


def _sum(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up searches that have no line of their own."""
    return {
        "searches": len(found),
        "closed": sum(one["closed"] for one in found),
        "findings": [finding for one in found for finding in one["findings"]],
        **{name: round(sum(one[name] for one in found), 1) for name in COUNTS},
    }


def added(old: dict[str, Any], new: dict[str, Any], others: bool = False) -> dict[str, Any]:
    """Add the figures of a later night to earlier ones; with `others`, its sums are of other pairs and budgets."""
    known = list(explored())
    searches = {(one["scope"], one["family"]): one for one in [*old["searches"], *new["searches"]]}
    return {
        "searches": [searches[key] for key in sorted(searches, key=lambda key: (key[0], known.index(key[1])))],
        **{
            kind: _both(old[kind], new[kind]) if others else new[kind] if new[kind]["searches"] else old[kind]
            for kind in KINDS
        },
        "apart": dict(sorted((Counter(old["apart"]) + Counter(new["apart"])).items())),
    }


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {name: round(one[name] + other[name], 1) if name != "findings" else one[name] + other[name] for name in one}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as record:
        made = distilled(record)
    if {"--add", "--others"} & set(sys.argv):
        made = added(json.loads(FIGURES.read_text(encoding="utf-8")), made, "--others" in sys.argv)
    FIGURES.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
