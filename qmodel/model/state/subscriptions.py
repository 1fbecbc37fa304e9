"""Subscriptions: who wants which messages, and what jobs these become.

A subscription that has got all messages there are is *up to date*, and has no position. One that begins with messages
of the past is *behind* until it has got them: its position is the number of the last message that it was given.

There are few, and all of them are read for each message: so they are bounded, and stand in one place.
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
"""Subscriptions in a namespace: each message is looked at for each."""

PATTERNS_MOST = 10
"""Patterns of a subscription."""

OPTIONS = ("dead_queue", "lease_ms", "lifo", "ordered", "timeout_ms", "ttl_ms")
"""What a subscription says of its jobs beyond what every job has, by name."""


def get(store: Store, name: str) -> Subscription | None:
    """A subscription that may not exist."""
    return store.subscriptions.get(name)


def find(store: Store, name: str) -> Subscription:
    """A subscription, or refuse."""
    subscription = store.subscriptions.get(name)
    if subscription is None:
        raise refuse("SUBSCRIPTION_NOT_FOUND", name)
    return subscription


def listed(store: Store) -> list[Subscription]:
    """All of them, oldest first."""
    return list(store.subscriptions.values())


def wanting(store: Store, subject: str) -> list[Subscription]:
    """Those that are up to date and want a subject, oldest first."""
    segments = subjects.split(subject)
    up_to_date = [one for one in listed(store) if one.position is None]
    return [one for one in up_to_date if subjects.matches(subjects.split_all(one.patterns), segments)]


def distinct(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """These patterns, each once."""
    return tuple(dict.fromkeys(patterns))


def create(name: str) -> Subscription:
    """A new one."""
    return Subscription(name)


def assign(subscription: Subscription, op: Subscribe) -> None:
    """Let it want this, and its jobs be like this."""
    subscription.patterns = distinct(op.patterns)
    tags = tuple(dict.fromkeys(op.tags))
    given: dict[str, Any] = {name: getattr(op, name) or None for name in OPTIONS}
    subscription.put = Put(op.queue, "", op.klass, "", op.priority, op.delay_ms, op.retries, tags, **given)


def save(store: Store, subscription: Subscription) -> None:
    """Keep it as it is now. One that has got all messages there are is up to date."""
    if subscription.position is not None and not messages.count_after(store, subscription.position):
        subscription.position = None
    store.subscriptions[subscription.name] = subscription


def remove(store: Store, subscription: Subscription) -> None:
    """Delete it."""
    del store.subscriptions[subscription.name]


def jid_of(subscription: Subscription, message: Message) -> str:
    """The id of the job that a message becomes."""
    return f"{subscription.name}:{message.seq}"


def put_of(now: int, subscription: Subscription, message: Message, jid: str) -> Put:
    """The put that a message becomes. What is left of its delay, and of its subscription's, counts from now."""
    delay_ms = max(message.due_at + subscription.put.delay_ms - now, 0)
    return replace(subscription.put, jid=jid, data=message.data, delay_ms=delay_ms)


def options(subscription: Subscription) -> tuple[tuple[str, str], ...]:
    """What it says of its jobs beyond what every job has, by name."""
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
