"""Options: rare properties of jobs, by name, as text.

A plain job has none, and pays nothing for them. They say how a job's present stage is to run, and what it holds that
must be released when it ends. A put assigns all of them anew.

Their names are visible in replies and in the records, so old names stay: `gate` names a throttle, and `line` marks a
slot of a concurrency key.
"""

from __future__ import annotations

from typing import Final

from qmodel.contract.operations import Put
from qmodel.model.state.records import Job

OPTIONS: Final[dict[str, str]] = {
    "after": "kept: the edges that it was given, each as `<jid> <policy>` or `<jid> <policy>:<name>`",
    "results": "kept: how many of its dependencies were named; their results are kept with it",
    "lifo": "put: it comes before the others of its priority, newest first",
    "lease_ms": "put: how long a lease lasts, instead of the queue's heartbeat",
    "dead_queue": "put: the queue for its dead letter",
    "ttl_ms": "put: how long after the put it may start; removed when it starts",
    "timeout_ms": "put: how long a claim lasts at most, however often its lease is renewed",
    "origin": "engine: the job that this dead letter stands for",
    "origin_queue": "engine: the queue in which that job failed",
    "origin_dead_queue": "engine: the dead queue of that job",
    "told": "engine: its holder was told that its lease ran out (`pop` with `qless`); when that was",
    "ended": "engine: its lease was ended, and `priority` with `first` has made it waiting; until its claim",
    "kept": "engine: it failed and is past retention, but has dependents or dependencies",
    "revoked": "engine: it fails however its lease ends; removed when it has failed",
    "schedule": "engine: the recurring job that waits for the end of this run, and the sequence of its creation",
    "keep_complete_ms": "put: how long it is kept at most once complete; 0: not at all",
    "keep_failed_ms": "put: how long it is kept at most once failed; 0: not at all",
    "keep_newest": "put: how many complete jobs of its type are kept, among those with this option",
    "throttles": "put: the throttles that it passes, separated by spaces",
    "cost": "put: the tokens that a claim takes; 1 if not given",
    "gate": "engine: the throttle at which it is parked, or that has admitted it while it waits for its claim",
    "parked": "engine: the sequence at which it was first parked there",
    "released": "engine: the throttles in which it does not count before its next claim, separated by spaces",
    "ordered": "put: jobs with the same key run one at a time (state/concurrency_keys.py)",
    "subject": "engine: the subject of the message that became this job",
    "request": "engine: the request that it is a sub-request of; removed when it ends",
    "line": "engine: it has a slot of its concurrency key, since this sequence",
    "max_lapses": "put: how many of its leases may end by themselves before it fails; they take no retries then",
    "lapses": "engine: how many of them have, since it got all its retries",
    "retry_delay_ms": "put: how long its first retry waits at least (rules/backoff.py)",
    "retry_delay_max_ms": "put: how long a retry waits at most by that",
    "fair_key": "put: the key that it takes turns by in a fair queue (state/turns.py)",
    "fair_weight": "put: how many times as many turns its key gets; 1 if not given",
    "turn": "engine: its turn in a fair queue, while it is in the order",
    "unique": "put: its deduplication key",
    "holder": "engine: the job that holds its key; this job depends on it until it has ended",
}
"""Every option: what sets it (a put, the engine, or the engine for longer than one put), and what it says."""

OF_PUT: Final = tuple(name for name, about in OPTIONS.items() if about.startswith("put: "))
"""The options set by an argument of `put` of the same name. Such an argument is None if it is left out."""

KEPT: Final = tuple(name for name, about in OPTIONS.items() if about.startswith("kept: "))
"""The options of the engine that outlive a put."""


def get(job: Job, name: str) -> str | None:
    """The value of an option of a job, or None."""
    return job.options.get(name)


def set(job: Job, name: str, value: str | int) -> None:
    """Set an option of a job: text without control characters, or a whole number."""
    job.options = job.options or {}
    job.options[name] = str(value)


def drop(job: Job, name: str) -> None:
    """Remove an option of a job."""
    if name in job.options:
        del job.options[name]


def are_given(op: Put) -> bool:
    """Whether a put gives any option: most give none. (A loop over OF_PUT would slow down every put.)"""
    return (
        op.lifo is not None
        or op.lease_ms is not None
        or op.dead_queue is not None
        or op.ttl_ms is not None
        or op.timeout_ms is not None
        or op.keep_complete_ms is not None
        or op.keep_failed_ms is not None
        or op.keep_newest is not None
        or op.throttles is not None
        or op.cost is not None
        or op.ordered is not None
        or op.max_lapses is not None
        or op.retry_delay_ms is not None
        or op.retry_delay_max_ms is not None
        or op.fair_key is not None
        or op.fair_weight is not None
        or op.unique is not None
    )


def assign(job: Job, op: Put) -> None:
    """Give a job exactly the options of a put. A switch that is off, an empty list and an empty name set no option."""
    job.options = {name: job.options[name] for name in KEPT if name in job.options}
    for name in OF_PUT:
        value = getattr(op, name)
        if value is not None and value is not False and value != "" and value != ():
            job.options[name] = _text(value)


def _text(value: object) -> str:
    """Write an argument as an option: a switch as 1, a list separated by spaces."""
    if isinstance(value, tuple):
        return " ".join(value)
    return str(int(value)) if isinstance(value, int) else str(value)


def view(job: Job) -> tuple[tuple[str, str], ...]:
    """All options of a job, by name."""
    return tuple(sorted(job.options.items()))
