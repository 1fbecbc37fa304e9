"""The states of a job, and the table of all transitions between them.

A job is in exactly one state. Two states depend on the clock, and are true whether or not anyone has looked: a
`scheduled` job that has become due counts as `waiting`, and a `running` job with an expired lease counts as `stalled`
(`seen_at`). The next pop of the queue then stores the new state.
"""

from __future__ import annotations

STATES: dict[str, str] = {
    "scheduled": "Not due yet: put, retried or released with a delay.",
    "depends": "Waiting for other jobs. When the last of them completes, the job becomes waiting, or scheduled if it "
    "is not due yet.",
    "waiting": "Ready, in its queue's order: by priority, then by the time it became ready, then by sequence.",
    "throttled": "Ready, but parked: its concurrency key has no free slot, or one of its throttles is closed.",
    "running": "Leased to a worker under a token until a given time; only the holder of the token may finish it.",
    "stalled": "Its lease expired, or was ended by timeout. It is handed out before any waiting job.",
    "complete": "Done. Kept within jobs-history and jobs-history-count.",
    "failed": "Needs a person or a policy. Kept in a failure group until it is retried, put again or canceled.",
}

TRANSITIONS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "waiting"): ("put",),
    ("", "scheduled"): ("put",),
    ("", "depends"): ("put",),
    ("", "throttled"): ("put",),
    ("scheduled", "waiting"): ("due", "put", "promote", "delay"),
    ("scheduled", "scheduled"): ("put", "delay"),
    ("scheduled", "depends"): ("put",),
    ("scheduled", "failed"): ("revoke", "time to live ran out", "end of its request"),
    ("scheduled", "throttled"): ("put",),
    ("scheduled", ""): ("cancel", "drain", "end of its request"),
    ("depends", "waiting"): ("complete", "dependency failed", "depends_off", "put"),
    ("depends", "scheduled"): ("complete", "dependency failed", "depends_off", "put"),
    ("depends", "depends"): ("put", "delay"),
    ("depends", "failed"): ("dependency failed", "revoke", "time to live ran out"),
    ("depends", "throttled"): ("complete", "dependency failed", "depends_off", "put"),
    ("depends", ""): ("cancel", "dependency failed", "drain"),
    ("waiting", "running"): ("pop",),
    ("waiting", "waiting"): ("put", "delay"),
    ("waiting", "scheduled"): ("put", "delay"),
    ("waiting", "depends"): ("put",),
    ("waiting", "failed"): ("revoke", "time to live ran out", "end of its request"),
    ("waiting", ""): ("cancel", "drain", "end of its request"),
    ("waiting", "throttled"): ("pop", "concurrency key", "put"),
    ("throttled", "waiting"): ("pop", "concurrency key", "delay", "put"),
    ("throttled", "scheduled"): ("delay", "put"),
    ("throttled", "depends"): ("put",),
    ("throttled", "throttled"): ("put",),
    ("throttled", "failed"): ("time to live ran out", "revoke", "end of its request"),
    ("throttled", ""): ("cancel", "drain", "end of its request"),
    ("running", "complete"): ("complete",),
    ("running", "failed"): ("fail", "retry", "release", "complete", "timeout", "lease ran out"),
    ("running", "waiting"): ("retry", "release", "complete", "put"),
    ("running", "scheduled"): ("retry", "release", "complete", "put", "delay"),
    ("running", "depends"): ("complete", "release", "put"),
    ("running", "stalled"): ("timeout",),
    ("running", "running"): ("lease ran out",),
    ("running", "throttled"): ("lease ran out", "put"),
    ("running", ""): ("cancel",),
    ("stalled", "running"): ("pop",),
    ("stalled", "throttled"): ("pop", "put"),
    ("stalled", "waiting"): ("put", "priority"),
    ("stalled", "scheduled"): ("put",),
    ("stalled", "depends"): ("put",),
    ("stalled", "failed"): ("revoke", "end of its request"),
    ("stalled", ""): ("cancel", "end of its request"),
    ("complete", "waiting"): ("put",),
    ("complete", "scheduled"): ("put",),
    ("complete", "depends"): ("put",),
    ("complete", "throttled"): ("put",),
    ("complete", ""): ("retention",),
    ("failed", "waiting"): ("retry_many", "put"),
    ("failed", "scheduled"): ("put",),
    ("failed", "depends"): ("retry_many", "put"),
    ("failed", "throttled"): ("retry_many", "put"),
    ("failed", ""): ("cancel", "dependency failed", "retention"),
}
"""The allowed transitions, and the causes of each. The empty state stands for a job that does not exist."""


def seen_at(now: int, state: str, ready_at: int, expires_at: int) -> str:
    """Give the state that is true at `now` (milliseconds), from the stored state."""
    if state == "scheduled" and ready_at <= now:
        return "waiting"
    if state == "running" and expires_at <= now:
        return "stalled"
    return state
