"""Messages and subscriptions."""

from __future__ import annotations

from qmodel.contract.arguments import (
    AnyTags,
    Count,
    Data,
    Instant,
    Interval,
    Klass,
    LineKey,
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


@operation("number", "memo", "BAD_SUBJECT", "published put passed_over caught_up trimmed throttled")
class Publish(Operation):
    """Publish a message: each subscription that wants its subject gets a job for it; replies the message's number.

    The jobs are called `<subscription>:<number>`; their data are the message's, their option `subject` is its subject.
    They are ready in `delay_ms` from now. The message is kept for those who subscribe later, by messages-history and
    messages-history-count. A subscription that is behind gets it when its turn comes.
    """

    subject: Subject
    data: Data
    delay_ms: Milliseconds = 0
    request: RequestId = ""


@operation("number", "memo", "BAD_PATTERN LIMIT_REACHED", "subscribed put passed_over caught_up throttled")
class Subscribe(Operation):
    """Let each message that fits a pattern become a job of a queue; replies how many messages it is behind.

    A pattern is a subject in which a segment may be `*`, for any one, and the last one `>`, for one or more. A message
    that fits several becomes one job. The jobs are ready `delay_ms` after the message is due; what the other arguments
    say of them is what they say in `put`.

    A subscription begins with what is published from now on; or, of the messages that are kept, with those after the
    number `after`, and not before the moment `since`. Up to `count` of these are looked at in this step, others with
    `catch_up`; until it has got them all, what is published waits for its turn. Of a subscription that exists already
    everything is replaced but how far it has come. With a queue of its own it can be paused, counted and drained alone.
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
    ordered: LineKey | None = None
    after: Sequence | None = None
    since: Instant | None = None
    count: Count = 1000
    request: RequestId = ""


@operation("number", "memo", "SUBSCRIPTION_NOT_FOUND", "put passed_over caught_up throttled")
class CatchUp(Operation):
    """Give a subscription that is behind the next messages, up to `count`; replies how many are left."""

    subscription: SubscriptionName
    count: Count = 1000
    request: RequestId = ""


@operation("number", "memo", "", "unsubscribed")
class Unsubscribe(Operation):
    """End a subscription; the jobs that it has got stay. Replies 1, or 0 if there was none."""

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
    """Give the messages that are kept, after a number, oldest first."""

    after: Sequence = 0
    count: Count = 25


@operation("number", "memo", "", "trimmed put passed_over caught_up throttled")
class Trim(Operation):
    """Drop the oldest messages that are kept, up to `count`; replies how many.

    Subscriptions that are behind get them before. What is past keeping goes by itself, with the next messages.
    """

    count: Count = 1000
    request: RequestId = ""
