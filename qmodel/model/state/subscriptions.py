"""Subscriptions: which messages are wanted, and the jobs that they become.

A subscription that has received all messages is *up to date*, and has no position. One that starts with messages of the
past is *behind* until it has received them: its position is the number of the last message that it was given.

There are few, and each publication reads all of them: so they are bounded, and stored together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qmodel.contract import replies
from qmodel.contract.operations import Put, Subscribe
from qmodel.contract.refusals import refuse
from qmodel.model.state import messages, subjects
from qmodel.model.state.records import Message, Subscription
from qmodel.model.state.store import Store

MOST = 100
"""The most subscriptions of a namespace: each message is matched against each."""

PATTERNS_MOST = 10
"""The most patterns of a subscription."""

OPTIONS = ("dead_queue", "fair_key", "fair_weight", "lease_ms", "lifo", "ordered", "timeout_ms", "ttl_ms")
"""The rarely used arguments of its jobs, by name."""


def get(store: Store, name: str) -> Subscription | None:
    """A subscription, or None if it does not exist."""
    return store.subscriptions.get(name)


def find(store: Store, name: str) -> Subscription:
    """A subscription, or refuse."""
    subscription = store.subscriptions.get(name)
    if subscription is None:
        raise refuse("SUBSCRIPTION_NOT_FOUND", name)
    return subscription


def listed(store: Store) -> list[Subscription]:
    """All subscriptions, oldest first."""
    return list(store.subscriptions.values())


def wanting(store: Store, subject: str) -> list[Subscription]:
    """The subscriptions that are up to date and match a subject, oldest first."""
    segments = subjects.split(subject)
    up_to_date = [one for one in listed(store) if one.position is None]
    return [one for one in up_to_date if subjects.matches(subjects.split_all(one.patterns), segments)]


def distinct(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Drop repeated patterns."""
    return tuple(dict.fromkeys(patterns))


def create(name: str) -> Subscription:
    """A new subscription."""
    return Subscription(name)


def assign(subscription: Subscription, op: Subscribe) -> None:
    """Set the patterns of a subscription, and the properties of its jobs."""
    subscription.patterns = distinct(op.patterns)
    tags = tuple(dict.fromkeys(op.tags))
    given: dict[str, Any] = {name: getattr(op, name) or None for name in OPTIONS}
    subscription.put = Put(op.queue, "", op.klass, "", op.priority, op.delay_ms, op.retries, tags, **given)


def save(store: Store, subscription: Subscription) -> None:
    """Store a subscription. One that has received all messages becomes up to date."""
    if subscription.position is not None and not messages.count_after(store, subscription.position):
        subscription.position = None
    store.subscriptions[subscription.name] = subscription


def remove(store: Store, subscription: Subscription) -> None:
    """Delete a subscription."""
    del store.subscriptions[subscription.name]


def jid_of(subscription: Subscription, message: Message) -> str:
    """The id of the job that a message becomes."""
    return f"{subscription.name}:{message.seq}"


def put_of(now: int, subscription: Subscription, message: Message, jid: str) -> Put:
    """The put that a message becomes. The rest of the message's delay, and of the subscription's, counts from now."""
    delay_ms = max(message.due_at + subscription.put.delay_ms - now, 0)
    return replace(subscription.put, jid=jid, data=message.data, delay_ms=delay_ms)


def options(subscription: Subscription) -> tuple[tuple[str, str], ...]:
    """The rarely used properties of its jobs, by name."""
    given = ((name, getattr(subscription.put, name)) for name in OPTIONS)
    return tuple((name, value if isinstance(value, str) else str(int(value))) for name, value in given if value)


def view(store: Store, subscription: Subscription) -> replies.Subscription:
    """Everything about a subscription."""
    put, position = subscription.put, subscription.position
    return replies.Subscription(
        subscription.name,
        subscription.patterns,
        put.queue,
        put.klass,
        put.priority or 0,
        put.retries or 0,
        put.delay_ms,
        put.tags or (),
        options(subscription),
        messages.count_after(store, position) if position is not None else 0,
    )
