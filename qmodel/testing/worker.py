"""The worker of a test: it has no thread and no time of its own, and performs one job after the other when it is told.

What it does at a moment is what an idle worker does in production at that moment: it tells the next moments of cron
expressions, takes what is ready and performs it, until nothing is ready. Time stands still meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from qmodel.client.sync import Client, Job
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.replies import QueueCounts
from qmodel.errors import JobNotFound, LockLost, QmodelError
from qmodel.testing.attempts import Ending, Performer
from qmodel.testing.clock import VirtualClock
from qmodel.testing.steps import Steps

WORKER = "testing"

AHEAD_MS = 86_400_000
"""How far ahead moments of cron expressions are told."""

MOST_ATTEMPTS = 10_000

OWN = "perform_job"
"""The queue of a job that is performed alone."""

NOT_ASKED: dict[str, Any] = {
    "delay_ms": 0,
    "depends": None,
    "ttl_ms": None,
    "ordered": None,
    "throttles": None,
    "cost": None,
    "dead_queue": None,
    "unique": None,
    "unique_mode": None,
    "unique_ms": None,
    "unique_max_ms": None,
}
"""What a job that is performed alone is not asked: it is performed now, whatever else there is."""

inside: ContextVar[str] = ContextVar("inside", default="")
"""The id of the job that is being performed here."""


class NeverEmpty(QmodelError):
    """A queue that was to be drained gets new jobs without end."""


@dataclass
class Drained:
    """How many attempts ended in which way; `lost` are those whose job somebody else had by then."""

    completed: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    errors: list[BaseException] = field(default_factory=list, compare=False, repr=False)

    @property
    def attempts(self) -> int:
        """How many there were."""
        return self.completed + self.failed + self.retried + self.released + self.lost


class Work:
    """Performs the jobs of a namespace, in the time of a clock."""

    def __init__(self, client: Client, clock: VirtualClock, performer: Performer) -> None:
        self.client = client
        self.clock = clock
        self.performer = performer
        self.active = 0

    # ---- looking

    def counts(self, queues: Iterable[str] | None = None) -> list[QueueCounts]:
        """The counts of some queues, or of all, first seen first."""
        if queues is not None:
            return [self.client.queues[name].counts for name in queues]
        found: list[QueueCounts] = []
        while len(page := self.client.queues.counts(len(found), MOST)):
            found += page
        return found

    def next_at(self, queues: Iterable[str] | None = None) -> int:
        """The next moment at which something becomes due by itself, or 0."""
        later = [one.next_at for one in self.counts(queues) if one.next_at > self.clock.now()]
        return min(later, default=0)

    # ---- what happens at a moment

    def fire(self) -> None:
        """Make the runs that are due, and let fail what was not begun in time: what a pop would do first."""
        self.tell_schedules()
        for one in self.counts():
            while not one.paused and self.client.queues[one.name].fire() == MOST:
                continue

    def tell_schedules(self) -> None:
        """Tell the next moments of cron expressions."""
        self.client.advance_schedules(AHEAD_MS / 1000)

    def perform_ready(self, done: Drained, queues: Sequence[str] | None = None, *, safely: bool = True) -> Steps[None]:
        """Perform what is ready, and what becomes ready by that, until nothing is. A job's exception is raised in the
        end, after it was recorded, unless `safely`.
        """
        self.tell_schedules()
        before = done.attempts
        while job := self._pop(queues):
            yield from self.perform(job, done)
            if done.errors and not safely:
                raise done.errors[0]
            if done.attempts - before >= MOST_ATTEMPTS:
                raise NeverEmpty(
                    f"{MOST_ATTEMPTS} attempts at {self.clock}, and there are still jobs ready, such as {job.klass} in "
                    f"{job.queue}: does one put itself anew, or retry without a delay?"
                )

    def _pop(self, queues: Sequence[str] | None) -> Job | None:
        names = [one.name for one in self.counts()] if queues is None else queues
        for start in range(0, len(names), MOST):
            if job := self.client.pop(names[start : start + MOST], worker=WORKER):
                return job
        return None

    def perform(self, job: Job, done: Drained) -> Steps[Ending | None]:
        """Perform a leased job, and tell the queue what came of it; None where the job is lost."""
        try:
            attempt = self.performer.attempt(job)
        except BaseException:
            self.client.execute(ops.Release(job.jid, job.token))
            raise
        self.active += 1
        mark = inside.set(job.jid)
        try:
            ending: Ending = yield attempt
        finally:
            self.active -= 1
            inside.reset(mark)
        return self._tell(ending, done)

    def _tell(self, ending: Ending, done: Drained) -> Ending | None:
        try:
            reply = self.client.execute(ending.operation)
        except (LockLost, JobNotFound):
            done.lost += 1
            return None
        came = "failed" if ending.came == "retried" and reply < 0 else ending.came
        setattr(done, came, getattr(done, came) + 1)
        if ending.error is not None:
            done.errors.append(ending.error)
        return ending

    def perform_one(self, put: ops.Put) -> Steps[Ending | None]:
        """Perform a job that goes through a queue of its own, and is nowhere afterwards; None where it was lost."""
        own = replace(put, queue=OWN, keep_complete_ms=0, keep_failed_ms=0, **NOT_ASKED)
        self.client.execute(own)
        job = self.client.pop([OWN], worker=WORKER)
        assert job is not None
        job._known = job.raw._replace(queue=put.queue)
        try:
            return (yield from self.perform(job, Drained()))
        finally:
            self.client.queues[OWN].obliterate(force=True)

    # ---- draining

    def drain(self, done: Drained, queues: Sequence[str] | None, *, until: int | None, safely: bool) -> Steps[None]:
        """Perform all that is ready in some queues, and go on in time to what is ready later, up to a moment."""
        while True:
            yield from self.perform_ready(done, queues, safely=safely)
            stop = self._worth_waiting_for(queues)
            if until is None or not stop or stop > until:
                return
            yield from self.clock.travel(stop)

    def _worth_waiting_for(self, queues: Sequence[str] | None) -> int:
        """The next moment for jobs that are there already; what only recurs would never end."""
        there = [one for one in self.counts(queues) if one.scheduled or one.throttled or one.waiting or one.due]
        return min((one.next_at for one in there if one.next_at > self.clock.now()), default=0)
