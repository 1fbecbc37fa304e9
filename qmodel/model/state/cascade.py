"""The cascade: failed jobs whose dependents have not followed yet.

A stack of (sequence, jid, whether the job itself is to be canceled). Operations see to it at their end, within bounds,
so there is something in it only after more followed from a failure than one operation sees to. A job that is no longer
failed, or failed again since, is passed over.
"""

from __future__ import annotations

from qmodel.model.state.records import Job
from qmodel.model.state.store import Store


def push(store: Store, job: Job, cancels: bool = False) -> None:
    """Let a failed job's dependents be seen to, or the job be canceled, unless that is asked for already."""
    store.cascade.setdefault((job.seq, job.jid, cancels))


def is_left(store: Store) -> bool:
    """Whether there is any."""
    return bool(store.cascade)


def take(store: Store) -> tuple[Job | None, bool]:
    """What was pushed last, taken off: the job, or None if it is not as it was, and whether it is to be canceled."""
    (seq, jid, cancels), _ = store.cascade.popitem()
    job = store.jobs.get(jid)
    return (job if job is not None and job.state == "failed" and job.seq == seq else None), cancels
