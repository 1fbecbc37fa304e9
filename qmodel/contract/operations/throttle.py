"""Throttles."""

from __future__ import annotations

from qmodel.contract.arguments import (
    Capacity,
    Concurrency,
    Count,
    Daily,
    Interval,
    Offset,
    Rate,
    Refill,
    RequestId,
    ThrottleName,
)
from qmodel.contract.operations.spec import Operation, operation


@operation("jid", "memo", "", "limited")
class ThrottleSet(Operation):
    """Set all limits of a throttle at once; those that are not given are none.

    `concurrency` is how many jobs that name it run at once; those whose lease ran out count until it is known. `rate`
    is how many are claimed in any window of `rate_ms`. `capacity` is that of a bucket of tokens, which is full at
    first, and of which a claim takes the job's cost; `refill` tokens come back in every `refill_ms`, steadily. A rate
    needs its time, a capacity its refill and its time, and one limit at least must be given. `queue/<queue>` is the
    throttle of all jobs of a queue. Jobs that run already count.
    """

    throttle: ThrottleName
    concurrency: Concurrency | None = None
    rate: Rate | None = None
    rate_ms: Interval | None = None
    capacity: Capacity | None = None
    refill: Refill | None = None
    refill_ms: Daily | None = None
    request: RequestId = ""


@operation("number", "memo", "", "unlimited")
class ThrottleUnset(Operation):
    """Take all limits from a throttle; parked jobs go on. Replies 1, or 0 if it had none."""

    throttle: ThrottleName
    request: RequestId = ""


@operation("throttle", "read")
class ThrottleGet(Operation):
    """Show the limits of a throttle, and how they are used; zeros for one never seen."""

    throttle: ThrottleName


@operation("throttles", "read")
class Throttles(Operation):
    """List the throttles that have limits, by name."""

    offset: Offset = 0
    count: Count = 25
