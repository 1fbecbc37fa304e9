"""A job that this worker holds, from its pop until the server has said how that ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from qmodel.contract import replies

if TYPE_CHECKING:
    from qmodel.app.context import Context
    from qmodel.app.outcome import Outcome


UNWINDING: Final = 1.0
"""Seconds that jobs get to unwind when they are given back."""


class Attempt:
    """One claim of a job.

    `at` is when its pop was sent, by the clock that never goes back: its lease began no sooner. So all that is reckoned
    here is how much time has passed, and no two clocks need to agree.
    """

    __slots__ = (
        "aborted",
        "at",
        "began",
        "context",
        "ended_at",
        "job",
        "lease",
        "limit",
        "outcome",
        "renew_at",
        "slot",
    )

    def __init__(self, job: replies.Job, at: float) -> None:
        self.job = job
        self.at = at
        self.lease = max(job.expires_at - job.popped_at, 1) / 1000
        self.renew_at = at + self.lease / 3
        limit = job.timeout_ms if job.options else None
        self.limit = None if limit is None else at + limit / 1000
        self.began = 0.0
        self.ended_at = 0.0
        self.aborted: Abort | None = None
        self.outcome: Outcome | None = None
        self.context: Context | None = None
        self.slot: Any = None

    @property
    def jid(self) -> str:
        """The id of the job."""
        return self.job.jid

    @property
    def token(self) -> int:
        """The token of its lease."""
        return self.job.token

    def abort(self, abort: Abort) -> bool:
        """Note why it is not to go on, where it can be read in the job; say whether that is new."""
        if self.aborted is not None:
            return False
        self.aborted = abort
        if self.context is not None:
            self.context.cancel(abort.sentence)
        return True

    @property
    def ran(self) -> float:
        """For how many seconds it has been, or was, performed."""
        return (self.ended_at or time.monotonic()) - self.began if self.began else 0.0

    def renewed(self, expires_at: int, sent: float) -> None:
        """Note that its lease was renewed, by a call sent at a moment of our own clock.

        What is left of it is reckoned from the server's times alone, and never taken for longer than it was at first: a
        server's clock that jumps ahead must not make us late.
        """
        left = (expires_at - self.job.popped_at) / 1000 - (sent - self.at)
        self.renew_at = sent + (min(left, self.lease) if left > 0 else self.lease) / 3

    @property
    def facts(self) -> dict[str, object]:
        """What a line of the log says besides."""
        job = self.job
        return {
            "jid": job.jid,
            "klass": job.klass,
            "queue": job.queue,
            "attempt": job.retries - job.remaining + 1,
            "worker": job.worker,
            "token": job.token,
        }


class Abort:
    """Why an attempt is not to go on: `lost`, `revoked`, `timeout` or `stop`, and in a sentence."""

    __slots__ = ("sentence", "why")

    def __init__(self, why: str, sentence: str) -> None:
        self.why = why
        self.sentence = sentence


def unwound(inbox: SimpleQueue[Any], most: int) -> Iterator[Attempt]:
    """The attempts, at most so many, of which it is told within a moment that they have ended."""
    until = time.monotonic() + UNWINDING
    while most > 0 and (left := until - time.monotonic()) > 0:
        try:
            message = inbox.get(timeout=left)
        except Empty:
            return
        if type(message) is Attempt:
            most -= 1
            yield message
