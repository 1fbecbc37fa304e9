"""What operations reply: plain immutable records, the same from every backend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, SupportsIndex, overload

from qmodel.contract.arguments import Edge
from qmodel.contract.events import Event, Fact
from qmodel.contract.reasons import Reason

record = tuple.__new__
"""Makes a NamedTuple of its class and a tuple of its fields; the constructor takes three times as long (0.3 us)."""


class Stage(NamedTuple):
    """One entry of a job's history: what happened, when, and its facts (named in HISTORY)."""

    what: str
    at: int
    facts: tuple[Fact, ...]

    @property
    def named(self) -> dict[str, Fact]:
        """The facts by name."""
        return dict(zip(HISTORY[self.what], self.facts, strict=True))


Kept = tuple[str, int, tuple[Fact, ...]]
"""A stage as it is kept: a plain tuple, which Python's garbage collector need not look at for as long as it stays."""

WIDTH = 3
"""The fields of a stage."""


class Stages(tuple[Stage, ...]):
    """A history. Its stages are made when somebody looks at them, which a worker that pops a job seldom does: what it
    holds are their fields, one stage's after the other's.

    >>> Stages([("put", 1, ("emails",))])[0].what
    'put'
    """

    __slots__ = ()

    def __new__(cls, stages: Iterable[Kept] = ()) -> Stages:
        return tuple.__new__(cls, chain.from_iterable(stages))

    def __iter__(self) -> Iterator[Stage]:
        fields = super().__iter__()
        return map(Stage, fields, fields, fields)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return super().__len__() // WIDTH

    def kept(self) -> list[Kept]:
        """The stages as they are kept: plain tuples, for who only writes them."""
        fields: Any = super().__iter__()
        return list(zip(fields, fields, fields, strict=True))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Stage: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Stage, ...]: ...

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

    def __contains__(self, stage: object) -> bool:
        return stage in tuple(self)

    def index(self, *stage: Any) -> int:
        return tuple(self).index(*stage)

    def count(self, stage: Any) -> int:
        return tuple(self).count(stage)

    def __add__(self, other: Any) -> Any:
        return tuple(self) + other

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) if type(other) is Stages else tuple(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type[Stages], tuple[tuple[Stage, ...]]]:
        return Stages, (tuple(self),)

    def __repr__(self) -> str:
        return repr(tuple(self))


HISTORY: dict[str, tuple[str, ...]] = {
    "spawned": ("schedule",),
    "put": ("queue",),
    "popped": ("worker", "token"),
    "completed": ("token", "state"),
    "failed": ("token", "group"),
    "retried": ("token", "remaining"),
    "released": ("token", "state"),
    "lapsed": ("worker", "token"),
    "timed_out": ("worker", "token"),
    "log": ("message",),
}
"""The facts of each kind of stage. Those that end a lease carry its token: a resend is answered from here."""


class Failure(NamedTuple):
    """Why and when a job last failed, and on which worker."""

    group: str
    message: str
    at: int
    worker: str


class Job(NamedTuple):
    """Everything about a job, true at the moment of the operation. Times are milliseconds; 0 means never."""

    jid: str
    klass: str
    queue: str
    state: str
    data: str
    priority: int
    retries: int
    remaining: int
    tags: tuple[str, ...]
    worker: str
    token: int
    expires_at: int
    put_at: int
    ready_at: int
    popped_at: int
    ended_at: int
    result: str
    progress: str
    failure: Failure | None
    tracked: bool
    dependencies: tuple[str, ...]
    dependents: tuple[str, ...]
    history: tuple[Stage, ...]
    options: tuple[tuple[str, str], ...]

    @property
    def after(self) -> tuple[Edge, ...]:
        """The dependencies that it was given, met or not, if one of them had a policy or a name; of many, the first."""
        words = dict(self.options).get("after", "").split(" ")
        pairs = zip(words[::2], words[1::2], strict=False)
        return tuple(Edge(jid, *said.split(":", 1)) for jid, said in pairs)

    @property
    def spawned_from(self) -> str:
        """The recurring job that it is a run of, or empty. A history keeps its first stage."""
        first = self.history[0]
        return str(first.facts[0]) if first.what == "spawned" else ""

    def option(self, name: str) -> str | None:
        """What an option says, or None."""
        return next((value for known, value in self.options if known == name), None)

    @property
    def lifo(self) -> bool:
        """Whether it stands before the others of its priority, newest first."""
        return self.option("lifo") is not None

    @property
    def lease_ms(self) -> int | None:
        """How long a lease on it lasts, where that is not the queue's heartbeat."""
        return _whole(self.option("lease_ms"))

    @property
    def throttles(self) -> tuple[str, ...]:
        """The throttles that it passes whenever it is claimed."""
        return tuple((self.option("throttles") or "").split())

    @property
    def cost(self) -> int:
        """The tokens that a claim of it takes from their buckets."""
        return _whole(self.option("cost")) or 1

    @property
    def gate(self) -> str | None:
        """The throttle at which it is parked, or that has let it go on while it waits."""
        return self.option("gate")

    @property
    def dead_queue(self) -> str | None:
        """Where a dead letter of it is put when it fails."""
        return self.option("dead_queue")

    @property
    def origin(self) -> str | None:
        """The job of which it is a dead letter."""
        return self.option("origin")

    @property
    def origin_queue(self) -> str | None:
        """The queue in which that job failed."""
        return self.option("origin_queue")

    @property
    def revoked(self) -> bool:
        """Whether it was called off while it was running, and its lease has not ended yet."""
        return self.option("revoked") is not None

    @property
    def ttl_ms(self) -> int | None:
        """How long from its put it may begin; None also for a job that has begun."""
        return _whole(self.option("ttl_ms"))

    @property
    def keep_complete_ms(self) -> int | None:
        """How long it is kept at most once it is complete, if its put said so."""
        return _whole(self.option("keep_complete_ms"))

    @property
    def keep_failed_ms(self) -> int | None:
        """How long it is kept at most once it has failed, if its put said so."""
        return _whole(self.option("keep_failed_ms"))

    @property
    def subject(self) -> str | None:
        """What the message was about that became this job; None for one that was put."""
        return self.option("subject")

    @property
    def timeout_ms(self) -> int | None:
        """How long a claim lasts at most, if that is limited."""
        return _whole(self.option("timeout_ms"))

    @property
    def request(self) -> str | None:
        """The request that it is an unfinished sub-request of, if it is one."""
        return self.option("request")

    @property
    def ordered(self) -> str | None:
        """The key of which one job after the other starts, if it has one."""
        return self.option("ordered")

    @property
    def unique(self) -> str:
        """The key with which it was put, or empty."""
        return self.option("unique") or ""

    @property
    def holder(self) -> str:
        """The id of the job that holds its key, where it is kept until that one has ended; or empty."""
        return self.option("holder") or ""


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


