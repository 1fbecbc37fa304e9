"""The reasons that `why` replies: codes, facts, and sentences."""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """A reason why a job does not run, or another remark about its state: a code and its facts, all as text."""

    code: str
    facts: tuple[str, ...]

    @property
    def named(self) -> dict[str, str]:
        """Give the facts by name."""
        return dict(zip(REASONS[self.code][0], self.facts, strict=True))

    @property
    def sentence(self) -> str:
        """Write the reason as a sentence."""
        return REASONS[self.code][1].format(**self.named)


REASONS: dict[str, tuple[tuple[str, ...], str]] = {
    "complete": (("ended_at",), "It is complete."),
    "failed": (("group",), "It has failed, in group {group}, and waits for a person or a policy."),
    "running": (("worker", "expires_at"), "Worker {worker} is running it."),
    "lapsed": (("worker", "free_at"), "The lease of worker {worker} has expired; the grace period has not."),
    "scheduled": (("ready_at",), "It is not due yet."),
    "depends": (("count", "first"), "Dependencies that it waits for: {count} ({first})."),
    "dependency_failed": (
        ("jid", "group"),
        "Job {jid}, which it waits for, has failed, in group {group}: retry that one, or remove the dependency "
        "(`qmodel op depends-off`).",
    ),
    "request": (
        ("request", "state", "left", "total"),
        "It waits for request {request}, which is {state}: {left} of {total} sub-requests are left.",
    ),
    "request_failed": (
        ("request", "state", "done", "total"),
        "Request {request}, which it waits for, has ended as {state}, with {done} of {total} sub-requests done. "
        "That never changes: remove the dependency (`qmodel op depends-off`).",
    ),
    "ordered": (("line", "holder"), "The concurrency key {line} has no free slot: job {holder} holds one."),
    "full": (("throttle", "running", "most", "first"), "Throttle {throttle} is full: {running} of {most}, {first}."),
    "spent": (("throttle", "opens_at"), "Throttle {throttle} has reached its rate limit."),
    "turn": (("throttle", "ahead"), "Jobs parked before it at throttle {throttle}: {ahead}."),
    "paused": (("queue", "reason", "until"), "Queue {queue} is paused ({reason})."),
    "behind": (("queue", "ahead"), "Jobs before it in queue {queue}: {ahead}."),
    "fair": (
        ("queue", "fair_key", "rounds"),
        "Queue {queue} is fair: every other key with waiting jobs gets about {rounds} turns before this job of the key "
        "{fair_key!r}.",
    ),
    "unattended": (("seen_at",), "No worker has asked for jobs in the last minute: start one (`qmodel worker`)."),
    "unserved": (
        ("queue", "ready_at"),
        "Nobody serves queue {queue}: workers are alive, but none runs a job of it or has ended one lately. Start one "
        "that serves it (`qmodel worker MODULE:APP --queues {queue}`), or move the job to the queue that was meant.",
    ),
}
"""The reasons that `why` replies: the names of their facts, and the sentence that the facts fill. Times are
milliseconds; 0 means never.
"""
