"""Throttles."""

from __future__ import annotations

from qmodel.contract.arguments import (
    Capacity,
    Concurrency,
    Count,
    Cursor,
    Daily,
    Interval,
    Jid,
    Offset,
    Rate,
    Refill,
    RequestId,
    ThrottleName,
)
from qmodel.contract.operations.spec import Operation, operation


@operation("jid", "memo", "LIMIT_REACHED", "limited")
class ThrottleSet(Operation):
    """Set all limits of a throttle at once; a limit that is left out is removed.

    `concurrency` is how many of its jobs may run at once; a job with an expired lease counts until a pop has noticed.
    `rate` is how many jobs may be claimed in any window of `rate_ms`. `capacity` is the size of a token bucket, which
    is full at first; a claim takes the job's cost from it, and `refill` tokens come back in every `refill_ms`,
    steadily. A rate needs `rate_ms`, a capacity needs `refill` and `refill_ms`, and at least one limit must be given.
    `queue/<queue>` is the throttle of all jobs of a queue. Jobs that are already running count.

    A name with a `*` is a family: each throttle with a matching name and without limits of its own has these limits,
    for itself. There may be 25 families. A `*` stands for any characters, also none; the longest of several matching
    patterns rules. If its limits change, the windows and the buckets of a family begin anew.
    """

    throttle: ThrottleName
    concurrency: Concurrency | None = None
    rate: Rate | None = None
    rate_ms: Interval | None = None
    capacity: Capacity | None = None
    refill: Refill | None = None
    refill_ms: Daily | None = None
    request: RequestId = ""


@operation("number", "memo", "", "unlimited updated")
class ThrottleUnset(Operation):
    """Remove all limits of a throttle; its parked jobs are admitted. Replies 1, or 0 if it had no limits.

    With `jid`, the throttle keeps its limits: only that job, which is running or stalled, counts in it no longer, until
    its next claim. Replies 1, or 0 if it did not count.
    """

    throttle: ThrottleName
    request: RequestId = ""
    jid: Jid | None = None


@operation("throttle", "read")
class ThrottleGet(Operation):
    """Show the limits of a throttle and their use; zeros for an unknown one."""

    throttle: ThrottleName


@operation("throttles", "read")
class Throttles(Operation):
    """List the throttles that have limits, by name."""

    offset: Offset = 0
    count: Count = 25


@operation("used_throttles", "read")
class ThrottlesUsed(Operation):
    """List the throttles that are in use, by name.

    A throttle is in use while a job holds it or is parked at it, a claim is in its window, or its bucket is not full,
    whether or not anybody has set limits for it.

    `match` is a name, in which each `*` stands for any characters, also none. The name of a family lists the throttles
    under it, and also those with a matching name and other limits; the field `family` tells them apart. Up to 1000
    throttles are examined, starting after `cursor`, which is the name of a throttle. The reply has a cursor to continue
    from, empty at the end; a page before it may have fewer throttles than `count`, also none.
    """

    match: ThrottleName = "*"
    cursor: Cursor = ""
    count: Count = 25
