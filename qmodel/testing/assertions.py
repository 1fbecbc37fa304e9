"""Assertions about the jobs of a queue; when one does not hold, it shows what is there."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime

from qmodel.client.fields import KEEP, Duration
from qmodel.client.sync import Client, Job
from qmodel.testing.apps import Apps
from qmodel.testing.arguments import AnyJobType, Args, as_stored, data_of, klass_of, wanted_args
from qmodel.testing.clock import VirtualClock
from qmodel.testing.jobs import ENQUEUED, EVERY, Wanted, every_job, nearest, table

LOOK_SECONDS = 0.01


class Assertions:
    """What a test may ask of the jobs. It looks through a client and changes nothing."""

    look: Client
    clock: VirtualClock
    performer: Apps

    def all_enqueued(
        self,
        job_type: object = None,
        *,
        queue: str | None = None,
        args: Args | None = None,
        data: object = KEEP,
        tags: Iterable[str] | str = (),
        priority: int | None = None,
        delay: Duration | None = None,
        at: datetime | int | None = None,
        states: Iterable[str] | str = ENQUEUED,
    ) -> list[Job]:
        """The jobs that are all of this, queue by queue in the order in which a worker would get them.

        `job_type`: a job type, or a klass by its name. `args`: arguments by name, or the first ones in order; others
        may be there. `data`: all that was put. `tags`: it has these, and maybe others. `delay`: ready in so long
        (seconds or timedelta) by the clock; `at`: ready at that moment. `states`: by default those of a job that waits
        for a worker, for its time or for others (waiting, scheduled, depends, throttled); `"any"` for all.
        """
        wanted = self._wanted(job_type, queue, args, data, tags, priority, delay, at, states)
        return [job for job in self.jobs() if not self._misfits(wanted, job)]

    def assert_enqueued(
        self,
        job_type: object = None,
        *,
        queue: str | None = None,
        args: Args | None = None,
        data: object = KEEP,
        tags: Iterable[str] | str = (),
        priority: int | None = None,
        delay: Duration | None = None,
        at: datetime | int | None = None,
        states: Iterable[str] | str = ENQUEUED,
        count: int | None = None,
        within: float = 0,
    ) -> Job:
        """Assert that there is a job that is all of this, as `all_enqueued` says; give the first.

        `count`: that there are so many. `within`: it may take so many seconds of real time until it is there, where
        another thread or process puts it.
        """
        __tracebackhide__ = True
        if count is not None and count < 1:
            raise ValueError(f"{count} jobs cannot be given: refute_enqueued asserts that there is none.")
        wanted = self._wanted(job_type, queue, args, data, tags, priority, delay, at, states)
        until = time.monotonic() + within
        while True:
            there = list(self.jobs())
            fits = [job for job in there if not self._misfits(wanted, job)]
            if fits if count is None else len(fits) == count:
                return fits[0]
            if time.monotonic() >= until:
                raise AssertionError(self._not_found(wanted, len(fits), count, there))
            time.sleep(LOOK_SECONDS)

    def refute_enqueued(
        self,
        job_type: object = None,
        *,
        queue: str | None = None,
        args: Args | None = None,
        data: object = KEEP,
        tags: Iterable[str] | str = (),
        priority: int | None = None,
        delay: Duration | None = None,
        at: datetime | int | None = None,
        states: Iterable[str] | str = ENQUEUED,
        within: float = 0,
    ) -> None:
        """Assert that there is no job that is all of this, as `all_enqueued` says; nor comes one `within` so many
        seconds of real time.
        """
        __tracebackhide__ = True
        wanted = self._wanted(job_type, queue, args, data, tags, priority, delay, at, states)
        until = time.monotonic() + within
        while True:
            there = list(self.jobs())
            if fits := [job for job in there if not self._misfits(wanted, job)]:
                what = f"Enqueued, and should not be: {wanted} (job {fits[0].jid})."
                raise AssertionError(f"{what}\n{self._table(there)}")
            if time.monotonic() >= until:
                return
            time.sleep(LOOK_SECONDS)

    def jobs(self) -> list[Job]:
        """All jobs in any state: queue by queue in the order in which a worker would get them, then the failed ones,
        then the complete ones.
        """
        return list(every_job(self.look))

    def table(self) -> str:
        """All jobs as a table of text, with the time of the clock above it."""
        return self._table(self.jobs())

    def _table(self, jobs: Iterable[Job]) -> str:
        there = list(jobs)
        count = "1 job" if len(there) == 1 else f"{len(there)} jobs"
        return f"{count} at {self.clock}:\n{table(there, self.clock.now())}"

    def _not_found(self, wanted: Wanted, found: int, count: int | None, there: list[Job]) -> str:
        times = "once" if found == 1 else f"{found} times" if found else "never"
        first = f"Not enqueued: {wanted}." if count is None else f"Enqueued {times}, not {count}: {wanted}."
        lines = [first, self._table(there)]
        near = [] if count is not None else list(nearest(wanted, ((self._misfits(wanted, job), job) for job in there)))
        return "\n".join([*lines, *(["Nearest:", *near] if near else [])])

    def _wanted(
        self,
        job_type: object,
        queue: str | None,
        args: Args | None,
        data: object,
        tags: Iterable[str] | str,
        priority: int | None,
        delay: Duration | None,
        at: datetime | int | None,
        states: Iterable[str] | str,
    ) -> Wanted:
        klass = klass_of(job_type)
        kind = self._kind(klass)
        return Wanted(
            klass,
            queue,
            None if args is None else wanted_args(kind, args),
            None if data is KEEP else as_stored(data),
            data is not KEEP,
            (tags,) if isinstance(tags, str) else tuple(tags),
            priority,
            delay,
            at,
            _states(states),
        )

    def _misfits(self, wanted: Wanted, job: Job) -> list[str]:
        data = data_of(self._kind(job.klass), job, defaults=not wanted.has_data)
        return wanted.misfits(job, data, self.clock.now())

    def _kind(self, klass: str | None) -> AnyJobType | None:
        return None if klass is None else self.performer.kind(klass)


def _states(states: Iterable[str] | str) -> tuple[str, ...]:
    chosen = EVERY if states == "any" else (states,) if isinstance(states, str) else tuple(states)
    if unknown := [state for state in chosen if state not in EVERY]:
        raise ValueError(f"{unknown[0]!r} is no state of a job. States: {', '.join(EVERY)}; or 'any'.")
    return chosen
