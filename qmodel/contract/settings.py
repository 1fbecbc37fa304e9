"""The options of a namespace: default, range, unit and purpose of each.

Values are whole numbers. Durations are milliseconds here and on the wire; the documents of qless, and the Python API,
use seconds. A value that nobody has set is not stored.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DAY = 86_400_000


YEAR = 366 * DAY


class Option(NamedTuple):
    """An option: its default, its range, its unit, and its purpose."""

    default: int
    low: int
    high: int
    unit: str
    purpose: str


OPTIONS: dict[str, Option] = {
    "heartbeat": Option(60_000, 0, YEAR, "ms", "How long a lease lasts without a heartbeat."),
    "grace-period": Option(
        10_000, 0, YEAR, "ms", "How long the owner keeps a lapsed lease before a pop takes the job."
    ),
    "fair": Option(0, 0, 1, "(1: yes)", "Whether the fair keys of the jobs that become ready take turns."),
    "aging": Option(0, 0, YEAR, "ms", "In how long a waiting job's priority improves by one level; 0: never."),
    "jobs-history": Option(7 * DAY, 0, 10 * YEAR, "ms", "How long complete jobs are kept."),
    "jobs-history-count": Option(50_000, 0, 10**9, "jobs", "How many complete jobs are kept."),
    "failed-history": Option(0, 0, 10 * YEAR, "ms", "How long failed jobs are kept; 0: forever."),
    "failed-history-count": Option(0, 0, 10**9, "jobs", "How many failed jobs are kept; 0: all."),
    "requests-history": Option(7 * DAY, 0, 10 * YEAR, "ms", "How long requests that have ended are kept."),
    "stats-history": Option(30, 0, 3660, "days", "How many days before today statistics are kept."),
    "histogram-history": Option(7, 0, 3660, "days", "How many days before today histograms are shown."),
    "stats-tags": Option(100, 0, 200, "tags", "By how many tags waits and runs of a queue are counted a day."),
    "stats-workers": Option(0, 0, 200, "workers", "By how many workers they are counted; 0 costs least."),
    "metrics-history": Option(1440, 0, 10_080, "minutes", "How many minutes before this one metrics are kept."),
    "messages-history": Option(
        7 * DAY, 0, 10 * YEAR, "ms", "How long published messages are kept for later subscribers."
    ),
    "messages-history-count": Option(1000, 0, 10**6, "messages", "How many published messages are kept."),
    "max-job-history": Option(100, 4, 1000, "stages", "How many stages a history keeps: the first and the newest."),
    "max-worker-age": Option(DAY, 0, 10 * YEAR, "ms", "How long a silent worker without jobs stays on the list."),
    "max-events": Option(10_000, 1, 10**7, "events", "How many events are kept."),
    "journal": Option(0, 0, 1, "(1: yes)", "Whether operations that may change something are recorded in the journal."),
    "max-journal": Option(100_000, 0, 10**7, "entries", "How many entries of the journal are kept."),
}


DEFAULTS: Final = {name: option.default for name, option in OPTIONS.items()}
"""The default value of each option."""


PER_QUEUE: Final = ("heartbeat", "fair", "aging")
"""The options that a queue may have for itself: `heartbeat-<queue>` overrides `heartbeat` for one queue."""


def meant_by(name: str) -> str | None:
    """The option that a name sets, for all queues or for one; None if there is none."""
    for option in PER_QUEUE:
        if name.startswith(option + "-") and len(name) > len(option) + 1:
            return option
    return name if name in OPTIONS else None
