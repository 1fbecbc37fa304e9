"""Statistics by queue and UTC day: how long jobs waited and ran, and how many failed.

Mean and variance follow Welford's recurrence (Technometrics 4, 1962), which both qless documents require. The histogram
has the resolution that both promise: 60 bins of a second, 59 of a minute, 92 of fifteen minutes up to a day, 48 of an
hour up to three days, then 27 of a day, and one for everything beyond thirty days.

The wait of a job starts when it is ready: neither its delay nor the time for which it depended on others counts.

Waits and runs are also counted by the tags of the jobs, and by the workers if the option `stats-workers` is set. Users
choose these names, perhaps a new one for each job. So a day of a queue counts by its first `stats-tags` tags and its
first `stats-workers` workers, and a job counts by its first TAGS tags. Failures and retries are not counted by them:
the tags of a failed job may change before it is retried.

The minutes of a day are stored with it: how many jobs were completed, how long those ran, and how many failed and were
retried. They are deleted with their day, or earlier: with the first new day that begins after the last of them is older
than metrics-history. A run counts with at most RUN_MOST, so that no sum of a minute exceeds what a double holds
exactly.
"""

from __future__ import annotations

from itertools import islice

from qmodel.contract import replies
from qmodel.model.state import config
from qmodel.model.state.records import Day, Job, Part, Sample
from qmodel.model.state.store import Store

DAY_MS = 86_400_000
MINUTE_MS = 60_000
RUN_MOST = 10**10
BINS = 60 + 59 + 92 + 48 + 27 + 1
SWEEP = 10
TAGS = 8


