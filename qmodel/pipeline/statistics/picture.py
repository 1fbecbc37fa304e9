"""Draw how long jobs waited and ran: a line for each name, on a logarithmic scale of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from qmodel.pipeline.statistics.figures import Durations, Figures, Name
from qmodel.present.durations import format_duration
from qmodel.present.numbers import counted

COLOURS = {"wait": "#2a6fb0", "run": "#2e8b57"}
TICKS = (1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 86_400_000, 864_000_000, 8_640_000_000)
LEFT, WIDTH, ROW, TOP, RIGHT = 190, 620, 44, 52, 90


def svg(found: Sequence[tuple[Name, Figures]], title: str) -> str:
    """Draw figures: a bar from the 50th to the 95th percentile, a line to the 99th, a dot for the maximum."""
    longest = max((one.high for _, figures in found for one in (figures.wait, figures.run)), default=1)
    ticks = TICKS[: sum(tick < longest for tick in TICKS) + 1]
    height = TOP + ROW * len(found) + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>',
        f'<text x="10" y="40"><tspan fill="{COLOURS["wait"]}">waited</tspan> and '
        f'<tspan fill="{COLOURS["run"]}">ran</tspan>: bar from the 50th to the 95th percentile, '
        "line to the 99th, dot for the longest</text>",
    ]
    for tick in ticks:
        x = _x(tick, ticks[-1])
        out.append(f'<path d="M{x:.1f} {TOP}V{height - 24}" stroke="#ddd"/>')
        out.append(
            f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle" fill="#777">{format_duration(tick)}</text>'
        )
    for row, (name, figures) in enumerate(found):
        top = TOP + ROW * row
        out.append(f'<text x="{LEFT - 12}" y="{top + 26}" text-anchor="end">{escape(_short(name.name))}</text>')
        out += _line(top + 15, COLOURS["wait"], figures.wait, ticks[-1])
        out += _line(top + 31, COLOURS["run"], figures.run, ticks[-1])
    return "\n".join([*out, "</svg>"]) + "\n"


def _short(text: str, most: int = 26) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _x(ms: float, most: int) -> float:
    return LEFT + WIDTH * math.log10(max(ms, 1)) / math.log10(max(most, 10))


def _line(y: int, colour: str, one: Durations, most: int) -> list[str]:
    if not one.count:
        return []
    half, nearly, almost = (_x(one.percentiles[share], most) for share in (50, 95, 99))
    end = _x(one.high, most)
    return [
        f'<path d="M{nearly:.1f} {y}H{almost:.1f}" stroke="{colour}" stroke-width="2"/>',
        f'<rect x="{half:.1f}" y="{y - 5}" width="{max(nearly - half, 2):.1f}" height="10" rx="2" fill="{colour}"/>',
        f'<circle cx="{end:.1f}" cy="{y}" r="2.5" fill="{colour}"/>',
        f'<text x="{LEFT + WIDTH + 12}" y="{y + 4}" fill="{colour}">{counted(one.count, "job")}</text>',
    ]
