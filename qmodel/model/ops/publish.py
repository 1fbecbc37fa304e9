"""Messages, and the jobs that they become: one for each subscription that wants it.

There is one kind of work, the job. So each subscription has its own retries, failures and order, and one that fails
touches no other. A subscription gets each message once, in order: at once when it is up to date, else when its turn
comes. There are no topics by name: the first segments of a subject are its topic.

What bounds a step: 100 subscriptions, each with ten patterns; and at most ten messages that drop out of the past, which
those behind get before they are gone.
"""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import (
    CatchUp,
    Messages,
    Publish,
    Subscribe,
    SubscriptionGet,
    Subscriptions,
    Trim,
    Unsubscribe,
)
from qmodel.contract.refusals import refuse
from qmodel.model.ops.put import put_made
from qmodel.model.state import jobs, messages, options, subjects, subscriptions
from qmodel.model.state.records import Message, Subscription
from qmodel.model.state.store import Store, emit

SWEEP = 10
"""Messages past keeping that go with one that is published, so that there are soon no more than there may be."""


def publish(store: Store, now: int, op: Publish) -> int:
    """Keep a message, and give it to all who want it."""
    subjects.check(op.subject)

    wanted = subscriptions.wanting(store, op.subject)
    seq = emit(store, now, "published", op.subject, len(wanted))
    message = messages.add(store, now, seq, op.subject, op.data, now + op.delay_ms)
    _deliver(store, now, [(subscription, message) for subscription in wanted])
    _drop(store, now, messages.past_keeping(store, now, SWEEP))
    return seq


def _deliver(store: Store, now: int, given: list[tuple[Subscription, Message]]) -> None:
    """Make jobs of messages; or none, where a subscription of the same name has got one before."""
    for subscription, message in given:
        jid = subscriptions.jid_of(subscription, message)
        if jobs.get(store, jid) is not None:
            emit(store, now, "passed_over", subscription.name, jid)
            continue
        job = put_made(store, now, subscriptions.put_of(now, subscription, message, jid))
        options.set(job, "subject", message.subject)


def subscribe(store: Store, now: int, op: Subscribe) -> int:
    """Begin a subscription, or change one."""
    for pattern in op.patterns:
        subjects.check_pattern(pattern)
    if len(subscriptions.distinct(op.patterns)) > subscriptions.PATTERNS_MOST:
        raise refuse("LIMIT_REACHED", "patterns of a subscription", subscriptions.PATTERNS_MOST)
    subscription = subscriptions.get(store, op.subscription)
    if subscription is None and len(subscriptions.listed(store)) >= subscriptions.MOST:
        raise refuse("LIMIT_REACHED", "subscriptions", subscriptions.MOST)

    seq = emit(store, now, "subscribed", op.subscription, op.queue, op.klass)
    if subscription is None:
        subscription = subscriptions.create(op.subscription)
        subscription.seq = seq
        subscription.position = _start(store, op)
    subscriptions.assign(subscription, op)
    subscriptions.save(store, subscription)
    return _give_more(store, now, subscription, op.count)


def _start(store: Store, op: Subscribe) -> int | None:
    """The message after which a new subscription begins, or None for the last one."""
    if op.after is None and op.since is None:
        return None
    before = messages.before(store, op.since) if op.since is not None else 0
    return max(op.after or 0, before)


def catch_up(store: Store, now: int, op: CatchUp) -> int:
    """Give a subscription the messages that it has not got."""
    subscription = subscriptions.find(store, op.subscription)

    return _give_more(store, now, subscription, op.count)


def _give_more(store: Store, now: int, subscription: Subscription, most: int) -> int:
    """Give a subscription the next messages of the past; give how many are left."""
    if subscription.position is None:
        return 0
    return _hand_on(store, now, subscription, messages.after(store, subscription.position, most))


def _hand_on(store: Store, now: int, subscription: Subscription, found: list[Message]) -> int:
    """Give a subscription that is behind its next messages, as far as it wants them; give how many are left."""
    patterns = subjects.split_all(subscription.patterns)
    wanted = [one for one in found if subjects.matches(patterns, subjects.split(one.subject))]
    _deliver(store, now, [(subscription, message) for message in wanted])
    last = found[-1].seq
    left = messages.count_after(store, last)
    emit(store, now, "caught_up", subscription.name, last, left)
    subscription.position = last
    subscriptions.save(store, subscription)
    return left


def unsubscribe(store: Store, now: int, op: Unsubscribe) -> int:
    """End a subscription."""
    subscription = subscriptions.get(store, op.subscription)
    if subscription is None:
        return 0
    emit(store, now, "unsubscribed", op.subscription, subscription.put.queue)
    subscriptions.remove(store, subscription)
    return 1


def subscription_get(store: Store, now: int, op: SubscriptionGet) -> replies.Subscription | None:
    """Show a subscription."""
    subscription = subscriptions.get(store, op.subscription)
    return subscriptions.view(store, subscription) if subscription is not None else None


def subscriptions_(store: Store, now: int, op: Subscriptions) -> tuple[replies.Subscription, ...]:
    """List the subscriptions."""
    found = subscriptions.listed(store)[op.offset : op.offset + op.count]
    return tuple(subscriptions.view(store, one) for one in found)


# ---- the past


def messages_(store: Store, now: int, op: Messages) -> tuple[replies.Message, ...]:
    """Give messages that are kept."""
    return tuple(messages.view(message) for message in messages.after(store, op.after, op.count))


def trim(store: Store, now: int, op: Trim) -> int:
    """Drop the oldest messages that are kept."""
    return _drop(store, now, messages.oldest(store, op.count))


def _those_behind(store: Store) -> list[Subscription]:
    """The subscriptions that have not got all messages there are."""
    return [one for one in subscriptions.listed(store) if one.position is not None]


def _drop(store: Store, now: int, found: list[Message]) -> int:
    """Drop messages, once those that are behind have got them: as many as make at most 1000 jobs. Give how many."""
    behind = _those_behind(store)
    dropped = found[: MOST // max(len(behind), 1)]
    if not dropped:
        return 0
    last = dropped[-1].seq
    for subscription in behind:
        rest = [message for message in dropped if message.seq > (subscription.position or 0)]
        if rest:
            _hand_on(store, now, subscription, rest)
    for message in dropped:
        messages.remove(store, message)
    emit(store, now, "trimmed", len(dropped), last)
    return len(dropped)
