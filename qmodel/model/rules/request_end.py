"""How a request ends. The rules are described in qmodel/model/state/requests.py."""

from __future__ import annotations

from qmodel.model.state import options, requests
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store, emit


def sub_ended(store: Store, now: int, job: Job) -> None:
    """Count an ended sub-request in its request."""
    id = options.get(job, "request")
    if id is None:
        return
    options.drop(job, "request")
    request = requests.load(store, id)
    if job.state == "complete":
        requests.finish(store, request, job.jid, "done")
    elif job.state == "failed" and request.state != "canceling":
        requests.finish(store, request, job.jid, "failed")
    else:
        requests.finish(store, request, job.jid, "canceled")
    conclude(store, now, request)


def conclude(store: Store, now: int, request: Request) -> None:
    """End a request that has no work left."""
    if request.state in ("closed", "canceling") and requests.left(request) == 0:
        state = "done" if request.state == "closed" else "canceled"
        counts = request.done, request.failed, request.canceled
        emit(store, now, "request_done", request.id, request.queue, state, *counts)
        requests.move(store, now, request, state)
    requests.save(store, request)