class Lease(NamedTuple):
    """When a renewed lease ends, and whether the job was revoked: then its worker should stop."""

    expires_at: int
    revoked: bool


class CompletedAndPopped(NamedTuple):
    """What complete_and_pop did: the state that the finished job is in, and the jobs granted."""

    state: str
    jobs: tuple[Job, ...]


class Result(NamedTuple):
    """What became of a named dependency: its name and id, its state, and its result, or why it failed."""

    name: str
    jid: str
    state: str
    result: str


class Page(NamedTuple):
    """A part of a list, and how long the whole list is."""

    total: int
    jids: tuple[str, ...]


class Tally(NamedTuple):
    """A name and how many jobs it has: a failure group, or a tag."""

    name: str
    jobs: int


class Pause(NamedTuple):
    """Why a queue is paused, and until when; 0 where that does not end by itself."""

    reason: str
    until: int


class QueueCounts(NamedTuple):
    """How many jobs of a queue are in each state, and the next moment at which one becomes ready by itself, or at which
    a pause of the queue ends (or 0).

    `recurring` is how many jobs recur in the queue, and `due` how many of these have a run due that is not made yet.
    """

    name: str
    waiting: int
    scheduled: int
    depends: int
    running: int
    stalled: int
    paused: bool
    next_at: int
    recurring: int
    due: int
    throttled: int
    pauses: tuple[Pause, ...]


class Schedule(NamedTuple):
    """A recurring job: what its runs are like, the number of the last one, and when the next one is due.

    `next_at` is 0 while that is not known: it is paused, or waits for one of the `open` runs to end, or for somebody to
    tell more moments than those `due_at`, of which `last_at` is the last. Bounds are 0 where there are none.
    """

    jid: str
    queue: str
    klass: str
    data: str
    priority: int
    retries: int
    tags: tuple[str, ...]
    interval_ms: int
    backlog: int
    runs: int
    next_at: int
    kind: str
    cron: str
    due_at: tuple[int, ...]
    last_at: int
    offset_ms: int
    start_at: int
    end_at: int
    limit: int
    made: int
    missed: str
    catchup_ms: int
    overlap: str
    open: int
    paused: bool


class Throttle(NamedTuple):
    """A throttle: its limits, where 0 is none, and how they are used.

    `running` is how many jobs hold a place, and `holders` are the first 25 of them; `claims` is how many claims are in
    the window, `tokens` how many whole tokens are in the bucket, and `parked` how many jobs wait (in the first 1000 of
    their queues). `opens_at` is when a job of cost 1 may pass again if nothing else happens; 0 if it may now, or if a
    job has to end first.
    """

    name: str
    concurrency: int
    rate: int
    rate_ms: int
    capacity: int
    refill: int
    refill_ms: int
    running: int
    claims: int
    tokens: int
    parked: int
    opens_at: int
    holders: tuple[str, ...]


class Unique(NamedTuple):
    """A key that is held: the mode and the id of the job that holds it, since when, until when (0: until it has ended),
    and the id of the job that is kept for after it, or empty.
    """

    unique: str
    mode: str
    jid: str
    since: int
    until: int
    next: str


