"""Draw a page of small plots as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

COLOURS = {"model": "#2a6fb0", "server": "#c0392b"}
WIDTH, HEIGHT, COLUMNS = 170, 110, 6
TOP = 46


def panels(
    found: dict[str, dict[str, list[float]]],
    ticks: Sequence[str],
    title: str,
    colours: dict[str, str] = COLOURS,
) -> str:
    """Draw a panel for each name with a line for each series; all share one logarithmic scale."""
    values = [value for series in found.values() for line in series.values() for value in line]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    rows, columns = -(-len(found) // COLUMNS), min(len(found), COLUMNS)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * WIDTH}" height="{rows * HEIGHT + TOP}" '
        'font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="14">{escape(title)}</text>',
    ]
    for i, (name, colour) in enumerate(colours.items()):
        out.append(f'<text x="{10 + 60 * i}" y="36" fill="{colour}">{name}</text>')
    for i, (name, series) in enumerate(found.items()):
        out += _panel(i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT + TOP, name, series, ticks, (low, high), colours)
    return "\n".join([*out, "</svg>"]) + "\n"


def _panel(
    left: float,
    top: float,
    name: str,
    series: dict[str, list[float]],
    ticks: Sequence[str],
    scale: tuple[float, float],
    colours: dict[str, str],
) -> list[str]:
    low, high = (math.log10(end) for end in scale)
    x0, x1, y0, y1 = left + 38, left + WIDTH - 16, top + HEIGHT - 22, top + 18

    def x(i: int) -> float:
        return x0 + (x1 - x0) * i / max(len(ticks) - 1, 1)

    def y(value: float) -> float:
        return y0 + (y1 - y0) * (math.log10(value) - low) / (high - low)

    out = [f'<text x="{x0}" y="{top + 12}" font-weight="bold">{escape(name)}</text>']
    for power in range(round(low), round(high) + 1):
        out.append(f'<path d="M{x0} {y(10**power):.1f}H{x1}" stroke="#ddd"/>')
        out.append(f'<text x="{x0 - 4}" y="{y(10**power) + 3:.1f}" text-anchor="end" fill="#777">{10**power:g}</text>')
    for i, tick in enumerate(ticks):
        out.append(f'<text x="{x(i):.1f}" y="{y0 + 13}" text-anchor="middle" fill="#777" font-size="8">{tick}</text>')
    for where, line in series.items():
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(line))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colours[where]}" stroke-width="1.5"/>')
        out += [f'<circle cx="{x(i):.1f}" cy="{y(v):.1f}" r="2" fill="{colours[where]}"/>' for i, v in enumerate(line)]
    return out
