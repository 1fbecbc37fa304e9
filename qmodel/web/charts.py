"""The data of charts: series of the minutes of queues, and small lines."""

from __future__ import annotations

import json
from collections.abc import Sequence

from qmodel.contract import replies

SERIES = (("completed", "complete"), ("failed", "failed"), ("retried", "retried"))
"""The counts of a minute, each with its colour."""


def minutes(of_queues: Sequence[Sequence[replies.Minute]]) -> str:
    """Sum several queues by the minute, as JSON for the script."""
    sums: dict[int, list[int]] = {}
    for queue in of_queues:
        for minute in queue:
            counts = sums.setdefault(minute.at, [0, 0, 0])
            for index, (name, _) in enumerate(SERIES):
                counts[index] += getattr(minute, name)
    times = sorted(sums)
    series = [
        {"label": name, "color": color, "values": [sums[at][index] for at in times]}
        for index, (name, color) in enumerate(SERIES)
    ]
    return json.dumps({"x": [at // 1000 for at in times], "series": series}, separators=(",", ":"))


def line(values: Sequence[int], top: int, width: int = 120, height: int = 24) -> str:
    """Make the SVG path of a small line chart; the value `top` is at full height.

    >>> line([0, 2, 1], 2, 4, 4)
    'M0 4L2 0L4 2'
    """
    top = top or 1
    step = width / max(len(values) - 1, 1)
    points = (f"{index * step:.4g} {height - value * height / top:.4g}" for index, value in enumerate(values))
    return "M" + "L".join(points)
