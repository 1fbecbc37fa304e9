"""Generate histories of the model with all their events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.contract.events import Event
from qmodel.model import engine
from qmodel.model.state import stats
from qmodel.model.state.records import Day
from qmodel.model.state.store import Store, events_after
from qmodel.pipeline.statistics.tallies import Tally

COUNT = 150
"""So many random histories."""


class Watched:
    """A model that gives out each event once, even if it keeps few."""

    def __init__(self) -> None:
        self.store = Store()
        self.events: list[Event] = []

    def step(self, now: int, op: object) -> object:
        seq = self.store.seq
        outcome = engine.step(self.store, now, op)  # type: ignore[arg-type]
        self.events += events_after(self.store, seq, self.store.seq - seq)
        return outcome


@cache
def histories() -> list[Watched]:
    """Generate random histories; give each after its last step."""
    found = []
    for seed in range(COUNT):
        watched = Watched()
        for step in runner.draw(RandomChooser(f"fold.{seed}"), 80):
            watched.step(*step)
        whole = watched.store.seq == len(watched.events)  # else max-events is less than one step tells
        if whole and not _counts_a_day_anew(watched.events):
            found.append(watched)
    return found


def _counts_a_day_anew(events: list[Event]) -> bool:
    """Whether a day may have been struck and is counted again, because the clock went back."""
    days = [stats.day_of(event.at) for event in events]
    strikes = any(event.event == "configured" and event.facts[0] == "stats-history" for event in events)
    return strikes and days != sorted(days)


def every_event() -> Iterator[Event]:
    """List the events of all histories."""
    for watched in histories():
        yield from watched.events


def counted(day: Day | Tally) -> list[object]:
    """What a day of the engine and a tally both have."""
    samples = [(one.count, one.mean, one.squares, dict(one.bins)) for one in (day.wait, day.run)]
    return [*samples, day.failures, day.failed, day.retries]
