"""The options of puts, recurring jobs and subscriptions, each declared once.

The client takes them as keyword arguments, job types extend them (`qmodel/app/options.py`), and
`qmodel/client/build.py` converts them to arguments of the catalogue. An option that is left out or None is not sent:
it keeps its value on an existing job and has its default on a new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypedDict

from qmodel.client.convert import Day, Dependencies, Duration


class CommonOptions(TypedDict, total=False):
    """Options of every job, whether a put, a request, a schedule or a subscription makes it."""

    retries: int | None
    """How often the job may be tried again. Default: 5."""

    tags: Iterable[str] | str | None
    """The job's tags."""


class RunOptions(CommonOptions, total=False):
    """Options of every job but a sub-request, which has the priority of its request."""

    priority: int | None
    """Jobs with a lower number run sooner. Default: 0."""


class AttemptOptions(CommonOptions, total=False):
    """Options that hold for one stage: each put sets them anew."""

    delay: Duration | None
    """Time until the job is ready, in seconds or as a timedelta. Default: 0."""

    lifo: bool | None
    """Stand before the other jobs of the same priority, newest first."""

    lease: Duration | None
    """How long a lease on the job lasts. Default: the queue's option `heartbeat`."""

    timeout: Duration | None
    """How long one attempt may run at most, counted from its claim, however often the lease is renewed."""

    ttl: Duration | None
    """How long from the put a worker may begin the job. After that the job fails instead."""

    dead_queue: str | None
    """The queue that gets a dead letter of the job when it fails for good."""


class StageOptions(RunOptions, AttemptOptions, total=False):
    """Options of a put and of a subscription."""


class ClaimOptions(TypedDict, total=False):
    """Options for the claims of a job, and for how long it is kept after its end."""

    throttles: Iterable[str] | str | None
    """Names of up to 8 throttles that each claim of the job must pass."""

    cost: int | None
    """How many tokens a claim takes from the throttles' buckets. Default: 1."""

    retry_delay: Duration | None
    """How long the first retry waits at least; each further one waits twice as long. A lease that lapses counts."""

    retry_delay_max: Duration | None
    """How long a retry waits at most by `retry_delay`. Default: a day."""

    max_lapses: int | None
    """How many of the job's leases may end by themselves before it fails. They take no retries then. Default: no
    limit but that of the retries.
    """

    fair_weight: int | None
    """How many turns its fair key gets where others get one, 1 to 100. Default: 1."""

    keep_complete: Duration | None
    """How long the job is kept at most after it is complete; 0 deletes it at once."""

    keep_newest: int | None
    """How many complete jobs of its type are kept at most, among those with this option."""

    keep_failed: Duration | None
    """How long the job is kept at most after it has failed; 0 deletes it at once."""


class DeclarableOptions(StageOptions, ClaimOptions, total=False):
    """Options of a put that a job type may declare for all its jobs."""

    unique_mode: Literal["pending", "window", "debounce", "again"] | None
    """How long the holder of the `unique` key stands for later jobs, and what a later put changes.

    - `pending` (default): until the holder has ended, or for `unique_for`.
    - `window`: for `unique_for` from the holder's put, however it ends.
    - `debounce`: while the holder has not begun, a later put replaces its data and restarts its delay, until
      `unique_max` from the holder's put.
    - `again`: while the holder has not begun, a later put replaces its data. If the holder has begun, the later job is
      put too and is kept back until the holder has ended.
    """

    unique_for: Duration | None
    """How long the holder of the `unique` key stands for later jobs."""

    unique_max: Duration | None
    """With `debounce`: the longest time from the holder's put for which later puts may restart its delay."""


class MomentOptions(TypedDict, total=False):
    """When a job is ready, as a moment."""

    at: datetime | None
    """When the job is ready, by the server's clock: a datetime with a time zone, instead of `delay`. A moment that is
    past means now.
    """


class DependencyOptions(TypedDict, total=False):
    """What a job waits for."""

    depends: Dependencies | None
    """Jobs, or their ids, that must be complete before this job is ready, and requests that must have ended
    (`client.requests["import-7"]`). An `Edge` also says what the failure of one does to this job, and may name the
    result of a job; `Edge.to_request("import-7", "fail")` is one to a request.
    """


class MoveOptions(DeclarableOptions, MomentOptions, DependencyOptions, total=False):
    """Options of a put but for its data and its id: `Job.move` takes these."""

    ordered: str | None
    """Concurrency key. Jobs with the same key start one after the other, whatever their queues. A job holds the key
    from when it is ready until it has ended.
    """

    fair_key: str | None
    """Whose job it is, in a queue with the option `fair`: the keys that have ready jobs take turns. Default: the job's
    first throttle.
    """

    unique: str | None
    """Uniqueness key (`qmodel.fingerprint` makes one of klass and data). If another job stands for this one under the
    key, nothing is put, and the job returned is that other one, with `deduplicated` True.
    """


