"""Assertions about the jobs of a queue; a failed assertion shows the jobs that exist."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, Unpack

from qmodel.client.convert import Duration
from qmodel.client.defaults import KEEP
from qmodel.client.sync import Client, Job
from qmodel.errors import hint
from qmodel.present.numbers import counted
from qmodel.testing.apps import Apps
from qmodel.testing.arguments import AnyJobType, Args, as_stored, data_of, klass_of, wanted_args
from qmodel.testing.clock import VirtualClock
from qmodel.testing.jobs import ENQUEUED, EVERY, Wanted, every_job, nearest, table

LOOK_SECONDS = 0.01


class Criteria(TypedDict, total=False):
    """What a job must be like. A criterion that is left out matches any job, apart from `states`."""

    queue: str | None
    """The name of its queue."""

    args: Args | None
    """Some of its arguments, by name or the first ones in order."""

    data: object
    """Its whole data."""

    tags: Iterable[str] | str
    """Some of its tags."""

    priority: int | None
    """Its priority."""

    delay: Duration | None
    """The time until it is ready, in seconds or as a timedelta."""

    at: datetime | int | None
    """The time at which it is ready."""

    states: Iterable[str] | str
    """Its possible states. Default: those of waiting jobs (waiting, scheduled, depends, throttled); `"any"` for all."""


class Assertions:
    """Assertions about jobs. They read through a client and change nothing."""

    look: Client
    clock: VirtualClock
    performer: Apps

    def all_enqueued(self, job_type: object = None, **criteria: Unpack[Criteria]) -> list[Job]:
        """List the jobs that match all criteria, queue by queue in the order of pops.

        `job_type`: a job type, or the name of a klass. The other arguments are those of
        `qmodel.testing.assertions.Criteria`.
        """
        wanted = self._wanted(job_type, criteria)
        return [job for job in self.jobs() if not self._mismatches(wanted, job)]

    def assert_enqueued(
        self,
        job_type: object = None,
        *,
        count: int | None = None,
        within: float = 0,
        **criteria: Unpack[Criteria],
    ) -> Job:
        """Assert that a job matches all criteria of `all_enqueued`; give the first match.

        `count`: assert that so many jobs match. `within`: wait so many seconds of real time for a job that another
        thread or process puts.
        """
        __tracebackhide__ = True
        if count is not None and count < 1:
            raise ValueError(f"count must be at least 1, not {count}. refute_enqueued asserts that there is no job.")
        wanted = self._wanted(job_type, criteria)
        until = time.monotonic() + within
        while True:
            there = list(self.jobs())
            fits = [job for job in there if not self._mismatches(wanted, job)]
            if fits if count is None else len(fits) == count:
                return fits[0]
            if time.monotonic() >= until:
                raise AssertionError(self._not_found(wanted, len(fits), count, there))
            time.sleep(LOOK_SECONDS)

    def refute_enqueued(self, job_type: object = None, *, within: float = 0, **criteria: Unpack[Criteria]) -> None:
        """Assert that no job matches all criteria of `all_enqueued`, also not `within` so many seconds of real time."""
        __tracebackhide__ = True
        wanted = self._wanted(job_type, criteria)
        until = time.monotonic() + within
        while True:
            there = list(self.jobs())
            if fits := [job for job in there if not self._mismatches(wanted, job)]:
                what = f"Enqueued, and should not be: {wanted} (job {fits[0].jid})."
                raise AssertionError(f"{what}\n{self._table(there)}")
            if time.monotonic() >= until:
                return
            time.sleep(LOOK_SECONDS)

    def jobs(self) -> list[Job]:
        """List all jobs: queue by queue in the order of pops, then the failed jobs, then the complete ones."""
        return list(every_job(self.look))

    def table(self) -> str:
        """Write all jobs as a table, below the time of the clock."""
        return self._table(self.jobs())

    def _table(self, jobs: Iterable[Job]) -> str:
        there = list(jobs)
        count = counted(len(there), "job")
        return f"{count} at {self.clock}:\n{table(there, self.clock.now())}"

    def _not_found(self, wanted: Wanted, found: int, count: int | None, there: list[Job]) -> str:
        times = "once" if found == 1 else f"{found} times" if found else "never"
        first = f"Not enqueued: {wanted}." if count is None else f"Enqueued {times}, not {count}: {wanted}."
        lines = [first, self._table(there)]
        near = (
            [] if count is not None else list(nearest(wanted, ((self._mismatches(wanted, job), job) for job in there)))
        )
        return "\n".join([*lines, *(["Nearest:", *near] if near else [])])

    def _wanted(self, job_type: object, criteria: Criteria) -> Wanted:
        for name in criteria:
            if name not in Criteria.__annotations__:
                advice = hint(name, sorted(Criteria.__annotations__), "Criteria:")
                raise TypeError(f"{name!r} is not a criterion for jobs. {advice}")
        klass = klass_of(job_type)
        kind = self._kind(klass)
        args, data, tags = criteria.get("args"), criteria.get("data", KEEP), criteria.get("tags", ())
        return Wanted(
            klass,
            criteria.get("queue"),
            None if args is None else wanted_args(kind, args),
            None if data is KEEP else as_stored(data),
            data is not KEEP,
            (tags,) if isinstance(tags, str) else tuple(tags),
            criteria.get("priority"),
            criteria.get("delay"),
            criteria.get("at"),
            _states(criteria.get("states", ENQUEUED)),
        )

    def _mismatches(self, wanted: Wanted, job: Job) -> list[str]:
        data = data_of(self._kind(job.klass), job, defaults=not wanted.has_data)
        return wanted.mismatches(job, data, self.clock.now())

    def _kind(self, klass: str | None) -> AnyJobType | None:
        return None if klass is None else self.performer.kind(klass)


def _states(states: Iterable[str] | str) -> tuple[str, ...]:
    chosen = EVERY if states == "any" else (states,) if isinstance(states, str) else tuple(states)
    if unknown := [state for state in chosen if state not in EVERY]:
        raise ValueError(f"{unknown[0]!r} is not a state of a job. States: {', '.join(EVERY)}; or 'any'.")
    return chosen
