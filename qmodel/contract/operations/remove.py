"""Removing jobs."""

from __future__ import annotations

from qmodel.contract.arguments import (
    Count,
    Cursor,
    Ended,
    Group,
    Jids,
    Klass,
    Milliseconds,
    QueueName,
    RequestId,
    State,
    Switch,
    Tag,
    WorkerName,
)
from qmodel.contract.operations.spec import CASCADE, ENDS, FAST, Operation, operation


@operation(
    "jids",
    "memo",
    "HAS_DEPENDENTS CANCEL_LIMIT OVER_BUDGET",
    "lock_lost" + CASCADE + ENDS + FAST,
    finishes=True,
)
class Cancel(Operation):
    """Delete jobs that are not complete, or with `complete` jobs in any state; the workers of running jobs lose their
    leases.

    A job with dependents is canceled only together with them: they must be named too, or be found by `cascade`. Unknown
    jobs are skipped, and so are complete ones without `complete`. Replies the jobs that were deleted.
    """

    jids: Jids
    cascade: Switch = False
    complete: Switch = False
    request: RequestId = ""


@operation("drained", "memo", "", CASCADE + ENDS + FAST, finishes=True)
class Drain(Operation):
    """Cancel up to `count` jobs of a queue that have not started, first those that wait for others, from the last one.

    Jobs with dependents stay, and those with more than 1000 dependencies.
    """

    queue: QueueName
    count: Count = 1000
    request: RequestId = ""


@operation("bulk", "memo", "TOO_WIDE OVER_BUDGET", "lock_lost" + CASCADE + ENDS + FAST, finishes=True)
class CancelMany(Operation):
    """Cancel the jobs that `search` finds for the same arguments, except complete jobs and jobs with dependents.

    Jobs with more than 1000 dependencies stay, too. Up to 1000 jobs are examined, starting at `cursor`, and up to
    `count` are canceled. With `preview` nothing changes, and the reply says how many jobs match.
    """

    queue: QueueName | None = None
    state: State | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    worker: WorkerName | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 1000
    preview: Switch = False
    request: RequestId = ""


@operation("cleaned", "memo", "", "retired canceled", finishes=True)
class Clean(Operation):
    """Delete complete or failed jobs that ended at least `older_ms` ago.

    Jobs with dependents stay, and those with more than 1000 dependencies.

    Up to 1000 jobs are examined, oldest first, starting at `cursor`, and up to `count` are deleted. The complete jobs
    of all queues are in one list. Replies the ids of the deleted jobs, too. With `preview` nothing changes, and the
    reply says how many jobs match, and which.
    """

    state: Ended
    older_ms: Milliseconds = 0
    queue: QueueName | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 1000
    preview: Switch = False
    request: RequestId = ""


@operation(
    "bulk",
    "memo",
    "QUEUE_BUSY HAS_DEPENDENTS CANCEL_LIMIT",
    "lock_lost unlimited forgotten" + CASCADE + ENDS + FAST,
    finishes=True,
)
class Obliterate(Operation):
    """Delete a queue: its jobs in any state, its recurring jobs, and finally the queue itself.

    It is refused while jobs are running or stalled, unless `force` is given: then their workers lose the leases. It is
    also refused if a job of another queue depends on one of its jobs. Up to 1000 jobs are examined, starting at
    `cursor`, and up to `count` are deleted, each with the jobs of the queue that depend on it. The reply says how many
    jobs were deleted, how many the queue still has, and the cursor to continue from. The step that has examined all
    jobs and leaves none also forgets the queue, with its pauses and its own throttle. Its statistics and options stay.
    """

    queue: QueueName
    force: Switch = False
    cursor: Cursor = ""
    count: Count = 1000
    request: RequestId = ""
