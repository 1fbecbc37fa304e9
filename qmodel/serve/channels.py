"""Channels: publish messages to the sessions that subscribed to a channel or to a pattern."""

from __future__ import annotations

from typing import Protocol

from qmodel.serve.globs import matching


class Listener(Protocol):
    """A session as the channels see it: its subscriptions, and how it receives a message."""

    channels: set[str]
    patterns: set[str]

    def push(self, *message: str) -> None:
        """Send a message."""


class Channels:
    """The subscriptions of all sessions."""

    def __init__(self) -> None:
        self.channels: dict[str, dict[Listener, None]] = {}
        self.patterns: dict[str, dict[Listener, None]] = {}

    def publish(self, channel: str, message: str) -> int:
        """Send a message to all subscribers of a channel; give the number of deliveries."""
        delivered = 0
        for session in list(self.channels.get(channel, ())):
            session.push("message", channel, message)
            delivered += 1
        for pattern, sessions in list(self.patterns.items()):
            if matching(pattern).matches(channel):
                for session in list(sessions):
                    session.push("pmessage", pattern, channel, message)
                    delivered += 1
        return delivered

    def leave(self, session: Listener) -> None:
        """Remove all subscriptions of a session."""
        for names, subscribers in ((session.channels, self.channels), (session.patterns, self.patterns)):
            for name in names:
                remove(subscribers, name, session)
            names.clear()


def remove(subscribers: dict[str, dict[Listener, None]], name: str, session: Listener) -> None:
    """Remove one subscription of a session."""
    sessions = subscribers.get(name, {})
    sessions.pop(session, None)
    if not sessions:
        subscribers.pop(name, None)
