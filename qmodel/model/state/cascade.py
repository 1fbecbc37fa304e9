"""The cascade: failed jobs and ended requests with dependents that are yet to be processed.

A stack of (sequence, jid, whether the job itself is to be canceled). Operations process it at their end, within bounds,
so it is empty between operations unless a failure had more followers than one operation processes. An entry is skipped
if its job is no longer failed, or has failed again since. A request has the name that edges to it have.
"""

from __future__ import annotations

from qmodel.contract.arguments import awaited_request
from qmodel.model.state import requests
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store


def push(store: Store, job: Job | Request, cancels: bool = False) -> None:
    """Push a failed job, to process its dependents or to cancel it, or an ended request, unless it is on the stack
    already.
    """
    store.cascade.setdefault((job.seq, job.jid, cancels))


def is_left(store: Store) -> bool:
    """Whether the stack has entries."""
    return bool(store.cascade)


def take(store: Store) -> tuple[Job | Request | None, bool]:
    """Pop the last entry: the job or the request, or None if it has changed since, and whether it is to be canceled."""
    (seq, jid, cancels), _ = store.cascade.popitem()
    id = awaited_request(jid)
    if id:
        request = requests.get(store, id)
        return (request if request is not None and requests.has_ended(request) else None), False
    job = store.jobs.get(jid)
    return (job if job is not None and job.state == "failed" and job.seq == seq else None), cancels
