"""The statistics of a queue, drawn with text."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from qmodel.contract import replies
from qmodel.present.durations import format_duration
from qmodel.present.histogram import EDGES, bin_starts, rows
from qmodel.present.numbers import counted

WIDTH = 40


FINE_EDGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""The starts, in milliseconds, of the rows of a finer histogram."""


def fine_rows(durations: Sequence[int]) -> list[tuple[str, int]]:
    """Count durations below a second by row, from the first row that is not empty to the last."""
    counts = [0] * len(FINE_EDGES)
    for duration in durations:
        counts[bisect_right(FINE_EDGES, duration) - 1] += 1
    filled = [index for index, count in enumerate(counts) if count]
    if not filled:
        return []
    labels = ["under 1 ms", *(f"{a} to {b} ms" for a, b in pairwise(FINE_EDGES[1:])), "over 1 s"]
    return list(zip(labels, counts, strict=True))[filled[0] : filled[-1] + 1]


def of(stats: replies.Stats, waits: Sequence[int] = (), runs: Sequence[int] = (), part: str = "") -> str:
    """Draw the statistics of a queue on a day, or those of a part of it, which has no failures.

    The stored histogram does not divide the first second. Single `waits` and `runs`, in milliseconds, are drawn there.
    """
    day = datetime.fromtimestamp(stats.day / 1000, UTC).date()
    lines = [
        f"{stats.queue} on {day} (UTC), {part}"
        if part
        else f"{stats.queue} on {day} (UTC): {counted(stats.failures, 'failure')}, "
        f"{stats.failed:,} of them still failed, {counted(stats.retries, 'retry', 'retries')}"
    ]
    for name, sample, some in (("wait", stats.wait, waits), ("run", stats.run, runs)):
        lines += ["", *_sample(name, sample, some)]
    return "\n".join(lines)


def _sample(name: str, sample: replies.Sample, some: Sequence[int]) -> list[str]:
    if not sample.count:
        return [f"{name}  no job yet"]
    mean, std = format_duration(sample.mean), format_duration(sample.std)
    lines = [f"{name}  {counted(sample.count, 'job')}, mean {mean}, standard deviation {std}"]
    if not sample.histogram:
        return [*lines, "  The histogram of that day is no longer kept (option histogram-history)."]
    found = rows(sample.histogram)
    if some and found[-1][0] == "under 1 s":
        found = fine_rows(some)
        if len(some) < sample.count:
            lines.append(f"  the last {len(some):,} of them, from their events:")
    most = max(count for _, count in found)
    every = sum(count for _, count in found)
    return lines + [f"  {label:>16} {bar(count / most)} {count:,} ({count / every:.0%})" for label, count in found]


def bar(part: float, width: int = WIDTH) -> str:
    """Draw a bar that fills a part of the width, to an eighth of a character.

    >>> bar(0.5, 4).replace('█', '#'), bar(0, 4)
    ('##  ', '    ')
    """
    if not _blocks():
        return ("#" * round(part * width)).ljust(width)
    whole, rest = divmod(max(round(part * width * 8), 1) if part > 0 else 0, 8)
    return ("█" * whole + " ▏▎▍▌▋▊▉"[rest]).rstrip().ljust(width)


def _blocks() -> bool:
    try:
        "█▏".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


__all__ = ["EDGES", "bar", "bin_starts", "fine_rows", "of", "rows"]
