"""`docs/architecture.svg`: the rooms as boxes by floor, and the arrows between them with the number of imports.

Arrows that follow from others are left out: a room that uses the client may use the contract as well. The table in
docs/architecture.md has all of them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import groupby, pairwise

from tools.architecture import imports
from tools.architecture.layout import Layout, laid_out, needed
from tools.architecture.rooms import FLOORS, ROOMS

BOX = (118, 40)
CELL = 144
PORT = 25
ROW, STOREY = 74, 16
LEFT, TOP = 200, 16

GROUND = [name for name, room in ROOMS.items() if room.floor == 1]
"""The rooms that every room may use: they have no arrows."""

STYLE = """\
  text { font: 12px system-ui, sans-serif; fill: #52606d; }
  .name { font-weight: 600; font-size: 15px; fill: #1f2933; text-anchor: middle; }
  .size { font-size: 11px; text-anchor: middle; }
  .count { paint-order: stroke; stroke-width: 4px; stroke-linejoin: round; fill: #1f2933; }
  .floor { font-weight: 600; font-size: 13px; }
  .even { fill: #f5f7fa; } .odd { fill: #fff; }
  .count.even { stroke: #f5f7fa; fill: #1f2933; } .count.odd { stroke: #fff; fill: #1f2933; }
  .box { fill: #eef4fb; stroke: #3e6fa3; stroke-width: 1.5; }
  .arrow { fill: none; stroke: #7b8794; stroke-width: 1.4; }
  .tip { marker-end: url(#tip); }"""


@cache
def counted() -> Counter[tuple[str, str]]:
    """Count the imports from room to room as they are now."""
    return imports.arrows(imports.graph())


@cache
def sizes() -> Counter[str]:
    """Count the modules of each room."""
    return Counter(map(imports.room_of, imports.sources()))


def rows() -> dict[tuple[int, int], list[str]]:
    """Give the rooms by floor and by row of that floor, from the top. In a floor, users stand above what they use."""
    found: dict[tuple[int, int], list[str]] = {}
    for name in _above():
        found.setdefault((ROOMS[name].floor, _level(name)), []).append(name)
    return dict(sorted(found.items(), reverse=True)) | {(1, 1): GROUND}


def _above() -> dict[str, set[str]]:
    """Give the rooms above the ground floor, and what each uses of them."""
    return {name: set(room.uses.difference(GROUND)) for name, room in ROOMS.items() if name not in GROUND}


def _level(name: str) -> int:
    beside = [used for used in ROOMS[name].uses if ROOMS[used].floor == ROOMS[name].floor]
    return 1 + max(map(_level, beside), default=0)


def layout() -> Layout:
    """Say where each room stands."""
    return laid_out(list(rows().values()), needed(_above()), CELL)


def svg() -> str:
    """The text of docs/architecture.svg."""
    found = layout()
    heights = _heights()
    width = round(LEFT + max(found.middles.values()) + CELL / 2)
    height = heights[-1] + ROW // 2 + STOREY
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}">',
            "<title>The rooms of qmodel, and which imports which</title>",
            f"<style>\n{STYLE}\n</style>",
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#7b8794"/></marker></defs>',
            f'<rect width="{width}" height="{height}" rx="12" fill="#fff"/>',
            *_floors(width),
            *(_arrow(found, route) for route in found.routes.values()),
            *(_count(found, pair) for pair in found.routes),
            *(_box(found, name) for name in ROOMS),
            "</svg>\n",
        ]
    )


def _heights() -> list[int]:
    """The middles of the rows, from the top."""
    found, at = [], TOP - ROW // 2
    for (above, _), (floor, _) in pairwise([(0, 0), *rows()]):
        at += ROW + (STOREY if above not in (0, floor) else 0)
        found.append(at)
    return found


def _at(found: Layout, name: str) -> tuple[float, int]:
    row = next(index for index, names in enumerate(found.rows) if name in names)
    return LEFT + found.middles[name], _heights()[row]


def _points(found: Layout, route: list[str]) -> list[tuple[float, int]]:
    """The points of an arrow. At a box its ends stand beside those of the box's other arrows."""
    points = [_at(found, name) for name in route]
    leave = [one[1] for one in found.routes.values() if one[0] == route[0]]
    arrive = [one[-2] for one in found.routes.values() if one[-1] == route[-1]]
    for index, others, name in ((0, leave, route[1]), (-1, arrive, route[-2])):
        others.sort(key=lambda one: _at(found, one)[0])
        x, y = points[index]
        points[index] = (x + PORT * (others.index(name) - (len(others) - 1) / 2), y)
    return points


def _floors(width: int) -> list[str]:
    parts = []
    middles = zip(rows(), _heights(), strict=True)
    for floor, members in groupby(middles, lambda one: one[0][0]):
        heights = [height for _, height in members]
        top, bottom = heights[0] - (ROW + STOREY) / 2, heights[-1] + (ROW + STOREY) / 2
        parts.append(f'<rect class="{_shade(floor)}" y="{top:g}" width="{width}" height="{bottom - top:g}"/>')
        first, _, rest = f"{floor}  {FLOORS[floor]}".partition(", ")
        parts.append(f'<text class="floor" x="18" y="{top + 24:g}">{first}{"," if rest else ""}</text>')
        parts += [f'<text class="floor" x="30" y="{top + 41:g}">{rest}</text>'] if rest else []
    return parts


def _shade(floor: int) -> str:
    return "odd" if floor % 2 else "even"


def _box(found: Layout, name: str) -> str:
    x, y = _at(found, name)
    width, height = BOX
    size = sizes()[name]
    return (
        f'<rect class="box" x="{x - width / 2:.1f}" y="{y - height / 2:g}" width="{width}" height="{height}" rx="8"/>'
        f'<text class="name" x="{x:.1f}" y="{y - 1:g}">{name}</text>'
        f'<text class="size" x="{x:.1f}" y="{y + 13:g}">{size} {"module" if size == 1 else "modules"}</text>'
    )


def _arrow(found: Layout, route: list[str]) -> str:
    """A curve from the bottom of a box to the top of another, upright in each row between."""
    points = _points(found, route)
    half = BOX[1] / 2
    path = f"M{points[0][0]:.1f} {points[0][1] + half:g}"
    for (x1, y1), (x2, y2) in pairwise(points):
        begin, end = y1 + half, y2 - half - (2 if (x2, y2) == points[-1] else 0)
        middle = (begin + end) / 2
        path += f" C{x1:.1f} {middle:g} {x2:.1f} {middle:g} {x2:.1f} {end:g}"
        if (x2, y2) != points[-1]:
            path += f" L{x2:.1f} {y2 + half:g}"
    return f'<path class="arrow tip" d="{path}"/>'


def _count(found: Layout, pair: tuple[str, str]) -> str:
    """The number of imports, beside the tip of the arrow."""
    x, y = _points(found, found.routes[pair])[-1]
    shade = _shade(ROOMS[pair[1]].floor)
    return f'<text class="count {shade}" x="{x + 6:.1f}" y="{y - BOX[1] / 2 - 5:g}">{counted()[pair]}</text>'
