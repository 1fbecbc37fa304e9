"""Jobs of a job type: those of the client, whose result is what the function gives."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from qmodel.client.convert import Duration
from qmodel.client.sync import Job
from qmodel.contract import operations as ops
from qmodel.errors import DataError

if TYPE_CHECKING:
    from qmodel.app.jobtype import JobType

R = TypeVar("R")


class TypedJob(Job, Generic[R]):
    """A job of a job type: `wait` gives what the function gave, as its annotation says."""

    def __init__(self, kind: JobType[Any, R, Any, Any], jid: str, given: ops.Put | None = None) -> None:
        super().__init__(kind.app.client, jid, given=given)
        self._kind = kind

    def wait(self, timeout: Duration = math.inf) -> R:
        """Sleep until it has ended, and give what its function gave. Raises what `Job.wait` raises."""
        with suppress(DataError):  # the text may be none of JSON: its job type knows
            super().wait(timeout)
        return self._kind.result_of(self._load().result)

    @property
    def result(self) -> R | None:
        """What its function gave; None for a job without a result."""
        text = self._load().result
        return self._kind.result_of(text) if text else None
