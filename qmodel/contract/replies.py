"""The replies of operations: plain immutable records, the same from every backend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, SupportsIndex, overload

from qmodel.contract.arguments import Edge, awaited_request
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
        """Give the facts by name."""
        return dict(zip(HISTORY[self.what], self.facts, strict=True))


Kept = tuple[str, int, tuple[Fact, ...]]
"""A stage as it is stored: a plain tuple, which Python's garbage collector stops tracking."""

WIDTH = 3
"""The number of fields of a stage."""


class Stages(tuple[Stage, ...]):
    """A history. It holds the fields of all stages in one flat tuple, and makes stages on access: a worker that pops a
    job seldom looks at them.

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
        """Give the stages as plain tuples, for code that only writes them."""
        fields: Any = tuple.__iter__(self)
        return list(zip(fields, fields, fields))  # noqa: B905 (`strict` would take half as long again)

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


def _lost(began: Attempt | None, at: int) -> list[Attempt]:
    """End an attempt that lost its job to a put."""
    return [] if began is None else [began._replace(ended_at=at, outcome="lost")]


HISTORY: dict[str, tuple[str, ...]] = {
    "spawned": ("schedule",),
    "put": ("queue",),
    "popped": ("worker", "token"),
    "completed": ("token", "state"),
    "raised": ("group", "message"),
    "failed": ("token", "group"),
    "retried": ("token", "remaining"),
    "released": ("token", "state"),
    "lapsed": ("worker", "token"),
    "timed_out": ("worker", "token"),
    "told": ("worker", "token"),
    "throttled": ("queue", "throttle"),
    "log": ("message",),
}
"""The facts of each kind of stage. A stage that ends a lease carries the token: a repeated call is answered from here.

