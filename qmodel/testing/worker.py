"""The worker of a test: it has no thread and no clock, and performs jobs one after the other on demand.

It does what an idle worker does in production at the same time: it sends the next times of cron expressions, and pops
and performs jobs until none is ready. The clock stands still meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

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
"""Milliseconds for which the times of cron expressions are sent in advance."""

MOST_ATTEMPTS = 10_000

ALONE = "perform_job"
"""The queue for a single job of `perform_job`."""

IGNORED_OPTIONS: dict[str, Any] = {
    "delay_ms": 0,
    "at": None,
    "depends": None,
    "ttl_ms": None,
    "ordered": None,
    "fair_key": None,
    "fair_weight": None,
    "throttles": None,
    "cost": None,
    "dead_queue": None,
    "unique": None,
    "unique_mode": None,
    "unique_ms": None,
    "unique_max_ms": None,
}
"""Options that `perform_job` ignores: its job is performed now, whatever other jobs there are."""

performing: ContextVar[str] = ContextVar("performing", default="")
"""The id of the job that is being performed in this context."""


class NeverEmpty(QmodelError):
    """A queue that is drained gets new jobs without end."""


@dataclass
class Drained:
    """The numbers of attempts by their end; `lost` counts attempts whose lease was lost meanwhile."""

    completed: int = 0
    failed: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    errors: list[BaseException] = field(default_factory=list, compare=False, repr=False)

    @property
    def attempts(self) -> int:
        """The number of all attempts."""
        return self.completed + self.failed + self.retried + self.released + self.lost


class JobRunner:
    """Performs the jobs of a namespace at the time of a clock."""

    def __init__(self, client: Client, clock: VirtualClock, performer: Performer) -> None:
        self.client = client
        self.clock = clock
        self.performer = performer
        self.active = 0

    # ---- reads

    def counts(self, queues: Iterable[str] | None = None) -> list[QueueCounts]:
        """Read the counts of some queues, or of all, in the order in which they were first seen."""
        if queues is not None:
            return [self.client.queues[name].counts for name in queues]
        found: list[QueueCounts] = []
        while len(page := self.client.queues.counts(len(found), MOST)):
            found += page
        return found

    def next_at(self, queues: Iterable[str] | None = None) -> int:
        """Compute the next time at which something becomes due by itself, or 0."""
        later = [one.next_at for one in self.counts(queues) if one.next_at > self.clock.now()]
        return min(later, default=0)

    # ---- at one time

    def fire(self) -> None:
        """Make the due runs, and expire jobs that were not begun in time, as a pop would do first."""
        self.tell_schedules()
        for one in self.counts():
            while not one.paused and self.client.queues[one.name].fire() == MOST:
                continue

    def tell_schedules(self) -> None:
        """Send the next times of cron expressions."""
        self.client.advance_schedules(AHEAD_MS / 1000)

    def perform_ready(self, done: Drained, queues: Sequence[str] | None = None, *, safely: bool = True) -> Steps[None]:
        """Perform ready jobs, and jobs that become ready by that, until none is ready.

        Unless `safely`, the exception of a job is raised after it was recorded.
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
                    f"{job.queue}: does a job put itself again, or retry without a delay?"
                )

    def _pop(self, queues: Sequence[str] | None) -> Job | None:
        names = [one.name for one in self.counts()] if queues is None else queues
        for start in range(0, len(names), MOST):
            if job := self.client.pop(names[start : start + MOST], worker=WORKER):
                return job
        return None

    def perform(self, job: Job, done: Drained) -> Steps[Ending | None]:
        """Perform a leased job, and report its end to the queue; None if the lease is lost."""
        try:
            attempt = self.performer.attempt(job)
        except BaseException:
            self.client.execute(ops.Release(job.jid, job.token))
            raise
        self.active += 1
        mark = performing.set(job.jid)
        try:
            ending: Ending = yield attempt
        finally:
            self.active -= 1
            performing.reset(mark)
        return self._report(ending, done)

    def _report(self, ending: Ending, done: Drained) -> Ending | None:
        try:
            reply = self.client.execute(ending.operation)
        except (LockLost, JobNotFound):
            done.lost += 1
            return None
        kind = "failed" if ending.kind == "retried" and reply < 0 else ending.kind
        setattr(done, kind, getattr(done, kind) + 1)
        if ending.error is not None:
            done.errors.append(ending.error)
        return ending

    def perform_one(self, put: ops.Put) -> Steps[Ending | None]:
        """Perform a job in a separate queue, and delete it afterwards; None if its lease was lost."""
        jid = put.jid if self.client.jobs.get(put.jid) is None else uuid4().hex  # a job of the test keeps its id
        own = replace(put, queue=ALONE, jid=jid, keep_complete_ms=0, keep_failed_ms=0, **IGNORED_OPTIONS)
        self.client.execute(own)
        job = self.client.pop([ALONE], worker=WORKER)
        assert job is not None
        job._known = job.raw._replace(queue=put.queue)
        try:
            return (yield from self.perform(job, Drained()))
        finally:
            self.client.queues[ALONE].obliterate(force=True)

    # ---- draining

    def drain(self, done: Drained, queues: Sequence[str] | None, *, until: int | None, safely: bool) -> Steps[None]:
        """Perform the ready jobs of some queues; advance the clock to later jobs, up to a time."""
        while True:
            yield from self.perform_ready(done, queues, safely=safely)
            stop = self._worth_waiting_for(queues)
            if until is None or not stop or stop > until:
                return
            yield from self.clock.travel(stop)

    def _worth_waiting_for(self, queues: Sequence[str] | None) -> int:
        """Compute the next time for existing jobs; recurring jobs alone would never end."""
        there = [one for one in self.counts(queues) if one.scheduled or one.throttled or one.waiting or one.due]
        return min((one.next_at for one in there if one.next_at > self.clock.now()), default=0)
