"""Jobs of a job type, for event loops."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Generic, TypeVar

from qmodel.app.typed_jobs import PATIENCE, ResultReader
from qmodel.client.aio import AsyncJob
from qmodel.client.convert import Duration, seconds_of
from qmodel.contract import operations as ops
from qmodel.errors import DataError, NobodyPerforms, NotEnded

R = TypeVar("R")


class AsyncTypedJob(AsyncJob, Generic[R]):
    """A job of a job type, for an event loop."""

    def __init__(self, kind: ResultReader[R], jid: str, given: ops.Put | None = None) -> None:
        super().__init__(kind.app.aclient, jid, given=given)
        self._kind = kind

    async def wait(self, timeout: Duration = math.inf) -> R:
        """Sleep until the job has ended, and give the function's result. Raises the errors of `AsyncJob.wait`.

        Raises NobodyPerforms if no URL is set and no worker runs in this process.
        """
        seconds = seconds_of(timeout)
        with suppress(DataError):
            first = min(seconds, PATIENCE) if self._kind.app.connection.is_unset else seconds
            try:
                await super().wait(first)
            except NotEnded:
                if first == seconds:
                    raise
                if not await self.client.workers.counts():
                    raise NobodyPerforms(self.jid, first) from None
                await super().wait(seconds - first)
        return self._kind.result_of(self._load().result)

    @property
    def result(self) -> R | None:
        """The function's result; None for a job without a result."""
        text = self._load().result
        return self._kind.result_of(text) if text else None
