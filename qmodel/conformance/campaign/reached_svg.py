"""A picture of what a campaign reached: operations that name jobs, by the situation of the job, and how often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from html import escape

from qmodel.conformance.campaign.reached import ANY, Reached, pairs
from qmodel.conformance.histories.matrix import SITUATIONS

CELL, ROW, LEFT, TOP = 52, 15, 130, 120
COLUMNS = tuple(one for one in SITUATIONS if one != ANY)
NEVER, LEAST, MOST = "#ffc9c9", (231, 245, 255), (24, 100, 171)
INK = "#495057"


def picture(reached: Mapping[Reached, int], title: str) -> str:
    """Draw the picture, as SVG. Darker cells were tried more often, on a logarithmic scale; red cells never."""
    times: Counter[tuple[str, str]] = Counter()
    for one, count in reached.items():
        times[one.operation, one.situation] += count
    rows = sorted({operation for operation, situation in pairs() if situation != ANY})
    most = math.log1p(max(times.values(), default=1))
    width, height = LEFT + CELL * len(COLUMNS) + 40, TOP + ROW * len(rows) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="13">{escape(title)}</text>',
    ]
    for column, situation in enumerate(COLUMNS):
        x = LEFT + CELL * column + CELL / 2
        said = escape(situation)
        out.append(f'<text transform="translate({x} {TOP - 8}) rotate(-35)" fill="{INK}">{said}</text>')
    for number, operation in enumerate(rows):
        y = TOP + ROW * number
        out.append(f'<text x="{LEFT - 6}" y="{y + 11}" text-anchor="end" fill="{INK}">{operation}</text>')
        counts = (times[operation, situation] for situation in COLUMNS)
        out += [_cell(LEFT + CELL * column, y, count, most) for column, count in enumerate(counts)]
    return "\n".join([*out, "</svg>"]) + "\n"


def _cell(x: int, y: int, count: int, most: float) -> str:
    share = math.log1p(count) / most
    mixed = (round(one + (other - one) * share) for one, other in zip(LEAST, MOST, strict=True))
    fill = f"rgb({','.join(map(str, mixed))})" if count else NEVER
    ink = "white" if share > 0.6 else INK
    return (
        f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{ROW - 1}" fill="{fill}"/>'
        f'<text x="{x + CELL / 2}" y="{y + 10.5}" text-anchor="middle" font-size="9" fill="{ink}">{count or ""}</text>'
    )
