"""Errors of apps, and exceptions with which a job ends its attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qmodel.client.convert import Duration, milliseconds
from qmodel.contract.arguments import LONGEST_MS, Edge
from qmodel.errors import QmodelError


class DeclarationError(QmodelError, ValueError):
    """A job type, hook or schedule cannot work: one sentence for the problem, another for the next step."""

    def __init__(self, sentence: str, next_step: str) -> None:
        super().__init__(sentence, next_step)
        self.sentence = sentence
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.sentence} {self.next_step}"


class LoadError(DeclarationError):
    """An app could not be loaded from `module:name`."""


class BadArguments(QmodelError, TypeError):
    """The data of a job do not fit the arguments of its job type."""


class BadResult(QmodelError, ValueError):
    """The result of a job cannot be stored."""


# ---- raised by a job


def _bounded(delay: Duration) -> int:
    """Limit a delay to what the engine takes, in milliseconds. A computed delay may be below zero."""
    return min(max(milliseconds(delay), 0), LONGEST_MS)


class Retry(Exception):
    """Raised by a job: try it again, after `delay` (seconds or timedelta) or else its job type's backoff; it counts."""

    def __init__(self, message: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.delay_ms = None if delay is None else _bounded(delay)


class Release(Exception):
    """Raised by a job: run it again after `delay` (seconds or timedelta), which does not count as a failure.

    `arguments` replace those of the same names, so that the next step begins where this one ended.
    """

    def __init__(self, delay: Duration = 0, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(delay)
        self.delay_ms = _bounded(delay)
        self.arguments = dict(arguments or {})


class WaitFor(Release):
    """Raised by `Context.wait_for`: run the job again when others have ended."""

    def __init__(self, jids: Sequence[str], on_failure: str, first: int) -> None:
        super().__init__()
        self.jids = tuple(jids)
        self.on_failure = on_failure
        self.first = first

    def edges(self, stand: Mapping[str, str]) -> tuple[str, ...]:
        """Make the dependencies of the job. `stand` maps a put job's id to the job that stands for it."""
        jids = (stand.get(jid, jid) for jid in self.jids)
        return tuple(Edge(jid, self.on_failure, str(place)).text for place, jid in enumerate(jids, self.first))


class Fail(Exception):
    """Raised by a job: it has failed for good, in a group.

    Without a group the group is "Fail"; without both, the traceback is the message.
    """

    def __init__(self, group: str = "Fail", message: str = "") -> None:
        super().__init__(group, message)
        self.group = group
        self.message = message

    def __str__(self) -> str:
        return f"{self.group}: {self.message}" if self.message else self.group


class Cancelled(BaseException):
    """Raised in a job that should stop: it was revoked, its lease is lost, or its worker stops.

    It is not an Exception, so `except Exception` in the job does not catch it.
    """
