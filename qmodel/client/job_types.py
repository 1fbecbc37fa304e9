"""Figures of job types, from the newest events: counts, rates, how long jobs waited and ran, and why they failed.

The engine counts by queue. What each job type did stands in the events, which name the type where a job is put, and
the job everywhere. So a job that was put before these events is read for its type, up to `LOOKED_UP` jobs; events of
further ones are counted apart. The figures are of the newest events alone, as far back as these go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from qmodel.contract.events import Event

EVENTS: Final = 2000
"""How many events are read if nothing else is asked for."""

LOOKED_UP: Final = 200
"""The most jobs that are read for their types: they come with their data."""

GROUPS: Final = 3
"""The most groups of failures that are named for a type."""

COUNTED: Final = {
    "put": "put", "popped": "popped", "completed": "completed", "advanced": "completed", "failed": "failed",
    "retried": "retried", "lock_lost": "lost",
}  # fmt: skip
"""For each kind of event, what it adds to."""


class Durations(NamedTuple):
    """Percentiles of durations in milliseconds, and of how many; zeros if there are none."""

    samples: int
    p50: int
    p95: int
    p99: int


class TypeFigures(NamedTuple):
    """What the events tell of a job type. `groups` are the most frequent groups of its failures, with counts, also of
    attempts that are tried again; `per_minute` is how many jobs were completed in a minute.
    """

    klass: str
    put: int
    popped: int
    completed: int
    failed: int
    retried: int
    lost: int
    per_minute: float
    wait: Durations
    run: Durations
    groups: tuple[tuple[str, int], ...]


class JobTypes(NamedTuple):
    """The figures by job type, busiest first, and the events that they come from: their number, the moments of the
    first and the last one in milliseconds, and how many are of jobs with an unknown type.
    """

    types: tuple[TypeFigures, ...]
    events: int
    begin_at: int
    end_at: int
    unknown: int


class _Seen:
    """What is collected of a type."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.waits: list[int] = []
        self.runs: list[int] = []


def unnamed(events: Iterable[Event]) -> list[str]:
    """List the jobs with events that count, but without one that names their type; the newest first.

    >>> unnamed([Event(1, 0, "put", ("a", "q", "K", "waiting")), Event(2, 0, "popped", ("b", "q", "w", 5))])
    ['b']
    """
    known: set[str] = set()
    found: dict[str, bool] = {}
    for event in events:
        if event.event == "put":
            known.add(str(event.facts[0]))
        elif event.event in COUNTED:
            found.pop(str(event.facts[0]), None)
            found[str(event.facts[0])] = True
    return [jid for jid in reversed(found) if jid not in known]


def durations(ms: Sequence[int]) -> Durations:
    """Find percentiles: of so many durations, that of the given rank.

    >>> durations([40, 10, 30, 20])
    Durations(samples=4, p50=20, p95=40, p99=40)
    """
    ordered, count = sorted(ms), len(ms)
    shares = (ordered[-(-share * count // 100) - 1] if count else 0 for share in (50, 95, 99))
    return Durations(count, *shares)


def figures(events: Sequence[Event], klasses: Mapping[str, str]) -> JobTypes:
    """Compute the figures of each type from events, oldest first, and the types of jobs that these do not name."""
    known, seen, unknown = dict(klasses), defaultdict[str, _Seen](_Seen), 0
    for event in events:
        if event.event == "put":
            known[str(event.named["jid"])] = str(event.named["klass"])
        if event.event in COUNTED:
            klass = known.get(str(event.named["jid"]))
            if klass is None:
                unknown += 1
            else:
                _count(seen[klass], event)
    begin_at, end_at = (events[0].at, events[-1].at) if events else (0, 0)
    minutes = max(end_at - begin_at, 1000) / 60_000
    found = [_figures(klass, one, minutes) for klass, one in seen.items()]
    busiest = sorted(found, key=lambda one: (-one.popped, -one.put, one.klass))
    return JobTypes(tuple(busiest), len(events), begin_at, end_at, unknown)


def _count(one: _Seen, event: Event) -> None:
    facts = event.named
    one.counts[COUNTED[event.event]] += 1
    if "wait_ms" in facts:
        one.waits.append(int(facts["wait_ms"]))
    if "run_ms" in facts:
        one.runs.append(int(facts["run_ms"]))
    if event.event in ("failed", "retried") and facts.get("group"):
        one.groups[str(facts["group"])] += 1


def _figures(klass: str, one: _Seen, minutes: float) -> TypeFigures:
    counts = {name: one.counts[name] for name in COUNTED.values()}
    groups = sorted(one.groups.items(), key=lambda pair: (-pair[1], pair[0]))[:GROUPS]
    return TypeFigures(
        klass=klass,
        per_minute=one.counts["completed"] / minutes,
        wait=durations(one.waits),
        run=durations(one.runs),
        groups=tuple(groups),
        **counts,
    )


def as_json(found: JobTypes) -> dict[str, Any]:
    """Write the figures as JSON's types, as HTTP and the command line show them."""
    types = [
        {**one._asdict(), "wait": one.wait._asdict(), "run": one.run._asdict(), "groups": dict(one.groups)}
        for one in found.types
    ]
    return {**found._asdict(), "types": types}
