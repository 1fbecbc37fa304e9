"""`docs/states.svg`: the states of a job as a picture.

The positions of the states are chosen by hand, so that work flows from left to right. The arrows and their labels come
from the transitions. An arrow is a quadratic curve between the edges of two boxes; its bend is chosen by hand where a
straight line would cross something.
"""

from __future__ import annotations

from html import escape
from math import hypot
from typing import NamedTuple

from tools.docs.states import Edge, drawn, legend, reached

WIDTH, HEIGHT = 1230, 590
BOX = (128, 46)
DOT = 9


class Point(NamedTuple):
    """A point of the picture, from the top left."""

    x: float
    y: float


PLACES = {
    "": Point(45, 270),
    "depends": Point(305, 80),
    "waiting": Point(510, 270),
    "scheduled": Point(305, 460),
    "running": Point(820, 270),
    "stalled": Point(820, 80),
    "failed": Point(820, 460),
    "complete": Point(1030, 270),
    "end": Point(1190, 270),
    "throttled": Point(560, 80),
}
"""The centre of each state; the empty name is the start of a job, and `end` its deletion."""

BENDS = {
    ("scheduled", "waiting"): 16.0,
    ("waiting", "scheduled"): 16.0,
    ("running", "waiting"): -34.0,
    ("running", "stalled"): 18.0,
    ("stalled", "running"): 18.0,
    ("running", "depends"): -52.0,
    ("running", "scheduled"): 52.0,
    ("failed", "waiting"): 30.0,
}
"""The distance of an arrow's middle from the straight line, to the left in its direction."""

LABELS = {
    ("", "depends"): (0.5, Point(-8, -6)),
    ("", "scheduled"): (0.5, Point(-8, 14)),
    ("", "waiting"): (0.3, Point(0, -7)),
    ("depends", "scheduled"): (0.34, Point(-8, 0)),
    ("depends", "waiting"): (0.42, Point(9, 0)),
    ("scheduled", "waiting"): (0.92, Point(-14, 2)),
    ("waiting", "scheduled"): (0.55, Point(9, 10)),
    ("running", "waiting"): (0.5, Point(0, -8)),
    ("running", "depends"): (0.6, Point(8, -8)),
    ("running", "scheduled"): (0.64, Point(0, 24)),
    ("running", "stalled"): (0.5, Point(-8, 4)),
    ("stalled", "running"): (0.5, Point(8, 4)),
    ("running", "failed"): (0.5, Point(8, 4)),
    ("failed", "waiting"): (0.12, Point(-4, 18)),
    ("waiting", "running"): (0.5, Point(0, 16)),
    ("complete", ""): (0.5, Point(4, -8)),
}
"""The position of a label along its arrow, from 0 to 1, and its offset from there."""

STYLE = """\
  text { font: 13px system-ui, sans-serif; fill: #1f2933; }
  .name { font-weight: 600; font-size: 15px; text-anchor: middle; }
  .by { paint-order: stroke; stroke: #fff; stroke-width: 4px; stroke-linejoin: round; }
  .note { fill: #52606d; }
  .box { fill: #eef4fb; stroke: #3e6fa3; stroke-width: 1.5; }
  .running { fill: #e3f6e8; stroke: #2f855a; }
  .failed, .stalled { fill: #fdecea; stroke: #b4443c; }
  .complete { fill: #f2f2f5; stroke: #61656f; }
  .arrow { fill: none; stroke: #52606d; stroke-width: 1.4; marker-end: url(#tip); }
  .dot { fill: #1f2933; }
  .ring { fill: none; stroke: #1f2933; stroke-width: 1.5; }"""


def _clip(middle: Point, toward: Point, dot: bool) -> Point:
    """Find the point where the line from the centre of a box, or of a dot, to another point leaves it."""
    dx, dy = toward.x - middle.x, toward.y - middle.y
    if dot:
        part = (DOT + 3) / hypot(dx, dy)
    else:
        half = (BOX[0] / 2 + 3, BOX[1] / 2 + 3)
        part = min(half[0] / abs(dx) if dx else 9e9, half[1] / abs(dy) if dy else 9e9)
    return Point(middle.x + dx * part, middle.y + dy * part)


class Curve(NamedTuple):
    """A quadratic curve."""

    start: Point
    control: Point
    end: Point

    def at(self, part: float) -> Point:
        """Find the point at this part of the length, from 0 to 1."""
        a, b, c = (1 - part) ** 2, 2 * part * (1 - part), part**2
        return Point(
            a * self.start.x + b * self.control.x + c * self.end.x,
            a * self.start.y + b * self.control.y + c * self.end.y,
        )


def _curve(edge: Edge) -> Curve:
    start, end = PLACES[edge.was], PLACES[edge.now or "end"]
    bend = BENDS.get((edge.was, edge.now), 0.0)
    dx, dy = end.x - start.x, end.y - start.y
    length = hypot(dx, dy)
    control = Point((start.x + end.x) / 2 + 2 * bend * dy / length, (start.y + end.y) / 2 - 2 * bend * dx / length)
    return Curve(_clip(start, control, not edge.was), control, _clip(end, control, not edge.now))


def _anchor(beside: Point) -> str:
    return "middle" if abs(beside.x) < 6 else "start" if beside.x > 0 else "end"


def _arrow(edge: Edge) -> str:
    curve = _curve(edge)
    path = "M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*curve.start, *curve.control, *curve.end)
    return f'<path class="arrow" d="{path}"/>'


def _label(edge: Edge) -> str:
    part, beside = LABELS.get((edge.was, edge.now), (0.5, Point(0, -8)))
    at = _curve(edge).at(part)
    said = escape(", ".join(edge.by))
    x, y = at.x + beside.x, at.y + beside.y
    return f'<text class="by" x="{x:.1f}" y="{y:.1f}" text-anchor="{_anchor(beside)}">{said}</text>'


def _box(state: str) -> str:
    x, y = PLACES[state]
    width, height = BOX
    return (
        f'<rect class="box {state}" x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width}" height="{height}" '
        f'rx="9"/><text class="name" x="{x:g}" y="{y + 5:g}">{state}</text>'
    )


def _dots() -> list[str]:
    begin, end = PLACES[""], PLACES["end"]
    return [
        f'<circle class="dot" cx="{begin.x}" cy="{begin.y}" r="{DOT - 2}"/>',
        f'<circle class="dot" cx="{end.x}" cy="{end.y}" r="{DOT - 4}"/>',
        f'<circle class="ring" cx="{end.x}" cy="{end.y}" r="{DOT}"/>',
    ]


def _notes() -> list[str]:
    said = legend()
    first = HEIGHT - 4 - 20 * len(said)
    return [f'<text class="note" x="40" y="{first + 20 * i}">{escape(text)}</text>' for i, text in enumerate(said)]


def svg() -> str:
    """Draw docs/states.svg."""
    edges = list(drawn())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        "<title>The states of a job</title>",
        f"<style>\n{STYLE}\n</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0 L10 5 L0 10 z" fill="#52606d"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="#fff"/>',
        *map(_arrow, edges),
        *map(_box, reached()),
        *_dots(),
        *map(_label, edges),
        *_notes(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
