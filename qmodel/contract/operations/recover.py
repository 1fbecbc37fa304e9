"""Failures and recovery."""

from __future__ import annotations

from qmodel.contract.arguments import (
    AnyJids,
    Count,
    Cursor,
    Group,
    Jid,
    Klass,
    Offset,
    QueueName,
    RequestId,
    Switch,
    Tag,
)
from qmodel.contract.operations.spec import REPLAY, Operation, operation


@operation("tallies", "read")
class FailedGroups(Operation):
    """List the failure groups by name, with the number of jobs in each."""

    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Failed(Operation):
    """List the jobs of a failure group, latest failure first."""

    group: Group
    offset: Offset = 0
    count: Count = 25


@operation("jid", "memo", REPLAY, "canceled put lock_lost")
class Replay(Operation):
    """Put the original job of a dead letter again, into its queue, and delete the letter.

    Klass, data, priority, retries and tags are taken from the letter; `lifo`, `lease_ms`, `timeout_ms` and `dead_queue`
    are as in the put of the original job. If the original job still exists, it must be failed. Replies its id.
    """

    jid: Jid
    request: RequestId = ""


@operation("bulk", "memo", "OVER_BUDGET", "unfailed throttled")
class RetryMany(Operation):
    """Retry failed jobs: those named by `jids`, or those of a queue, klass, tag or group, or all.

    Each job begins anew in its own queue, with all its retries; with `to`, it moves to that queue. A job that failed
    has released its deduplication key, and does not take it again. Up to 1000 jobs are examined, starting at `cursor`,
    the longest failed of a group first, and up to `count` are retried. With `jids` there is no cursor; of the named
    jobs, those that have not failed, or do not match the other filters, are left as they are. With `preview` nothing
    changes, and the reply says how many jobs match.
    """

    queue: QueueName | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 1000
    preview: Switch = False
    jids: AnyJids | None = None
    to: QueueName | None = None
    request: RequestId = ""
