"""Draw a plan: how a wait depends on the first axis of the grid, with a line for each value of the other axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from qmodel.planning.capacity import Outcome
from qmodel.planning.confidence import Estimate
from qmodel.planning.grids import Grid
from qmodel.present.durations import format_duration

COLOURS = ("#1971c2", "#e8590c", "#2f9e44", "#9c36b5", "#c92a2a", "#0c8599", "#866118", "#495057")
WIDTH, HEIGHT, LEFT, TOP, GAP = 360, 240, 64, 64, 40
"""Of a panel; left of and above the first one; and between two."""

LINE, INK = "#dee2e6", "#495057"


class _Place(NamedTuple):
    """A point of a line: its value on the axis, its estimate, and whether that is settled."""

    at: int
    value: Estimate
    settled: bool


def picture(grid: Grid, found: Sequence[Outcome], metric: str) -> str:
    """Draw the plan as SVG: a panel for each stream, an interval at each point, hollow where waits still grew.

    Durations are on a logarithmic scale. There are as many lines as colours.
    """
    streams = list(dict.fromkeys(name for one in found for name in one.streams))  # a rare one is not at each point
    labels = [str(value) for value in grid.axes[0][1]] if grid.axes else [""]
    lines = _lines(grid, found)
    height = TOP + HEIGHT + 76 + 16 * len(lines)
    width = LEFT + len(streams) * (WIDTH + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT - 48}" y="24" font-size="15">{escape(_title(metric))}</text>',
    ]
    values = [_drawn(one.streams[name][metric]) for one in found for name in one.streams]
    scale = _Scale(min(one.low for one in values), max(one.high for one in values))
    for number, stream in enumerate(streams):
        drawn = [
            [_Place(at, _drawn(o.streams[stream][metric]), o.settled) for at, o in line if stream in o.streams]
            for _, line in lines
        ]
        out += _panel(LEFT + number * (WIDTH + GAP), stream, labels, drawn, scale)
    out += _legend(grid, [name for name, _ in lines])
    return "\n".join([*out, "</svg>"]) + "\n"


def _drawn(value: Estimate) -> Estimate:
    """Give an estimate without its interval if that is not known."""
    return value if math.isfinite(value.half) else Estimate(value.mean, 0.0)


def _title(metric: str) -> str:
    kind, _, share = metric.partition("_")
    what = "Time until a job is begun" if kind == "wait" else "Time until a job is complete"
    return f"{what}, " + ("mean" if share == "mean" else f"{share[1:]} of 100 jobs within") + ", with 95 % intervals"


def _lines(grid: Grid, found: Sequence[Outcome]) -> list[tuple[str, list[tuple[int, Outcome]]]]:
    lines: dict[str, list[tuple[int, Outcome]]] = {}
    for one in found:
        name = ", ".join(f"{axis} = {value}" for axis, value in one.point.values[1:])
        at = grid.axes[0][1].index(one.point.values[0][1]) if grid.axes else 0
        lines.setdefault(name, []).append((at, one))
    return list(lines.items())[: len(COLOURS)]


class _Scale:
    """A logarithmic scale of milliseconds."""

    def __init__(self, low: float, high: float) -> None:
        self.low = math.floor(math.log10(max(low, 1.0)) * 2) / 2
        self.high = max(math.ceil(math.log10(max(high, 1.0)) * 2) / 2, self.low + 1)

    def y(self, value: float) -> float:
        """Give the y coordinate of a value; values below a millisecond are at the bottom."""
        share = (math.log10(max(value, 10**self.low)) - self.low) / (self.high - self.low)
        return TOP + HEIGHT * (1 - min(share, 1.0))

    def ticks(self) -> list[int]:
        """Give round durations within the scale."""
        known = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 60_000, 180_000, 600_000, 1_800_000, 3_600_000)
        later = (10_800_000, 43_200_000, 86_400_000, 259_200_000, 864_000_000)
        return [one for one in (*known, *later) if self.low <= math.log10(one) <= self.high]


def _panel(
    left: int, stream: str, labels: Sequence[str], lines: Sequence[Sequence[_Place]], scale: _Scale
) -> list[str]:
    def x(at: float) -> float:
        return left + WIDTH * (at + 0.5) / len(labels)

    out = [f'<text x="{left}" y="{TOP - 12}" font-weight="bold">{escape(stream)}</text>']
    for tick in scale.ticks():
        y = scale.y(tick)
        out.append(f'<path d="M{left} {y:.1f}h{WIDTH}" stroke="{LINE}"/>')
        if left == LEFT:
            said = format_duration(tick)
            out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{INK}">{said}</text>')
    for at, label in enumerate(labels):
        said = escape(label)
        out.append(f'<text x="{x(at):.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle" fill="{INK}">{said}</text>')
    for number, line in enumerate(lines):
        aside = (number - (len(lines) - 1) / 2) * min(8.0, WIDTH / len(labels) / (len(lines) + 1))
        places = [(x(one.at) + aside, one) for one in line]
        path = " ".join(f"{at:.1f},{scale.y(one.value.mean):.1f}" for at, one in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[number]}" stroke-width="1.5"/>')
        out += [_mark(at, one, scale, COLOURS[number]) for at, one in places]
    return out


def _mark(x: float, one: _Place, scale: _Scale, colour: str) -> str:
    low, mean, high = map(scale.y, (one.value.low, one.value.mean, one.value.high))
    fill = colour if one.settled else "white"
    return (
        f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-width="4" opacity="0.35"/>'
        f'<circle cx="{x:.1f}" cy="{mean:.1f}" r="3.5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
    )


def _legend(grid: Grid, names: Sequence[str]) -> list[str]:
    top = TOP + HEIGHT + 40
    axis: Any = grid.axes[0][0] if grid.axes else ""
    out = [
        f'<text x="{LEFT}" y="{top}" fill="{INK}">{escape(axis)}; hollow: waits still grew when the run ended</text>'
    ]
    for number, name in enumerate(names):
        y = top + 20 + 16 * number
        if name:
            out.append(f'<path d="M{LEFT} {y - 4}h18" stroke="{COLOURS[number]}" stroke-width="3"/>')
            out.append(f'<text x="{LEFT + 26}" y="{y}">{escape(name)}</text>')
    return out
