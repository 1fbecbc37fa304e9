"""The reasons that `why` gives: codes with facts, and the sentences that they fill."""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """A reason why a job does not run, or what else is to be said of it: a code, and its facts, all as text."""

    code: str
    facts: tuple[str, ...]

    @property
    def named(self) -> dict[str, str]:
        """The facts by name."""
        return dict(zip(REASONS[self.code][0], self.facts, strict=True))

    @property
    def sentence(self) -> str:
        """The reason, for a person."""
        return REASONS[self.code][1].format(**self.named)


REASONS: dict[str, tuple[tuple[str, ...], str]] = {
    "complete": (("ended_at",), "It is complete."),
    "failed": (("group",), "It has failed, in group {group}, and waits for a person or a policy."),
    "running": (("worker", "expires_at"), "Worker {worker} has it."),
    "lapsed": (("worker", "free_at"), "The lease of worker {worker} ran out; its grace has not."),
    "scheduled": (("ready_at",), "Its time has not come."),
    "depends": (("count", "first"), "It waits for other jobs ({count}): {first}."),
    "ordered": (("line", "holder"), "Job {holder} is before it in the line {line}."),
    "full": (("throttle", "running", "most", "first"), "Throttle {throttle} is full: {running} of {most}, {first}."),
    "spent": (("throttle", "opens_at"), "Throttle {throttle} has let as many pass as it may."),
    "turn": (("throttle", "ahead"), "Jobs parked before it at throttle {throttle}: {ahead}."),
    "paused": (("queue", "reason", "until"), "Queue {queue} is paused ({reason})."),
    "behind": (("queue", "ahead"), "Jobs before it in queue {queue}: {ahead}."),
    "unattended": (("seen_at",), "No worker has asked for jobs in the last minute."),
}
"""The reasons that `why` gives: their facts, and the sentence that they fill. Moments are milliseconds; 0 is never."""
