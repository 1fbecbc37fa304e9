"""Read the present state as tables: jobs, failures, statistics, queues, workers; page by page, in parts.

Each page is consistent, but pages are read at different moments. A job that stays in its list is found once. A job that
moves during the read may be found twice, or not at all. So these tables show the present state; the events tell what
happened.

No page takes the server longer than any other operation: a search looks at no more than 1000 jobs, and no client waits
for a whole table. Missing values are null, and so is a moment that has not come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.lifecycle import STATES
from qmodel.contract.redaction import redacted
from qmodel.pipeline.arrow import array, pa

PAGE = 500
"""The most jobs in one page; each comes with its data."""

DAY_MS = 86_400_000

PLACES = tuple(state for state in STATES if state not in ("complete", "failed"))
"""The states that have a list in each queue."""


class Narrow(NamedTuple):
    """Conditions on the jobs to read, as in `jobs.search`."""

    queue: str | None = None
    state: str | None = None
    klass: str | None = None
    tag: str | None = None
    group: str | None = None
    worker: str | None = None


class Part(NamedTuple):
    """A unit of reading: some queues, the jobs in a state, some groups, or everything."""

    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Table(NamedTuple):
    """A table: its columns, how to cut it into parts of about equal size and read one, which conditions apply."""

    schema: pa.Schema
    parts: Callable[[Client, Narrow, int], list[Part]]
    rows: Callable[[Client, Narrow, Part, int], Iterator[Sequence[Any]]]
    narrows: tuple[str, ...]


def read(client: Client, name: str, narrow: Narrow, part: Part, days: int = 7) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, page by page."""
    table = TABLES[name]
    for page in table.rows(client, narrow, part, days):
        columns = zip(*page, strict=True)
        arrays = [array(column, field.type) for column, field in zip(columns, table.schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _pack(named: Iterable[tuple[str, int]], rows: int) -> list[tuple[str, ...]]:
    """Group names into packs of about so many rows."""
    packs: list[tuple[str, ...]] = []
    pack: list[str] = []
    held = 0
    for name, count in named:
        if pack and held + count > rows:
            packs.append(tuple(pack))
            pack, held = [], 0
        pack.append(name)
        held += count
    return [*packs, tuple(pack)] if pack else packs


def _all(client: Client, op: Callable[[int, int], ops.Operation]) -> Iterator[Any]:
    offset = 0
    while page := client.execute(op(offset, MOST)):
        yield from page
        offset += len(page)
        if len(page) < MOST:
            return


def _whole(client: Client, narrow: Narrow, rows: int) -> list[Part]:
    return [Part()]


# ---- jobs

_texts, _times = pa.list_(pa.string()), pa.int64()

JOBS: dict[str, tuple[pa.DataType, Callable[[replies.Job], Any]]] = {
    "jid": (pa.string(), lambda job: job.jid),
    "klass": (pa.string(), lambda job: job.klass),
    "queue": (pa.string(), lambda job: job.queue),
    "state": (pa.string(), lambda job: job.state),
    "data": (pa.string(), lambda job: redacted(job.data)),
    "priority": (pa.int64(), lambda job: job.priority),
    "retries": (pa.int64(), lambda job: job.retries),
    "remaining": (pa.int64(), lambda job: job.remaining),
    "tags": (_texts, lambda job: job.tags),
    "worker": (pa.string(), lambda job: job.worker or None),
    "expires_at": (_times, lambda job: job.expires_at or None),
    "put_at": (_times, lambda job: job.put_at),
    "ready_at": (_times, lambda job: job.ready_at or None),
    "popped_at": (_times, lambda job: job.popped_at or None),
    "ended_at": (_times, lambda job: job.ended_at or None),
    "result": (pa.string(), lambda job: job.result or None),
    "progress": (pa.string(), lambda job: job.progress or None),
    "group": (pa.string(), lambda job: job.failure.group if job.failure else None),
    "message": (pa.string(), lambda job: job.failure.message if job.failure else None),
    "failed_at": (_times, lambda job: job.failure.at if job.failure else None),
    "failed_on": (pa.string(), lambda job: job.failure.worker if job.failure else None),
    "dependencies": (_texts, lambda job: job.dependencies),
    "options": (pa.map_(pa.string(), pa.string()), lambda job: job.options),
}
"""The columns of jobs, and how to read each from a job."""

FAILURES = ("group", "jid", "klass", "queue", "message", "failed_at", "failed_on", "data", "retries", "tags", "put_at")


def _job_parts(client: Client, narrow: Narrow, rows: int) -> list[Part]:
    if narrow.worker or narrow.tag or narrow.group:
        return [Part()]
    states = STATES if narrow.state is None else (narrow.state,)
    places = tuple(state for state in states if state in PLACES)
    parts = [Part(states=(state,)) for state in states if state not in PLACES]
    if places and narrow.queue is not None:
        return [Part((narrow.queue,), places), *parts]
    return [*(Part(pack, places) for pack in _queues_of(client, rows)), *parts] if places else parts


def _queues_of(client: Client, rows: int) -> list[tuple[str, ...]]:
    return _pack(((one.name, sum(_counts(one))) for one in _all(client, ops.Queues)), rows)


def _counts(one: replies.QueueCounts) -> tuple[int, ...]:
    return one.waiting, one.scheduled, one.depends, one.running, one.stalled, one.throttled


def _searches(narrow: Narrow, part: Part) -> Iterator[Narrow]:
    """Give the searches for a part, one for each list."""
    if part.groups:
        yield from (narrow._replace(group=group) for group in part.groups)
    elif not part.states:
        yield narrow
    for queue in part.queues or (narrow.queue,):
        yield from (narrow._replace(queue=queue, state=state) for state in part.states)


def _found(client: Client, narrow: Narrow, part: Part) -> Iterator[Sequence[replies.Job]]:
    for one in _searches(narrow, part):
        cursor = ""
        while True:
            op = ops.Search(one.queue, one.state, one.klass, one.tag, one.worker, one.group, cursor, PAGE)
            found: replies.Found = client.execute(op)
            if found.jobs:
                yield found.jobs
            cursor = found.cursor
            if not cursor:
                break


def _jobs_with(columns: Iterable[str]) -> Callable[[Client, Narrow, Part, int], Iterator[Sequence[Any]]]:
    getters = [JOBS[name][1] for name in columns]

    def rows(client: Client, narrow: Narrow, part: Part, days: int) -> Iterator[Sequence[Any]]:
        for jobs in _found(client, narrow, part):
            yield [tuple(get(job) for get in getters) for job in jobs]

    return rows


def _failure_parts(client: Client, narrow: Narrow, rows: int) -> list[Part]:
    if narrow.group:
        return [Part()]
    groups = ((one.name, one.jobs) for one in _all(client, ops.FailedGroups))
    return [Part(groups=pack) for pack in _pack(groups, rows)]


# ---- statistics, queues, workers


def _sample(prefix: str) -> list[pa.Field]:
    kinds = [("count", pa.int64()), ("mean", pa.float64()), ("std", pa.float64()), ("histogram", pa.list_(pa.int64()))]
    return [pa.field(f"{prefix}_{name}", type) for name, type in kinds]


STATS = pa.schema([
    pa.field("queue", pa.string()), pa.field("day", pa.int64()), *_sample("wait"), *_sample("run"),
    *(pa.field(name, pa.int64()) for name in ("failures", "failed", "retries")),
])  # fmt: skip


def _stats_parts(client: Client, narrow: Narrow, rows: int) -> list[Part]:
    if narrow.queue is not None:
        return [Part((narrow.queue,))]
    return [Part(pack) for pack in _pack(((one.name, 1) for one in _all(client, ops.Queues)), 100)]


def _stats(client: Client, narrow: Narrow, part: Part, days: int) -> Iterator[Sequence[Any]]:
    kept = int(client.execute(ops.ConfigGet("stats-history")))
    for queue in part.queues:
        today: replies.Stats = client.execute(ops.Stats(queue))
        before = [ops.Stats(queue, today.day - ago * DAY_MS) for ago in range(1, min(days, kept + 1))]
        found = [today, *client.execute_many(before)] if before else [today]
        page = [_stats_row(one) for one in found if one.wait.count or one.run.count or one.failures or one.retries]
        if page:
            yield page


def _stats_row(one: replies.Stats) -> tuple[Any, ...]:
    samples = [
        value
        for sample in (one.wait, one.run)
        for value in (sample.count, sample.mean, sample.std, list(sample.histogram))
    ]
    return (one.queue, one.day, *samples, one.failures, one.failed, one.retries)


QUEUES = pa.schema(
    [pa.field("queue", pa.string())]
    + [pa.field(name, pa.int64()) for name in (*PLACES, "recurring", "due")]
    + [pa.field("paused", pa.bool_()), pa.field("next_at", pa.int64())]
)


def _queue_rows(client: Client, narrow: Narrow, part: Part, days: int) -> Iterator[Sequence[Any]]:
    names = (*PLACES, "recurring", "due", "paused")
    page = [
        (one.name, *(getattr(one, name) for name in names), one.next_at or None)
        for one in _all(client, ops.Queues)
        if narrow.queue in (None, one.name)
    ]
    if page:
        yield page


WORKERS = pa.schema([("worker", pa.string()), ("seen_at", pa.int64()), ("jobs", pa.int64()), ("stalled", pa.int64())])


def _worker_rows(client: Client, narrow: Narrow, part: Part, days: int) -> Iterator[Sequence[Any]]:
    page = [tuple(one) for one in _all(client, ops.Workers) if narrow.worker in (None, one.name)]
    if page:
        yield page


def _jobs_schema(columns: Iterable[str]) -> pa.Schema:
    return pa.schema([pa.field(name, JOBS[name][0]) for name in columns])


TABLES: dict[str, Table] = {
    "jobs": Table(_jobs_schema(JOBS), _job_parts, _jobs_with(JOBS), Narrow._fields),
    "failures": Table(_jobs_schema(FAILURES), _failure_parts, _jobs_with(FAILURES), ("queue", "klass", "tag", "group")),
    "stats": Table(STATS, _stats_parts, _stats, ("queue",)),
    "queues": Table(QUEUES, _whole, _queue_rows, ("queue",)),
    "workers": Table(WORKERS, _whole, _worker_rows, ("worker",)),
}
"""The tables by name."""
