"""The views of `qmodel top`: lists of queues, jobs, failure groups and workers, each read a page at a time.

A view reads one page for each redraw. The number of operations depends on the length of the page, never on the number
of jobs: 200,000 failed jobs cost as much as ten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from rich.text import Text

from qmodel.client.aio import AsyncClient
from qmodel.contract import operations as ops
from qmodel.contract import redaction, replies
from qmodel.present import groups
from qmodel.present.durations import short_duration
from qmodel.present.numbers import short_number, sparkline
from qmodel.present.text import arguments, clean, gist, short

MINUTES = 15
"""The minutes of a queue's past to draw."""

STATES: dict[str, Callable[[str, int, int], ops.Operation]] = {
    "waiting": ops.Waiting,
    "running": ops.Running,
    "stalled": ops.Stalled,
    "scheduled": ops.Scheduled,
    "throttled": ops.Throttled,
    "depends": ops.Depending,
}
"""The states that a queue has lists of, with the operations that read them."""

COLORS = {"failed": "red", "stalled": "yellow", "running": "green", "complete": "dim", "throttled": "magenta"}


class Row(NamedTuple):
    """A line: the key of its item, and its cells."""

    key: str
    cells: tuple[Text, ...]


class Page(NamedTuple):
    """The lines of a page, whether more follow, the length of the list if known, and a note."""

    rows: list[Row]
    more: bool
    total: int | None = None
    note: str = ""


class View:
    """A list. `kind` is the kind of its items; a `>` before a column's name means numbers."""

    kind: Literal["queue", "job", "group", "worker"] = "job"
    title = ""
    columns: tuple[str, ...] = ()

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page."""
        raise NotImplementedError


class QueuesView(View):
    """All queues, with their counts by state, and the completed and failed jobs of the last minutes."""

    kind = "queue"
    title = "Queues"
    columns = (
        "queue", ">waiting", ">next waits", ">running", ">done/min", ">failed/min", f"{MINUTES} min", ">stalled",
        ">scheduled", ">throttled", ">depends",
    )  # fmt: skip

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page of queues, with the last minutes and the next job of each."""
        found: list[replies.QueueCounts] = await client.execute(ops.Queues(offset, most + 1))
        shown = found[:most]
        ready = [one.name for one in shown if one.waiting or one.stalled]
        asked = [*(ops.Metrics(one.name, None, MINUTES) for one in shown), *map(ops.Peek, ready)]
        told = await client.execute_many(asked)
        coming = {name: jobs[0] for name, jobs in zip(ready, told[len(shown) :], strict=True) if _is_some(jobs)}
        now = _now()
        rows = [
            _queue(one, minutes if _is_some(minutes) else (), coming.get(one.name), now)
            for one, minutes in zip(shown, told, strict=False)
        ]
        return Page(rows, len(found) > most)


def _is_some(reply: object) -> bool:
    """Say whether a reply is a list that is not empty, and not a refusal."""
    return isinstance(reply, tuple) and bool(reply)


def _queue(one: replies.QueueCounts, minutes: Sequence[replies.Minute], job: replies.Job | None, now: int) -> Row:
    done = [minute.completed for minute in minutes]
    failed = [minute.failed for minute in minutes]
    return Row(
        one.name,
        (
            Text.assemble((clean(one.name), "bold"), (_paused(one), "bold yellow")),
            _number(one.waiting),
            Text(short_duration(now - job.ready_at) if job else "·", style="" if job else "dim", justify="right"),
            _number(one.running, "green"),
            _number(_lately(done)),
            _number(_lately(failed), "bold red"),
            Text(sparkline(done), style="cyan"),
            _number(one.stalled, "bold yellow"),
            _number(one.scheduled),
            _number(one.throttled, "magenta"),
            _number(one.depends),
        ),
    )


def _lately(minutes: Sequence[int]) -> int:
    """Give the greater of the current minute, which is not over, and the last one."""
    return max(minutes[-2:], default=0)


