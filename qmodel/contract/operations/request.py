"""Requests."""

from __future__ import annotations

from typing import Annotated

from qmodel.contract.arguments import (
    Count,
    LineLimit,
    Offset,
    Operations,
    PriorityLevel,
    QueueName,
    RequestId,
    RequestName,
    RequestState,
)
from qmodel.contract.operations.put import Put
from qmodel.contract.operations.spec import CASCADE, PUTS, Operation, operation


@operation("state", "memo", "REQUEST_CONFLICT", "request_opened request_forgotten")
class RequestOpen(Operation):
    """Open a request: a set of jobs of a queue, its sub-requests, of which at most `limit` run at a time.

    Its sub-requests have its priority; requests of one priority take turns. Of a request that is there already, opened
    alike, its state is replied.
    """

    id: RequestName
    queue: QueueName
    limit: LineLimit
    priority: PriorityLevel = 0
    request: RequestId = ""


@operation("number", "memo", "REQUEST_NOT_FOUND " + PUTS, "put request_forgotten" + CASCADE)
class RequestAdd(Operation):
    """Add up to 1000 sub-requests to an open request; replies how many are new.

    Each is a put into the request's queue, without a priority, an `ordered` or a `unique` key. One that the request has
    had already is passed over, whatever became of it.
    """

    id: RequestName
    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""


@operation("state", "memo", "REQUEST_NOT_FOUND", "request_closed request_done", finishes=True)
class RequestClose(Operation):
    """Let an open request end with its last sub-request: at once, if there is none left; replies its state."""

    id: RequestName
    request: RequestId = ""


@operation(
    "state",
    "memo",
    "REQUEST_CONFLICT " + PUTS,
    "request_opened put request_closed request_done request_forgotten" + CASCADE,
)
class RequestPut(Operation):
    """Open a request, add all its sub-requests, and close it, in one step; replies its state."""

    id: RequestName
    queue: QueueName
    limit: LineLimit
    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    priority: PriorityLevel = 0
    request: RequestId = ""


@operation("request", "read")
class RequestGet(Operation):
    """Show a request and how far it has come, or nothing."""

    id: RequestName


@operation("page", "read")
class Requests(Operation):
    """List the requests in a state, longest in it first."""

    state: RequestState = "open"
    offset: Offset = 0
    count: Count = 25


@operation("state", "memo", "REQUEST_NOT_FOUND REQUEST_STATE", "request_tuned unthrottled")
class RequestTune(Operation):
    """Change the priority or the limit of a request that has not ended.

    A lower limit takes nothing away from who runs or is next; a higher one lets more through at once.
    """

    id: RequestName
    priority: PriorityLevel | None = None
    limit: LineLimit | None = None
    request: RequestId = ""


@operation(
    "number",
    "memo",
    "REQUEST_NOT_FOUND HAS_DEPENDENTS CANCEL_LIMIT",
    "request_canceled canceled revoked request_done",
    finishes=True,
)
class RequestCancel(Operation):
    """Call a request off: nothing more of it is handed out, and up to 1000 sub-requests that nobody runs are canceled.

    Those that run are revoked, and counted as canceled when they end. Replies how many are left to cancel: ask again
    until there are none. A sub-request on which another job depends is canceled only with that one.
    """

    id: RequestName
    request: RequestId = ""


@operation("number", "memo", "REQUEST_NOT_FOUND REQUEST_STATE", "request_forgotten", finishes=True)
class RequestForget(Operation):
    """Forget up to 1000 sub-requests of a request that has ended, and with the last of them the request.

    Replies how many are left to forget. The jobs stay.
    """

    id: RequestName
    request: RequestId = ""
