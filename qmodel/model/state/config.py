"""Configuration: the options of the documents, and the few more that are needed.

Values are whole numbers. Durations are milliseconds here and on the wire (the documents speak of seconds; so does the
Python API). What nobody set is not stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from qmodel.contract.refusals import refuse

if TYPE_CHECKING:
    from qmodel.model.state.store import Store

DAY = 86_400_000
YEAR = 366 * DAY


class Option(NamedTuple):
    """An option: its default, its range, its unit, and what it is for."""

    default: int
    low: int
    high: int
    unit: str
    purpose: str


OPTIONS: dict[str, Option] = {
    "heartbeat": Option(60_000, 1, YEAR, "ms", "How long a lease lasts without a heartbeat."),
    "grace-period": Option(10_000, 0, YEAR, "ms", "How long a lapsed lease stays its owner's before a pop takes it."),
    "jobs-history": Option(7 * DAY, 0, 10 * YEAR, "ms", "How long complete jobs are kept."),
    "jobs-history-count": Option(50_000, 0, 10**9, "jobs", "How many complete jobs are kept."),
    "failed-history": Option(0, 0, 10 * YEAR, "ms", "How long failed jobs are kept; 0: for ever."),
    "failed-history-count": Option(0, 0, 10**9, "jobs", "How many failed jobs are kept; 0: all."),
    "requests-history": Option(7 * DAY, 0, 10 * YEAR, "ms", "How long requests that have ended are kept."),
    "stats-history": Option(30, 0, 3660, "days", "How many days before today statistics are kept."),
    "histogram-history": Option(7, 0, 3660, "days", "How many days before today histograms are shown."),
    "metrics-history": Option(1440, 0, 10_080, "minutes", "How many minutes before this one metrics are kept."),
    "messages-history": Option(
        7 * DAY, 0, 10 * YEAR, "ms", "How long published messages are kept for who subscribes later."
    ),
    "messages-history-count": Option(1000, 0, 10**6, "messages", "How many published messages are kept."),
    "max-job-history": Option(100, 4, 1000, "stages", "How many stages a history keeps: the first, and the last."),
    "max-worker-age": Option(DAY, 0, 10 * YEAR, "ms", "How long a silent worker without a job stays on the list."),
    "max-events": Option(10_000, 1, 10**7, "events", "How many events are kept."),
    "journal": Option(0, 0, 1, "(1: yes)", "Whether operations that may change something are recorded in the journal."),
    "max-journal": Option(100_000, 0, 10**7, "entries", "How many entries of the journal are kept."),
}

DEFAULTS: Final = {name: option.default for name, option in OPTIONS.items()}
"""What holds where nobody has set anything."""

PER_QUEUE = "heartbeat-"
"""`heartbeat-<queue>` overrides `heartbeat` for one queue."""


def option(name: str) -> Option:
    """Find an option by name, or refuse."""
    if name.startswith(PER_QUEUE) and len(name) > len(PER_QUEUE):
        return OPTIONS["heartbeat"]
    if name not in OPTIONS:
        raise refuse("UNKNOWN_OPTION", name)
    return OPTIONS[name]


def value(store: Store, name: str) -> int:
    """The value of an option that is known to exist."""
    return store.settings[name]


def heartbeat(store: Store, queue: str) -> int:
    """How long a lease in a queue lasts, in milliseconds."""
    settings = store.settings
    return settings.get(PER_QUEUE + queue, settings["heartbeat"]) if store.config else settings["heartbeat"]


def assign(store: Store, name: str, to: int) -> None:
    """Set an option."""
    store.config[name] = to
    store.settings = DEFAULTS | store.config


def clear(store: Store, name: str, _: int) -> None:
    """Set an option back to its default."""
    store.config.pop(name, None)
    store.settings = DEFAULTS | store.config
