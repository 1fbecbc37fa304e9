"""Draw an audit: the parts of the journals between two states, and when which process executed each part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, ROW = 760, 90, 20, 26
BLUES, OTHERS = ("#1c7ed6", "#4dabf7"), ("#2b8a3e", "#8ce99a")
WRONG = "#c92a2a"


class Bar(NamedTuple):
    """A part of a journal: its entries, which process executed it from when to when, and the entries that differ."""

    namespace: str
    after: int
    entries: int
    process: int
    begins: float
    ends: float
    wrong: Sequence[int]


def picture(bars: Sequence[Bar], told: str) -> str:
    """Draw the picture from the output of an audit."""
    spaces = sorted(
        {bar.namespace for bar in bars}, key=lambda name: -sum(b.entries for b in bars if b.namespace == name)
    )
    workers = sorted({bar.process for bar in bars})
    lower = 74 + len(spaces) * ROW + 40
    height = lower + len(workers) * ROW + 42
    entries = sum(bar.entries for bar in bars)
    begins, ends = min(bar.begins for bar in bars), max(bar.ends for bar in bars)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{entries:,} operations of a server, executed once more by '
        f"{len(workers)} processes of Spark</text>",
        f'<text x="{LEFT}" y="44" fill="{WRONG}">{escape(told)}</text>',
        *_journals(bars, spaces),
        *_tasks(bars, spaces, workers, lower, (begins, ends)),
    ]
    return "\n".join([*out, "</svg>"]) + "\n"


def _colour(bar: Bar, bars: Sequence[Bar], spaces: Sequence[str]) -> str:
    """Choose alternating colours for the segments of a namespace."""
    place = sorted(one.after for one in bars if one.namespace == bar.namespace).index(bar.after)
    return (BLUES if bar.namespace == spaces[0] else OTHERS)[place % 2]


def _box(left: float, right: float, top: float, colour: str) -> str:
    width = max(right - left, 1)
    return f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{ROW - 8}" fill="{colour}"/>'


def _label(left: float, right: float, top: float, text: str) -> Iterator[str]:
    if right - left > 7 * len(text):
        yield f'<text x="{left + 6:.1f}" y="{top + 13}" fill="white">{text}</text>'


def _journals(bars: Sequence[Bar], spaces: Sequence[str]) -> Iterator[str]:
    most = max(bar.after + bar.entries for bar in bars)
    yield f'<text x="{LEFT}" y="68" fill="#777">the journals, in segments between states of the server</text>'
    for row, space in enumerate(spaces):
        top = 74 + row * ROW
        yield f'<text x="{LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(space)}</text>'
        for bar in (one for one in bars if one.namespace == space):
            left, right = (LEFT + (WIDTH - LEFT - RIGHT) * n / most for n in (bar.after, bar.after + bar.entries))
            yield _box(left, right, top, _colour(bar, bars, spaces))
            yield from _label(left, right, top, f"{bar.entries:,}")
    for number, space in ((number, bar.namespace) for bar in bars for number in bar.wrong):
        at = LEFT + (WIDTH - LEFT - RIGHT) * number / most
        top = 74 + spaces.index(space) * ROW
        yield f'<path d="M{at:.1f} {top - 4}v{ROW}" stroke="{WRONG}" stroke-width="3"/>'


def _tasks(
    bars: Sequence[Bar], spaces: Sequence[str], workers: Sequence[int], top: int, span: tuple[float, float]
) -> Iterator[str]:
    begins, ends = span
    scale: Any = (WIDTH - LEFT - RIGHT) / (ends - begins)
    yield f'<text x="{LEFT}" y="{top - 8}" fill="#777">who executed them, by seconds</text>'
    for bar in bars:
        row = top + workers.index(bar.process) * ROW
        left, right = (LEFT + scale * (at - begins) for at in (bar.begins, bar.ends))
        yield _box(left, right, row, _colour(bar, bars, spaces))
        yield from _label(left, right, row, f"{bar.namespace} {bar.after + 1:,} …")
    for place in range(len(workers)):
        yield f'<text x="{LEFT - 8}" y="{top + place * ROW + 13}" text-anchor="end">process {place + 1}</text>'
    step = max(round((ends - begins) / 8), 1)
    for second in range(0, int(ends - begins) + 1, step):
        at, bottom = LEFT + scale * second, top + len(workers) * ROW
        yield f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#777">{second}</text>'
