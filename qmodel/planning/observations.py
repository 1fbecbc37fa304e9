"""Observe jobs in the events: when they arrive, how long they take, how often they fail.

Figures are by queue and klass. The events are read once, in order. Memory is bounded: only the last durations of each
queue and klass are kept.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from qmodel.contract.events import Event
from qmodel.errors import QmodelError

KEPT = 20_000
"""The number of durations that are kept for a queue and klass, the last ones."""

FORMAT = "qmodel observations 1"


class Observed(NamedTuple):
    """The jobs of a queue and klass: times between puts, and durations of attempts, in ms, in order.

    `puts` counts jobs, `attempts` counts their attempts, `retried` counts failed attempts, and `lapsed` counts leases
    that ran out.
    """

    queue: str
    klass: str
    puts: int
    attempts: int
    retried: int
    lapsed: int
    gaps: tuple[int, ...]
    runs: tuple[int, ...]


class _Seen:
    def __init__(self) -> None:
        self.puts = self.attempts = self.retried = self.lapsed = 0
        self.last_at: int | None = None
        self.gaps: deque[int] = deque(maxlen=KEPT)
        self.runs: deque[int] = deque(maxlen=KEPT)


class Observer:
    """Reads events in order."""

    def __init__(self) -> None:
        self._klass: dict[str, str] = {}
        self._began: dict[str, int] = {}
        self._seen: dict[tuple[str, str], _Seen] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Read more events. Jobs that were put before the first one are skipped: their klass is unknown."""
        for event in events:
            facts = event.named
            jid = str(facts.get("jid", ""))
            if event.event == "put":
                self._klass[jid] = str(facts["klass"])
                self._put(self._of(jid, str(facts["queue"])), event.at)
            elif event.event in _GONE:
                self._klass.pop(jid, None)
                self._began.pop(jid, None)
            elif jid in self._klass and event.event in _LEASES:
                self._lease(event, jid, self._of(jid, str(facts["queue"])))

    def _of(self, jid: str, queue: str) -> _Seen:
        return self._seen.setdefault((queue, self._klass[jid]), _Seen())

    @staticmethod
    def _put(seen: _Seen, at: int) -> None:
        seen.puts += 1
        if seen.last_at is not None:
            seen.gaps.append(max(at - seen.last_at, 0))
        seen.last_at = at

    def _lease(self, event: Event, jid: str, seen: _Seen) -> None:
        if event.event == "popped":
            seen.attempts += 1
            self._began[jid] = event.at
            return
        began = self._began.pop(jid, None)
        if began is None:  # a failure that ended no attempt: of a lapsed job without retries, or of a dependency
            return
        if event.event == "lock_lost":
            seen.lapsed += event.named["cause"] == "lapsed"
            return
        seen.runs.append(max(event.at - began, 0))
        seen.retried += event.event in ("retried", "failed")

    def observed(self) -> list[Observed]:
        """Give the observations by queue and klass."""
        return [
            Observed(*key, one.puts, one.attempts, one.retried, one.lapsed, tuple(one.gaps), tuple(one.runs))
            for key, one in sorted(self._seen.items())
        ]


_LEASES = {"popped", "completed", "advanced", "failed", "retried", "lock_lost"}
_GONE = {"canceled", "retired"}


def archived(root: str, namespace: str | None = None) -> list[Observed]:
    """Observe a namespace of an archive; `namespace` is required if it has several. Raises QmodelError."""
    from qmodel.pipeline.archive.kinds import EVENTS, opened
    from qmodel.pipeline.archive.read import read
    from qmodel.pipeline.events.decode import events_of

    archive = opened(root, EVENTS)
    there = archive.namespaces()
    if namespace is None and len(there) > 1:
        raise QmodelError(f"The archive {root} has several namespaces. Choose one: {', '.join(there)}.")
    name = namespace or (there[0] if there else "")
    if name not in there or not archive.files(name):
        raise QmodelError(f"The archive {root} has no events{f' of {namespace!r}' if namespace else ''}.")
    observer = Observer()
    for table in read(root, name, gaps=[]):
        observer.add(events_of(table))
    return observer.observed()


def dumps(found: Iterable[Observed]) -> str:
    """Write observations as the text of a file."""
    return json.dumps({"format": FORMAT, "observed": [one._asdict() for one in found]}, indent=1)


def loads(text: str) -> dict[tuple[str, str], Observed]:
    """Read the observations of a file, by queue and klass. Raises ValueError for any other file."""
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    rows = [Observed(**{**row, "gaps": tuple(row["gaps"]), "runs": tuple(row["runs"])}) for row in found["observed"]]
    if not all(type(one) is int and one >= 0 for row in rows for one in (*row.gaps, *row.runs)):
        raise ValueError("a duration is not a whole number from 0")
    return {(row.queue, row.klass): row for row in rows}
