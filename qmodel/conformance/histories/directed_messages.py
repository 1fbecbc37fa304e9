"""Histories with a purpose, of messages and subscriptions: how many there may be, and those that many are behind."""

from __future__ import annotations

from typing import Any

from qmodel.conformance.histories.script import Script
from qmodel.contract import operations as ops


def _publish(s: Script, count: int) -> None:
    for number in range(count):
        s.do(ops.Publish("a", str(number)))


def _subscribe(s: Script, name: str, *patterns: str, **arguments: Any) -> None:
    s.do(ops.Subscribe(name, patterns or ("a",), "q", "k", **arguments))


def the_very_first_message(s: Script) -> None:
    """A message may be the first event of all, and a subscription that begins before it gets it."""
    _publish(s, 3)
    _subscribe(s, "all", after=0)
    _subscribe(s, "since", since=0)
    _subscribe(s, "both", after=2, since=s.now)
    s.look()


def patterns_of_a_subscription(s: Script) -> None:
    """Ten patterns, each once, and no more."""
    ten = [f"a{number}" for number in range(10)]
    _subscribe(s, "s", *ten)
    _subscribe(s, "s", *ten, "a0")
    _subscribe(s, "s", *ten, "b")
    s.do(ops.SubscriptionGet("s"))


def a_hundred_that_are_behind(s: Script) -> None:
    """Who drops messages gives them to those that are behind, as many as make a thousand jobs; there are no more than
    a hundred, but each may be changed.
    """
    _publish(s, 13)
    for number in range(101):
        _subscribe(s, f"s{number:03}", after=0, count=1)
    _subscribe(s, "s007", "a", "b", count=2)
    s.do(ops.Trim())
    s.do(ops.Messages())
    for number in range(50):
        s.do(ops.Unsubscribe(f"s{number:03}"))
    s.do(ops.Trim())
    s.do(ops.Messages())
    s.do(ops.Queue("q"))


def more_than_a_part(s: Script) -> None:
    """Whoever publishes drops ten messages that are kept no longer; whoever trims drops up to a thousand at once."""
    _publish(s, 510)
    s.set("messages-history-count", 490)
    for _ in range(3):
        _publish(s, 1)
        s.do(ops.Messages(count=1))
    _subscribe(s, "s", "b", after=0, count=1)
    s.do(ops.Trim(495))
    s.do(ops.SubscriptionGet("s"))
    s.set("messages-history-count", 1000)
    _publish(s, 510)
    s.do(ops.Trim())
    s.do(ops.Messages())


SCRIPTS = (the_very_first_message, patterns_of_a_subscription, a_hundred_that_are_behind, more_than_a_part)
