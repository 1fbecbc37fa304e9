"""Options: what few jobs have, by name, as text.

A job of which nothing special was asked has none, and pays nothing for those that exist. They say how a job's present
stage is to be run, and what it holds that has to be let go of when it ends: a put begins anew and assigns all of them.
"""

from __future__ import annotations

from typing import Final

from qmodel.contract.operations import Put
from qmodel.model.state.records import Job

OPTIONS: Final[dict[str, str]] = {
    "after": "kept: the dependencies that it was given, as edges, each as `<jid> <policy>` or `<jid> <policy>:<name>`",
    "results": "kept: how many of its dependencies were named, whose results are kept with it",
    "lifo": "put: it stands before the others of its priority, newest first",
    "lease_ms": "put: how long a lease lasts, instead of the queue's heartbeat",
    "dead_queue": "put: where a dead letter of it is put when it fails",
    "ttl_ms": "put: how long from the put it may begin; gone when it has begun",
    "timeout_ms": "put: how long a claim lasts at most, however often its lease is renewed",
    "origin": "engine: the job of which it is a dead letter",
    "origin_queue": "engine: the queue in which that failed",
    "origin_dead_queue": "engine: the dead queue of that one",
    "kept": "engine: it failed, and is past keeping, but for its dependents or dependencies",
    "revoked": "engine: however its lease ends, it fails; gone when it has",
    "schedule": "engine: the recurring job that waits for the end of this run, and since which sequence it recurs",
    "keep_complete_ms": "put: how long it is kept at most once it is complete; 0: not at all",
    "keep_failed_ms": "put: how long it is kept at most once it has failed; 0: not at all",
    "throttles": "put: the throttles that it passes, with spaces between",
    "cost": "put: the tokens that a claim of it takes; 1 where it is not given",
    "gate": "engine: the throttle at which it is parked, or that has let it go on while it waits",
    "parked": "engine: the sequence at which it was parked there first",
    "ordered": "put: the key of which one job after the other starts (state/lines.py)",
    "subject": "engine: what the message was about that became this job",
    "request": "engine: the request that it is a sub-request of; gone when it has ended",
    "line": "engine: it has a place in its line, since this sequence",
    "unique": "put: the key under which another put finds that this job stands for it",
    "holder": "engine: the job that holds its key, and on which it depends until that has ended",
}
"""Every option: what it says, and whether a put gives it or the engine."""

OF_PUT: Final = tuple(name for name, about in OPTIONS.items() if about.startswith("put: "))
"""Those that an argument of `put` of the same name gives. Such an argument is None where it is left out."""

KEPT: Final = tuple(name for name, about in OPTIONS.items() if about.startswith("kept: "))
"""Those of the engine that outlive a put."""


def get(job: Job, name: str) -> str | None:
    """What an option of a job says, or None."""
    return job.options.get(name)


def set(job: Job, name: str, value: str | int) -> None:
    """Let an option of a job say this: text without control characters, or a whole number."""
    job.options = job.options or {}
    job.options[name] = str(value)


def drop(job: Job, name: str) -> None:
    """Let a job no longer have an option."""
    if name in job.options:
        del job.options[name]


def are_given(op: Put) -> bool:
    """Whether a put gives any: most give none. (A loop over OF_PUT would be felt by them all.)"""
    return (
        op.lifo is not None
        or op.lease_ms is not None
        or op.dead_queue is not None
        or op.ttl_ms is not None
        or op.timeout_ms is not None
        or op.keep_complete_ms is not None
        or op.keep_failed_ms is not None
        or op.throttles is not None
        or op.cost is not None
        or op.ordered is not None
        or op.unique is not None
    )


def assign(job: Job, op: Put) -> None:
    """Let a job have just the options that a put gives it; a switch that is off, or an empty list or name, is none."""
    job.options = {name: job.options[name] for name in KEPT if name in job.options}
    for name in OF_PUT:
        value = getattr(op, name)
        if value is not None and value is not False and value != "" and value != ():
            job.options[name] = _text(value)


def _text(value: object) -> str:
    """An argument as an option holds it: a switch as 1, a list with spaces between."""
    if isinstance(value, tuple):
        return " ".join(value)
    return str(int(value)) if isinstance(value, int) else str(value)


def view(job: Job) -> tuple[tuple[str, str], ...]:
    """All options of a job, by name."""
    return tuple(sorted(job.options.items()))
