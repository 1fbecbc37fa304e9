"""Reads."""

from __future__ import annotations

from qmodel.contract.arguments import (
    Count,
    Cursor,
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
    WorkerName,
)
from qmodel.contract.operations.spec import Operation, operation


@operation("reasons", "read", "JOB_NOT_FOUND")
class Why(Operation):
    """Say why a job does not run: its state, its throttles, those before it, its queue's pauses, and workers.

    Nothing is said of a job that the next pop of its queue gives.
    """

    jid: Jid


@operation("job", "read")
class Get(Operation):
    """Show a job, or nothing."""

    jid: Jid


@operation("jobs", "read")
class Multiget(Operation):
    """Show several jobs in the order asked for; those that do not exist are left out."""

    jids: Jids


@operation("found", "read", "TOO_WIDE")
class Search(Operation):
    """Find jobs by queue, state, klass, tag, worker and group, any of them; list by list, each in its order.

    The jobs of a worker, of a group, of a tag, of a queue, complete or failed ones stand in lists, so one of these has
    to be given. Up to 1000 jobs are looked at, all of them before anything is left out. The reply has a cursor, to go
    on from there, or none at the end. What stays where it is in the meantime is found exactly once.
    """

    queue: QueueName | None = None
    state: State | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    worker: WorkerName | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 25


@operation("page", "read")
class Waiting(Operation):
    """List the waiting jobs of a queue: those in order, then those whose time has come since the last pop."""

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
    """List the jobs of a queue that wait for others, longest waiting first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Throttled(Operation):
    """List the jobs of a queue that are ready and wait for a throttle to open, longest ready first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Running(Operation):
    """List the jobs of a queue under a valid lease, soonest to expire first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Stalled(Operation):
    """List the jobs of a queue whose lease lapsed or was taken, longest first."""

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
    """List the queues in the order in which they were first seen, with the number of jobs in each state."""

    offset: Offset = 0
    count: Count = 25


@operation("queue", "read")
class Queue(Operation):
    """Show one queue's counts; zeros for one never seen."""

    queue: QueueName


@operation("number", "read")
class Length(Operation):
    """Count the jobs of a queue in any state."""

    queue: QueueName


@operation("workers", "read")
class Workers(Operation):
    """List the workers, latest seen first; those silent for max-worker-age without a job are left out."""

    offset: Offset = 0
    count: Count = 25


@operation("worker", "read")
class Worker(Operation):
    """List the jobs that a worker holds."""

    worker: WorkerName


@operation("stats", "read")
class Stats(Operation):
    """Show the statistics of a queue on the UTC day of `at` (default: today)."""

    queue: QueueName
    at: Instant | None = None


@operation("metrics", "read")
class Metrics(Operation):
    """Show what became of a queue's jobs, minute by minute up to that of `at` (default: this one), oldest first.

    Every minute is shown for which metrics-history keeps them, also those in which nothing happened.
    """

    queue: QueueName
    at: Instant | None = None
    count: Count = 60


@operation("events", "read")
class Events(Operation):
    """Give the events after a sequence number, oldest first; only the last max-events are kept."""

    after: Sequence = 0
    count: Count = 100


@operation("number", "read")
class Newest(Operation):
    """Give the sequence of the newest event, 0 before the first: who follows from there sees all that comes."""


@operation("recorded", "read")
class Journal(Operation):
    """Give the entries of the journal after a number, oldest first; only the last max-journal are kept.

    While the option `journal` is 1, each operation that may change something is recorded in the step that executes it,
    also when it is refused or sent again: what was called, with its moment, and what came of it.
    """

    after: Sequence = 0
    count: Count = 100
