"""Recurring jobs."""

from __future__ import annotations

from qmodel.contract.arguments import (
    AnyTags,
    Backlog,
    Count,
    Cron,
    Data,
    FairKey,
    FairWeight,
    Instant,
    Instants,
    Interval,
    IntervalOrNone,
    Klass,
    Limit,
    Milliseconds,
    Missed,
    Offset,
    Overlap,
    PriorityLevel,
    QueueName,
    RequestId,
    Retries,
    ScheduleId,
    ScheduleKind,
    Switch,
    Tags,
    ThrottleIds,
)
from qmodel.contract.operations.spec import CASCADE, DUE, ENDS, Operation, operation


@operation("jid", "memo", "SCHEDULE_OVER", "recurred")
class Recur(Operation):
    """Create or replace a recurring job: its runs are put as jobs of their own, called `<jid>-1`, `<jid>-2` and so on.

    The kind `interval`: a run is due every `interval_ms`, the first `offset_ms` after `start_at`, or after now without
    it. The due times are exact multiples; a run counts as ready at its due time, however late it is made. The kind
    `cron`: runs are due at the times in `due_at`, at most 100 in ascending order; `cron` is the expression that they
    come from, and is only stored. The kind `after`: each run is due `interval_ms` after the previous one has ended,
    however it ended.

    No run is due before `start_at` or after `end_at`, and at most `limit` runs are made; 0 means no bound. If several
    runs are due, `missed` decides: `all` makes all of them, `one` makes the last one, and `none` makes only those that
    are at most `catchup_ms` late. Runs that were due more than `backlog` intervals ago are skipped; 0 keeps all. With
    `overlap` set to `skip`, nothing is due while a run is unfinished, and what would have been due meanwhile is
    skipped.

    If the recurring job already exists, everything is replaced except the number of its last run. If kind, interval,
    offset, expression and start are unchanged, its times continue, unless `restart` is set; otherwise its times and the
    count of its runs start anew. A paused recurring job stays paused.

    The runs pass the `throttles`, and take turns by `fair_key` and `fair_weight`, as jobs of a put do.

    `runs` is for a recurring job that comes from elsewhere: the number of the last run that was made there. The first
    run here is called `<jid>-<runs + 1>`. It is ignored if the recurring job exists.
    """

    queue: QueueName
    jid: ScheduleId
    klass: Klass
    data: Data
    interval_ms: IntervalOrNone
    offset_ms: Milliseconds = 0
    priority: PriorityLevel = 0
    retries: Retries = 5
    tags: AnyTags = ()
    backlog: Backlog = 0
    kind: ScheduleKind = "interval"
    cron: Cron = ""
    due_at: Instants = ()
    start_at: Instant = 0
    end_at: Instant = 0
    limit: Limit = 0
    missed: Missed = "all"
    catchup_ms: Milliseconds = 60_000
    overlap: Overlap = "allow"
    restart: Switch = False
    runs: Limit = 0
    request: RequestId = ""
    throttles: ThrottleIds = ()
    fair_key: FairKey | None = None
    fair_weight: FairWeight | None = None


@operation("number", "memo", "", "unrecurred")
class Unrecur(Operation):
    """Delete a recurring job; the runs that were made stay. Replies 1, or 0 if there was no such recurring job."""

    jid: ScheduleId
    request: RequestId = ""


@operation("schedule", "read")
class RecurGet(Operation):
    """Show a recurring job, or nothing."""

    jid: ScheduleId


@operation("jid", "memo", "SCHEDULE_NOT_FOUND", "recur_updated unrecurred")
class RecurUpdate(Operation):
    """Change some arguments of a recurring job; runs that were made stay as they are.

    With a new interval, the next run is due one such interval after the last one, but not before now; a run that is due
    already stays due. A recurring job of the kind `cron` has no interval. After a change of queue the next run is due
    as before.
    """

    jid: ScheduleId
    queue: QueueName | None = None
    klass: Klass | None = None
    data: Data | None = None
    interval_ms: Interval | None = None
    priority: PriorityLevel | None = None
    retries: Retries | None = None
    backlog: Backlog | None = None
    request: RequestId = ""
    throttles: ThrottleIds | None = None
    fair_key: FairKey | None = None
    fair_weight: FairWeight | None = None


@operation("names", "memo", "SCHEDULE_NOT_FOUND LIMIT_REACHED", "recur_updated")
class RecurTag(Operation):
    """Add tags to a recurring job, for its future runs; replies all its tags."""

    jid: ScheduleId
    tags: Tags
    request: RequestId = ""


@operation("names", "memo", "SCHEDULE_NOT_FOUND", "recur_updated")
class RecurUntag(Operation):
    """Remove tags from a recurring job, for its future runs; replies the tags that are left."""

    jid: ScheduleId
    tags: Tags
    request: RequestId = ""


@operation("number", "memo", "SCHEDULE_NOT_FOUND", "recur_paused")
class RecurPause(Operation):
    """Pause a recurring job: none of its runs is due until it is unpaused; replies 1, or 0 if it was paused already."""

    jid: ScheduleId
    request: RequestId = ""


@operation("number", "memo", "SCHEDULE_NOT_FOUND", "recur_unpaused missed unrecurred")
class RecurUnpause(Operation):
    """Unpause a recurring job; runs that were due meanwhile are skipped. Replies 1, or 0 if it was not paused."""

    jid: ScheduleId
    request: RequestId = ""


@operation("jid", "memo", "SCHEDULE_NOT_FOUND", "fired put renumbered unrecurred")
class RecurNow(Operation):
    """Make one run of a recurring job at once, even if none is due, it is paused, or another run is unfinished.

    The run is counted, and does not change when the next one is due. Replies the run's id, or nothing if the next
    thousand ids are taken.
    """

    jid: ScheduleId
    request: RequestId = ""


@operation("number", "same", "", "recur_advanced unrecurred")
class RecurAdvance(Operation):
    """Supply the next due times of a recurring job of the kind `cron`, if `after` is the last one known.

    Give at most 100 times, in ascending order. The list of known times is filled up to 100, and further times are
    ignored. An empty list says that there are no more times. Replies the last known time, which is the `after` of the
    next call, or 0 if the job does not recur any more. Any number of clients may call this at any time: the times after
    a given one are accepted only once.
    """

    jid: ScheduleId
    after: Instant
    due_at: Instants = ()


@operation("schedules", "read")
class RecurringUnset(Operation):
    """Show recurring jobs of all queues whose known due times have passed, or will within `ahead_ms`; soonest first."""

    ahead_ms: Milliseconds = 0
    count: Count = 25


@operation("page", "read")
class Recurring(Operation):
    """List the recurring jobs of a queue, next due first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "", CASCADE + " fired renumbered missed" + ENDS + DUE)
class Fire(Operation):
    """Make the due runs of a queue without leasing them; replies how many were made.

    First, jobs that were not started within their time to live fail, as in a pop; and up to 1000 ended jobs are deleted
    whose `keep_complete_ms` or `keep_failed_ms` is over.

    Recurring jobs take turns, one run each, until none is due or `count` runs have been tried. A run whose id belongs
    to an existing job gets the next number. With `qless`, all due runs of a recurring job are made before those of the
    next, as in qless.
    """

    queue: QueueName
    count: Count = 1000
    request: RequestId = ""
    qless: Switch = False
