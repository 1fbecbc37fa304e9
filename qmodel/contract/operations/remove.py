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
from qmodel.contract.operations.spec import ENDS, Operation, operation


@operation(
    "jids", "memo", "HAS_DEPENDENTS CANCEL_LIMIT", "canceled lock_lost unblocked throttled" + ENDS, finishes=True
)
class Cancel(Operation):
    """Delete jobs that are not complete; running ones are lost to their workers.

    A job on which another depends is canceled only with that other, named too or found by `cascade`. Unknown and
    complete jobs are passed over. Replies the jobs canceled.
    """

    jids: Jids
    cascade: Switch = False
    request: RequestId = ""


@operation("drained", "memo", "", "canceled unblocked throttled" + ENDS, finishes=True)
class Drain(Operation):
    """Cancel up to `count` jobs of a queue that have not begun; those on which others depend stay."""

    queue: QueueName
    count: Count = 1000
    request: RequestId = ""


@operation("bulk", "memo", "TOO_WIDE", "canceled lock_lost" + ENDS, finishes=True)
class CancelMany(Operation):
    """Cancel the jobs that `search` finds for the same arguments, but complete ones, and those on which others depend.

    Up to 1000 jobs are looked at, from `cursor` on, and up to `count` canceled. With `preview` nothing changes, and the
    reply says how many fit.
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


@operation("bulk", "memo", "", "retired canceled", finishes=True)
class Clean(Operation):
    """Delete complete or failed jobs that ended at least `older_ms` ago, but those on which others depend.

    Up to 1000 jobs are looked at, oldest first, from `cursor` on, and up to `count` deleted: the complete jobs of all
    queues stand in one list. With `preview` nothing changes, and the reply says how many fit.
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
    "canceled retired lock_lost unblocked throttled unlimited forgotten" + ENDS,
    finishes=True,
)
class Obliterate(Operation):
    """Delete a queue: its jobs in any state, those that recur in it, and when nothing is left what is known of it.

    It is refused while jobs run or are stalled, unless `force` is given: then they are lost to their workers. A job on
    which one of another queue depends is in the way. Up to 1000 jobs are looked at, from `cursor` on, and up to `count`
    deleted, each with those of the queue that depend on it. The reply says how many are gone, how many the queue still
    has, and the cursor to go on from. In the step in which it has none, and that looked at all, the queue is forgotten,
    with its pauses and its own throttle. Its statistics and options stay.
    """

    queue: QueueName
    force: Switch = False
    cursor: Cursor = ""
    count: Count = 1000
    request: RequestId = ""
