"""Reads."""

from __future__ import annotations

from qmodel.contract.arguments import (
    Count,
    Cursor,
    Epoch,
    Fragment,
    Group,
    Instant,
    Jid,
    Jids,
    Klass,
    Offset,
    QueueName,
    Sequence,
    State,
    Tag,
    Wildcard,
    WorkerName,
)
from qmodel.contract.operations.spec import Operation, operation


@operation("reasons", "read", "JOB_NOT_FOUND")
class Why(Operation):
    """Explain why a job does not run: its state, throttles, the jobs ahead of it, its queue's pauses, its workers.

    There is no reason to list for a job that the next pop of its queue would give.
    """

    jid: Jid


@operation("job", "read")
class Get(Operation):
    """Show a job, or nothing."""

    jid: Jid


@operation("jobs", "read", "OVER_BUDGET")
class Multiget(Operation):
    """Show several jobs in the order of `jids`; jobs that do not exist are left out."""

    jids: Jids


@operation("found", "read", "TOO_WIDE OVER_BUDGET")
class Search(Operation):
    """Find jobs by queue, state, klass, tag, worker and group, in any combination; list by list, each in its order.

    In `klass_like` and `jid_like` a `*` stands for any characters: `Send*`. `text` must occur in the data.

    Jobs are listed by worker, by failure group, by tag and by queue, and all complete and all failed jobs are listed;
    so one of these must be given. Up to 1000 jobs are examined before filtering. The reply has a cursor to continue
    from, empty at the end. A job that does not move between the calls is found exactly once.
    """

    queue: QueueName | None = None
    state: State | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    worker: WorkerName | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 25
    klass_like: Wildcard | None = None
    jid_like: Wildcard | None = None
    text: Fragment | None = None


@operation("page", "read")
class Waiting(Operation):
    """List the waiting jobs of a queue: those in order, then those that have become due since the last pop."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Scheduled(Operation):
    """List the scheduled jobs of a queue, soonest first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Depending(Operation):
    """List the jobs of a queue that wait for other jobs, in the order of their puts.

    A running job that is released to wait for others keeps the place of its put.
    """

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Throttled(Operation):
    """List the jobs of a queue that are ready and wait for a throttle or a concurrency key, longest ready first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Running(Operation):
    """List the jobs of a queue with a valid lease, soonest to expire first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Stalled(Operation):
    """List the jobs of a queue with a lapsed or ended lease, longest first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Completed(Operation):
    """List the complete jobs, latest first."""

    offset: Offset = 0
    count: Count = 25


@operation("queues", "read")
class Queues(Operation):
    """List the queues in the order of their first use, with the number of jobs in each state."""

    offset: Offset = 0
    count: Count = 25


@operation("queue", "read")
class Queue(Operation):
    """Show one queue's counts; zeros for an unknown one."""

    queue: QueueName


@operation("number", "read")
class Length(Operation):
    """Count the jobs of a queue in any state."""

    queue: QueueName


@operation("workers", "read")
class Workers(Operation):
    """List the workers, latest seen first; those silent for max-worker-age without a job are left out.

    The leases are counted as far as the budget of one call goes: thousands. Of the workers after that, the reply says
    how many jobs they hold at least.
    """

    offset: Offset = 0
    count: Count = 25


@operation("worker", "read", "OVER_BUDGET")
class Worker(Operation):
    """List the jobs that a worker holds."""

    worker: WorkerName


@operation("stats", "read")
class Stats(Operation):
    """Show the statistics of a queue on the UTC day of `at` (default: today).

    With `tag` or `worker`, those of the jobs with this tag, or of this worker. So waits and runs are counted, and not
    failures and retries; by the first `stats-tags` tags and the first `stats-workers` workers of a queue and day.
    """

    queue: QueueName
    at: Instant | None = None
    tag: Tag | None = None
    worker: WorkerName | None = None


@operation("metrics", "read")
class Metrics(Operation):
    """Show what became of a queue's jobs, minute by minute up to the minute of `at` (default: now), oldest first.

    Every minute within metrics-history is shown, also if nothing happened in it.
    """

    queue: QueueName
    at: Instant | None = None
    count: Count = 60


@operation("events", "read", "FORKED")
class Events(Operation):
    """List the events after a sequence number, oldest first; only the last max-events are kept.

    With `epoch`, that of the event `after`, the page is checked: if that event is not part of the server's history,
    because the server has lost the end of its log, the read is refused. Without it, the reader does not notice.
    """

    after: Sequence = 0
    count: Count = 100
    epoch: Epoch | None = None


@operation("newest", "read")
class Newest(Operation):
    """Give the sequence and the epoch of the newest event: a reader that starts there misses nothing."""


@operation("recorded", "read", "FORKED")
class Journal(Operation):
    """List the entries of the journal after a number, oldest first; only the last max-journal are kept.

    While the option `journal` is 1, each operation that may change something is recorded in the step that executes it,
    also if it is refused or repeated: the call, with its moment, and its outcome. A page of heavy entries has fewer
    than `count`; only an empty page is the end. With `epoch`, that of the entry `after`, the page is checked as one
    of events: if that entry is not part of the server's history, the read is refused.
    """

    after: Sequence = 0
    count: Count = 100
    epoch: Epoch | None = None
