"""Compare the engine's own statistics with figures folded from the events.

The engine counts in the store as jobs change. The fold counts the events of the same changes. If the two differ, one of
them is wrong, or events were lost.

A fold over all events in order is compared to the last bit. A fold merged from parts rounds means and squares in
another way: give it a `tolerance`, such as 1e-9. Counts and bins are exact in both cases.

The engine keeps running meanwhile. So the fold is brought up to the newest event before and after the engine is asked.
Queues that changed between are asked again. Queues that change every time are reported as moving, not as different.
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
from qmodel.present.numbers import counted

TOGETHER = 100
"""The number of queues and days in one round trip: each has 1,000 numbers."""

TRIES = 5


class Difference(NamedTuple):
    """A figure of a queue on a day (its start, ms) that differs between the engine and the fold."""

    queue: str
    day: int
    figure: str
    engine: float
    folded: float


class Report(NamedTuple):
    """What was compared, what differs, and what could not be compared, with the reason."""

    compared: tuple[Key, ...]
    differences: tuple[Difference, ...]
    gone: tuple[Key, ...]  # older than stats-history: no longer kept by the engine
    begun: tuple[Key, ...]  # of the day on which the fold began: seen only in part
    moving: tuple[Key, ...]  # changed whenever they were asked for

    def __str__(self) -> str:
        left = ((self.gone, "kept no longer"), (self.begun, "not seen whole"), (self.moving, "still changing"))
        rest = "".join(f", {len(keys)} {why}" for keys, why in left if keys)
        rows = [("queue", "day", "figure", "engine", "folded")]
        rows += [
            (d.queue, format_moment(d.day)[:10], d.figure, f"{d.engine!r}", f"{d.folded!r}") for d in self.differences
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        compared = counted(len(self.compared), "day of a queue", "days of queues")
        lines = [f"{compared} compared, {counted(len(self.differences), 'difference')}{rest}"]
        if self.differences:
            lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines)


def reconcile(client: Client, fold: Fold, *, tolerance: float = 0.0) -> Report:
    """Bring a fold up to the newest event, then compare it with the engine's statistics.

    `tolerance` is relative and applies to means and squares only. Raises EventsGone if the fold cannot be brought up,
    and Forked if the server lost events of the fold.
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
    """Give the start (ms) of the first day with statistics that the engine still keeps."""
    today: int = client.execute(ops.Stats("any")).day
    days: int = client.execute(ops.ConfigGet("stats-history"))
    return max(today - days * DAY_MS, 0)


def _bring_up(client: Client, fold: Fold) -> None:
    for page in pages(client, fold.last, epoch=fold.epoch):
        fold.add(page)


def _sorted(client: Client, fold: Fold) -> tuple[tuple[Key, ...], tuple[Key, ...], list[Key]]:
    """Split the days of queues: no longer kept by the engine, seen only in part by the fold, and comparable."""
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
    """Give the fold's figures of a queue and a day in the engine's form."""
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
    """Name the figures that rounding may change, unless they are within the tolerance."""
    for figure in ("mean", "squares"):
        here, there = getattr(one, figure), getattr(other, figure)
        if not math.isclose(here, there, rel_tol=tolerance):
            yield f"{name} {figure}", here, there