`raised`: why the lease ends that the next stage ends, `retried` or `failed`; the end of the message, up to 1024 bytes.
`told`: the lease has run out, and its holder was told so, but keeps the job for another grace-period (`pop`, `qless`).
`throttled`: a call by the rules of reqless has parked the job, which no other has admitted since its last claim.
"""


class Failure(NamedTuple):
    """Why and when a job last failed, and on which worker."""

    group: str
    message: str
    at: int
    worker: str


class Attempt(NamedTuple):
    """One attempt of a job, by its history: who held it, from when to when (0: it is running), and what became of it.

    `outcome` is completed, failed, retried, released, lapsed, timed_out, lost or running; `group` and `message` say why
    it was retried or failed.
    """

    worker: str
    token: int
    began_at: int
    ended_at: int
    outcome: str
    group: str = ""
    message: str = ""


ENDED = frozenset({"completed", "failed", "retried", "released", "lapsed", "timed_out"})
"""The stages that end an attempt, each with the outcome of its name."""


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
    def depends_on_jobs(self) -> tuple[str, ...]:
        """The jobs among `dependencies`."""
        return tuple(one for one in self.dependencies if not awaited_request(one))

    @property
    def depends_on_requests(self) -> tuple[str, ...]:
        """The requests among `dependencies`, by their ids."""
        return tuple(id for id in map(awaited_request, self.dependencies) if id)

    @property
    def after(self) -> tuple[Edge, ...]:
        """The dependencies on jobs that it was given, met or not, if any had a policy or a name; of many, only the
        first.
        """
        words = dict(self.options).get("after", "").split(" ")
        pairs = zip(words[::2], words[1::2], strict=False)
        return tuple(Edge(jid, *said.split(":", 1)) for jid, said in pairs)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts that the history knows, oldest first: all, or the newest ones of a job with a long history."""
        found: list[Attempt] = []
        began: Attempt | None = None
        why: tuple[str, str] = "", ""
        for what, at, facts in self.history:
            if what == "popped":
                found += _lost(began, at)
                began, why = Attempt(str(facts[0]), int(facts[1]), at, 0, "running"), ("", "")
            elif what == "raised":
                why = str(facts[0]), str(facts[1])
            elif what == "failed" and began is None and found and found[-1].outcome == "retried":
                found[-1] = found[-1]._replace(outcome="failed", group=found[-1].group or str(facts[1]))
            elif what == "put":
                found += _lost(began, at)
                began = None
            elif what in ENDED and began is not None:
                group = str(facts[1]) if what == "failed" else ""
                found.append(began._replace(ended_at=at, outcome=what, group=why[0] or group, message=why[1]))
                began = None
        if began is not None:
            found += [began] if self.state == "running" else _lost(began, self.ended_at)
        return tuple(found)

    @property
    def spawned_from(self) -> str:
        """The recurring job that made this run, or empty. A history always keeps its first stage."""
        first = self.history[0]
        return str(first.facts[0]) if first.what == "spawned" else ""

    def option(self, name: str) -> str | None:
        """Give the value of an option, or None."""
        return next((value for known, value in self.options if known == name), None)

    @property
    def lifo(self) -> bool:
        """Whether it comes before the others of its priority, newest first."""
        return self.option("lifo") is not None

    @property
    def lease_ms(self) -> int | None:
        """How long a lease on it lasts, if that differs from the queue's heartbeat."""
        return _whole(self.option("lease_ms"))

    @property
    def throttles(self) -> tuple[str, ...]:
        """The throttles that it passes each time it is claimed."""
        return tuple((self.option("throttles") or "").split())

    @property
    def cost(self) -> int:
        """The tokens that a claim takes from the buckets."""
        return _whole(self.option("cost")) or 1

    @property
    def gate(self) -> str | None:
        """The throttle at which it is parked, or that has admitted it while it waits for its claim."""
        return self.option("gate")

    @property
    def dead_queue(self) -> str | None:
        """The queue for its dead letter."""
        return self.option("dead_queue")

    @property
    def origin(self) -> str | None:
        """The job that this dead letter stands for."""
        return self.option("origin")

    @property
    def origin_queue(self) -> str | None:
        """The queue in which that job failed."""
        return self.option("origin_queue")

    @property
    def revoked(self) -> bool:
        """Whether it was revoked while running, and its lease has not ended yet."""
        return self.option("revoked") is not None

    @property
    def ttl_ms(self) -> int | None:
        """How long after its put it may start; None also for a job that has started."""
        return _whole(self.option("ttl_ms"))

    @property
    def keep_complete_ms(self) -> int | None:
        """How long it is kept at most once complete, if its put set that."""
        return _whole(self.option("keep_complete_ms"))

    @property
    def keep_newest(self) -> int | None:
        """How many complete jobs of its type are kept with it, if its put set that."""
        return _whole(self.option("keep_newest"))

    @property
    def keep_failed_ms(self) -> int | None:
        """How long it is kept at most once failed, if its put set that."""
        return _whole(self.option("keep_failed_ms"))

    @property
    def subject(self) -> str | None:
        """The subject of the message that became this job; None for a job that was put."""
        return self.option("subject")

    @property
    def timeout_ms(self) -> int | None:
        """How long a claim lasts at most, if that is limited."""
        return _whole(self.option("timeout_ms"))

    @property
    def request(self) -> str | None:
        """The request that it is an unfinished sub-request of, or None."""
        return self.option("request")

    @property
    def ordered(self) -> str | None:
        """Its ordered key, or None: jobs with the same key run one at a time."""
        return self.option("ordered")

    @property
    def retry_delay_ms(self) -> int | None:
        """How long its first retry waits at least, if its put set that; each further one waits twice as long."""
        return _whole(self.option("retry_delay_ms"))

    @property
    def retry_delay_max_ms(self) -> int | None:
        """How long a retry waits at most by `retry_delay_ms`, if its put set that."""
        return _whole(self.option("retry_delay_max_ms"))

    @property
    def max_lapses(self) -> int | None:
        """How many of its leases may end by themselves, if that is limited apart from its retries."""
        return _whole(self.option("max_lapses"))

    @property
    def fair_key(self) -> str | None:
        """Its fair key, or None: in a fair queue the keys take turns."""
        return self.option("fair_key")

    @property
    def fair_weight(self) -> int:
        """How many turns its fair key gets where others get one."""
        return _whole(self.option("fair_weight")) or 1

    @property
    def unique(self) -> str:
        """The deduplication key that it was put with, or empty."""
        return self.option("unique") or ""

    @property
    def holder(self) -> str:
        """The id of the job that holds its key, if this job waits until that one has ended; or empty."""
        return self.option("holder") or ""


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


