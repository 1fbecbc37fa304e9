"""The engine's own statistics beside those folded from the events.

Both come of the same transitions by different ways: the engine counts as it goes, in the store, and the fold counts
what the events tell. Where they differ, one of them is wrong, or events were lost.

A fold that went through all events in their order is compared to the last bit. One that was merged of parts has means
and squares that are rounded otherwise: give it a `tolerance`, such as 1e-9. Counts and bins are exact in either case.

The engine does not stand still meanwhile. So the fold is brought up to the newest event before and after the engine is
asked; what changed between is asked again, and what never holds still is told as such, and is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.replies import Sample, Stats
from qmodel.model.state.stats import DAY_MS, day_of
from qmodel.pipeline.events.pages import pages
from qmodel.pipeline.statistics.fold import Fold, Key
from qmodel.present.durations import format_moment

TOGETHER = 100
"""How many days of queues are asked for in one round trip: 1,000 numbers each."""

TRIES = 5


class Difference(NamedTuple):
    """One figure of a queue and a day (its start, ms) that the engine and the fold do not have alike."""

    queue: str
    day: int
    figure: str
    engine: float
    folded: float


class Report(NamedTuple):
    """What was compared, and what differs; where no comparison was possible, and why."""

    compared: tuple[Key, ...]
    differences: tuple[Difference, ...]
    gone: tuple[Key, ...]  # older than stats-history: the engine keeps them no longer
    begun: tuple[Key, ...]  # of the day on which the fold began: it has not seen all of it
    moving: tuple[Key, ...]  # changed whenever they were asked for

    def __str__(self) -> str:
        left = ((self.gone, "kept no longer"), (self.begun, "not seen whole"), (self.moving, "still changing"))
        rest = "".join(f", {len(keys)} {why}" for keys, why in left if keys)
        rows = [("queue", "day", "figure", "engine", "folded")]
        rows += [
            (d.queue, format_moment(d.day)[:10], d.figure, f"{d.engine!r}", f"{d.folded!r}") for d in self.differences
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{len(self.compared)} days of queues compared, {len(self.differences)} differences{rest}"]
        if self.differences:
            lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines)


def reconcile(client: Client, fold: Fold, *, tolerance: float = 0.0) -> Report:
    """Compare a fold with the engine's statistics, after bringing it up to the newest event.

    `tolerance` is relative, and for means and squares alone. Raises EventsGone where the fold cannot be brought up.
    """
    _bring_up(client, fold)
    gone, begun, wanted = _sorted(client, fold)
    compared: list[Key] = []
    differences: list[Difference] = []
    for _ in range(TRIES):
        expected = {key: _folded(fold, key) for key in wanted}
        found = _ask(client, wanted)
        _bring_up(client, fold)
        settled = [key for key in wanted if _folded(fold, key) == expected[key]]
        for key in settled:
            differences += _differences(found[key], expected[key], tolerance)
        compared += settled
        wanted = [key for key in wanted if key not in set(settled)]
        if not wanted:
            break
    return Report(tuple(compared), tuple(differences), gone, begun, tuple(wanted))


def kept_since(client: Client) -> int:
    """The start (ms) of the first day whose statistics the engine still has."""
    today: int = client.execute(ops.Stats("any")).day
    days: int = client.execute(ops.ConfigGet("stats-history"))
    return max(today - days * DAY_MS, 0)


def _bring_up(client: Client, fold: Fold) -> None:
    for page in pages(client, fold.last):
        fold.add(page)


def _sorted(client: Client, fold: Fold) -> tuple[tuple[Key, ...], tuple[Key, ...], list[Key]]:
    """The days of queues that the engine keeps no longer, those of which the fold has seen a part, and the others."""
    keys = sorted(key for key in fold.tallies if key.by == "queue")
    if not keys:
        return (), (), []
    oldest = kept_since(client)
    seen = day_of(fold.began_at) + DAY_MS if fold.after and fold.began_at is not None else 0
    gone = tuple(key for key in keys if key.day < oldest)
    begun = tuple(key for key in keys if oldest <= key.day < seen)
    return gone, begun, [key for key in keys if key.day >= max(oldest, seen)]


def _ask(client: Client, keys: Sequence[Key]) -> dict[Key, Stats]:
    found: dict[Key, Stats] = {}
    for start in range(0, len(keys), TOGETHER):
        some = keys[start : start + TOGETHER]
        found.update(zip(some, client.execute_many(ops.Stats(key.name, key.day) for key in some), strict=True))
    return found


def _folded(fold: Fold, key: Key) -> Stats:
    """What a fold has of a queue and a day, as the engine would show it."""
    tally = fold.tally("queue", key.name, key.day)
    wait, run = tally.wait.shown(), tally.run.shown()
    return Stats(key.name, key.day, wait, run, tally.failures, tally.failed, tally.retries)


def _differences(engine: Stats, folded: Stats, tolerance: float) -> Iterator[Difference]:
    pairs = [(name, getattr(engine, name), getattr(folded, name)) for name in ("failures", "failed", "retries")]
    for name, one, other in (("wait", engine.wait, folded.wait), ("run", engine.run, folded.run)):
        pairs.append((f"{name} count", one.count, other.count))
        pairs += _rounded(name, one, other, tolerance)
        if one.histogram:  # shown for histogram-history
            bins = enumerate(zip(one.histogram, other.histogram, strict=True))
            pairs += [(f"{name} bin {index}", *pair) for index, pair in bins]
    yield from (Difference(engine.queue, engine.day, *pair) for pair in pairs if pair[1] != pair[2])


def _rounded(name: str, one: Sample, other: Sample, tolerance: float) -> Iterator[tuple[str, float, float]]:
    """The figures that rounding may touch, unless they are as near as it was said."""
    for figure in ("mean", "squares"):
        here, there = getattr(one, figure), getattr(other, figure)
        if not math.isclose(here, there, rel_tol=tolerance):
            yield f"{name} {figure}", here, there
