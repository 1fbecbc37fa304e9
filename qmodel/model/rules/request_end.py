"""How a request ends. The rules are described in qmodel/model/state/requests.py."""

from __future__ import annotations

from qmodel.model.state import cascade, options, queues, requests
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store, emit


def fail_fast(store: Store, now: int, job: Job) -> None:
    """Cancel the request of a failed sub-request, if it says so, before the slot of the sub-request is free."""
    id = options.get(job, "request") if job.state == "failed" else None
    if id is None:
        return
    request = requests.load(store, id)
    if request.fail_fast and request.state != "canceling":
        begin_cancellation(store, now, request, "failed")
        queues.wake_one(store, request.queue)


def sub_ended(store: Store, now: int, job: Job) -> None:
    """Count an ended sub-request in its request."""
    id = options.get(job, "request")
    if id is None:
        return
    options.drop(job, "request")
    request = requests.load(store, id)
    if job.state == "complete":
        requests.finish(store, request, job, "done")
    elif job.state == "failed" and (request.state != "canceling" or request.reason == "failed"):
        requests.finish(store, request, job, "failed")
    else:
        requests.finish(store, request, job, "canceled")
    conclude(store, now, request)


def begin_cancellation(store: Store, now: int, request: Request, reason: str) -> None:
    """Let the next pops of its queue cancel a request (rules/request_cancellation.py)."""
    emit(store, now, "request_canceled", request.id, reason)
    if request.state != "canceling":
        requests.move(store, now, request, "canceling")
    request.reason, request.ending, request.reached = reason, True, None
    requests.save(store, request)


def close(store: Store, now: int, request: Request, *reason: str) -> None:
    """Close an open request."""
    if request.state == "open":
        emit(store, now, "request_closed", request.id, *reason)
        requests.move(store, now, request, "closed")
        request.reason = "".join(reason)
        conclude(store, now, request)


def conclude(store: Store, now: int, request: Request) -> None:
    """End a request that has no work left. The jobs that wait for it go on at the end of the operation."""
    if request.state in ("closed", "canceling") and requests.left(request) == 0:
        state = "done" if request.state == "closed" else "canceled"
        counts = request.done, request.failed, request.canceled
        emit(store, now, "request_done", request.id, request.queue, state, *counts)
        requests.move(store, now, request, state)
        if request.dependents:
            cascade.push(store, request)
    requests.save(store, request)