class Lease(NamedTuple):
    """When a renewed lease ends, and whether the job was revoked: if so, its worker should stop."""

    expires_at: int
    revoked: bool


class CompletedAndPopped(NamedTuple):
    """The result of complete_and_pop: the new state of the finished job, and the jobs granted."""

    state: str
    jobs: tuple[Job, ...]


class Result(NamedTuple):
    """The outcome of a named dependency: its name, id and state, and its result or its failure's message."""

    name: str
    jid: str
    state: str
    result: str


class Page(NamedTuple):
    """A part of a list, and the length of the whole list."""

    total: int
    jids: tuple[str, ...]


class Tally(NamedTuple):
    """A failure group or a tag, and how many jobs it has."""

    name: str
    jobs: int


class Pause(NamedTuple):
    """Why a queue is paused, and until when; 0 if the pause does not end by itself."""

    reason: str
    until: int


class QueueCounts(NamedTuple):
    """How many jobs of a queue are in each state. `next_at` is the next time at which a job becomes ready by itself or
    a pause ends, or 0.

    `recurring` is how many jobs recur in the queue, and `due` how many of them have a due run that is not made yet.
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
    """A recurring job: the properties of its runs, the number of the last one, and when the next one is due.

    `next_at` is 0 while it is unknown: the recurring job is paused, or waits for one of its `open` runs to end, or
    needs more due times than those in `due_at` (`last_at` is the last of them). A bound of 0 means none, and so does a
    `fair_weight` of 0.
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
    throttles: tuple[str, ...] = ()
    fair_key: str = ""
    fair_weight: int = 0


