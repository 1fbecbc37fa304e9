"""Jobs of a job type: those of the client, whose result is what the function gives."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from qmodel.app.base import BaseApp
from qmodel.client.convert import Duration
from qmodel.client.sync import Job
from qmodel.contract import operations as ops
from qmodel.errors import DataError

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ResultReader(Protocol[R_co]):
    """What a job needs of its job type."""

    @property
    def app(self) -> BaseApp: ...

    def result_of(self, text: str) -> R_co:
        """The result that a stored text means. Raises DataError."""


class TypedJob(Job, Generic[R]):
    """A job of a job type: `wait` gives what the function gave, as its annotation says."""

    def __init__(self, kind: ResultReader[R], jid: str, given: ops.Put | None = None) -> None:
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
