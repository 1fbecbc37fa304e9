"""Messages: recent publications, kept for later subscribers.

A subscription gets a job for each matching message, so a message is not needed for delivery. It is kept for
`messages-history`, and at most `messages-history-count` are kept, with or without subscriptions. The number of a
message is the sequence of its event.
"""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.model.state import config
from qmodel.model.state.records import Message
from qmodel.model.state.store import Store


def add(store: Store, now: int, seq: int, subject: str, data: str, due_at: int) -> Message:
    """Store a message."""
    last = store.messages[-1].at if store.messages.size else 0
    message = Message(seq, max(now, last), due_at, subject, data)
    store.messages.add(message)
    return message


def after(store: Store, seq: int, most: int) -> list[Message]:
    """The messages after a number, oldest first."""
    start = store.messages.count_until(seq)
    return store.messages[start : start + most]


def oldest(store: Store, most: int) -> list[Message]:
    """The oldest messages."""
    return store.messages[:most]


def count_after(store: Store, seq: int) -> int:
    """How many messages there are after a number."""
    return store.messages.size - store.messages.count_until(seq)


def before(store: Store, moment: int) -> int:
    """The number of the last message before a given time, or 0."""
    low, high = 0, store.messages.size
    while low < high:
        middle = (low + high) // 2
        if store.messages[middle].at < moment:
            low = middle + 1
        else:
            high = middle
    return store.messages[low - 1].seq if low else 0


def past_keeping(store: Store, now: int, most: int) -> list[Message]:
    """The oldest messages that are past messages-history or beyond messages-history-count."""
    surplus = store.messages.size - config.value(store, "messages-history-count")
    last = now - config.value(store, "messages-history")
    found = []
    for place, message in enumerate(oldest(store, most)):
        if place >= surplus and message.at > last:
            break
        found.append(message)
    return found


def remove(store: Store, message: Message) -> None:
    """Delete a message."""
    store.messages.remove(message)


def view(message: Message) -> replies.Message:
    """Everything about a message."""
    return replies.Message(*message)
