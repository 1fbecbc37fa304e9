"""Lay out a graph whose arrows go down: rows of boxes, with few crossings and with straight long arrows.

The method of Sugiyama, Tagawa and Toda (1981). An arrow over several rows gets a bend in each row between. Then the
rows are put in order, each by the mean position of its neighbours, and at last each row is moved as near to its
neighbours as its order and the widths allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

SWEEPS = 40
BEND = 26.0
"""The width that a bend takes up."""

Rows = list[list[str]]


class Layout(NamedTuple):
    """The rows, from the top, with bends among the boxes; the middle of each; and the points of each arrow."""

    rows: Rows
    middles: dict[str, float]
    routes: dict[tuple[str, str], list[str]]


def needed(uses: Mapping[str, Iterable[str]]) -> list[tuple[str, str]]:
    """Give the arrows that do not follow from others: `a` to `c` is left out where `a` uses `b`, and `b` uses `c`."""
    inside: dict[str, set[str]] = {}

    def reached(name: str) -> set[str]:
        if name not in inside:
            inside[name] = set(uses[name]).union(*(reached(used) for used in uses[name]))
        return inside[name]

    return [
        (name, used)
        for name in uses
        for used in sorted(uses[name])
        if not any(used in reached(other) for other in uses[name])
    ]


def laid_out(rows: Rows, arrows: Sequence[tuple[str, str]], width: float) -> Layout:
    """Lay out boxes of one width, which stand in rows already."""
    full, routes = _with_bends(rows, arrows)
    steps = [step for route in routes.values() for step in pairwise(route)]
    ordered = _ordered(full, steps)
    boxes = {name for row in rows for name in row}
    return Layout(ordered, _placed(ordered, steps, {n: width if n in boxes else BEND for r in full for n in r}), routes)


def _with_bends(rows: Rows, arrows: Sequence[tuple[str, str]]) -> tuple[Rows, dict[tuple[str, str], list[str]]]:
    full = [list(row) for row in rows]
    row_of = {name: index for index, row in enumerate(rows) for name in row}
    routes = {}
    for user, used in arrows:
        between = range(row_of[user] + 1, row_of[used])
        bends = [f"{user}>{used}@{index}" for index in between]
        for index, bend in zip(between, bends, strict=True):
            full[index].append(bend)
        routes[user, used] = [user, *bends, used]
    return full, routes


# ---- the order within the rows


def _ordered(rows: Rows, steps: Sequence[tuple[str, str]]) -> Rows:
    near = _neighbours(rows, steps)
    best, now = rows, [list(row) for row in rows]
    for sweep in range(SWEEPS):
        order = range(len(now)) if sweep % 2 else reversed(range(len(now)))
        for index in order:
            at = {name: place / len(row) for row in now for place, name in enumerate(row)}
            now[index].sort(key=lambda name: _mean([at[other] for other in near[name]], at[name]))
        now = _swapped(now, steps)
        if _crossings(now, steps) < _crossings(best, steps):
            best = [list(row) for row in now]
    return best


def _swapped(rows: Rows, steps: Sequence[tuple[str, str]]) -> Rows:
    """Swap neighbours as long as that spares crossings."""
    least = _crossings(rows, steps)
    for row in rows:
        for place in range(len(row) - 1):
            row[place : place + 2] = row[place + 1], row[place]
            if (found := _crossings(rows, steps)) < least:
                least = found
            else:
                row[place : place + 2] = row[place + 1], row[place]
    return rows


def _crossings(rows: Rows, steps: Sequence[tuple[str, str]]) -> int:
    at = {name: (index, place) for index, row in enumerate(rows) for place, name in enumerate(row)}
    between: dict[int, list[tuple[int, int]]] = {}
    for upper, lower in steps:
        between.setdefault(at[upper][0], []).append((at[upper][1], at[lower][1]))
    return sum(
        (one[0] - two[0]) * (one[1] - two[1]) < 0
        for found in between.values()
        for index, one in enumerate(found)
        for two in found[:index]
    )


def _neighbours(rows: Rows, steps: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {name: [] for row in rows for name in row}
    for upper, lower in steps:
        near[upper].append(lower)
        near[lower].append(upper)
    return near


# ---- the places in the rows


def _placed(rows: Rows, steps: Sequence[tuple[str, str]], widths: Mapping[str, float]) -> dict[str, float]:
    near = _neighbours(rows, steps)
    middles: dict[str, float] = {}
    for row in rows:
        middles |= _fitted(row, [(0.0, 1.0)] * len(row), widths)
    for _ in range(SWEEPS):
        for row in (*rows, *reversed(rows)):
            wanted = [_wanted(name, near[name], middles, widths) for name in row]
            middles |= _fitted(row, wanted, widths)
    left = min(middles[name] - widths[name] / 2 for name in middles)
    return {name: middle - left for name, middle in middles.items()}


def _wanted(
    name: str, near: Sequence[str], middles: Mapping[str, float], widths: Mapping[str, float]
) -> tuple[float, float]:
    """Say where a box or bend wants to stand, and how much. Two bends in a row pull most: long arrows are upright."""
    bend = widths[name] == BEND
    pulls = [16.0 ** (bend + (widths[other] == BEND)) for other in near]
    total = sum(pulls)
    middle = sum(middles[other] * pull for other, pull in zip(near, pulls, strict=True)) / total if near else None
    return (middles[name], 0.1) if middle is None else (middle, total)


def _fitted(row: Sequence[str], wanted: Sequence[tuple[float, float]], widths: Mapping[str, float]) -> dict[str, float]:
    """Place a row as near as possible to where its boxes want to stand, without overlaps (isotonic regression)."""
    starts = [0.0]
    for before, name in pairwise(row):
        starts.append(starts[-1] + (widths[before] + widths[name]) / 2)
    groups: list[tuple[float, float, int]] = []
    for (want, pull), start in zip(wanted, starts, strict=True):
        groups.append((want - start, pull, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (one, pull_one, size_one), (two, pull_two, size_two) = groups[-2:]
            shift = (one * pull_one + two * pull_two) / (pull_one + pull_two)
            groups[-2:] = [(shift, pull_one + pull_two, size_one + size_two)]
    shifts = [shift for shift, _, size in groups for _ in range(size)]
    return {name: shift + start for name, shift, start in zip(row, shifts, starts, strict=True)}


def _mean(values: Sequence[float], other: float) -> float:
    return sum(values) / len(values) if values else other
