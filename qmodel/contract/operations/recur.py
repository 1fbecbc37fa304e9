"""Recurring jobs."""

from __future__ import annotations

from qmodel.contract.arguments import (
    AnyTags,
    Backlog,
    Count,
    Cron,
    Data,
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
)
from qmodel.contract.operations.spec import CASCADE, ENDS, Operation, operation


@operation("jid", "memo", "SCHEDULE_OVER", "recurred")
class Recur(Operation):
    """Let a job recur: runs of it are put, as jobs of their own that are called `<jid>-1`, `<jid>-2` and so on.

    Of the kind `interval` a run is due every `interval_ms`, first in `offset_ms` from `start_at` or else from now, at
    exact multiples, whenever it is made, and ready at that moment. Of the kind `cron` runs are due at the moments
    `due_at`, at most 100 in ascending order; `cron` says where they come from and is only kept. Of the kind `after`
    each run is due `interval_ms` after the one before has ended, in whatever way.

    None is due before `start_at` or after `end_at`, and no more than `limit` are made; 0 stands for no bound. Of
    several that are due `missed` has all made, or the last `one`, or `none` that is later than `catchup_ms`; those
    missed by more than `backlog` intervals are passed over, and 0 keeps all. With `overlap` at `skip` nothing is due
    while a run is unfinished, and what was due meanwhile is passed over.

    Of a recurring job that exists already everything is replaced but the number of its last run. If its kind, interval,
    offset, expression and start are the same it goes on as it was, unless `restart` is set: then, and if one of them is
    another, its times and the count of its runs begin anew. It stays paused if it is.
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
    request: RequestId = ""


@operation("number", "memo", "", "unrecurred")
class Unrecur(Operation):
    """Let a job recur no more; the runs that were made stay. Replies 1, or 0 if there was no such recurring job."""

    jid: ScheduleId
    request: RequestId = ""


@operation("schedule", "read")
class RecurGet(Operation):
    """Show a recurring job, or nothing."""

    jid: ScheduleId


@operation("jid", "memo", "SCHEDULE_NOT_FOUND", "recur_updated unrecurred")
class RecurUpdate(Operation):
    """Change what is given of a recurring job; runs that were made stay as they are.

    With a new interval the next run is due one such interval after the last one, but not before now; one that is due
    already stays so. One of the kind `cron` has no interval. In a new queue the next run is due when it was.
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


@operation("names", "memo", "SCHEDULE_NOT_FOUND", "recur_updated")
class RecurTag(Operation):
    """Add tags to a recurring job, for the runs to come; replies all its tags."""

    jid: ScheduleId
    tags: Tags
    request: RequestId = ""


@operation("names", "memo", "SCHEDULE_NOT_FOUND", "recur_updated")
class RecurUntag(Operation):
    """Remove tags from a recurring job, for the runs to come; replies the tags that are left."""

    jid: ScheduleId
    tags: Tags
    request: RequestId = ""


@operation("number", "memo", "SCHEDULE_NOT_FOUND", "recur_paused")
class RecurPause(Operation):
    """Let nothing of a recurring job be due, until it is let go on; replies 1, or 0 if it was paused already."""

    jid: ScheduleId
    request: RequestId = ""


@operation("number", "memo", "SCHEDULE_NOT_FOUND", "recur_unpaused missed unrecurred")
class RecurUnpause(Operation):
    """Let a recurring job go on; what was due meanwhile is passed over. Replies 1, or 0 if it was not paused."""

    jid: ScheduleId
    request: RequestId = ""


@operation("jid", "memo", "SCHEDULE_NOT_FOUND", "fired put renumbered unrecurred")
class RecurNow(Operation):
    """Make one run of a recurring job at once, though it is not due, or paused, or another is unfinished.

    It counts, and does not move the next one. Replies the run, or nothing if the ids of the next thousand are taken.
    """

    jid: ScheduleId
    request: RequestId = ""


@operation("number", "same", "", "recur_advanced unrecurred")
class RecurAdvance(Operation):
    """Tell the next moments of a recurring job of the kind `cron`, if `after` is the last one that is known.

    They are at most 100, in ascending order, and as many are taken as make 100 with those to come. To tell none says
    that there are none. Replies the last moment known, from which to tell on, or 0 if it recurs no more. So anybody may
    tell them, and however often: the moments after one are taken once.
    """

    jid: ScheduleId
    after: Instant
    due_at: Instants = ()


@operation("schedules", "read")
class RecurringUnset(Operation):
    """Show recurring jobs of all queues whose known moments have passed, or will have in `ahead_ms`; soonest first."""

    ahead_ms: Milliseconds = 0
    count: Count = 25


@operation("page", "read")
class Recurring(Operation):
    """List the recurring jobs of a queue, next due first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "", CASCADE + " fired renumbered missed" + ENDS)
class Fire(Operation):
    """Make the runs of a queue that are due, and take none of them; replies how many were made.

    Before that the jobs fail that did not begin within their time to live, as a pop would have it; and ended ones are
    deleted that were put with `keep_complete_ms` or `keep_failed_ms`, up to 1000 that are due.

    Recurring jobs take turns, a run each, until none is due or `count` runs have been tried. A run whose id belongs
    to a job already gets the next number.
    """

    queue: QueueName
    count: Count = 1000
    request: RequestId = ""
