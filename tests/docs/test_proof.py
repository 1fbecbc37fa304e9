"""The figures of the page on the closed graph."""

from __future__ import annotations

import json
from typing import Any

from tools.docs.figures import added, distilled


def _line(family: str, edges: int, **apart: int) -> str:
    counts = {"states": 1, "edges": edges, "pairs": 2, "outside": 0, "stuck": 0, "cpu": 0.5}
    said: dict[str, Any] = {"family": family, "scope": "1x1", "closed": True, "findings": [], "code": "", **counts}
    return json.dumps({**said, "apart": apart})


def test_a_later_night_replaces_searches_and_the_sums_that_it_has() -> None:
    one = distilled([_line("plain", 10), _line("plain+delays", 3, seq=1), _line("plain/5", 7)])
    other = distilled([_line("plain", 12), _line("delays", 4), _line("plain+ttl", 5, seq=2), _line("delays+ttl", 6)])
    both = added(one, other)
    assert [(found["family"], found["edges"]) for found in both["searches"]] == [("plain", 12), ("delays", 4)]
    assert {name: both["pairs"][name] for name in ("searches", "edges")} == {"searches": 2, "edges": 11}
    assert both["scarce"]["edges"] == 7
    assert both["apart"] == {"seq": 3}


def test_sums_of_other_pairs_are_added() -> None:
    one = distilled([_line("plain", 10), _line("plain+delays", 3), _line("plain/5", 7)])
    other = distilled([_line("plain+fair", 4), _line("delays+fair", 5)])
    both = added(one, other, others=True)
    assert {name: both["pairs"][name] for name in ("searches", "closed", "edges", "cpu")} == {
        "searches": 3,
        "closed": 3,
        "edges": 12,
        "cpu": 1.5,
    }
    assert both["scarce"] == one["scarce"]
