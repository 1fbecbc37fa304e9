"""Messages and subscriptions. A message becomes one job for each subscription that matches it.

The job is the only unit of work. So each subscription has its own retries, failures and order, and a failure of one
does not affect the others. A subscription gets each message once, in order: at once if it is up to date, otherwise when
its turn comes. There are no named topics: the first segments of a subject serve as the topic.

A step is bounded by 100 subscriptions with ten patterns each, and by ten messages that are dropped; subscriptions that
are behind get a message before it is dropped.
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
from qmodel.model.state import budget, jobs, messages, options, subjects, subscriptions
from qmodel.model.state.records import Message, Subscription
from qmodel.model.state.store import Store, emit

SWEEP = 10
"""How many messages past retention one publication drops, so that the list soon returns to its limit."""


def publish(store: Store, now: int, op: Publish) -> int:
    """Keep a message, and deliver it to all matching subscriptions."""
    subjects.check(op.subject)

    wanted = subscriptions.wanting(store, op.subject)
    draft = Message(0, now, now, op.subject, op.data)
    units = sum(budget.of_delivery(store, subscription, draft) for subscription in wanted)
    budget.check("publish", len(wanted), units)
    budget.spend(store, units)
    seq = emit(store, now, "published", op.subject, len(wanted))
    message = messages.add(store, now, seq, op.subject, op.data, now + op.delay_ms)
    _deliver(store, now, [(subscription, message) for subscription in wanted])
    _drop(store, now, messages.past_keeping(store, now, SWEEP))
    return seq


def _deliver(store: Store, now: int, given: list[tuple[Subscription, Message]]) -> None:
    """Create the jobs of messages. A job is not created again if a subscription of the same name has already received
    the message.
    """
    for subscription, message in given:
        jid = subscriptions.jid_of(subscription, message)
        if jobs.get(store, jid) is not None:
            emit(store, now, "passed_over", subscription.name, jid)
            continue
        job = put_made(store, now, subscriptions.put_of(now, subscription, message, jid))
        options.set(job, "subject", message.subject)


def subscribe(store: Store, now: int, op: Subscribe) -> int:
    """Create or change a subscription."""
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
    """The number of the message after which a new subscription starts, or None for the last one."""
    if op.after is None and op.since is None:
        return None
    before = messages.before(store, op.since) if op.since is not None else 0
    return max(op.after or 0, before)


def catch_up(store: Store, now: int, op: CatchUp) -> int:
    """Give a subscription its next messages."""
    subscription = subscriptions.find(store, op.subscription)

    return _give_more(store, now, subscription, op.count)


def _give_more(store: Store, now: int, subscription: Subscription, most: int) -> int:
    """Give a subscription its next messages of the past; give how many are left."""
    if subscription.position is None:
        return 0
    found = messages.after(store, subscription.position, most)
    fit = budget.afford(store, found, lambda message: budget.of_delivery(store, subscription, message))
    return _hand_on(store, now, subscription, found[:fit])


def _hand_on(store: Store, now: int, subscription: Subscription, found: list[Message]) -> int:
    """Deliver those of the next messages that match a subscription that is behind; give how many are left."""
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
    """List messages that are kept, as far as the budget goes."""
    found = messages.after(store, op.after, op.count)
    shown = found[: budget.afford(store, found, _showing)]
    return tuple(messages.view(message) for message in shown)


def _showing(message: Message) -> int:
    """The units for showing a message."""
    return budget.of_message(message)


def trim(store: Store, now: int, op: Trim) -> int:
    """Drop the oldest messages that are kept."""
    return _drop(store, now, messages.oldest(store, op.count))


def _those_behind(store: Store) -> list[Subscription]:
    """The subscriptions that have not received all messages."""
    return [one for one in subscriptions.listed(store) if one.position is not None]


def _droppable(store: Store, behind: list[Subscription], found: list[Message]) -> list[Message]:
    """The first messages whose jobs one operation may make, at least one."""
    units = 0
    for fit, message in enumerate(found):
        units += sum(budget.of_delivery(store, subscription, message) for subscription in behind)
        if fit and units > budget.UNITS:
            return found[:fit]
    return found


def _fits_all(store: Store, subscription: Subscription, rest: list[Message]) -> bool:
    """Whether the budget has room for the jobs of these messages, which it always has at first; if so, spend it."""
    units = sum(budget.of_delivery(store, subscription, message) for message in rest)
    return budget.take(store, units, 0, budget.room(store) < budget.UNITS)


def _drop(store: Store, now: int, found: list[Message]) -> int:
    """Drop messages, after delivering them to the subscriptions that are behind: as many as create at most 1000 jobs,
    and as the budget goes. Give how many: none if a subscription has to wait for its turn.
    """
    behind = _those_behind(store)
    dropped = _droppable(store, behind, found[: MOST // max(len(behind), 1)])
    if not dropped:
        return 0
    last = dropped[-1].seq
    for subscription in behind:
        rest = [message for message in dropped if message.seq > (subscription.position or 0)]
        if rest:
            if not _fits_all(store, subscription, rest):
                return 0
            _hand_on(store, now, subscription, rest)
    for message in dropped:
        messages.remove(store, message)
    emit(store, now, "trimmed", len(dropped), last)
    return len(dropped)
