"""Laws of statistics: counts, means, squares and bins, from the durations that the events tell.

The model folds one duration after the other, by Welford's recurrence. Here the sums are exact: the number, the sum and
the sum of squares of all durations of a day, as whole numbers, and the bins from a table of their limits.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories, law_of_reads
from qmodel.conformance.laws.leases import lapses
from qmodel.conformance.laws.told import is_spent
from qmodel.model.snapshot import Record

DAY_MS = 86_400_000
MINUTE_MS = 60_000
LONGEST = 10**10

LIMITS = [
    *(second * 1000 for second in range(60)),
    *(minute * MINUTE_MS for minute in range(1, 60)),
    *(quarter * 900_000 for quarter in range(4, 96)),
    *(hour * 3_600_000 for hour in range(24, 72)),
    *(day * DAY_MS for day in range(3, 30)),
    30 * DAY_MS,
]
"""Where each bin of a histogram begins: 60 of a second, 59 of a minute, 92 of a quarter of an hour up to a day, 48 of
an hour up to three days, 27 of a day, and one for all beyond thirty days."""


class Sums(NamedTuple):
    """The durations of a kind on a day: how many, their sum, the sum of their squares, and how many in each bin."""

    number: int = 0
    total: int = 0
    squares: int = 0
    bins: tuple[tuple[int, int], ...] = ()

    def add(self, duration: int) -> Sums:
        """Count one more."""
        bins = dict(self.bins)
        place = bisect_right(LIMITS, duration) - 1
        bins[place] = bins.get(place, 0) + 1
        return Sums(self.number + 1, self.total + duration, self.squares + duration**2, tuple(sorted(bins.items())))


def _midnight(moment: int) -> int:
    return moment - moment % DAY_MS


def _differs(sums: Sums, sample: Record) -> str:
    """How a sample differs from exact sums; empty if it does not."""
    if sample["count"] != sums.number or tuple(sorted(sample["bins"].items())) != sums.bins:
        return f"{sample['count']} in {sample['bins']}, not {sums.number} in {dict(sums.bins)}"
    if sums.number == 0:
        return ""
    mean = Fraction(sums.total, sums.number)
    squares = sums.squares - mean * sums.total
    if not math.isclose(sample["mean"], float(mean), rel_tol=1e-9, abs_tol=1e-6):
        return f"mean {sample['mean']}, not {float(mean)}"
    slack = 1e-9 * float(sums.squares) + 1e-6
    if not math.isclose(sample["squares"], float(squares), rel_tol=1e-9, abs_tol=slack):
        return f"squares {sample['squares']}, not {float(squares)}"
    return ""


@law_of_histories
def durations_are_counted_exactly(m: Moment, ghost: Ghost) -> Iterator[str]:
    """For each queue and UTC day: count, mean and sum of squared deviations of waiting and running times, and a
    histogram of each, in which every time has a bin. The wait is recorded at each claim, from the moment when the job
    was ready; the run when it completes, from its last claim.
    """
    if not m.events:
        return
    today = _midnight(m.now)
    for one in m.told("popped", "completed", "advanced"):
        kind, fact = ("wait", "wait_ms") if one.event.event == "popped" else ("run", "run_ms")
        at = today, str(one.facts["queue"]), kind
        if at not in ghost and at[:2] in m.before.days and m.before.days[at[:2]][kind]["count"]:
            continue  # begun before this observer
        ghost[at] = ghost.get(at, Sums()).add(one.facts[fact])
    for at in [at for at in ghost if at != "unknown"]:
        day, queue, kind = at
        known = m.after.days.get((day, queue))
        if known is None:
            del ghost[at]
            if (today - day) // DAY_MS <= m.option("stats-history", before=False) and day <= today:
                yield f"the {kind}s of {queue} on {day} are gone"
        elif m.after.days is not m.before.days and (known[kind] != m.before.days.get((day, queue), {}).get(kind)):
            reason = _differs(ghost[at], known[kind])
            if reason:
                yield f"{kind} of {queue} on {day}: {reason}"


@law
def durations_are_counted_when_they_end(m: Moment) -> Iterator[str]:
    """A wait is counted for each claim, and a run for each completion, on the day and for the queue of the event, and
    for nothing else.
    """
    today = _midnight(m.now)
    wanted: dict[tuple[int, str, str], int] = {}
    for one in m.told("popped", "completed", "advanced"):
        at = today, str(one.facts["queue"]), "wait" if one.event.event == "popped" else "run"
        wanted[at] = wanted.get(at, 0) + 1
    for (day, queue), after in m.after.days.items():
        for kind in ("wait", "run"):
            before = m.before.days.get((day, queue), {kind: {"count": 0}})[kind]["count"]
            if after[kind]["count"] - before != wanted.get((day, queue, kind), 0):
                yield f"{after[kind]['count'] - before} {kind}s of {queue} are counted, not {wanted}"


COUNTED_TAGS = 8
"""By how many of its tags a job is counted."""


@law
def durations_are_counted_by_tags_and_workers(m: Moment) -> Iterator[str]:
    """A wait and a run count as well by each of the first 8 tags of the job, and by its worker, if the day of the queue
    counts by them: so it does by the first `stats-tags` tags and the first `stats-workers` workers.
    """
    today = _midnight(m.now)
    wanted: dict[tuple[int, str, str, str, str], int] = {}
    for one in m.told("popped", "completed", "advanced"):
        queue, kind = str(one.facts["queue"]), "wait" if one.event.event == "popped" else "run"
        record = m.after.jobs.get(one.jid) or m.before.jobs.get(one.jid) or {"tags": ()}
        names = [("tags", tag) for tag, _ in record["tags"][:COUNTED_TAGS]]
        for by, name in [*names, ("workers", str(one.facts["worker"]))]:
            if m.option(f"stats-{by}"):
                at = today, queue, by, name, kind
                wanted[at] = wanted.get(at, 0) + 1
    for (day, queue, by, name, _), __ in wanted.items():
        listed = m.after.days.get((day, queue), {by: {}})[by]
        if name not in listed and len(listed) < m.option(f"stats-{by}"):
            yield f"{queue} does not count by the {by[:-1]} {name}"
    for (day, queue), after in m.after.days.items():
        for by in ("tags", "workers"):
            old = m.before.days.get((day, queue), {by: {}})[by]
            if len(after[by]) > max(len(old), m.option(f"stats-{by}")):
                yield f"{queue} counts by {len(after[by])} {by}"
            for name, part in after[by].items():
                for kind in ("wait", "run"):
                    before = old.get(name, {kind: {"count": 0}})[kind]["count"]
                    if part[kind]["count"] - before != wanted.get((day, queue, by, name, kind), 0):
                        yield f"{part[kind]['count'] - before} {kind}s of {queue} are counted by {name}, not {wanted}"


@law
def failures_and_retries_are_counted(m: Moment) -> Iterator[str]:
    """Each failure counts as one of its queue and day, and as a failed job that is still failed, which is taken back on
    that day when the job is retried, put again or deleted. Each retry counts, and so does each expired lease that is
    not the end.
    """
    today = _midnight(m.now)
    changes: dict[tuple[int, str], list[int]] = {}

    def count(day: int, queue: str, place: int, by: int) -> None:
        changes.setdefault((day, queue), [0, 0, 0])[place] += by

    taken = {one.event.seq for one in lapses(m)}
    for one in m.tale:
        queue = str(one.facts.get("queue", ""))
        if one.event.event == "failed":
            count(today, queue, 0, 1)
            count(today, queue, 1, 1)
        ended = one.event.event in ("unfailed", "put", "canceled", "retired") and m.name != "clean"
        deleted = one.event.event in ("canceled", "retired") and one.was is not None and one.was["state"] == "failed"
        if one.was is not None and one.was["state"] == "failed" and (ended or deleted):
            count(_midnight(one.was["ended_at"]), one.was["queue"], 1, -1)
        again = one.event.seq in taken and one.was is not None and not is_spent(one.was)
        if one.event.event == "retried" or (again and one.was is not None and "revoked" not in one.was["options"]):
            count(today, queue, 2, 1)
    for at, after in m.after.days.items():
        before = m.before.days.get(at, {"failures": 0, "failed": 0, "retries": 0})
        has = [after[name] - before[name] for name in ("failures", "failed", "retries")]
        if has != changes.get(at, [0, 0, 0]):
            yield f"{at}: failures, failed and retries change by {has}, and the events say {changes.get(at)}"


@law
def minutes_are_counted(m: Moment) -> Iterator[str]:
    """`metrics` counts, by the minute, how many jobs of a queue were completed, failed and retried, and how long the
    completed ones ran (each counted with at most 10^10 ms).
    """
    taken = {one.event.seq for one in lapses(m)}
    wanted: dict[str, list[int]] = {}
    for one in m.tale:
        minute = wanted.setdefault(str(one.facts.get("queue", "")), [0, 0, 0, 0])
        if one.event.event in ("completed", "advanced"):
            minute[0] += 1
            minute[3] += min(one.facts["run_ms"], LONGEST)
        elif one.event.event == "failed":
            minute[1] += 1
        elif one.event.event == "retried" or (
            one.event.seq in taken
            and one.was is not None
            and not is_spent(one.was)
            and "revoked" not in one.was["options"]
        ):
            minute[2] += 1
    index, today = m.now % DAY_MS // MINUTE_MS, _midnight(m.now)
    for queue, counts in wanted.items():
        day = m.after.days.get((today, queue))
        before = m.before.days.get((today, queue), {"minutes": {}, "swept": False})
        if day is None or day["swept"] or before["swept"]:
            continue
        was, has = before["minutes"].get(index, (0, 0, 0, 0)), day["minutes"].get(index, (0, 0, 0, 0))
        if [one - other for one, other in zip(has, was, strict=True)] != counts:
            yield f"the minute {index} of {queue} went from {was} to {has}, and the events say {counts}"


@law_of_reads
def statistics_show_what_is_kept(m: Moment) -> Iterator[str]:
    """`stats` shows the day of its moment, for `stats-history` days, its histograms for `histogram-history` days."""
    if m.name != "stats" or m.refused:
        return
    at = _midnight(m.now if m.op.at is None else m.op.at)
    day = m.before.days.get((at, m.op.queue))
    age = (_midnight(m.now) - at) // DAY_MS
    nothing = {"count": 0, "mean": 0, "bins": {}}
    none: Record = {"wait": nothing, "run": nothing, "failures": 0, "failed": 0, "retries": 0}
    if day is None or age > m.option("stats-history"):
        day = none
    elif m.op.tag is not None or m.op.worker is not None:
        part = day["tags"].get(m.op.tag) if m.op.tag is not None else day["workers"].get(m.op.worker)
        day = none | (part or {})
    for name in ("failures", "retries"):
        if getattr(m.outcome, name) != day[name]:
            yield f"{name} is shown as {getattr(m.outcome, name)}, and is {day[name]}"
    if m.outcome.failed != max(day["failed"], 0):
        yield f"failed is shown as {m.outcome.failed}, and is {day['failed']}"
    for kind in ("wait", "run"):
        shown = getattr(m.outcome, kind)
        if shown.count != day[kind]["count"] or shown.mean != day[kind]["mean"]:
            yield f"{kind} is shown as {shown[:2]}"
        bins = tuple(day[kind]["bins"].get(place, 0) for place in range(len(LIMITS)))
        if shown[3] != (bins if age <= m.option("histogram-history") else ()):
            yield f"the histogram of {kind} is shown as {shown[3]}"


@law_of_reads
def metrics_show_minutes_without_gaps(m: Moment) -> Iterator[str]:
    """The minutes of `metrics` come oldest first and without gaps, up to the minute of `at`, at most `count`, and each
    shows what was counted in it.
    """
    if m.name != "metrics" or m.refused:
        return
    last = m.now if m.op.at is None else m.op.at
    moments = [one[0] for one in m.outcome]
    if moments != sorted(moments) or any(b - a != MINUTE_MS for a, b in itertools.pairwise(moments)):
        yield f"the minutes are {moments}"
    if len(moments) > m.op.count or (moments and moments[-1] != last - last % MINUTE_MS):
        yield f"{len(moments)} minutes are shown, up to {moments[-1]}"
    for at, *counts in m.outcome:
        day = m.before.days.get((_midnight(at), m.op.queue), {"minutes": {}})
        if tuple(counts) != tuple(day["minutes"].get(at % DAY_MS // MINUTE_MS, (0, 0, 0, 0))):
            yield f"the minute {at} is shown as {counts}"
