"""Generate archives of artificial events of any size: the lives of jobs, drawn with numpy.

Of 100 jobs, 93 complete at once, 4 after a retry, and 3 fail; one of the failed is retried and completes. Complete jobs
are forgotten after an hour, as the engine does on a busy day. One job in ten has tags. Queues, klasses, workers and
tags follow Zipf's law, and one namespace has nine of ten events. The engine could have written such a history, except
for facts that no figure needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.pipeline.events.schema import FACT_OF, MOMENTS, SCHEMA, VERSION, moment

DAY_MS = 86_400_000
FIRST = 1_760_054_400_000  # midnight
DAYS = 7
CHUNK = 250_000
"""The number of jobs that are drawn together. All events of a job are in one chunk, and a chunk is within one day."""
HISTORY_MS = 3_600_000

EVENTS_PER_JOB = 4.19
NAMESPACES = ("shop", "mail", "crm", "ads", "log")
SHARES = (0.9, 0.04, 0.03, 0.02, 0.01)


def generate(root: Path, events: int, seed: int = 1) -> Iterator[int]:
    """Write an archive of about `events` events, day by day; after each day yield the number of its events."""
    random, last = np.random.default_rng(seed), dict.fromkeys(NAMESPACES, 0)
    for day in range(DAYS):
        for namespace, share in zip(NAMESPACES, SHARES, strict=True):
            jobs = max(int(events * share / EVENTS_PER_JOB / DAYS), 10)
            for start in range(0, jobs, CHUNK):
                count = min(CHUNK, jobs - start)
                first = FIRST + DAY_MS * day + DAY_MS * start // jobs
                table = lives(random, count, first, DAY_MS * count // jobs, last[namespace])
                last[namespace] += len(table)
                write(root, namespace, table)
        yield sum(last.values())


EVENTS = ("put", "tagged", "popped", "completed", "retried", "failed", "unfailed", "retired")
WORDS: dict[str, tuple[str, ...]] = {
    "event": EVENTS,
    "queue": tuple(f"q{number}" for number in range(40)),
    "klass": tuple(f"Klass{number}" for number in range(60)),
    "worker": tuple(f"worker{number}" for number in range(200)),
    "tag": tuple(f"tag{number}" for number in range(300)),
    "group": tuple(f"group{number}" for number in range(20)),
    "state": ("waiting",),
}
"""The values of the text columns; the generator draws their numbers."""


def lives(random: np.random.Generator, count: int, first: int, span: int, after: int) -> pa.Table:
    """Make the events of jobs that are put within a span of time (ms), in order, behind a sequence number."""
    parts = list(_stages(random, count, first, span))
    total = sum(len(part["jid"]) for part in parts)
    names = {name for part in parts for name in part}
    whole = {name: np.concatenate([part.get(name, np.full(len(part["jid"]), -1)) for part in parts]) for name in names}
    order = np.lexsort((whole["stage"], whole["at"]))
    whole = {name: values[order] for name, values in whole.items()} | {"seq": np.arange(after + 1, after + total + 1)}
    arrays = []
    for field in SCHEMA:
        fact = FACT_OF.get(field.name, field.name)
        codes = whole.get(fact)
        if field.name == "epoch":
            arrays.append(pa.repeat(pa.scalar(0, field.type), total))
        elif codes is None:
            arrays.append(pa.nulls(total, field.type))
        elif field.name == "jid":
            arrays.append(pc.binary_join_element_wise(f"{after:x}", pc.cast(pa.array(codes), pa.string()), "-"))
        else:
            found = pa.array(codes, mask=codes < 0)
            if fact in WORDS:
                arrays.append(pa.array(WORDS[fact]).take(found))
            else:
                arrays.append(moment(found, field.type) if field.name in MOMENTS else found.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _zipf(random: np.random.Generator, what: str, count: int) -> Any:
    weights = np.cumsum(1 / np.arange(1, len(WORDS[what]) + 1))
    return np.searchsorted(weights, random.random(count) * weights[-1])


def _stages(random: np.random.Generator, count: int, first: int, span: int) -> Iterator[dict[str, Any]]:
    """Make a table for each stage of the jobs; `stage` orders events within a millisecond."""
    every, draw = np.arange(count), random.random(count)
    queue, klass = _zipf(random, "queue", count), _zipf(random, "klass", count)
    at = first + random.integers(0, max(span, 1), count)

    def stage(number: int, event: str, which: Any, at: Any, **facts: Any) -> dict[str, Any]:
        kind, order = np.full(len(which), EVENTS.index(event)), np.full(len(which), number)
        head = {"jid": which, "queue": queue[which], "at": at, "stage": order, "event": kind}
        return {**head, "token": order, "state": np.zeros_like(order), **facts}

    def attempt(number: int, which: Any, ready: Any) -> tuple[dict[str, Any], Any, Any, Any]:
        wait, run = (random.lognormal(mu, 2.0, len(which)).astype(np.int64) for mu in (6.5, 7.0))
        worker = _zipf(random, "worker", len(which))
        return (
            stage(number, "popped", which, ready + wait, worker=worker, wait_ms=wait),
            worker,
            ready + wait + run,
            run,
        )

    yield stage(0, "put", every, at, klass=klass)
    tagged = np.flatnonzero(random.random(count) < 0.1)
    yield stage(1, "tagged", tagged, at[tagged], tag=_zipf(random, "tag", len(tagged)))
    popped, worker, ended, run = attempt(2, every, at)
    yield popped
    done, again, failed = (np.flatnonzero(part) for part in (draw < 0.93, (draw >= 0.93) & (draw < 0.97), draw >= 0.97))
    yield stage(3, "completed", done, ended[done], worker=worker[done], run_ms=run[done])
    yield stage(3, "retried", again, ended[again], worker=worker[again], remaining=np.full(len(again), 4))
    yield stage(3, "failed", failed, ended[failed], worker=worker[failed], group=_zipf(random, "group", len(failed)))
    revived = failed[::3]
    yield stage(4, "unfailed", revived, ended[revived] + 60_000)
    second = np.concatenate([again, revived])
    ready = ended[second] + np.concatenate([np.full(len(again), 1000), np.full(len(revived), 60_000)])
    popped, worker, finished, run = attempt(5, second, ready)
    yield popped
    yield stage(6, "completed", second, finished, worker=worker, run_ms=run)
    complete, at = np.concatenate([done, second]), np.concatenate([ended[done], finished])
    yield {**stage(7, "retired", complete, at + HISTORY_MS), "queue": np.full(len(complete), -1)}


def write(root: Path, namespace: str, table: pa.Table) -> None:
    """Write events as files of an archive: one for each day, sorted by queue."""
    days = table.column("happened_at").cast(pa.int64()).to_numpy() // DAY_MS
    for day in np.unique(days):
        part = table.filter(pa.array(days == day))
        seqs = part.column("seq").to_numpy()
        name = f"{seqs.min():012}-{seqs.max():012}-{len(part)}-v{VERSION}-e0.parquet"
        folder = root / f"namespace={namespace}" / f"day={np.datetime64(int(day), 'D')}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(part.sort_by([("queue", "ascending"), ("seq", "ascending")]), folder / name, compression="zstd")
