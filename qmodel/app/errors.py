"""What goes wrong with an app, and what a job raises to say how it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qmodel.client.convert import Duration, milliseconds
from qmodel.contract.arguments import LONGEST_MS, Edge
from qmodel.errors import QmodelError


class DeclarationError(QmodelError, ValueError):
    """A job type, hook or schedule that cannot work: what is wrong in a sentence, and what to do in another."""

    def __init__(self, sentence: str, next_step: str) -> None:
        super().__init__(sentence, next_step)
        self.sentence = sentence
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.sentence} {self.next_step}"


class LoadError(DeclarationError):
    """An app that could not be loaded from `module:name`."""


class BadArguments(QmodelError, TypeError):
    """The data of a job that are not what its job type takes."""


class BadResult(QmodelError, ValueError):
    """What a job gave, where it cannot be stored."""


# ---- raised by a job


def _bounded(delay: Duration) -> int:
    """A delay in milliseconds that the engine takes: who computes one may come out below zero."""
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
        """What the job is to wait for, where others may stand for those that were put."""
        jids = (stand.get(jid, jid) for jid in self.jids)
        return tuple(Edge(jid, self.on_failure, str(place)).text for place, jid in enumerate(jids, self.first))


class Fail(Exception):
    """Raised by a job: it has failed, in a group, and is not tried again.

    Of one without a group the group is "Fail"; of one without both, the traceback is the message.
    """

    def __init__(self, group: str = "Fail", message: str = "") -> None:
        super().__init__(group, message)
        self.group = group
        self.message = message

    def __str__(self) -> str:
        return f"{self.group}: {self.message}" if self.message else self.group


class Cancelled(BaseException):
    """Raised in a job that should stop: it was revoked, its lock is lost, or its worker stops.

    No Exception, so that no `except Exception` of the job holds it up.
    """
