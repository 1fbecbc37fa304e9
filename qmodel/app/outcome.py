"""What became of an attempt, and the operation that tells the engine so: one meaning for workers and for tests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from qmodel.contract import operations as ops

UNKNOWN_MS: Final = (10_000, 600_000)
"""After how long a job comes back whose job type nobody knew: time for a worker that does to come. As long again as it
has waited already, within these bounds, so that many such jobs keep nobody from work."""

_ODD = re.compile("[\x00-\x1f\x7f]")
GROUP_BYTES, MESSAGE_BYTES = 160, 1 << 16


class Held(Protocol):
    """A job under a lease: as the engine replies it, or as either client has it."""

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
    """What became of an attempt."""

    def operation(self, job: Held, **pop: Any) -> ops.Operation:
        """The operation that says so for a leased job.

        With arguments of CompleteAndPop (`queue`, `worker`, `count`, `wait`, `request`) that of a completed job takes
        the next ones in the same step; other outcomes pass over them.
        """
        raise NotImplementedError

    @property
    def word(self) -> str:
        """What became of it in one word, for logs and metrics: the class in lower case."""
        return type(self).__name__.lower()


@dataclass(frozen=True, slots=True)
class Completed(Outcome):
    """It gave a result, which is text as it is stored."""

    result_text: str = ""

    def operation(self, job: Held, **pop: Any) -> ops.Complete | ops.CompleteAndPop:
        if not pop:
            return ops.Complete(job.jid, job.token, self.result_text)
        op = ops.CompleteAndPop(job.jid, job.token, job.queue, job.worker, result=self.result_text)
        return replace(op, **pop)


@dataclass(frozen=True, slots=True)
class Retried(Outcome):
    """It raised, and is tried again after a delay, if any retries remain, which the engine knows."""

    delay_ms: int
    group: str
    message: str
    error: BaseException | None = field(default=None, compare=False)

    def operation(self, job: Held, **pop: Any) -> ops.Retry:
        return ops.Retry(job.jid, job.token, self.delay_ms, _group(self.group), _message(self.message))


@dataclass(frozen=True, slots=True)
class Failed(Outcome):
    """It has failed, and is not tried again. `error` is what it raised."""

    group: str
    message: str
    error: BaseException | None = field(default=None, compare=False)

    def operation(self, job: Held, **pop: Any) -> ops.Fail:
        return ops.Fail(job.jid, job.token, _group(self.group), _message(self.message))


@dataclass(frozen=True, slots=True)
class Released(Outcome):
    """It goes on later, uncounted: with other data perhaps, or when others have ended."""

    delay_ms: int = 0
    data: str | None = None
    depends: tuple[str, ...] = ()

    def operation(self, job: Held, **pop: Any) -> ops.Release:
        return ops.Release(job.jid, job.token, self.delay_ms, self.data, self.depends)


@dataclass(frozen=True, slots=True)
class Unknown(Outcome):
    """Nobody here knows its job type: it is given back, for a worker that does."""

    klass: str
    did_you_mean: str = ""
    known: tuple[str, ...] = ()
    delay_ms: int = UNKNOWN_MS[0]

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        there = f"Did you mean {self.did_you_mean!r}?" if self.did_you_mean else _listed(self.known)
        back = f"The job was given back, and comes again in {self.delay_ms / 1000:.0f} seconds."
        return f"Nobody here performs {self.klass!r}. {there} {back}"

    def operation(self, job: Held, **pop: Any) -> ops.Release:
        return ops.Release(job.jid, job.token, self.delay_ms)


def _listed(known: Iterable[str]) -> str:
    names = list(known)
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"The app has {', '.join(names[:10])}{more}." if names else "The app has no job types: are they imported?"


def _group(text: str) -> str:
    """A text as a group may be called."""
    return _cut(_ODD.sub("?", text), GROUP_BYTES) or "Fail"


def _message(text: str) -> str:
    """A message as it may be stored; of a long one the end, where a traceback says what happened."""
    encoded = text.encode(errors="backslashreplace")
    return encoded[-MESSAGE_BYTES:].decode(errors="ignore")


def _cut(text: str, most: int) -> str:
    return text.encode(errors="backslashreplace")[:most].decode(errors="ignore")
