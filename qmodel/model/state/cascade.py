"""The cascade: failed jobs whose dependents have not been processed yet.

A stack of (sequence, jid, whether the job itself is to be canceled). Operations process it at their end, within bounds,
so it is empty between operations unless a failure had more followers than one operation processes. An entry is skipped
if its job is no longer failed, or has failed again since.
"""

from __future__ import annotations

from qmodel.model.state.records import Job
from qmodel.model.state.store import Store


def push(store: Store, job: Job, cancels: bool = False) -> None:
    """Push a failed job, to process its dependents or to cancel it, unless it is on the stack already."""
    store.cascade.setdefault((job.seq, job.jid, cancels))


def is_left(store: Store) -> bool:
    """Whether the stack has entries."""
    return bool(store.cascade)


def take(store: Store) -> tuple[Job | None, bool]:
    """Pop the last entry: the job, or None if it has changed since, and whether it is to be canceled."""
    (seq, jid, cancels), _ = store.cascade.popitem()
    job = store.jobs.get(jid)
    return (job if job is not None and job.state == "failed" and job.seq == seq else None), cancels
