"""Failures and recovery."""

from __future__ import annotations

from qmodel.contract.arguments import Count, Cursor, Group, Jid, Klass, Offset, QueueName, RequestId, Switch, Tag
from qmodel.contract.operations.spec import REPLAY, Operation, operation


@operation("tallies", "read")
class FailedGroups(Operation):
    """List the failure groups by name, with how many jobs each holds."""

    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Failed(Operation):
    """List the jobs of a failure group, latest failure first."""

    group: Group
    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "", "unfailed throttled")
class Unfail(Operation):
    """Move the longest failed jobs of a group to a queue, to be tried anew; replies how many."""

    queue: QueueName
    group: Group
    count: Count = 25
    request: RequestId = ""


@operation("jid", "memo", REPLAY, "canceled put lock_lost")
class Replay(Operation):
    """Put the job anew of which this is a dead letter, into its queue and as the letter has it, and delete the letter.

    Klass, data, priority, retries and tags are those of the letter; `lifo`, `lease_ms`, `timeout_ms` and `dead_queue`
    are as the job was put. If the job is there it must be failed. Replies its id.
    """

    jid: Jid
    request: RequestId = ""


@operation("bulk", "memo", "", "unfailed throttled")
class RetryMany(Operation):
    """Put failed jobs back into their own queues, to be tried anew: of a queue, klass, tag or group, or all.

    Up to 1000 jobs are looked at, from `cursor` on, and up to `count` retried. With `preview` nothing changes, and the
    reply says how many fit.
    """

    queue: QueueName | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 1000
    preview: Switch = False
    request: RequestId = ""
