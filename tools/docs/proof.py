"""`docs/proof.md` and its picture: what the closed graph searches, and the figures of its last recorded night.

`proof.json` beside this file holds the figures. They are recorded by hand, because a night takes long, and processor
time differs from machine to machine:

    ./dev graph --night --lua --server valkey --record build/graph.jsonl
    python -m tools.docs.figures build/graph.jsonl
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

from qmodel.conformance.graph.classes import LEFT_OUT
from qmodel.conformance.graph.fields import FIELDS
from qmodel.conformance.graph.plan import daily
from qmodel.conformance.graph.rules import Dead
from tools.docs.reference import MADE, table

TEXT = Path(__file__).with_suffix(".md")
FIGURES = Path(__file__).with_suffix(".json")

WIDTH, ROW, LABEL = 760, 18, 190


COUNTS = ("states", "edges", "pairs", "outside", "stuck", "cpu")


@cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return found


def _searches() -> list[dict[str, Any]]:
    return list(_recorded()["searches"])


def markdown() -> str:
    """The text of docs/proof.md."""
    text = TEXT.read_text(encoding="utf-8")
    for name, part in {
        "fields": _fields(),
        "left_out": table(("class", "why no letter names it"), [(f"`{one}`", why) for one, why in LEFT_OUT.items()]),
        "summary": _summary(),
        "families": _families(),
    }.items():
        text = text.replace(f"{{{name}}}", part.rstrip())
    return MADE.format("tools/docs/proof.md, tools/docs/proof.json and qmodel/conformance/graph") + text


def _fields() -> str:
    """A row for each field that is not in the canonical form."""
    apart = Counter(_recorded()["apart"])
    rows = []
    for cls, fields in FIELDS.items():
        for name, rule in fields.items():
            if isinstance(rule, Dead):
                field = f"{cls.__name__.lower()}.{name}"
                rows.append((f"`{field}`", str(rule), f"{apart[field]:,}" if apart[field] else ""))
    return table(("field", "why it is not in the form", "pairs that differed"), rows)


def _summary() -> str:
    found, both, scarce = _searches(), _recorded()["pairs"], _recorded()["scarce"]
    closed = {one["family"] for one in found if one["closed"]}
    total = {name: sum(one[name] for one in [*found, both, scarce]) for name in COUNTS}
    wrong = sum(len(one["findings"]) for one in [*found, both, scarce])
    return (
        f"The recorded night: {len(found)} searches of {len({one['family'] for one in found})} families, "
        f"{len(closed)} of which closed in some scope; {scarce['searches']:,} searches with small budgets; and "
        f"{both['searches']:,} of {comb(len(daily()), 2):,} pairs of families. {total['states']:,} states, "
        f"{total['edges']:,} edges, each compared with the Lua in this process, and one of each shape with Valkey 9; "
        f"{total['pairs']:,} pairs of states, none refuted; "
        f"{wrong} findings, {total['stuck']} stuck states; {total['cpu'] / 60:.0f} minutes of a processor."
    )


def _families() -> str:
    rows = [
        (
            f"`{one['family']}`", one["scope"], *(f"{one[name]:,}" for name in ("states", "edges", "pairs", "outside")),
            "yes" if one["closed"] else "no", f"{one['cpu']:.1f}",
        )
        for one in _searches()
    ]  # fmt: skip
    for says, scope, both in (
        ("with small budgets", "2x1", _recorded()["scarce"]),
        ("pairs of families", "1x1", _recorded()["pairs"]),
    ):
        counts = (f"{both[name]:,}" for name in ("states", "edges", "pairs", "outside"))
        closed = f"{both['closed']:,} of {both['searches']:,}"
        rows.append((says, scope, *counts, closed, f"{both['cpu']:.1f}"))
    return table(("family", "scope", "states", "edges", "pairs", "outside", "closed", "CPU s"), rows)


def picture() -> str:
    """The text of docs/proof.svg: a bar for each search, as long as it has states."""
    found = sorted(_searches(), key=lambda one: -int(one["states"]))
    most = max(one["states"] for one in found)
    height = ROW * len(found) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12">',
        "<title>States of each family of the closed graph</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for row, one in enumerate(found):
        y = ROW * row + 5
        length = round((WIDTH - LABEL - 70) * one["states"] / most)
        color = "#2a78b8" if one["closed"] else "#c9a227"
        lines += [
            f'<text x="{LABEL - 6}" y="{y + 13}" text-anchor="end">{one["family"]} {one["scope"]}</text>',
            f'<rect x="{LABEL}" y="{y + 3}" width="{max(length, 1)}" height="{ROW - 6}" fill="{color}"/>',
            f'<text x="{LABEL + length + 5}" y="{y + 13}" fill="#555555">{one["states"]:,}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
