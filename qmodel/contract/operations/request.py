"""Requests."""

from __future__ import annotations

from typing import Annotated

from qmodel.contract.arguments import (
    ConcurrencyLimit,
    Count,
    Data,
    Interval,
    Offset,
    Operations,
    PriorityLevel,
    QueueName,
    RequestId,
    RequestName,
    RequestState,
    Switch,
)
from qmodel.contract.operations.put import Put
from qmodel.contract.operations.spec import CASCADE, FAST, FOLLOWED, PUTS, Operation, operation


@operation("state", "memo", "REQUEST_CONFLICT", "request_opened request_forgotten")
class RequestOpen(Operation):
    """Open a request: a set of jobs of a queue, its sub-requests; at most `limit` of them run at a time.

    Sub-requests have the priority of their request; requests of equal priority take turns. If the request already
    exists with the same arguments, its state is replied.

    A request that has not ended `deadline_ms` after it was opened is canceled: running sub-requests are revoked. With
    `fail_fast`, the first sub-request that fails cancels those that have not begun. With `lease_ms`, the request is
    closed if its producer is silent for so long: opening it again, adding to it, and `request_touch` renew this lease.
    All three take effect with the next pop of the queue, before it hands out jobs, or with `fire`. A sub-request with
    dependents outside of the request fails instead of being deleted, so that these follow their policies.

    A sub-request that is delayed, or that waits for its next try, leaves its place under the limit to another one, and
    asks for a place again when it is due. With `keep_places`, one that has begun keeps its place meanwhile.

    `data` is text that is kept with the request.
    """

    id: RequestName
    queue: QueueName
    limit: ConcurrencyLimit
    priority: PriorityLevel = 0
    request: RequestId = ""
    deadline_ms: Interval | None = None
    fail_fast: Switch = False
    lease_ms: Interval | None = None
    data: Data = ""
    keep_places: Switch = False


@operation("number", "memo", "REQUEST_NOT_FOUND " + PUTS, "put request_forgotten" + CASCADE + FAST)
class RequestAdd(Operation):
    """Add up to 1000 sub-requests to an open request; replies how many are new.

    Each is a put into the request's queue, without a priority, an `ordered` key or a `unique` key. A sub-request that
    the request has already had is skipped, whatever its outcome.
    """

    id: RequestName
    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""


@operation("number", "memo", "REQUEST_NOT_FOUND REQUEST_STATE")
class RequestTouch(Operation):
    """Renew the lease on an open request; replies when it ends, or 0 if the request has no lease."""

    id: RequestName
    request: RequestId = ""


@operation("state", "memo", "REQUEST_NOT_FOUND", "request_closed" + FOLLOWED, finishes=True)
class RequestClose(Operation):
    """Close a request: it ends with its last sub-request, or at once if none is left; replies its state."""

    id: RequestName
    request: RequestId = ""


@operation(
    "state",
    "memo",
    "REQUEST_CONFLICT " + PUTS,
    "request_opened put request_closed request_done request_forgotten" + CASCADE + FAST,
)
class RequestPut(Operation):
    """Open a request, add all its sub-requests, and close it, in one step; replies its state.

    `deadline_ms`, `fail_fast`, `data` and `keep_places` are those of `request_open`.
    """

    id: RequestName
    queue: QueueName
    limit: ConcurrencyLimit
    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    priority: PriorityLevel = 0
    request: RequestId = ""
    deadline_ms: Interval | None = None
    fail_fast: Switch = False
    data: Data = ""
    keep_places: Switch = False


@operation("request", "read")
class RequestGet(Operation):
    """Show a request and its progress, or nothing."""

    id: RequestName


@operation("sub_requests", "read", "REQUEST_NOT_FOUND")
class RequestJobs(Operation):
    """List the sub-requests of a request in the order in which they were added, with their outcomes and results.

    A call replies up to `count` of them, as far as its budget goes, and the offset to continue from.
    """

    id: RequestName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Requests(Operation):
    """List the requests in a state, those longest in it first."""

    state: RequestState = "open"
    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "REQUEST_NOT_FOUND REQUEST_STATE", "request_tuned unthrottled")
class RequestTune(Operation):
    """Change the priority or the limit of a request that has not ended.

    A lower limit does not affect sub-requests that are running or in the queue's order; a higher one admits more at
    once. Replies how many sub-requests are left to change: beyond its budget, a call gives the new priority to a part
    of the admitted sub-requests, or raises the limit by a part. Repeat the call until none are left.
    """

    id: RequestName
    priority: PriorityLevel | None = None
    limit: ConcurrencyLimit | None = None
    request: RequestId = ""


@operation(
    "number",
    "memo",
    "REQUEST_NOT_FOUND HAS_DEPENDENTS CANCEL_LIMIT",
    "revoked" + FOLLOWED,
    finishes=True,
)
class RequestCancel(Operation):
    """Cancel a request: hand out nothing more of it, and cancel sub-requests that are not running.

    Running sub-requests are revoked, and counted as canceled when they end. A call cancels and revokes up to 1000,
    as far as its budget goes, and replies how many are left: repeat it until none are left. A sub-request with a
    dependent is canceled only together with it.
    """

    id: RequestName
    request: RequestId = ""


@operation(
    "forgotten",
    "memo",
    "REQUEST_NOT_FOUND REQUEST_STATE HAS_DEPENDENTS",
    "retired canceled request_forgotten",
    finishes=True,
)
class RequestForget(Operation):
    """Forget up to 1000 sub-requests of a request that has ended, and with the last of them the request.

    It is refused while a job waits for the request. The jobs stay. With `delete_jobs`, those that ended as sub-requests
    are deleted, as far as the budget of the call goes; a job with dependents, one that was retried, and one that was
    put again stay. Repeat the call until none are left.
    """

    id: RequestName
    request: RequestId = ""
    delete_jobs: Switch = False
