"""Search the jobs for the one that a test wants, and show the jobs as a table if it is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from qmodel.client.convert import Duration, instant, milliseconds
from qmodel.client.sync import Client, Job
from qmodel.present.numbers import counted

ENQUEUED = ("waiting", "scheduled", "depends", "throttled")
"""The states of jobs that wait: for a worker, for their time, for other jobs, or for a throttle."""

EVERY = (*ENQUEUED, "running", "stalled", "complete", "failed")

PAGE = 1000
MOST_ROWS = 50
WIDEST = 60


def queue_names(client: Client) -> list[str]:
    """List the names of all queues, in the order in which they were first seen."""
    return [queue.name for queue in client.queues]


def every_job(client: Client, queues: Iterable[str] | None = None) -> Iterator[Job]:
    """Iterate over all jobs: queue by queue in the order of pops, then the failed jobs, then the complete ones."""
    seen = set()
    names = queue_names(client) if queues is None else list(queues)
    lists = [client.jobs.search(name) for name in names]
    lists += [client.jobs.search(state="failed"), client.jobs.search(state="complete")]
    for one in lists:
        for job in one:
            if job.jid not in seen and job.queue in names:
                seen.add(job.jid)
                yield job


class Wanted(NamedTuple):
    """The wanted properties of a job; None for a property that does not matter."""

    klass: str | None = None
    queue: str | None = None
    args: Mapping[str, Any] | None = None
    data: Any = None
    has_data: bool = False
    tags: tuple[str, ...] = ()
    priority: int | None = None
    delay: Duration | None = None
    at: datetime | int | None = None
    states: tuple[str, ...] = ENQUEUED

    def mismatches(self, job: Job, data: Any, now: int) -> list[str]:
        """Describe each property in which a job with these data differs."""
        return [
            f"{what} is {found!r}, not {wanted!r}"
            for what, wanted, found in self._compared(job, now)
            if wanted is not None and found != wanted
        ] + list(self._others(job, data))

    def _compared(self, job: Job, now: int) -> Iterator[tuple[str, Any, Any]]:
        yield "klass", self.klass, job.klass
        yield "queue", self.queue, job.queue
        yield "priority", self.priority, job.priority
        if self.at is not None:
            yield "at", instant(self.at), job.ready_at_ms
        if self.delay is not None:
            left = max(job.ready_at_ms - now, 0)
            yield "delay", timedelta(milliseconds=milliseconds(self.delay)), timedelta(milliseconds=left)

    def _others(self, job: Job, data: Any) -> Iterator[str]:
        if self.has_data and data != self.data:
            yield f"data is {data!r}, not {self.data!r}"
        for name, value in (self.args or {}).items():
            if not isinstance(data, dict) or name not in data:
                yield f"it has no argument {name!r}"
            elif data[name] != value:
                yield f"{name} is {data[name]!r}, not {value!r}"
        if missing := [tag for tag in self.tags if tag not in job.tags]:
            yield f"it lacks the tag {', '.join(missing)}"
        if job.state not in self.states:
            yield f"it is {job.state}"

    def __str__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in ("queue", "args", "tags", "priority", "delay", "at")]
        shown = [one for one in shown if not one.endswith(("=None", "=()"))]
        if self.has_data:
            shown.append(f"data={self.data!r}")
        if self.states != ENQUEUED:
            shown.append("states=" + "|".join(self.states))
        return " ".join([self.klass or "any job", *shown])


# ---- tables


def table(jobs: Iterable[Job], now: int) -> str:
    """Write jobs as a table, one line each."""
    rows = [_row(job, now) for job in jobs]
    if not rows:
        return "  (no jobs)"
    more = len(rows) - MOST_ROWS
    rows = [("queue", "state", "klass", "data", "jid", ""), *rows[:MOST_ROWS]]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, *([f"  ... and {more} more"] if more > 0 else [])])


def _row(job: Job, now: int) -> tuple[str, ...]:
    return job.queue, job.state, job.klass, shortened(job.text), shortened(job.jid, 12), "; ".join(_notes(job, now))


def _notes(job: Job, now: int) -> Iterator[str]:
    if job.state == "scheduled":
        yield f"due in {timedelta(milliseconds=job.ready_at_ms - now)}"
    if job.state == "running":
        yield f"held by {job.worker}, {timedelta(milliseconds=job.expires_at_ms - now)} left"
    if job.dependencies:
        yield f"waits for {counted(len(job.dependencies), 'job')}"
    if job.depends_on_requests:
        yield f"waits for {counted(len(job.depends_on_requests), 'request')}"
    if job.priority:
        yield f"priority {job.priority}"
    if job.remaining != job.retries and job.state != "complete":
        yield f"{max(job.remaining, 0)} of {job.retries} retries left"
    if job.failure is not None:
        last = job.failure.message.strip().rpartition("\n")[2]
        yield f"{job.failure.group}: {shortened(last)}"
    if job.result_text:
        yield f"result {shortened(job.result_text)}"


def shortened(text: str, most: int = WIDEST) -> str:
    """Shorten a text to one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def nearest(wanted: Wanted, mismatches: Iterable[tuple[list[str], Job]], most: int = 3) -> Iterator[str]:
    """Describe the jobs that differ least from the wanted one."""
    found = [(why, job) for why, job in mismatches if wanted.klass in (None, job.klass)]
    for why, job in sorted(found, key=lambda one: len(one[0]))[:most]:
        yield f"  {job.klass} {shortened(job.jid, 12)}: {'; '.join(why)}"
