"""The figures of the page on the closed graph."""

from __future__ import annotations

import json
from typing import Any

from tools.docs.figures import added, distilled


def _line(family: str, edges: int, **apart: int) -> str:
    counts = {"states": 1, "edges": edges, "pairs": 2, "outside": 0, "stuck": 0, "cpu": 0.5}
    said: dict[str, Any] = {"family": family, "scope": "1x1", "closed": True, "findings": [], "code": "", **counts}
    return json.dumps({**said, "apart": apart})


def test_a_night_that_goes_on_replaces_searches_and_adds_pairs_of_families() -> None:
    one = distilled([_line("plain", 10), _line("plain+delays", 3, seq=1)])
    other = distilled([_line("plain", 12), _line("delays", 4), _line("plain+ttl", 5, seq=2)])
    both = added(one, other)
    assert [(found["family"], found["edges"]) for found in both["searches"]] == [("plain", 12), ("delays", 4)]
    assert {name: both["pairs"][name] for name in ("searches", "edges", "cpu")} == {
        "searches": 2,
        "edges": 8,
        "cpu": 1.0,
    }
    assert both["apart"] == {"seq": 3}
