"""`docs/overview.svg`: how an application, the backends and the workers of qmodel fit together."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 960, 300

STYLE = """\
  text { font: 14px system-ui, sans-serif; fill: #1f2933; text-anchor: middle; }
  .name { font-weight: 600; font-size: 15px; }
  .code { font-family: ui-monospace, monospace; font-size: 13px; }
  .note { fill: #52606d; font-size: 13px; }
  .box { fill: #eef4fb; stroke: #3e6fa3; stroke-width: 1.5; }
  .model { fill: #e3f6e8; stroke: #2f855a; }
  .check { fill: #fff8e6; stroke: #a06a00; stroke-dasharray: 5 4; }
  .arrow { fill: none; stroke: #52606d; stroke-width: 1.4; marker-end: url(#tip); }
  .both { marker-start: url(#tip); }"""


class Box(NamedTuple):
    """A box with a name and lines below it; `x` and `y` are its top left corner."""

    x: int
    y: int
    width: int
    height: int
    kind: str
    name: str
    lines: tuple[str, ...]


BOXES = (
    Box(20, 105, 190, 90, "", "Your application", ("typed jobs", "send_email.put(...)")),
    Box(330, 20, 300, 70, "model", "memory://", ("the reference model, in your process", "for tests and development")),
    Box(330, 115, 300, 70, "check", "Conformance suite", ("compares replies, refusals, events", "and the whole state")),
    Box(330, 210, 300, 70, "", "redis://", ("one Lua function library", "in production: Redis or Valkey")),
    Box(750, 105, 190, 90, "", "Workers", ("qmodel worker jobs:app", "leases, retries, signals")),
)

ARROWS = (
    ("M210 135 C250 135 270 55 324 55", ""),
    ("M210 165 C250 165 270 245 324 245", ""),
    ("M636 55 C680 55 700 135 744 135", "both"),
    ("M636 245 C680 245 700 165 744 165", "both"),
    ("M480 113 V96", ""),
    ("M480 187 V204", ""),
)


def _text(x: float, y: float, kind: str, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _line_kind(line: str) -> str:
    return "code" if "(" in line or line.startswith("qmodel ") else "note"


def _box(box: Box) -> str:
    middle = box.x + box.width / 2
    shape = f'<rect class="box {box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="9"/>'
    first = box.y + (box.height - 20 * len(box.lines)) / 2 + 7
    texts = (_text(middle, first + 20 * (i + 1), _line_kind(line), line) for i, line in enumerate(box.lines))
    return "\n".join((shape, _text(middle, first, "name", box.name), *texts))


def svg() -> str:
    """Write the text of docs/overview.svg."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">',
        "<title>How qmodel fits together</title>",
        f"<style>\n{STYLE}\n</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"',
        'orient="auto-start-reverse"><path d="M0 0 L10 5 L0 10 z" fill="#52606d"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="#fff"/>',
        *(f'<path class="arrow {kind}" d="{path}"/>' for path, kind in ARROWS),
        *map(_box, BOXES),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