def _paused(one: replies.QueueCounts) -> str:
    return "  paused: " + ", ".join(clean(pause.reason) for pause in one.pauses) if one.paused else ""


class QueueView(View):
    """The jobs of a queue in one state, at first the first state that has any."""

    columns = ("job", "klass", "state", ">priority", ">tries left", ">since", "worker", "data")

    def __init__(self, queue: str, state: str = "") -> None:
        self.queue = queue
        self.state = state
        self.title = f"{queue}: {state}"

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page of jobs."""
        counts: replies.QueueCounts = await client.execute(ops.Queue(self.queue))
        there = {state: number for state in STATES if (number := getattr(counts, state))}
        self.state = self.state or next(iter(there), "waiting")
        self.title = f"{self.queue}: {self.state}"
        page: replies.Page = await client.execute(STATES[self.state](self.queue, offset, most))
        jobs = await _jobs(client, page.jids)
        others = ", ".join(f"{state} {number:,}" for state, number in there.items())
        return Page([_job(job) for job in jobs], offset + most < page.total, page.total, others)


class TagView(View):
    """The jobs with a tag, in the order in which they got it."""

    columns = QueueView.columns

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.title = f"Tag {tag}"

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page of jobs."""
        page: replies.Page = await client.execute(ops.Tagged(self.tag, offset, most))
        jobs = await _jobs(client, page.jids)
        return Page([_job(job) for job in jobs], offset + most < page.total, page.total)


class RunningView(View):
    """The running jobs, by worker."""

    title = "Running"
    columns = ("job", "klass", "queue", ">for", ">lease left", ">tries left", "worker", "progress")

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read the jobs of a page of workers."""
        workers: list[replies.WorkerCounts] = await client.execute(ops.Workers(offset, most + 1))
        busy = [one.name for one in workers[:most] if one.jobs or one.stalled]
        held = await client.execute_many(ops.Worker(name) for name in busy)
        jids = [jid for one in held if isinstance(one, replies.WorkerJobs) for jid in (*one.jobs, *one.stalled)]
        jobs = await _jobs(client, jids[: 2 * most])
        now = _now()
        note = f"{len(jids):,} are leased; open a worker to see all its jobs" if len(jids) > 2 * most else ""
        return Page([_running(job, now) for job in jobs if job.worker], len(workers) > most, None, note)


class FailuresView(View):
    """The failure groups, the largest first, each with the newest of its jobs."""

    kind = "group"
    title = "Failures"
    columns = (">jobs", "group", ">newest", "klass", "queue", "message")

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page of groups, and the newest job of each."""
        shown, more = groups.shown(await client.execute(groups.asking(offset)), offset, most)
        pages = await client.execute_many(ops.Failed(one.name, 0, 1) for one in shown)
        jobs = await _jobs(client, [jid for page in pages if isinstance(page, replies.Page) for jid in page.jids])
        newest = {job.failure.group: job for job in jobs if job.failure}
        now = _now()
        return Page([_group(one, newest.get(one.name), now) for one in shown], more)


class GroupView(View):
    """The jobs of a failure group, latest first."""

    columns = ("job", "klass", "queue", ">failed", "worker", "data", "message")

    def __init__(self, group: str) -> None:
        self.group = group
        self.title = f"Failures: {group}"

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page of jobs."""
        page: replies.Page = await client.execute(ops.Failed(self.group, offset, most))
        now = _now()
        jobs = await _jobs(client, page.jids)
        return Page([_failed(job, now) for job in jobs], offset + most < page.total, page.total)


class WorkersView(View):
    """The workers, latest seen first."""

    kind = "worker"
    title = "Workers"
    columns = ("worker", ">seen", ">jobs", ">stalled", "signal")

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page of workers."""
        found: list[replies.WorkerCounts] = await client.execute(ops.Workers(offset, most + 1))
        told = await client.workers.signals()
        now = _now()
        rows = [
            Row(
                one.name,
                (
                    _name(one.name),
                    Text(f"{short_duration(now - one.seen_at)} ago", justify="right"),
                    _number(one.jobs, "green"),
                    _number(one.stalled, "bold yellow"),
                    Text(told[one.name].told if one.name in told else "", style="yellow"),
                ),
            )
            for one in found[:most]
        ]
        return Page(rows, len(found) > most)


