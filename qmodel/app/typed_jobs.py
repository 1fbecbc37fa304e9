"""Jobs of a job type: the client's jobs, with results of the function's type."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Final, Generic, Protocol, TypeVar

from qmodel.app.base import BaseApp
from qmodel.client.convert import Duration, seconds_of
from qmodel.client.sync import Job
from qmodel.contract import operations as ops
from qmodel.errors import DataError, NobodyPerforms, NotEnded

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


PATIENCE: Final = 1.0
"""Seconds after which a wait asks whether anybody performs the job, if the jobs are in the memory of this process."""


class ResultReader(Protocol[R_co]):
    """The part of a job type that its jobs use."""

    @property
    def app(self) -> BaseApp: ...

    def result_of(self, text: str) -> R_co:
        """Decode a result from stored text. Raises DataError."""


class TypedJob(Job, Generic[R]):
    """A job of a job type. `wait` gives the function's result, converted by its annotation."""

    def __init__(self, kind: ResultReader[R], jid: str, given: ops.Put | None = None) -> None:
        super().__init__(kind.app.client, jid, given=given)
        self._kind = kind

    def wait(self, timeout: Duration = math.inf) -> R:
        """Sleep until the job has ended, and give the function's result. Raises the errors of `Job.wait`.

        Raises NobodyPerforms if no URL is set and no worker runs in this process.
        """
        seconds = seconds_of(timeout)
        with suppress(DataError):  # the result may not be JSON; the job type decodes it
            first = min(seconds, PATIENCE) if self._kind.app.connection.is_unset else seconds
            try:
                super().wait(first)
            except NotEnded:
                if first == seconds:
                    raise
                if not self.client.workers.counts():
                    raise NobodyPerforms(self.jid, first) from None
                super().wait(seconds - first)
        return self._kind.result_of(self._load().result)

    @property
    def result(self) -> R | None:
        """The function's result; None for a job without a result."""
        text = self._load().result
        return self._kind.result_of(text) if text else None