class Subscription(NamedTuple):
    """A subscription: what it wants, what its jobs are like, and how many messages of the past it is behind."""

    name: str
    patterns: tuple[str, ...]
    queue: str
    klass: str
    priority: int
    retries: int
    delay_ms: int
    tags: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    behind: int


class Message(NamedTuple):
    """A message: its number, when it was published, when it is due, what it is about, and its data."""

    seq: int
    at: int
    due_at: int
    subject: str
    data: str


class Request(NamedTuple):
    """A request: how many of its sub-requests wait, run, and ended in which way. Times are milliseconds; 0 is never."""

    id: str
    queue: str
    priority: int
    limit: int
    state: str
    total: int
    pending: int
    running: int
    done: int
    failed: int
    canceled: int
    opened_at: int
    ended_at: int


class Drained(NamedTuple):
    """How many jobs a drain canceled, and how many the queue still has."""

    canceled: int
    left: int


class Found(NamedTuple):
    """Jobs that were found, and the cursor with which the search goes on; empty at its end."""

    cursor: str
    jobs: tuple[Job, ...]


class Entry(NamedTuple):
    """A key, and the text that is noted under it."""

    key: str
    value: str


class Bulk(NamedTuple):
    """How many jobs something was done to, how many fit but were passed over, and the cursor to go on from.

    Of a queue that is obliterated: how many are gone, and how many it still has.
    """

    done: int
    passed: int
    cursor: str


class WorkerCounts(NamedTuple):
    """A worker, when it was last seen, and how many leases it holds, valid and lapsed."""

    name: str
    seen_at: int
    jobs: int
    stalled: int


class WorkerJobs(NamedTuple):
    """The jobs that a worker holds: with a valid lease, and with a lapsed one; oldest claim first."""

    jobs: tuple[str, ...]
    stalled: tuple[str, ...]


class Sample(NamedTuple):
    """Wait or run times of one queue and day, in milliseconds; `squares` is the sum of squared deviations (Welford)."""

    count: int  # type: ignore[assignment]  # the documents' word; nobody counts in this tuple
    mean: float
    squares: float
    histogram: tuple[int, ...]

    @property
    def variance(self) -> float:
        """The sample variance, 0 below two values."""
        return self.squares / (self.count - 1) if self.count > 1 else 0.0

    @property
    def std(self) -> float:
        """The sample standard deviation."""
        return math.sqrt(self.variance)


class Stats(NamedTuple):
    """Statistics of one queue on one day. `failed` is how many that failed that day are still failed."""

    queue: str
    day: int
    wait: Sample
    run: Sample
    failures: int
    failed: int
    retries: int


class Minute(NamedTuple):
    """How many jobs of a queue were completed, failed and tried again in a minute; how long the completed ones ran."""

    at: int
    completed: int
    failed: int
    retried: int
    run_ms: int


class TrackedJobs(NamedTuple):
    """The tracked jobs that exist, in order of tracking, and the ids of those that are gone."""

    jobs: tuple[Job, ...]
    expired: tuple[str, ...]


class Recorded(NamedTuple):
    """An entry of the journal: its number, the sequence of the last event after it, the call as `qmodel run` takes it,
    and what came of it: JSON, with `reply`, or `refused` and then a code and its facts."""

    number: int
    seq: int
    call: str
    outcome: str


class Setting(NamedTuple):
    """An option, its value, and whether somebody set it."""

    option: str
    value: int
    is_set: bool


SHAPES: dict[str, Any] = {
    "jid": str,
    "jids": tuple[str, ...],
    "names": tuple[str, ...],
    "state": str,
    "number": int,
    "lease": Lease,
    "job": Job | None,
    "jobs": tuple[Job, ...],
    "completed_and_popped": CompletedAndPopped,
    "page": Page,
    "results": tuple[Result, ...],
    "tallies": tuple[Tally, ...],
    "tracked": TrackedJobs,
    "schedule": Schedule | None,
    "schedules": tuple[Schedule, ...],
    "unique": Unique | None,
    "subscription": Subscription | None,
    "subscriptions": tuple[Subscription, ...],
    "messages": tuple[Message, ...],
    "request": Request | None,
    "drained": Drained,
    "reasons": tuple[Reason, ...],
    "throttle": Throttle,
    "throttles": tuple[Throttle, ...],
    "found": Found,
    "bulk": Bulk,
    "entries": tuple[Entry, ...],
    "queues": tuple[QueueCounts, ...],
    "queue": QueueCounts,
    "workers": tuple[WorkerCounts, ...],
    "worker": WorkerJobs,
    "stats": Stats,
    "metrics": tuple[Minute, ...],
    "events": tuple[Event, ...],
    "recorded": tuple[Recorded, ...],
    "settings": tuple[Setting, ...],
}
"""The type of each shape of reply that the catalogue names."""