class WorkerView(View):
    """The jobs that a worker holds."""

    columns = RunningView.columns

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.title = f"Worker {worker}"

    async def read(self, client: AsyncClient, offset: int, most: int) -> Page:
        """Read a page of jobs."""
        held: replies.WorkerJobs = await client.execute(ops.Worker(self.worker))
        jids = (*held.jobs, *held.stalled)
        jobs = await _jobs(client, jids[offset : offset + most])
        now = _now()
        return Page([_running(job, now) for job in jobs], offset + most < len(jids), len(jids))


MAIN: tuple[type[View], ...] = (QueuesView, RunningView, FailuresView, WorkersView)


# ---- cells


async def _jobs(client: AsyncClient, jids: Iterable[str]) -> Sequence[replies.Job]:
    found: Sequence[replies.Job] = redaction.shown(await client.multiget(tuple(dict.fromkeys(jids))))
    return found


def _now() -> int:
    return time.time_ns() // 1_000_000


def _name(text: str, style: str = "") -> Text:
    return Text(clean(text), style=style)


def _number(value: int, style: str = "") -> Text:
    return Text(short_number(value), style=style, justify="right") if value else Text("·", style="dim", justify="right")


def _job(job: replies.Job) -> Row:
    now = _now()
    since = job.ended_at or job.popped_at or job.ready_at
    told = f"in {short_duration(job.ready_at - now)}" if job.state == "scheduled" else short_duration(now - since)
    return Row(
        job.jid,
        (
            Text(short(job.jid)),
            _name(job.klass),
            Text(job.state, style=COLORS.get(job.state, "")),
            Text(str(job.priority), justify="right"),
            Text(f"{job.remaining}/{job.retries}", justify="right"),
            Text(told, justify="right"),
            _name(job.worker),
            Text(arguments(job.data), style="dim"),
        ),
    )


def _running(job: replies.Job, now: int) -> Row:
    left = job.expires_at - now
    return Row(
        job.jid,
        (
            Text(short(job.jid)),
            _name(job.klass),
            _name(job.queue),
            Text(short_duration(now - job.popped_at), justify="right"),
            Text(
                short_duration(left) if left > 0 else "expired",
                style="" if left > 0 else "bold yellow",
                justify="right",
            ),
            Text(f"{job.remaining}/{job.retries}", justify="right"),
            _name(job.worker),
            Text("revoked" if job.revoked else gist(job.progress, 60), style="yellow" if job.revoked else "dim"),
        ),
    )


def _group(one: replies.Tally, newest: replies.Job | None, now: int) -> Row:
    failure = newest.failure if newest else None
    return Row(
        one.name,
        (
            _number(one.jobs, "bold red"),
            _name(one.name, "bold"),
            Text(f"{short_duration(now - failure.at)} ago" if failure else "-", justify="right"),
            _name(newest.klass if newest else ""),
            _name(newest.queue if newest else ""),
            Text(gist(failure.message, 100) if failure else ""),
        ),
    )


def _failed(job: replies.Job, now: int) -> Row:
    failure = job.failure
    return Row(
        job.jid,
        (
            Text(short(job.jid)),
            _name(job.klass),
            _name(job.queue),
            Text(f"{short_duration(now - failure.at)} ago" if failure else "-", justify="right"),
            _name(failure.worker if failure else ""),
            Text(arguments(job.data, 40), style="dim"),
            Text(gist(failure.message, 100) if failure else job.state, style="red" if failure else ""),
        ),
    )
