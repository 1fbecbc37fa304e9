"""Figures from the events: by day, and by queue, klass, worker and tag.

A fold goes through the events in their order, and can go on at any time. What the engine counts by queue it counts just
so; by klass, worker and tag the engine counts nothing, and from the events it costs the engine nothing.

**Parts.** Parts of the stream can be folded apart, each by a `Fold(after, part=True)`, and merged in their order. A
part does not know the jobs that were put before it: which klass they have, and which had failed. What is told of those
it keeps in `pending`; the fold that it is merged into knows them, and counts it.

**What no event says.** First, the tags with which a job is put: a fold knows those of the events `tagged` and
`untagged`, and those that it is told by `know`. Second, which of two things a lock_lost by `timeout` was: a lease that
reached timeout_ms counts as a retry, one that somebody took away does not. The former is found by a pop, so the next
that is told of the job is in the same millisecond, and it was ready before that, or is throttled. That errs where all
happens within a millisecond: where a grace-period of 0 lets a pop come in just that in which timeout_ms is reached, and
where a job that was taken away is throttled in the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from qmodel.contract.events import EVENTS, Event
from qmodel.model.state.stats import day_of
from qmodel.pipeline.events.gaps import EventsGone, Gap, prove
from qmodel.pipeline.statistics.tallies import Tally

KINDS = ("queue", "klass", "worker", "tag")
"""What figures are by."""


class Key(NamedTuple):
    """What a tally is of: the start of a UTC day (ms), one of KINDS, and a name."""

    day: int
    by: str
    name: str


class Lost(NamedTuple):
    """A lease that a job has lost last: by which event, when, why, and where that counts."""

    seq: int
    at: int
    cause: str
    keys: tuple[Key, ...]


class Known:
    """What a fold knows of a job: klass and tags, where its failure is counted, and the lease that it has just lost."""

    __slots__ = ("failed", "klass", "lost", "tags")

    def __init__(self, klass: str) -> None:
        self.klass = klass
        self.tags: dict[str, None] = {}
        self.failed: tuple[Key, ...] = ()
        self.lost: Lost | None = None


class Fold:
    """Figures of the events after a sequence, up to `last`."""

    def __init__(self, after: int = 0, *, part: bool = False) -> None:
        """With `part`, what is told of jobs that were put before is kept for whoever merges it, else counted as of the
        klass "".
        """
        self.after = self.last = after
        self.part = part
        self.began_at: int | None = None  # the moment of the first event
        self.tallies: dict[Key, Tally] = {}
        self.jobs: dict[str, Known] = {}
        self.pending: list[Event] = []
        self.begun: set[str] = set()  # of a part: the jobs that were put in it

    # ---- going through

    def add(self, events: Iterable[Event]) -> None:
        """Count events, which follow the last one. Raises EventsGone where some are missing between."""
        for event in events:
            self._follow(event.seq)
            if self.began_at is None:
                self.began_at = event.at
            self._count(event)
            self.last = event.seq

    def pass_over(self, gap: Gap) -> None:
        """Go on behind events that are gone: what they told is not counted, by decision and not by accident."""
        self._follow(gap.first)
        self.last = gap.last

    def know(self, jid: str, klass: str, tags: Iterable[str] = ()) -> None:
        """Tell what a job is, from now on: with which tags jobs are put is in no event."""
        job = self.jobs.setdefault(jid, Known(klass))
        job.klass = klass
        job.tags = dict.fromkeys(tags)

    def merge(self, later: Fold) -> None:
        """Count all that the part behind this one has. Raises EventsGone where some are missing between."""
        self._follow(later.after + 1)
        for key, tally in later.tallies.items():
            self._tally(key).merge(tally)
        for event in later.pending:
            self._count(event)
        for jid in later.begun:
            self._begin(jid)
        self.jobs.update(later.jobs)
        self.last = later.last
        self.began_at = later.began_at if self.began_at is None else self.began_at

    def tally(self, by: str, name: str, at: int) -> Tally:
        """The figures of a queue, klass, worker or tag on the day of a moment (ms); empty ones where nothing was."""
        return self.tallies.get(Key(day_of(at), by, name)) or Tally()

    def _follow(self, seq: int) -> None:
        if seq != self.last + 1:
            raise EventsGone(prove([seq], self.last, seq))

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
        """A job is put: what was there under its id before is no longer failed."""
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
        """Where something counts that happens to a job."""
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

    def _put(self, event: Event, jid: str, queue: str, klass: str, state: str) -> None:
        self._begin(jid)
        self.jobs[jid] = Known(klass)

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
        """A pop that found the lease of a job past timeout_ms, and took it, tried it again."""
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

    def _retry(self, event: Event, jid: str, queue: str, worker: str, token: int, remaining: int, state: str) -> None:
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
"""What counts: of all other events nothing does."""

assert HANDLERS.keys() <= EVENTS.keys()
