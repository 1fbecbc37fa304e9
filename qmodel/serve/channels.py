"""Channels: SUBSCRIBE, PSUBSCRIBE and PUBLISH, for clients that tell each other something beside the jobs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qmodel.serve.commands import command, subcommand
from qmodel.serve.resp import Fault, Push
from qmodel.serve.session import NOTHING

if TYPE_CHECKING:
    from qmodel.serve.session import Session


class Channels:
    """Who listens to what."""

    def __init__(self) -> None:
        self.channels: dict[str, dict[Session, None]] = {}
        self.patterns: dict[str, dict[Session, None]] = {}

    def publish(self, channel: str, message: str) -> int:
        """Send a message to all who listen; give how many they are."""
        told = 0
        for session in list(self.channels.get(channel, ())):
            session.push("message", channel, message)
            told += 1
        for pattern, sessions in list(self.patterns.items()):
            if matching(pattern).fullmatch(channel):
                for session in list(sessions):
                    session.push("pmessage", pattern, channel, message)
                    told += 1
        return told

    def leave(self, session: Session) -> None:
        """Let someone listen to nothing."""
        for names, listening in ((session.channels, self.channels), (session.patterns, self.patterns)):
            for name in names:
                _strike(listening, name, session)
            names.clear()


def _strike(listening: dict[str, dict[Session, None]], name: str, session: Session) -> None:
    sessions = listening.get(name, {})
    sessions.pop(session, None)
    if not sessions:
        listening.pop(name, None)


@lru_cache(1024)
def matching(pattern: str) -> re.Pattern[str]:
    """A pattern of Redis as a regular expression: * ? [abc] [^a] [a-z], and a backslash for what is meant literally.

    >>> bool(matching("ql:[a-c]?*").fullmatch("ql:bxyz"))
    True
    """
    out, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "\\" and at < len(pattern):
            out += re.escape(pattern[at])
            at += 1
        elif char == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            inside = pattern[at:end].replace("\\", "").replace("[", "\\[")
            out += f"[^{inside[1:]}]" if inside.startswith("^") and len(inside) > 1 else f"[{inside}]"
            at = end + 1
        else:
            out += {"*": ".*", "?": "."}.get(char, re.escape(char))
    try:
        return re.compile(re.sub(r"(?:\.\*)+", ".*", out), re.S)
    except re.error:
        return re.compile(re.escape(pattern))


def _enter(session: Session, words: list[str], what: str, names: set[str], listening: Any) -> Any:
    for name in words[1:]:
        names.add(name)
        listening.setdefault(name, {})[session] = None
        session.say(Push((what, name, len(session.channels) + len(session.patterns))))
    return NOTHING


def _leave(session: Session, words: list[str], what: str, names: set[str], listening: Any) -> Any:
    leaving = words[1:] or sorted(names)
    for name in leaving:
        names.discard(name)
        _strike(listening, name, session)
        session.say(Push((what, name, len(session.channels) + len(session.patterns))))
    if not leaving:
        session.say(Push((what, None, len(session.channels) + len(session.patterns))))
    return NOTHING


@command("SUBSCRIBE", -2, "pubsub noscript loading stale")
def subscribe(session: Session, words: list[str]) -> Any:
    """Listen to channels."""
    return _enter(session, words, "subscribe", session.channels, session.host.channels.channels)


@command("PSUBSCRIBE", -2, "pubsub noscript loading stale")
def psubscribe(session: Session, words: list[str]) -> Any:
    """Listen to all channels that match patterns."""
    return _enter(session, words, "psubscribe", session.patterns, session.host.channels.patterns)


@command("UNSUBSCRIBE", -1, "pubsub noscript loading stale")
def unsubscribe(session: Session, words: list[str]) -> Any:
    """Listen no more to some channels, or to any."""
    return _leave(session, words, "unsubscribe", session.channels, session.host.channels.channels)


@command("PUNSUBSCRIBE", -1, "pubsub noscript loading stale")
def punsubscribe(session: Session, words: list[str]) -> Any:
    """Listen no more to some patterns, or to any."""
    return _leave(session, words, "punsubscribe", session.patterns, session.host.channels.patterns)


@command("PUBLISH", 3, "pubsub loading stale fast")
def publish(session: Session, words: list[str]) -> Any:
    """Send a message to all who listen to a channel."""
    return session.host.channels.publish(words[1], words[2])


@command("PUBSUB", -2, "pubsub loading stale")
def pubsub(session: Session, words: list[str]) -> Any:
    """Ask who listens: PUBSUB CHANNELS [pattern], NUMSUB channel ..., NUMPAT."""
    found = subcommand(words, "CHANNELS", "NUMSUB", "NUMPAT")
    if isinstance(found, Fault):
        return found
    channels = session.host.channels
    if found == "NUMPAT":
        return len(channels.patterns)
    if found == "NUMSUB":
        return [part for name in words[2:] for part in (name, len(channels.channels.get(name, ())))]
    pattern = matching(words[2] if len(words) > 2 else "*")
    return [name for name in channels.channels if pattern.fullmatch(name)]
