"""An attempt: a job that this worker holds, from its pop until the server has confirmed its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qmodel import runtime
from qmodel.contract import replies

if TYPE_CHECKING:
    from qmodel.app.context import Context
    from qmodel.app.outcome import Outcome


Key = tuple[str, int]
"""The job of an attempt, and the token of its lease."""


class Attempt:
    """One lease of a job.

    `at` is the time at which the pop was sent first, by the monotonic clock; the lease did not begin earlier. `tried`
    is the time of the try that was answered: after an outage the job's timeout begins there. Everything here is
    computed from elapsed time, so no two clocks need to agree.
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

    def __init__(self, job: replies.Job, at: float, tried: float | None = None) -> None:
        self.job = job
        self.at = at
        self.lease = max(job.expires_at - job.popped_at, 1) / 1000
        self.renew_at = at + self.lease / 3
        limit = job.timeout_ms if job.options else None
        self.limit = None if limit is None else (at if tried is None else tried) + limit / 1000
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

    @property
    def key(self) -> Key:
        """What tells this attempt from others: two shards of a deployment may issue the same token."""
        return self.job.jid, self.job.token

    def abort(self, abort: Abort) -> bool:
        """Record why the attempt is aborted, also in the job's context; say whether this is the first abort."""
        if self.aborted is not None:
            return False
        self.aborted = abort
        if self.context is not None:
            self.context.cancel(abort.sentence)
        return True

    @property
    def ran(self) -> float:
        """The run time so far, in seconds."""
        return (self.ended_at or runtime.monotonic()) - self.began if self.began else 0.0

    def renewed(self, expires_at: int, sent: float) -> None:
        """Record a renewal of the lease, by a call sent at a time of our own clock.

        The remaining time is computed from the server's times alone, and is never taken as longer than the first lease:
        if the server's clock jumps ahead, the next renewal must not be late.
        """
        left = (expires_at - self.job.popped_at) / 1000 - (sent - self.at)
        self.renew_at = sent + (min(left, self.lease) if left > 0 else self.lease) / 3

    @property
    def facts(self) -> dict[str, object]:
        """The fields that log lines about the attempt carry."""
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
    """Why an attempt is aborted: `lost`, `revoked`, `timeout` or `stop`; and a sentence for people."""

    __slots__ = ("sentence", "why")

    def __init__(self, why: str, sentence: str) -> None:
        self.why = why
        self.sentence = sentence