class SubRequestOptions(AttemptOptions, MomentOptions, ClaimOptions, DependencyOptions, total=False):
    """Options of `Request.add`: those of a put, without priority and keys."""

    fair_key: str | None
    """Whose job it is, in a queue with the option `fair`: the keys that have ready jobs take turns. Default: the job's
    first throttle.
    """

    name: str | None
    """The part of the job's id that follows the request's id and a colon. Default: a new random one."""

    text: str | None
    """The job's data as text that is stored as it is, instead of `data`, which is stored as JSON."""


class RequestOptions(TypedDict, total=False):
    """Options of a request: what it carries, how it ends by itself, and who keeps a place under its limit."""

    data: object
    """What it carries, stored as JSON. Default: nothing."""

    deadline: Duration | None
    """How long after its opening it must have ended; then it is canceled. Default: no deadline."""

    fail_fast: bool
    """Cancel the sub-requests that have not begun as soon as one fails."""

    keep_places: bool
    """Let a sub-request that waits for its next try keep its place under the limit. Default: it leaves its place to
    another one meanwhile.
    """

    lease: Duration | None
    """How long its producer may be silent while it is open; then it is closed. Opening it again, adding to it and
    `touch` renew the lease. Default: it stays open.
    """


class PutOptions(MoveOptions, total=False):
    """Options of `Queue.put` and `Queue.new`."""

    jid: str | None
    """The job's id. Default: a new random one. With the id of an existing job, that job moves to this queue."""

    text: str | None
    """The job's data as text that is stored as it is, instead of `data`, which is stored as JSON."""


class SubscribeOptions(StageOptions, total=False):
    """Options of `Subscriptions.add`."""

    ordered: str | None
    """Concurrency key of the jobs: they start one after the other."""

    fair_key: str | None
    """Whose jobs they are, in a queue with the option `fair`: the keys that have ready jobs take turns."""

    fair_weight: int | None
    """How many turns their fair key gets where others get one, 1 to 100. Default: 1."""

    after: int | None
    """Also deliver the kept messages with numbers greater than this one; 0 for all."""

    since: Day | None
    """Also deliver the kept messages that were due at this moment or later."""


class RecurrenceOptions(TypedDict, total=False):
    """Options of a recurring job that job types may declare too: when its runs are due, and how many are made."""

    cron: str | None
    """Cron expression of five fields, or six with seconds first. Runs are due at its moments."""

    tz: str | None
    """Time zone of `cron`. Default: UTC."""

    after: Duration | None
    """Each run is due this long after the end of the run before."""

    offset: Duration | None
    """Time from `start`, or from now, until the first run is due. Default: 0."""

    start: Day | None
    """No run is due before this moment."""

    end: Day | None
    """No run is due after this moment."""

    limit: int | None
    """How many runs are made at most; 0 (default) for any number."""

    backlog: int | None
    """How many missed runs are made at most; 0 (default) for all."""

    missed: Literal["all", "one", "none"] | None
    """Which of several due runs are made: all (default), the last one, or none that is later than `catchup`."""

    catchup: Duration | None
    """With `missed="none"`: how late a run may be made. Default: 60 seconds."""

    overlap: Literal["allow", "skip"] | None
    """`skip`: no run is due while another one is unfinished. Default: allow."""

    restart: bool | None
    """Begin the times and the count of runs anew, also if the recurring job exists with the same times."""

    runs: int | None
    """For a new recurring job that comes from elsewhere: the number of its last run there. Default: 0."""


class RecurOptions(RecurrenceOptions, RunOptions, total=False):
    """Options of `Queue.recur`."""

    throttles: Iterable[str] | str | None
    """Names of up to 8 throttles that each claim of a run must pass."""

    fair_key: str | None
    """Whose runs they are, in a queue with the option `fair`. Default: their first throttle."""

    fair_weight: int | None
    """How many turns their fair key gets where others get one, 1 to 100. Default: 1."""

    interval: Duration | None
    """Time from one due run to the next. Runs are due at exact multiples of it."""

    jid: str | None
    """Id of the recurring job. Default: a new random one. Its runs are `<jid>-1`, `<jid>-2` and so on."""

    text: str | None
    """The data of the runs as text that is stored as it is, instead of `data`, which is stored as JSON."""
