"""Write jobs from Spark: `frame.write.format("qmodel")`, and `frame.writeStream`.

A task puts the rows of its partition. The id of a row says whether it is a job already (`qmodel.pipeline.jobs.write`).
So a task may be retried, run twice at the same time, or die after half of its rows: no row becomes a second job.
Nothing is rolled back, because a worker may have a job before the next row is written. A failed write is completed by
writing again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.jobs.send import Sent, add, put
from qmodel.pipeline.jobs.write import Rows, Writing, check
from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.spark.types import arrow_of
from qmodel.present.numbers import counted

LOG = logging.getLogger("qmodel.pipeline")

OPTIONS = ("url", "queue", "klass", "idColumns", "run", "request", "limit", "priority")


class Target(NamedTuple):
    """Where rows go, and how they become jobs."""

    url: str
    writing: Writing
    limit: int
    priority: int
    each_batch: bool  # whether each batch of a stream is a run, because nothing else names its rows


def target(options: Mapping[str, str], schema: StructType, streaming: bool = False) -> Target:
    """Read the options of a write, and check the columns. Raises ValueError.

    Without `run`, rows that have their own ids use the run "". For other rows each write is a new run.
    """
    given = Given(options, OPTIONS)
    url = given.url()
    keys = tuple(name.strip() for name in given.text("idColumns").split(",") if name.strip())
    request = given.text("request")
    run = given.text("run")
    unnamed = not (run or request or keys or "jid" in schema.names)
    if unnamed and not streaming:
        run = os.urandom(16).hex()
    are_digests = bool(keys) or "jid" not in schema.names
    writing = Writing(run or request, given.text("queue"), given.text("klass"), keys, request, are_digests)
    limit, priority = given.whole("limit", 100), given.whole("priority", 0, low=None)
    if streaming:
        given.text("checkpointLocation")  # Spark's own option, which it passes to every source
    given.end()
    for name in ("limit", "priority"):
        if not request and name in {one.lower() for one in options}:
            raise ValueError(f"{name} belongs to a request, and this write has none: give request=... as well.")
    if request and streaming:
        raise ValueError("A stream has no end, so it is no request: write each batch as one, with foreachBatch.")
    if "at" in schema.names and schema["at"].dataType.typeName() == "timestamp_ntz":
        raise ValueError("The column 'at' is a timestamp_ntz, which names no moment: cast(at as timestamp).")
    check(arrow_of(schema, keys), writing)
    return Target(url, writing, limit, priority, unnamed and streaming)


class Written(WriterCommitMessage):
    """The result of a task."""

    def __init__(self, sent: Sent) -> None:
        self.rows = sent.rows
        self.new = sent.new
        self.known = sent.known


def write(where: Target, run: str, batches: Iterator[pa.RecordBatch]) -> Written:
    """Put the rows of a task."""
    context = TaskContext.get()
    what = where.writing._replace(run=run)
    with Client(where.url) as client:
        if what.request:
            client.execute(opening(where))
        return Written(_send(client, what, context.partitionId() if context else 0, batches))


def _send(client: Client, what: Writing, part: int, batches: Iterator[pa.RecordBatch]) -> Sent:
    rows: Rows | None = None

    def puts() -> Iterator[ops.Put]:
        nonlocal rows
        for batch in batches:
            rows = rows or Rows(batch.schema, what, part)
            yield from rows.puts(batch)

    if what.request:
        return add(client, what.request, puts())
    return put(client, puts(), are_digests=what.are_digests)


def opening(where: Target) -> ops.RequestOpen:
    """Make the operation that opens the request of a write; a repeated one changes nothing."""
    return ops.RequestOpen(where.writing.request, where.writing.queue, where.limit, where.priority)


class JobsWriter(DataSourceArrowWriter):
    """Writes a frame."""

    def __init__(self, where: Target) -> None:
        self.where = where

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Put the rows of a partition."""
        return write(self.where, self.where.writing.run, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log the number of jobs, and close the request if there is one."""
        if self.where.writing.request:
            with Client(self.where.url) as client:
                client.execute(opening(self.where))
                client.execute(ops.RequestClose(self.where.writing.request))
        _log(told(messages, self.where), messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log what is left: jobs that were put stay."""
        LOG.warning(_left(messages, self.where))


def told(messages: Sequence[WriterCommitMessage | None], where: Target) -> str:
    """Say how many rows are new jobs, and how many were known.

    Rows of an attempt that failed count as known in the next one.
    """
    done = [one for one in messages if isinstance(one, Written)]
    queue = f"queue {where.writing.queue}" if where.writing.queue else "their queues"
    new, known = sum(one.new for one in done), sum(one.known for one in done)
    rows, jobs = counted(new + known, "row"), counted(new, "new job")
    return f"{rows} written to {queue}: {jobs}, {known:,} known and not put again."


def _log(said: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Log the result; with a warning if rows were known, because Spark shows warnings only."""
    any_known = any(one.known for one in messages if isinstance(one, Written))
    LOG.log(logging.WARNING if any_known else logging.INFO, "%s", said)


def _left(messages: list[WriterCommitMessage | None], where: Target) -> str:
    done = [one for one in messages if isinstance(one, Written)]
    what = where.writing
    again = f'option("run", "{what.run}")' if what.run and not what.request else "the same rows"
    return (
        f"The write was given up. {counted(sum(one.rows for one in done), 'row')} of "
        f"{counted(len(done), 'whole partition')}, and some rows of {counted(len(messages) - len(done), 'other')}, "
        f"are jobs and remain. Write again with {again}: they are skipped."
    )


class JobsStreamWriter(DataSourceStreamArrowWriter):
    """Writes a stream, batch by batch."""

    def __init__(self, where: Target) -> None:
        self.where = where

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Put the rows of a partition; if nothing names them, the batch of the query is their run."""
        return write(self.where, _batch_of_query() if self.where.each_batch else self.where.writing.run, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Log the number of jobs: the rows are jobs already."""
        _log(f"Batch {batchId}: {told(messages, self.where)}", messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Log what is left; the query repeats the batch when it is started again."""
        LOG.warning("Batch %d: %s", batchId, _left(messages, self.where))


def _batch_of_query() -> str:
    context = TaskContext.get()
    query = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    if not query or batch is None:
        raise ValueError(
            "This Spark does not say which batch is written. Give the ids of rows: idColumns, or a column jid."
        )
    return f"{query}-{batch}"
