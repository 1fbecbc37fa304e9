"""Laws of messages and subscriptions: one job per message and matching subscription."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Moment, law


def matches(pattern: str, subject: str) -> bool:
    """Whether a subject matches a pattern: `*` one segment, `>` at the end one or more."""
    wanted, segments = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        if len(segments) < len(wanted):
            return False
        wanted, segments = wanted[:-1], segments[: len(wanted) - 1]
    return len(wanted) == len(segments) and all(
        one in ("*", other) for one, other in zip(wanted, segments, strict=True)
    )


@law
def a_message_becomes_one_job_for_each_matching_subscription(m: Moment) -> Iterator[str]:
    """A published message becomes one job for each subscription that matches its subject and is up to date, named
    `<subscription>:<number>`, however many patterns match; one that exists already stays, and `passed_over` reports it.
    """
    if m.name != "publish" or m.refused or not m.events:
        return
    number = m.events[0].seq
    wanted = {
        f"{name}:{number}"
        for name, one in m.before.subscriptions.items()
        if one["position"] is None and any(matches(pattern, m.op.subject) for pattern in one["patterns"])
    }
    behind = {f"{name}:{number}" for name, one in m.before.subscriptions.items() if one["position"] is not None}
    made = {one.jid for one in m.told("put") if one.jid.endswith(f":{number}")} - behind
    passed = {str(event.facts[1]) for event in m.events if event.event == "passed_over"} - behind
    if made | {jid for jid in passed if jid.endswith(f":{number}")} != wanted or m.outcome != number:
        yield f"{sorted(made)} are made, and {sorted(wanted)} wanted; {m.outcome} is replied"
    if m.events[0].facts != (m.op.subject, len(wanted)):
        yield f"{m.events[0]}, but {len(wanted)} subscriptions match"


@law
def a_message_is_delivered_once_and_in_order(m: Moment) -> Iterator[str]:
    """A subscription gets each message once, in their order, and a new one only those that it asked for: a subscription
    that is behind gets new messages when their turn comes.
    """
    for one in m.told("put"):
        if one.becomes is None or one.becomes["source"] != "message":
            continue
        name, _, number = one.jid.rpartition(":")
        before = m.before.subscriptions.get(name)
        position = before["position"] if before is not None else None
        if before is not None and position is None and m.name != "publish":
            yield f"{one.jid} was made by {m.name}, and {name} was up to date"
        if position is not None and int(number) <= position:
            yield f"{one.jid} was made, and {name} had all up to {position}"
        after = m.after.subscriptions[name]
        subject = one.becomes["options"]["subject"]
        if not any(matches(pattern, subject) for pattern in after["patterns"]):
            yield f"{one.jid} has the subject {subject!r}, and {name} wants {after['patterns']}"
        if (one.becomes["queue"], one.becomes["klass"]) != (after["queue"], after["klass"]):
            yield f"{one.jid} is in {one.becomes['queue']}"
    numbers: dict[str, int] = {}
    for one in m.told("put"):
        if one.becomes is not None and one.becomes["source"] == "message":
            name, _, number = one.jid.rpartition(":")
            if numbers.get(name, 0) >= int(number):
                yield f"{one.jid} was made after the message {numbers[name]}"
            numbers[name] = int(number)


@law
def no_message_is_dropped_before_it_is_delivered(m: Moment) -> Iterator[str]:
    """Before a message is dropped, the subscriptions that are behind receive it; the oldest are dropped first, and only
    by `trim` or past `messages-history` and `messages-history-count`.
    """
    kept = {one[0] for one in m.after.messages}
    dropped = [one for one in m.before.messages if one[0] not in kept]
    if not dropped:
        return
    if kept and min(kept) < dropped[-1][0]:
        yield f"{dropped[-1][0]} was dropped, and {min(kept)} is kept"
    for name, one in m.after.subscriptions.items():
        if one["position"] is not None and one["position"] < dropped[-1][0]:
            yield f"{dropped[-1][0]} was dropped, and {name} has only those up to {one['position']}"
    if m.name != "trim":
        count = len(m.before.messages) + (m.name == "publish") - m.option("messages-history-count")
        for place, message in enumerate(dropped):
            if place >= count and message[1] > m.now - m.option("messages-history"):
                yield f"{message[0]} of {message[1]} was dropped at {m.now}"


@law
def subscribing_again_keeps_the_position(m: Moment) -> Iterator[str]:
    """Subscribing again changes patterns, queue and the rest, but not the position: only deliveries move it on."""
    for name, before in m.before.subscriptions.items():
        after = m.after.subscriptions.get(name)
        moved = [event for event in m.events if event.event == "caught_up" and event.facts[0] == name]
        if after is not None and not moved and after["position"] != before["position"]:
            last = max((one[0] for one in m.after.messages), default=0)
            if after["position"] is not None or (before["position"] or 0) < last:
                yield f"{name} was at {before['position']}, and is at {after['position']}"
        if after is None and not any(event.event == "unsubscribed" and event.facts[0] == name for event in m.events):
            yield f"{name} is gone without an event"


@law
def unsubscribing_leaves_the_jobs(m: Moment) -> Iterator[str]:
    """`unsubscribe` ends deliveries and leaves the jobs."""
    if m.name == "unsubscribe" and m.tale:
        yield f"{m.tale[0].event}"
