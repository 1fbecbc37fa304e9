"""Commands for channels: SUBSCRIBE, PSUBSCRIBE, UNSUBSCRIBE, PUNSUBSCRIBE, PUBLISH and PUBSUB."""

from __future__ import annotations

from typing import Any, Final

from qmodel.serve.channels import remove
from qmodel.serve.commands import command, subcommand
from qmodel.serve.globs import CHANNEL, PATTERN, matching
from qmodel.serve.resp import Fault, Push
from qmodel.serve.session import NOTHING, Session

_LONG_CHANNEL: Final = Fault(f"ERR a channel has at most {CHANNEL} characters")
_LONG_PATTERN: Final = Fault(f"ERR a pattern has at most {PATTERN} characters")


def _subscribe(session: Session, words: list[str], what: str, names: set[str], subscribers: Any) -> Any:
    for name in words[1:]:
        names.add(name)
        subscribers.setdefault(name, {})[session] = None
        session.say(Push((what, name, len(session.channels) + len(session.patterns))))
    return NOTHING


def _unsubscribe(session: Session, words: list[str], what: str, names: set[str], subscribers: Any) -> Any:
    leaving = words[1:] or sorted(names)
    for name in leaving:
        names.discard(name)
        remove(subscribers, name, session)
        session.say(Push((what, name, len(session.channels) + len(session.patterns))))
    if not leaving:
        session.say(Push((what, None, len(session.channels) + len(session.patterns))))
    return NOTHING


@command("SUBSCRIBE", -2, "pubsub noscript loading stale")
def subscribe(session: Session, words: list[str]) -> Any:
    """Subscribe to channels."""
    if any(len(word) > CHANNEL for word in words[1:]):
        return _LONG_CHANNEL
    return _subscribe(session, words, "subscribe", session.channels, session.host.channels.channels)


@command("PSUBSCRIBE", -2, "pubsub noscript loading stale")
def psubscribe(session: Session, words: list[str]) -> Any:
    """Subscribe to all channels that match patterns."""
    if any(len(word) > PATTERN for word in words[1:]):
        return _LONG_PATTERN
    return _subscribe(session, words, "psubscribe", session.patterns, session.host.channels.patterns)


@command("UNSUBSCRIBE", -1, "pubsub noscript loading stale")
def unsubscribe(session: Session, words: list[str]) -> Any:
    """Unsubscribe from the named channels, or from all."""
    return _unsubscribe(session, words, "unsubscribe", session.channels, session.host.channels.channels)


@command("PUNSUBSCRIBE", -1, "pubsub noscript loading stale")
def punsubscribe(session: Session, words: list[str]) -> Any:
    """Unsubscribe from the named patterns, or from all."""
    return _unsubscribe(session, words, "punsubscribe", session.patterns, session.host.channels.patterns)


@command("PUBLISH", 3, "pubsub loading stale fast")
def publish(session: Session, words: list[str]) -> Any:
    """Send a message to all subscribers of a channel."""
    if len(words[1]) > CHANNEL:
        return _LONG_CHANNEL
    return session.host.channels.publish(words[1], words[2])


@command("PUBSUB", -2, "pubsub loading stale")
def pubsub(session: Session, words: list[str]) -> Any:
    """Show subscriptions: PUBSUB CHANNELS [pattern], NUMSUB channel ..., NUMPAT."""
    found = subcommand(words, "CHANNELS", "NUMSUB", "NUMPAT")
    if isinstance(found, Fault):
        return found
    channels = session.host.channels
    if found == "NUMPAT":
        return len(channels.patterns)
    if found == "NUMSUB":
        return [part for name in words[2:] for part in (name, len(channels.channels.get(name, ())))]
    pattern = words[2] if len(words) > 2 else "*"
    if len(pattern) > PATTERN:
        return _LONG_PATTERN
    return [name for name in channels.channels if matching(pattern).matches(name)]