def bin_of(duration: int) -> int:
    """The histogram bin of a duration in milliseconds."""
    seconds = duration // 1000
    if seconds < 60:
        return seconds
    if seconds < 3600:
        return 59 + seconds // 60
    if seconds < 86_400:
        return 115 + seconds // 900
    if seconds < 259_200:
        return 187 + seconds // 3600
    return min(256 + seconds // 86_400, BINS - 1)


def day_of(at: int) -> int:
    """The start of the day that contains a time."""
    return at - at % DAY_MS


def _day(store: Store, now: int, queue: str) -> Day:
    """The day of a queue."""
    return store.days.get((day_of(now), queue)) or _new_day(store, now, queue)


def _new_day(store: Store, now: int, queue: str) -> Day:
    """A new day of a queue; delete a few days that are older than stats-history."""
    today = day_of(now)
    oldest = today - config.value(store, "stats-history") * DAY_MS
    for key in store.days.keys()[:SWEEP]:
        if key[0] < oldest:
            del store.days[key]
    _sweep_minutes(store, today)
    day = store.days[today, queue] = Day()
    return day


def _sweep_minutes(store: Store, today: int) -> None:
    """Delete the minutes of a few days that are older than metrics-history."""
    last = today - config.value(store, "metrics-history") * MINUTE_MS - DAY_MS
    for key in list(islice((key for key, day in store.days.items() if not day.swept), SWEEP)):
        if key[0] <= last:
            store.days[key].minutes = {}
            store.days[key].swept = True


def _minute(day: Day, now: int) -> list[int]:
    """The counts of a minute, to change."""
    index = now % DAY_MS // MINUTE_MS
    minute = day.minutes.get(index)
    if minute is None:
        minute = day.minutes[index] = [0, 0, 0, 0]
    return minute


def fold(sample: Sample, duration: int) -> None:
    """Count one duration."""
    sample.count = count = sample.count + 1
    before = sample.mean
    delta = duration - before
    sample.mean = mean = before + delta / count
    sample.squares += delta * (duration - mean)
    index = bin_of(duration) if duration >= MINUTE_MS else duration // 1000
    try:
        sample.bins[index] += 1
    except KeyError:
        sample.bins[index] = 1


def _part(parts: dict[str, Part], name: str, most: int) -> Part | None:
    """The part of a name; a new one, if there are fewer than the most."""
    part = parts.get(name)
    if part is None and len(parts) < most:
        part = parts[name] = Part()
    return part


def _parts(store: Store, day: Day, job: Job, worker: str) -> list[Part]:
    """The parts of a day that count a worker's job."""
    found: list[Part | None] = []
    most = config.value(store, "stats-tags")
    if job.tags and most:
        found = [_part(day.tags, tag, most) for tag in islice(job.tags, TAGS)]
    most = config.value(store, "stats-workers")
    if most:
        found.append(_part(day.workers, worker, most))
    return [part for part in found if part is not None]


def waited(store: Store, now: int, job: Job, worker: str, duration: int) -> None:
    """Count how long a popped job waited."""
    day = store.days.get((now - now % DAY_MS, job.queue)) or _new_day(store, now, job.queue)
    fold(day.wait, duration)
    if job.tags or store.settings["stats-workers"]:
        for part in _parts(store, day, job, worker):
            fold(part.wait, duration)


def ran(store: Store, now: int, job: Job, worker: str, duration: int) -> None:
    """Count how long a completed job ran."""
    day = store.days.get((now - now % DAY_MS, job.queue)) or _new_day(store, now, job.queue)
    fold(day.run, duration)
    minute = day.minutes.get(now % DAY_MS // MINUTE_MS) or _minute(day, now)
    minute[0] += 1
    minute[3] += duration if duration < RUN_MOST else RUN_MOST
    if job.tags or store.settings["stats-workers"]:
        for part in _parts(store, day, job, worker):
            fold(part.run, duration)


def retried(store: Store, now: int, queue: str) -> None:
    """Count a retry."""
    day = _day(store, now, queue)
    day.retries += 1
    _minute(day, now)[2] += 1


def failed(store: Store, now: int, queue: str) -> None:
    """Count a failure."""
    day = _day(store, now, queue)
    day.failures += 1
    day.failed += 1
    _minute(day, now)[1] += 1


def recovered(store: Store, failed_at: int, queue: str) -> None:
    """Count a failed job as no longer failed, on the day of its failure."""
    day = store.days.get((day_of(failed_at), queue))
    if day is not None:
        day.failed -= 1


def view(
    store: Store, now: int, queue: str, at: int, tag: str | None = None, worker: str | None = None
) -> replies.Stats:
    """The statistics of the day that contains `at`, as kept at `now`; by a tag or a worker, if one is given."""
    key = (day_of(at), queue)
    age = (day_of(now) - key[0]) // DAY_MS
    day = store.days.get(key) if age <= config.value(store, "stats-history") else None
    day = day or Day()
    shown = age <= config.value(store, "histogram-history")
    if tag is not None or worker is not None:
        part = (day.tags.get(tag) if tag is not None else day.workers.get(worker or "")) or Part()
        return replies.Stats(queue, key[0], _sample(part.wait, shown), _sample(part.run, shown), 0, 0, 0)
    failed = max(day.failed, 0)  # negative if the clock went back to a deleted day
    return replies.Stats(
        queue, key[0], _sample(day.wait, shown), _sample(day.run, shown), day.failures, failed, day.retries
    )


def _sample(sample: Sample, shown: bool) -> replies.Sample:
    bins = tuple(sample.bins.get(i, 0) for i in range(BINS)) if shown else ()
    return replies.Sample(sample.count, sample.mean, sample.squares, bins)


def metrics(store: Store, now: int, queue: str, at: int, count: int) -> tuple[replies.Minute, ...]:
    """The last `count` minutes up to that of `at`, without those that are no longer kept at `now`."""
    kept = now - now % MINUTE_MS - config.value(store, "metrics-history") * MINUTE_MS
    kept = max(kept, day_of(now) - config.value(store, "stats-history") * DAY_MS, 0)
    last = at - at % MINUTE_MS
    return tuple(
        _shown(store, queue, minute)
        for minute in range(max(last - (count - 1) * MINUTE_MS, kept), last + MINUTE_MS, MINUTE_MS)
    )


def _shown(store: Store, queue: str, at: int) -> replies.Minute:
    day = store.days.get((day_of(at), queue))
    counts = day.minutes.get(at % DAY_MS // MINUTE_MS) if day else None
    return replies.Minute(at, *(counts or (0, 0, 0, 0)))
