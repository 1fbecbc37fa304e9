"""Compute figures from the events: by day, and by queue, job type (klass), worker and tag.

A fold reads the events in order and can continue at any time. By queue it counts exactly what the engine counts. By job
type, worker and tag the engine counts nothing, so these figures cost the engine nothing.

**Parts.** Parts of the stream can be folded separately, each by a `Fold(after, part=True)`, and merged in order. A part
does not know the jobs that were put before it: neither their job type nor whether they had failed. It keeps events of
such jobs in `pending`, and the fold that it is merged into counts them.

**What the events do not say:** the cause of a `lock_lost` by `timeout`. A lease that reached timeout_ms counts as a
retry, a lease that was revoked does not. A pop finds the former, so the job's next event has the same millisecond, and
the job was ready before, or is throttled. This guess fails if everything happens within one millisecond: if a grace-
period of 0 lets a pop come in the very millisecond of timeout_ms, or if a revoked job is throttled in the same
millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from qmodel.contract.events import BETWEEN_TAGS, EVENTS, Event
from qmodel.model.state.stats import day_of
from qmodel.pipeline.events.gaps import EventsGone, Gap, prove
from qmodel.pipeline.events.histories import HistoriesMixed, follows
from qmodel.pipeline.statistics.tallies import Tally

KINDS = ("queue", "klass", "worker", "tag")
"""The kinds of names that figures are counted by."""


class Key(NamedTuple):
    """The subject of a tally: the start of a UTC day (ms), one of KINDS, and a name."""

    day: int
    by: str
    name: str


class Lost(NamedTuple):
    """The last lease that a job lost: the event, its moment, the cause, and the keys that it counts for."""

    seq: int
    at: int
    cause: str
    keys: tuple[Key, ...]


class Known:
    """What a fold knows of a job: klass and tags, where its failure is counted, and the lease that it lost last."""

    __slots__ = ("failed", "klass", "lost", "tags")

    def __init__(self, klass: str) -> None:
        self.klass = klass
        self.tags: dict[str, None] = {}
        self.failed: tuple[Key, ...] = ()
        self.lost: Lost | None = None


class Fold:
    """Figures of the events after a sequence, up to `last`."""

    def __init__(self, after: int = 0, *, part: bool = False) -> None:
        """Begin behind a sequence.

        With `part`, events of jobs that were put before it are kept for the fold that it is merged into. Otherwise they
        count for the klass "".
        """
        self.after = self.last = after
        self.part = part
        self.epoch: int | None = None  # of the last event
        self.begins_after: int | None = None  # the epoch of the event before the first one
        self.began_at: int | None = None  # the moment of the first event
        self.tallies: dict[Key, Tally] = {}
        self.jobs: dict[str, Known] = {}
        self.pending: list[Event] = []
        self.begun: set[str] = set()  # the jobs that were put within a part

    # ---- reading

    def add(self, events: Iterable[Event]) -> None:
        """Count the next events. Raises EventsGone if some are missing between, HistoriesMixed if the server lost the
        events before them.
        """
        for event in events:
            self._follow(event.seq)
            if event.epoch != self.epoch:
                self._enter(event)
            if self.began_at is None:
                self.began_at = event.at
            self._count(event)
            self.last = event.seq

    def pass_over(self, gap: Gap) -> None:
        """Continue behind events that are gone: they are left out by decision, not by accident."""
        self._follow(gap.first)
        self.last, self.epoch = gap.last, None

    def know(self, jid: str, klass: str, tags: Iterable[str] = ()) -> None:
        """Set the klass and the tags of a job from now on: for a fold that begins after the job's put."""
        job = self.jobs.setdefault(jid, Known(klass))
        job.klass = klass
        job.tags = dict.fromkeys(tags)

    def merge(self, later: Fold) -> None:
        """Add the part that follows this one. Raises EventsGone if events are missing between, HistoriesMixed if the
        two are of different histories.
        """
        self._follow(later.after + 1)
        if None not in (self.epoch, later.begins_after) and self.epoch != later.begins_after:
            raise HistoriesMixed(later.after + 1, later.begins_after or 0, self.epoch or 0)
        for key, tally in later.tallies.items():
            self._tally(key).merge(tally)
        for event in later.pending:
            self._count(event)
        for jid in later.begun:
            self._begin(jid)
        self.jobs.update(later.jobs)
        self.last = later.last
        self.epoch = self.epoch if later.epoch is None else later.epoch
        self.began_at = later.began_at if self.began_at is None else self.began_at

    def tally(self, by: str, name: str, at: int) -> Tally:
        """Give the figures of a queue, klass, worker or tag on the day of a moment (ms); empty if nothing happened."""
        return self.tallies.get(Key(day_of(at), by, name)) or Tally()

    def _follow(self, seq: int) -> None:
        if seq != self.last + 1:
            raise EventsGone(prove([seq], self.last, seq))

    def _enter(self, event: Event) -> None:
        """Enter another epoch. Raises HistoriesMixed if the event does not begin it."""
        if self.epoch is not None and not follows(event, self.epoch):
            raise HistoriesMixed(event.seq, event.epoch, self.epoch)
        if self.last == self.after:
            self.begins_after = int(event.facts[1]) if event.event == "epoch_begun" else event.epoch
        self.epoch = event.epoch

    # ---- counting

    def _count(self, event: Event) -> None:
        handler = HANDLERS.get(event.event)
        if handler is None:
            return
        jid = str(event.facts[0])
        if jid not in self.jobs and event.event != "put":
            if self.part:
                self.pending.append(event)
                return
            self.jobs[jid] = Known("")
        handler(self, event, *event.facts)

    def _begin(self, jid: str) -> None:
        """Begin a job: an earlier job with its id is no longer failed."""
        old = self.jobs.pop(jid, None)
        if old is not None:
            self._recover(old)
        elif self.part:
            self.begun.add(jid)

    def _tally(self, key: Key) -> Tally:
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = Tally()
        return tally

    def _keys(self, at: int, job: Known, queue: str, worker: str) -> tuple[Key, ...]:
        """Give the tallies that an event of a job counts for."""
        day = day_of(at)
        keys = [Key(day, "queue", queue), Key(day, "klass", job.klass)]
        if worker:
            keys.append(Key(day, "worker", worker))
        return (*keys, *(Key(day, "tag", tag) for tag in job.tags))

    def _retried(self, keys: Iterable[Key], count: int = 1) -> None:
        for key in keys:
            self._tally(key).retries += count

    def _recover(self, job: Known) -> None:
        for key in job.failed:
            self._tally(key).failed -= 1
        job.failed = ()

    # ---- one for each event that counts

    def _put(self, event: Event, jid: str, queue: str, klass: str, state: str, tags: str = "") -> None:
        self._begin(jid)
        job = self.jobs[jid] = Known(klass)
        if tags:
            job.tags = dict.fromkeys(tags.split(BETWEEN_TAGS))

    def _popped(self, event: Event, jid: str, queue: str, worker: str, wait_ms: int) -> None:
        job = self.jobs[jid]
        if wait_ms:
            self._found_overdue(event, job)
        job.lost = None
        for key in self._keys(event.at, job, queue, worker):
            self._tally(key).wait.add(wait_ms)

    def _throttled(self, event: Event, jid: str, queue: str, throttle: str) -> None:
        job = self.jobs[jid]
        self._found_overdue(event, job)
        job.lost = None

    def _found_overdue(self, event: Event, job: Known) -> None:
        """Count a retry if a pop found the job's lease past timeout_ms, and took it."""
        if job.lost is not None and job.lost.cause == "timeout" and job.lost.at == event.at:
            self._retried(job.lost.keys)

    def _completed(self, event: Event, jid: str, queue: str, worker: str, token: int, run_ms: int) -> None:
        for key in self._keys(event.at, self.jobs[jid], queue, worker):
            self._tally(key).run.add(run_ms)

    def _advanced(
        self, event: Event, jid: str, queue: str, worker: str, token: int, run_ms: int, to: str, state: str
    ) -> None:
        self._completed(event, jid, queue, worker, token, run_ms)

    def _failed(self, event: Event, jid: str, queue: str, worker: str, token: int, group: str) -> None:
        job = self.jobs[jid]
        lost, job.lost = job.lost, None
        if lost is not None and lost.cause == "lapsed" and lost.seq == event.seq - 1:
            self._retried(lost.keys, -1)  # it had no retries left
        job.failed = self._keys(event.at, job, queue, worker)
        for key in job.failed:
            tally = self._tally(key)
            tally.failures += 1
            tally.failed += 1
            tally.groups[group] += 1

    def _retry(
        self, event: Event, jid: str, queue: str, worker: str, token: int, remaining: int, state: str, group: str = ""
    ) -> None:
        self._retried(self._keys(event.at, self.jobs[jid], queue, worker))

    def _lock_lost(self, event: Event, jid: str, queue: str, worker: str, token: int, cause: str) -> None:
        job = self.jobs[jid]
        job.lost = Lost(event.seq, event.at, cause, self._keys(event.at, job, queue, worker))
        if cause == "lapsed":
            self._retried(job.lost.keys)

    def _unfailed(self, event: Event, jid: str, queue: str, group: str, state: str) -> None:
        self._recover(self.jobs[jid])

    def _canceled(self, event: Event, jid: str, queue: str, state: str) -> None:
        self._recover(self.jobs.pop(jid))

    def _retired(self, event: Event, jid: str) -> None:
        self._recover(self.jobs.pop(jid))

    def _tagged(self, event: Event, jid: str, tag: str) -> None:
        self.jobs[jid].tags[tag] = None

    def _untagged(self, event: Event, jid: str, tag: str) -> None:
        self.jobs[jid].tags.pop(tag, None)


HANDLERS: dict[str, Callable[..., None]] = {
    "put": Fold._put,
    "popped": Fold._popped,
    "throttled": Fold._throttled,
    "completed": Fold._completed,
    "advanced": Fold._advanced,
    "failed": Fold._failed,
    "retried": Fold._retry,
    "lock_lost": Fold._lock_lost,
    "unfailed": Fold._unfailed,
    "canceled": Fold._canceled,
    "retired": Fold._retired,
    "tagged": Fold._tagged,
    "untagged": Fold._untagged,
}
"""The events that count, with what counts them."""

assert HANDLERS.keys() <= EVENTS.keys()
