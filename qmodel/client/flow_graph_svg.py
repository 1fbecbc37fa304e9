"""The graph of a flow as SVG.

Boxes stand in layers from left to right. An edge that crosses layers has a lane in each of them, so that no arrow runs
behind a box. Each layer is ordered by the positions of the boxes that lead to it, which brings connected jobs together.
Every part has a class, so that a page can set its own colours.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from itertools import pairwise
from typing import NamedTuple

from qmodel.client.flow_jobs import COLOURS, DASHES, FlowJobs, Node, label
from qmodel.contract.arguments import Edge

WIDTH, HEIGHT, GAP, ROOM, LANE = 168, 54, 84, 22, 8
"""Width and height of a box, gaps between boxes across and down, and height of a lane, in units of the picture."""

CHARACTERS = 20
"""How many characters fit into a box."""

LABELS = 4
"""Labels of edges are drawn for boxes with at most so many incoming edges: there is no room for more."""

LINE = "#495057"


class Slot(NamedTuple):
    """A position in a layer: a job's box, or the lane of an edge."""

    layer: int
    one: str
    other: str = ""


class _Layout:
    """The positions of all boxes and lanes."""

    def __init__(self, graph: FlowJobs) -> None:
        layers = graph.layers()
        depth = {jid: level for level, layer in enumerate(layers) for jid in layer}
        self.ways: dict[tuple[str, str], list[Slot]] = {}
        slots: list[list[Slot]] = [[Slot(level, jid) for jid in layer] for level, layer in enumerate(layers)]
        for one, other in graph.known():
            lanes = [Slot(level, one, other) for level in range(depth[one] + 1, depth[other])]
            self.ways[one, other] = [Slot(depth[one], one), *lanes, Slot(depth[other], other)]
            for lane in lanes:
                slots[lane.layer].append(lane)
        _order(slots, self.ways)
        tall = [sum(_height(slot) + ROOM for slot in layer) for layer in slots]
        self.width, self.height = len(slots) * (WIDTH + GAP), max(tall, default=0) + ROOM
        self.middles: dict[Slot, int] = {}
        for layer, size in zip(slots, tall, strict=True):
            y = (self.height - size + ROOM) // 2
            for slot in layer:
                self.middles[slot] = y + _height(slot) // 2
                y += _height(slot) + ROOM


def _height(slot: Slot) -> int:
    return LANE if slot.other else HEIGHT


def _order(slots: list[list[Slot]], ways: dict[tuple[str, str], list[Slot]]) -> None:
    """Order each layer by the average position of what leads to each slot."""
    before: dict[Slot, list[Slot]] = {}
    for way in ways.values():
        for one, other in pairwise(way):
            before.setdefault(other, []).append(one)
    place = {slot: at for at, slot in enumerate(slots[0])} if slots else {}
    for layer in slots[1:]:
        layer.sort(key=lambda slot: sum(place[one] for one in before[slot]) / len(before[slot]))
        place |= {slot: at for at, slot in enumerate(layer)}


def draw(graph: FlowJobs, link: Callable[[str], str] | None = None) -> str:
    """Draw the whole picture. Each box links to the address that `link` gives for its job."""
    at = _Layout(graph)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow" viewBox="0 0 {at.width} {at.height}" width="{at.width}"'
        f' height="{at.height}" font-family="system-ui, sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
        f' orient="auto"><path class="tip" d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
        f'<rect class="paper" width="{at.width}" height="{at.height}" fill="#fff"/>',
    ]
    ends = {jid: [pair for pair in at.ways if pair[1] == jid] for jid in graph.nodes}
    for pairs in ends.values():
        pairs.sort(key=lambda pair: at.middles[at.ways[pair][-2]])
        for number, pair in enumerate(pairs, 1):
            down = at.middles[at.ways[pair][-1]] - HEIGHT // 2 + HEIGHT * number // (len(pairs) + 1)
            said = label(graph.edges[pair]) if len(pairs) <= LABELS else ""
            parts.append(_arrow(at, pair, down, graph.edges[pair], said))
    for level, layer in enumerate(graph.layers()):
        boxes = ((jid, _box(graph.nodes[jid], *_corner(at, Slot(level, jid)))) for jid in layer)
        parts += [_linked(box, link(jid)) if link is not None else box for jid, box in boxes]
    return "\n".join([*parts, "</svg>", ""])


def _linked(box: str, where: str) -> str:
    return f'<a href="{escape(where)}">{box}</a>'


def _corner(at: _Layout, slot: Slot) -> tuple[int, int]:
    """Give the upper left corner of a box, or the start of a lane."""
    return GAP // 2 + slot.layer * (WIDTH + GAP), at.middles[slot] - _height(slot) // 2


def _box(node: Node, x: int, y: int) -> str:
    middle = x + WIDTH // 2
    return (
        f'<g class="job {node.state}"><title>{escape(node.jid)}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{COLOURS[node.state]}" stroke="{LINE}"/>'
        f'<text x="{middle}" y="{y + 17}" text-anchor="middle" font-weight="600">{_short(node.klass or "?")}</text>'
        f'<text x="{middle}" y="{y + 32}" text-anchor="middle" class="faint" fill="{LINE}">{_short(node.jid)}</text>'
        f'<text x="{middle}" y="{y + 47}" text-anchor="middle">{node.state}</text></g>'
    )


def _arrow(at: _Layout, pair: tuple[str, str], down: int, edge: Edge, said: str) -> str:
    """Draw an arrow from box to box along its lanes, ending at height `down`, and its label."""
    way = at.ways[pair]
    x, y = _corner(at, way[0])[0] + WIDTH, at.middles[way[0]]
    path = f"M{x} {y}"
    for slot in way[1:]:
        left, middle = _corner(at, slot)[0], at.middles[slot] if slot.other else down
        path += f"C{x + GAP // 2} {y} {left - GAP // 2} {middle} {left} {middle}"
        if slot.other:
            path += f"H{left + WIDTH}"
        x, y = left + WIDTH, middle
    dashes = f' stroke-dasharray="{DASHES[edge.on_failure]}"' if DASHES[edge.on_failure] else ""
    arrow = f'<path class="edge" d="{path}" fill="none" stroke="{LINE}"{dashes} marker-end="url(#tip)"/>'
    if not said:
        return arrow
    x -= WIDTH
    return arrow + (
        f'<text class="faint" x="{x - 10}" y="{y - 3}" text-anchor="end" font-size="10" fill="{LINE}">'
        f"{_short(said)}</text>"
    )


def _short(text: str) -> str:
    return escape(text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "\u2026")
