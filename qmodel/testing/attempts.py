"""Perform one attempt of a job in a test, and describe how it ended.

Without an App there is only a function, or one for each klass: it gets the job, its return value is the result, and an
exception fails the job, as in `with job:`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from qmodel.client.convert import encode_result
from qmodel.client.failure import failure_of
from qmodel.client.sync import Job
from qmodel.contract.operations import Complete, Fail, Operation
from qmodel.errors import QmodelError
from qmodel.testing.steps import Attempt

EndKind = Literal["completed", "failed", "retried", "released"]


class Ending(NamedTuple):
    """The end of an attempt: the operation that reports it, the exception of a failure, and the App's outcome."""

    kind: EndKind
    operation: Operation
    error: BaseException | None = None
    outcome: Any = None


class Performer(Protocol):
    """Makes attempts of jobs."""

    def attempt(self, job: Job) -> Attempt:
        """Make an attempt of a leased job. Raises NobodyPerforms for an unknown klass."""


class NobodyPerforms(QmodelError, LookupError):
    """The test has no code for the klass of a job."""


Function = Callable[[Job], Any]


class Functions:
    """Performs jobs with one function for all, or with one function for each klass; functions may be asynchronous."""

    def __init__(self, perform: Function | Mapping[str, Function] | None) -> None:
        self._perform = perform

    def attempt(self, job: Job) -> Attempt:
        """Make an attempt of a leased job."""
        found = self._perform.get(job.klass) if isinstance(self._perform, Mapping) else self._perform
        if found is None:
            raise NobodyPerforms(f"Nothing here performs {job.klass} (job {job.jid} in {job.queue}).")
        return FunctionAttempt(found, job)


class FunctionAttempt:
    """An attempt that calls a function."""

    def __init__(self, function: Function, job: Job) -> None:
        self._function, self._job = function, job

    def run(self) -> Ending:
        """Call the function."""
        try:
            result = self._function(self._job)
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError(f"{self._job.klass} is performed by an async function: use adrain_queue, aadvance, ...")
            return self._done(result)
        except Exception as error:
            return self._failed(error)

    async def arun(self) -> Ending:
        """Call the function, and await its result if it is awaitable."""
        try:
            result = self._function(self._job)
            return self._done(await result if inspect.isawaitable(result) else result)
        except Exception as error:
            return self._failed(error)

    def _done(self, result: object) -> Ending:
        return Ending("completed", Complete(self._job.jid, self._job.token, encode_result(result)))

    def _failed(self, error: Exception) -> Ending:
        return Ending("failed", Fail(self._job.jid, self._job.token, *failure_of(error)), error)
