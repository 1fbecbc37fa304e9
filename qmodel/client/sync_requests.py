"""Requests: sets of jobs with a limit on how many run at a time.

Generated from `qmodel/client/aio_requests.py` by `./dev docs` (tools/sync_client.py). Edit that file, not this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self, Unpack

from qmodel.client.build import new_sub_request, request_open, request_put
from qmodel.client.convert import Duration, decode, seconds_of
from qmodel.client.options import RequestOptions, SubRequestOptions
from qmodel.client.outcomes import request_of, sub_result
from qmodel.client.sync_results import WaitingExecutor
from qmodel.client.values import Listing
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST, after_request
from qmodel.contract.refusals import Refusal
from qmodel.errors import DataError, RequestNotFound


class Request:
    """One request.

    As a context manager it is opened at the start of the block and closed at its end. An exception that leaves the
    block cancels it.

        with client.request("album-7", "images", limit=3) as request:
            for file in files:
                request.add("Thumbnail", {"file": file})
        print((request.wait()).done)
    """

    def __init__(self, client: WaitingExecutor, id: str, opening: ops.RequestOpen | None = None) -> None:
        self.client = client
        self.id = id
        self.dependency = after_request(id)  # what the dependencies of jobs call it: `put(..., depends=request)`
        self._opening = opening
        self._queue = opening.queue if opening is not None else ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def get(self) -> replies.Request:
        """Read the state of the request. Raises RequestNotFound."""
        known: replies.Request | None = self.client.execute(ops.RequestGet(self.id))
        if known is None:
            raise RequestNotFound(Refusal("REQUEST_NOT_FOUND", (self.id,)))
        self._queue = known.queue
        return known

    def data(self) -> Any:
        """Read what the request carries, decoded from JSON; None if it carries nothing. Raises RequestNotFound."""
        known = self.get()
        try:
            return decode(known.data) if known.data else None
        except ValueError as error:
            message = f"The data of request {self.id} is not JSON ({error}). Read request.get().data for the text."
            raise DataError(message) from error

    def jobs(self) -> Iterator[replies.SubRequest]:
        """Iterate over the sub-requests in the order in which they were added, each with its outcome (done, failed or
        canceled; empty if it has not ended), the state of its job, and its result or failure. Raises RequestNotFound.
        """
        offset = 0
        while True:
            page: replies.SubRequests = self.client.execute(ops.RequestJobs(self.id, offset, MOST))
            for one in page.jobs:
                yield one
            if not page.next:
                return
            offset = page.next

    def results(self, timeout: Duration = math.inf) -> list[Any]:
        """Sleep until the request has ended, and give the results of its sub-requests in the order in which they were
        added.

        For a sub-request without a result the list holds an exception: JobFailed, JobCanceled, or ResultNotKept if its
        job is no longer kept. Raises RequestNotEnded after `timeout` seconds, and RequestNotFound.
        """
        queue = (self.wait(timeout)).queue
        return [sub_result(queue, one) for one in self.jobs()]

    def add(self, klass: str, data: object = None, **options: Unpack[SubRequestOptions]) -> str:
        """Add a sub-request; give its jid, `<id>:<name>`, in a deployment `{<id>}:<name>`.

        The other arguments are the options of `qmodel.client.options.SubRequestOptions`. A `name` that was added before
        is skipped, so a restarted program may add all of them again. Refused with RequestNotFound, RequestState,
        JobExists.
        """
        queue = self._queue or (self.get()).queue
        stem = self.id if self.client.homes is None else f"{{{self.id}}}"
        op = new_sub_request(stem, queue, klass, data, **options)
        self.add_many([op])
        return op.jid

    def add_many(self, jobs: Iterable[ops.Put]) -> int:
        """Add sub-requests, made by `Queue.new`, a thousand in a step; give the number of new ones."""
        puts, new = tuple(jobs), 0
        for start in range(0, len(puts), MOST):
            new += int(self.client.execute(ops.RequestAdd(self.id, puts[start : start + MOST])))
        return new

    def touch(self) -> float:
        """Renew the lease on the open request; give when it ends, in seconds since the epoch, or 0 without a lease.
        Refused with RequestNotFound, RequestState.
        """
        until: int = self.client.execute(ops.RequestTouch(self.id))
        return until / 1000

    def close(self) -> str:
        """Close the request: it ends with its last sub-request. Give its state. Refused with RequestNotFound."""
        state: str = self.client.execute(ops.RequestClose(self.id))
        return state

    def tune(self, *, limit: int | None = None, priority: int | None = None) -> None:
        """Change the limit of running sub-requests, or the priority. Refused with RequestState."""
        while self.client.execute(ops.RequestTune(self.id, priority, limit)):
            pass

    def cancel(self) -> None:
        """Cancel the request: running sub-requests are revoked, others are deleted. Refused with RequestNotFound."""
        while self.client.execute(ops.RequestCancel(self.id)):
            pass

    def forget(self, *, jobs: bool = False) -> replies.Forgotten:
        """Delete the record of an ended request. Its jobs stay, unless `jobs` asks to delete them.

        Jobs on which others depend stay, and those that were retried or put again. Gives how many jobs were deleted,
        and how many stay. Refused with RequestNotFound, RequestState, and with HasDependents while a job waits for it.
        """
        deleted = stay = 0
        while True:
            part: replies.Forgotten = self.client.execute(ops.RequestForget(self.id, delete_jobs=jobs))
            deleted, stay = deleted + part.deleted, stay + part.stay
            if not part.left:
                return replies.Forgotten(0, deleted, stay)

    def wait(self, timeout: Duration = math.inf) -> replies.Request:
        """Sleep until the request has ended, and give its final state. It may have ended before.

        Raises RequestNotEnded, a TimeoutError, after `timeout` seconds, and RequestNotFound. All waiters of one client
        share one connection, so there may be thousands.
        """
        seconds = seconds_of(timeout)
        return request_of(self.id, self.client._results.wait_for_request(self.id, seconds), seconds)

    def __enter__(self) -> Self:
        if self._opening is not None:
            self.client.execute(self._opening)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.cancel()


class Requests:
    """The requests, by id: `client.requests["album-7"]`."""

    def __init__(self, client: WaitingExecutor) -> None:
        self._client = client

    def __getitem__(self, id: str) -> Request:
        """Refer to a request by id, whether or not it exists."""
        return Request(self._client, id)

    def open(self, id: str, queue: str, *, limit: int, priority: int = 0, **options: Unpack[RequestOptions]) -> Request:
        """Open a request: sub-requests of a queue with at most `limit` running at a time.

        The other arguments are the options of `qmodel.client.options.RequestOptions`. If it is open already with the
        same arguments, only its lease is renewed. Refused with RequestConflict.
        """
        op = request_open(id, queue, limit, priority, options)
        self._client.execute(op)
        return Request(self._client, id, op)

    def put(
        self,
        id: str,
        queue: str,
        jobs: Iterable[ops.Put],
        *,
        limit: int,
        priority: int = 0,
        deadline: Duration | None = None,
        fail_fast: bool = False,
        data: object = None,
        keep_places: bool = False,
    ) -> Request:
        """Open a request with up to 1000 sub-requests, made by `Queue.new`, and close it, in one step.

        `deadline`, `fail_fast`, `data` and `keep_places` are those of `open`.
        """
        ends: RequestOptions = {"deadline": deadline, "fail_fast": fail_fast}
        options: RequestOptions = {**ends, "data": data, "keep_places": keep_places}
        op = request_put(id, queue, limit, tuple(jobs), priority, options)
        self._client.execute(op)
        return Request(self._client, id)

    def get(self, id: str) -> replies.Request | None:
        """Read the state of a request; None if there is none."""
        known: replies.Request | None = self._client.execute(ops.RequestGet(id))
        return known

    def page(self, state: str = "open", offset: int = 0, count: int = 25) -> Listing[Request]:
        """List the requests in a state (open, closed, canceling, done, canceled), longest in it first."""
        found: Any = self._client.execute(ops.Requests(state, offset, count))
        return Listing([self[id] for id in found.jids], found.total)