class Throttle(NamedTuple):
    """A throttle: its limits, with 0 for none, and their use.

    `running` is how many jobs count against `concurrency`, and `holders` are the first 25 of them. `claims` is how many
    claims are in the window, `tokens` how many whole tokens are in the bucket, and `parked` how many jobs wait (in the
    first 1000 queues). `opens_at` is when a job of cost 1 may pass again if nothing else happens; 0 if it may now, or
    if a job has to end first. `family` is the pattern of the family that gives the limits, empty for limits of its own.
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
    family: str


class UsedThrottles(NamedTuple):
    """The throttles that are in use, and the cursor to continue from; empty at the end."""

    cursor: str
    throttles: tuple[Throttle, ...]


class Unique(NamedTuple):
    """A held deduplication key: the mode and the id of its holder, since when, and until when (0: until the holder has
    ended). `next` is the job that waits until the holder has ended, or empty.
    """

    unique: str
    mode: str
    jid: str
    since: int
    until: int
    next: str


class Subscription(NamedTuple):
    """A subscription: its patterns, the properties of its jobs, and how many messages it is behind."""

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
    """A message: its number, when it was published, when it is due, its subject, and its data."""

    seq: int
    at: int
    due_at: int
    subject: str
    data: str


class Request(NamedTuple):
    """A request: how many of its sub-requests wait, run, and ended with each outcome, and how many jobs wait for its
    end (`dependents`). Times are milliseconds; 0 means never. The reason says why it was closed or canceled: `canceled`
    by a call, `deadline`, `failed` (a sub-request, with `fail_fast`), or `lapsed` (the lease of an open request).
    `data` is the text that it was opened with; `keep_places` says whether sub-requests in backoff keep their places.
    """

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
    deadline_at: int = 0
    open_until: int = 0
    fail_fast: bool = False
    reason: str = ""
    dependents: int = 0
    data: str = ""
    keep_places: bool = False


class SubRequest(NamedTuple):
    """A sub-request: its job's id and how it ended: done, failed or canceled, or empty if it has not ended.

    `state` is that of its job; it is empty if the job is no longer kept, was retried, or was put again. `result` is the
    result of a complete job, or the message of a failed one with its `group`.
    """

    jid: str
    outcome: str
    state: str
    group: str
    result: str


class SubRequests(NamedTuple):
    """Some sub-requests in the order in which they were added, and the offset to continue from; 0 at the end."""

    next: int
    jobs: tuple[SubRequest, ...]


class Forgotten(NamedTuple):
    """How many sub-requests are left to forget, how many jobs were deleted, and how many stay, though all were to be
    deleted.
    """

    left: int
    deleted: int
    stay: int


class Drained(NamedTuple):
    """How many jobs a drain canceled, and how many the queue still has."""

    canceled: int
    left: int


class Found(NamedTuple):
    """The jobs that a search found, and the cursor to continue from; empty at the end."""

    cursor: str
    jobs: tuple[Job, ...]


class Entry(NamedTuple):
    """A metadata key, and its text."""

    key: str
    value: str


class Bulk(NamedTuple):
    """How many jobs were changed, how many matched but were skipped, and the cursor to continue from.

    After obliterating a queue: how many jobs were deleted, and how many the queue still has.
    """

    done: int
    passed: int
    cursor: str


class Cleaned(NamedTuple):
    """How many jobs were deleted, how many matched but stay, the cursor to continue from, and the ids of the deleted
    ones; for a preview, of the matching ones.
    """

    done: int
    passed: int
    cursor: str
    jids: tuple[str, ...]


class WorkerCounts(NamedTuple):
    """A worker, when it was last seen, and how many leases it holds, valid and lapsed."""

    name: str
    seen_at: int
    jobs: int
    stalled: int


class WorkerJobs(NamedTuple):
    """The jobs that a worker holds with a valid lease, and with a lapsed one; oldest claim first."""

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
    """Statistics of one queue on one day. `failed` counts the jobs that failed that day and are still failed.

    Those by a tag or a worker have only `wait` and `run`; the other counts are 0.
    """

    queue: str
    day: int
    wait: Sample
    run: Sample
    failures: int
    failed: int
    retries: int


class Minute(NamedTuple):
    """How many jobs of a queue were completed, failed and retried in a minute; how long the completed ones ran."""

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
    the outcome, and the epoch. The outcome is JSON: `reply`, or `refused` with a code and its facts.
    """

    number: int
    seq: int
    call: str
    outcome: str
    epoch: int = 0


class Newest(NamedTuple):
    """The sequence of the newest event, 0 before the first, and the current epoch."""

    seq: int
    epoch: int


class Setting(NamedTuple):
    """An option, its value, and whether it is set."""

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
    "sub_requests": SubRequests,
    "forgotten": Forgotten,
    "drained": Drained,
    "reasons": tuple[Reason, ...],
    "throttle": Throttle,
    "throttles": tuple[Throttle, ...],
    "used_throttles": UsedThrottles,
    "found": Found,
    "bulk": Bulk,
    "cleaned": Cleaned,
    "entries": tuple[Entry, ...],
    "queues": tuple[QueueCounts, ...],
    "queue": QueueCounts,
    "workers": tuple[WorkerCounts, ...],
    "worker": WorkerJobs,
    "stats": Stats,
    "metrics": tuple[Minute, ...],
    "events": tuple[Event, ...],
    "newest": Newest,
    "recorded": tuple[Recorded, ...],
    "settings": tuple[Setting, ...],
}
"""The type of each shape of reply that the catalogue names."""
