"""Messages and subscriptions."""

from __future__ import annotations

from qmodel.contract.arguments import (
    AnyTags,
    ConcurrencyKey,
    Count,
    Data,
    FairKey,
    FairWeight,
    Instant,
    Interval,
    Klass,
    Milliseconds,
    Offset,
    Patterns,
    PriorityLevel,
    QueueName,
    RequestId,
    Retries,
    Sequence,
    Subject,
    SubscriptionName,
    Switch,
)
from qmodel.contract.operations.spec import Operation, operation


@operation("number", "memo", "BAD_SUBJECT OVER_BUDGET", "published put passed_over caught_up trimmed throttled")
class Publish(Operation):
    """Publish a message: each subscription to its subject gets a job for it; replies the message's number.

    The jobs are called `<subscription>:<number>`; their data are the message's, and their option `subject` is its
    subject. They are ready `delay_ms` from now. The message is kept for later subscribers, within messages-history and
    messages-history-count. A subscription that is behind gets the message when its turn comes.
    """

    subject: Subject
    data: Data
    delay_ms: Milliseconds = 0
    request: RequestId = ""


@operation("number", "memo", "BAD_PATTERN LIMIT_REACHED", "subscribed put passed_over caught_up throttled")
class Subscribe(Operation):
    """Turn each message that matches a pattern into a job of a queue; replies how many messages it is behind.

    A pattern is a subject in which a segment may be `*`, for any one segment, and the last one may be `>`, for one or
    more. A message that matches several patterns becomes one job. The jobs are ready `delay_ms` after the message is
    due; the other arguments mean what they mean in `put`.

    A subscription starts with the messages published from now on. With `after` it starts with the kept messages after
    that number, with `since` with those published at that time or later. Up to `count` of them are examined in this
    step, the others by `catch_up`; until then, new messages wait for their turn. If the subscription exists, everything
    is replaced except its position. Give it a queue of its own, and it can be paused, counted and drained alone.
    """

    subscription: SubscriptionName
    patterns: Patterns
    queue: QueueName
    klass: Klass
    priority: PriorityLevel = 0
    delay_ms: Milliseconds = 0
    retries: Retries = 5
    tags: AnyTags = ()
    lifo: Switch = False
    lease_ms: Interval | None = None
    timeout_ms: Interval | None = None
    ttl_ms: Interval | None = None
    dead_queue: QueueName | None = None
    ordered: ConcurrencyKey | None = None
    after: Sequence | None = None
    since: Instant | None = None
    count: Count = 1000
    request: RequestId = ""
    fair_key: FairKey | None = None
    fair_weight: FairWeight | None = None


@operation("number", "memo", "SUBSCRIPTION_NOT_FOUND", "put passed_over caught_up throttled")
class CatchUp(Operation):
    """Give a subscription that is behind its next messages, up to `count`; replies how many are left."""

    subscription: SubscriptionName
    count: Count = 1000
    request: RequestId = ""


@operation("number", "memo", "", "unsubscribed")
class Unsubscribe(Operation):
    """End a subscription; the jobs that it has created stay. Replies 1, or 0 if there was none."""

    subscription: SubscriptionName
    request: RequestId = ""


@operation("subscription", "read")
class SubscriptionGet(Operation):
    """Show a subscription, or nothing."""

    subscription: SubscriptionName


@operation("subscriptions", "read")
class Subscriptions(Operation):
    """List the subscriptions, oldest first."""

    offset: Offset = 0
    count: Count = 25


@operation("messages", "read")
class Messages(Operation):
    """List the messages that are kept, after a number, oldest first."""

    after: Sequence = 0
    count: Count = 25


@operation("number", "memo", "", "trimmed put passed_over caught_up throttled")
class Trim(Operation):
    """Drop the oldest messages that are kept, up to `count`; replies how many.

    Subscriptions that are behind get them first. Messages beyond the retention limits are dropped by later
    publications.
    """

    count: Count = 1000
    request: RequestId = ""
