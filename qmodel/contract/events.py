"""The event catalogue: the kinds of event in the stream, and the facts that each carries.

Every transition of a job, and every other change except a heartbeat, is one event. Its sequence is assigned in the step
that makes the change, without gaps: a reader that has seen 41 and then 43 knows that it missed 42.

A server that loses the end of its log (failover, power failure, restored backup) gives the lost sequences again. Its
first step after that begins a new epoch, so the pair of epoch and sequence identifies an event among all servers.
"""

from __future__ import annotations

from typing import NamedTuple

EVENTS: dict[str, tuple[str, ...]] = {
    # a job enters a state
    "put": ("jid", "queue", "klass", "state", "tags"),  # all tags of the job; none, and the fact is left out
    "promoted": ("jid", "queue"),
    "unblocked": ("jid", "queue", "state"),
    "deduplicated": ("jid", "queue", "unique", "mode", "state"),  # the job that holds the key; no job was put
    "delayed": ("jid", "queue", "ready_at"),
    "unfailed": ("jid", "queue", "group", "state"),
    "throttled": ("jid", "queue", "throttle"),
    "unthrottled": ("jid", "queue", "throttle"),
    "dead_lettered": ("jid", "queue", "letter", "to"),  # the letter is the job whose `put` follows
    # a lease begins and ends
    "popped": ("jid", "queue", "worker", "wait_ms"),  # its epoch and sequence are the token of the lease
    "completed": ("jid", "queue", "worker", "token", "run_ms"),
    "advanced": ("jid", "queue", "worker", "token", "run_ms", "to", "state"),
    "failed": ("jid", "queue", "worker", "token", "group"),
    "retried": ("jid", "queue", "worker", "token", "remaining", "state", "group"),  # a group if the call gives one
    "released": ("jid", "queue", "worker", "token", "state"),
    "lock_lost": ("jid", "queue", "worker", "token", "cause"),
    "revoked": ("jid", "queue", "worker", "token"),  # to a worker: stop
    # a job is deleted
    "canceled": ("jid", "queue", "state"),
    "retired": ("jid",),
    # something about a job changes
    "blocked": ("jid", "dependencies"),
    "prioritized": ("jid", "priority", "state"),  # a state only if it changes: a stalled job joins the waiting ones
    "updated": ("jid",),
    "progressed": ("jid",),
    "logged": ("jid",),
    "tagged": ("jid", "tag"),
    "untagged": ("jid", "tag"),
    "tracked": ("jid",),
    "untracked": ("jid",),
    # recurring jobs, and their runs
    "recurred": ("schedule", "queue", "klass", "next_at"),
    "recur_updated": ("schedule", "queue", "next_at"),
    "unrecurred": ("schedule", "queue", "cause"),  # unrecur, obliterate, limit or end
    "recur_paused": ("schedule", "queue"),
    "recur_unpaused": ("schedule", "queue"),
    "recur_advanced": ("schedule", "queue", "times", "last_at"),
    "missed": ("schedule", "queue", "runs", "next_at"),
    "skipped": ("schedule", "queue", "runs", "next_at"),
    "fired": ("schedule", "queue", "run", "due_at"),  # the run is the job whose `put` follows
    "renumbered": ("schedule", "queue", "run"),
    # throttles
    "limited": ("throttle", "concurrency", "rate", "rate_ms", "capacity", "refill", "refill_ms"),
    "unlimited": ("throttle",),
    # deduplication keys
    "unique_released": ("unique", "jid"),
    # messages and subscriptions
    "published": ("subject", "subscriptions"),  # its sequence is the message's number
    "subscribed": ("subscription", "queue", "klass"),
    "unsubscribed": ("subscription", "queue"),
    "caught_up": ("subscription", "last", "left"),  # all up to message `last`; `left` more to come
    "passed_over": ("subscription", "jid"),  # a job with that id exists already
    "trimmed": ("messages", "last"),  # how many were dropped, and the last one
    # requests
    "request_opened": ("request", "queue", "priority", "limit"),
    "request_closed": ("request", "reason"),  # the reason only if its lease ran out: lapsed
    "request_tuned": ("request", "priority", "limit"),
    "request_canceled": ("request", "reason"),  # the reason only if no call did it: deadline or failed
    "request_done": ("request", "queue", "outcome", "completed", "failed", "canceled"),
    "request_forgotten": ("request",),
    # queues, workers, configuration
    "paused": ("queue", "reason", "until"),  # 0 if it does not end by itself
    "unpaused": ("queue", "reason", "left"),  # without a reason: all remaining pauses
    "forgotten": ("queue",),
    "noted": ("klass", "key"),
    "unnoted": ("klass", "key"),
    "deregistered": ("worker",),
    "configured": ("option", "value"),
    "epoch_begun": ("epoch", "previous"),  # the first event of its epoch
}


WHOLE = frozenset(
    {
        "canceled", "capacity", "completed", "concurrency", "dependencies", "due_at", "epoch", "failed",
        "last", "last_at", "left", "limit", "messages", "next_at", "previous", "priority", "rate", "rate_ms",
        "ready_at", "refill", "refill_ms",
        "remaining", "run_ms", "runs", "subscriptions", "times", "token", "until", "value", "wait_ms",
    }
)  # fmt: skip
"""The facts of events and stages that are whole numbers."""

OPTIONAL: dict[str, int] = {
    "put": 1, "prioritized": 1, "retried": 1, "request_closed": 1, "request_canceled": 1
}  # fmt: skip
"""How many of an event's last facts may be left out: a put has no `tags` if its job has none."""

BETWEEN_TAGS = "\x1f"
"""What stands between tags in a fact; no tag has a control character."""

Fact = str | int


def is_whole(event: str, count: int) -> bool:
    """Say whether an event may have so many facts."""
    names = EVENTS.get(event, ())
    return bool(names) and len(names) - OPTIONAL.get(event, 0) <= count <= len(names)


class Event(NamedTuple):
    """One event: its sequence, its time, its kind, its facts in the catalogue's order, and its epoch."""

    seq: int
    at: int
    event: str
    facts: tuple[Fact, ...]
    epoch: int = 0

    @property
    def named(self) -> dict[str, Fact]:
        """Give the facts by name."""
        names = EVENTS[self.event]
        return dict(zip(names, self.facts, strict=self.event not in OPTIONAL))
