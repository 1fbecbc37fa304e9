"""The bins of the stored histograms, merged into readable rows."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from qmodel.present.durations import format_duration

M, H, D = 60, 3600, 86_400

EDGES: tuple[int, ...] = (0, 1, 2, 5, 10, 20, 30, M, 2 * M, 5 * M, 15 * M, 30 * M, H, 3 * H, 6 * H, 12 * H)
EDGES = (*EDGES, D, 2 * D, 3 * D, 7 * D, 14 * D, 30 * D)
"""The starts of the rows, in seconds; each is the start of a stored bin, too."""


def bin_starts() -> list[int]:
    """Give the second at which each bin of the stored histogram begins."""
    return [
        *range(M),
        *range(M, H, M),
        *range(H, D, 900),
        *range(D, 3 * D, H),
        *range(3 * D, 31 * D, D),
    ]


def rows(histogram: tuple[int, ...]) -> list[tuple[str, int]]:
    """Merge the stored bins into rows, from the first row that is not empty to the last."""
    counts = [0] * len(EDGES)
    for start, count in zip(bin_starts(), histogram, strict=True):
        counts[bisect_right(EDGES, start) - 1] += count
    filled = [index for index, count in enumerate(counts) if count]
    if not filled:
        return []
    labels = [f"{_short(a)} to {_short(b)}" for a, b in pairwise(EDGES)]
    labels = ["under 1 s", *labels[1:], f"over {_short(EDGES[-1])}"]
    return list(zip(labels, counts, strict=True))[filled[0] : filled[-1] + 1]


def _short(seconds: int) -> str:
    return format_duration(seconds * 1000)
