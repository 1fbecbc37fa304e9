"""The outcomes of attempts, and the operation that reports each to the engine. Workers and tests use the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from qmodel.contract import operations as ops
from qmodel.present.durations import format_duration

UNKNOWN_MS: Final = (10_000, 600_000)
"""Bounds of the delay before a job of an unknown type is ready again, in milliseconds. Within them the delay is the
time that the job has waited already. A worker that knows the type may start meanwhile, and many such jobs block no
worker.
"""

_CONTROL = re.compile("[\x00-\x1f\x7f]")
GROUP_BYTES, MESSAGE_BYTES = 160, 1 << 16


class Held(Protocol):
    """A leased job: the engine's reply, or an object of either client."""

    @property
    def jid(self) -> str: ...

    @property
    def token(self) -> int: ...

    @property
    def queue(self) -> str: ...

    @property
    def worker(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt."""

    def operation(self, job: Held, **pop: Any) -> ops.Operation:
        """Make the operation that reports the outcome of a leased job.

        With arguments of CompleteAndPop (`queue`, `worker`, `count`, `wait`, `request`) the operation of a completed
        job leases the next jobs in the same step. Other outcomes ignore these arguments.
        """
        raise NotImplementedError

    @property
    def word(self) -> str:
        """The outcome in one word, for logs and metrics: the class's name in lower case."""
        return type(self).__name__.lower()


@dataclass(frozen=True, slots=True)
class Completed(Outcome):
    """The job returned a result, here as stored text."""

    result_text: str = ""

    def operation(self, job: Held, **pop: Any) -> ops.Complete | ops.CompleteAndPop:
        if not pop:
            return ops.Complete(job.jid, job.token, self.result_text)
        op = ops.CompleteAndPop(job.jid, job.token, job.queue, job.worker, result=self.result_text)
        return replace(op, **pop)


@dataclass(frozen=True, slots=True)
class Retried(Outcome):
    """The job raised and is tried again after a delay, if the engine finds that retries are left."""

    delay_ms: int
    group: str
    message: str
    error: BaseException | None = field(default=None, compare=False)

    def operation(self, job: Held, **pop: Any) -> ops.Retry:
        return ops.Retry(job.jid, job.token, self.delay_ms, _group(self.group), _message(self.message))


@dataclass(frozen=True, slots=True)
class Failed(Outcome):
    """The job has failed for good. `error` is its exception."""

    group: str
    message: str
    error: BaseException | None = field(default=None, compare=False)

    def operation(self, job: Held, **pop: Any) -> ops.Fail:
        return ops.Fail(job.jid, job.token, _group(self.group), _message(self.message))


@dataclass(frozen=True, slots=True)
class Released(Outcome):
    """The job runs again later without using up a retry, perhaps with other data or after other jobs."""

    delay_ms: int = 0
    data: str | None = None
    depends: tuple[str, ...] = ()

    def operation(self, job: Held, **pop: Any) -> ops.Release:
        return ops.Release(job.jid, job.token, self.delay_ms, self.data, self.depends)


@dataclass(frozen=True, slots=True)
class Unknown(Outcome):
    """The app does not know the job type. The job is released for a worker that does."""

    klass: str
    did_you_mean: str = ""
    known: tuple[str, ...] = ()
    delay_ms: int = UNKNOWN_MS[0]

    @property
    def sentence(self) -> str:
        """The problem, and what to do."""
        there = f"Did you mean {self.did_you_mean!r}?" if self.did_you_mean else _listed(self.known)
        again = f"The job is released, and comes again in {format_duration(self.delay_ms)}."
        return f"This worker has no job type {self.klass!r}. {there} {again}"

    def operation(self, job: Held, **pop: Any) -> ops.Release:
        return ops.Release(job.jid, job.token, self.delay_ms)


def _listed(known: Iterable[str]) -> str:
    names = list(known)
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (
        f"The app has {', '.join(names[:10])}{more}."
        if names
        else "The app has no job types: are their modules imported?"
    )


def _group(text: str) -> str:
    """Make a valid group name of a text."""
    return _cut(_CONTROL.sub("?", text), GROUP_BYTES) or "Fail"


def _message(text: str) -> str:
    """Cut a message to the stored length. Its end is kept, because a traceback names the error there."""
    encoded = text.encode(errors="backslashreplace")
    return encoded[-MESSAGE_BYTES:].decode(errors="ignore")


def _cut(text: str, most: int) -> str:
    return text.encode(errors="backslashreplace")[:most].decode(errors="ignore")
