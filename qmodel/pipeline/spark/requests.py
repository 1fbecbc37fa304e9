"""Let ordinary workers perform the rows of a frame, as sub-requests of one request; their answers are a frame.

    answers = perform(pieces, "fit-2026-11-21", queue="models", klass="Fit", key="store", limit=8)

A piece is a row of the frame. Spark only puts the pieces and fetches the answers. The engine decides the order, how
many run at once and how often one is retried. The worker may be a program in another language, on a machine with a GPU.
Each step may be repeated, because a piece is identified by its key in the request: a driver that was killed calls the
same again, and no piece is performed twice.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from qmodel.client.convert import Duration
from qmodel.client.sync import Client
from qmodel.contract import replies
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.jobs.answers import ANSWERS, answers, check_kept
from qmodel.pipeline.spark.options import Given


def submit(
    pieces: DataFrame,
    id: str,
    *,
    queue: str,
    klass: str,
    key: str | Sequence[str],
    limit: int = 100,
    priority: int = 0,
    retries: int | None = None,
    url: str | None = None,
) -> None:
    """Put the rows of a frame as the sub-requests of one request, and close it; a repeated call puts what is missing.

    `key` names the columns that identify a piece. Its data are the column `data`, beside other arguments of a put
    (`tags`, `delay_ms`, ...); without that column, its data are the whole row. At most `limit` pieces run at once. A
    failed piece is retried `retries` times, by default 5 as with any put; the retries of a job type apply to its own
    puts only. Raises ValueError for columns that a put does not have, for a key with the name of a column of
    `answers.ANSWERS`, and for two pieces with one key. Refused if a request of that id was opened in another way.
    """
    keys = _keys(key)
    _check_apart(pieces, keys)
    rows = pieces if "data" in pieces.columns else pieces.select(*keys, F.struct("*").alias("data"))
    if retries is not None:
        rows = rows.withColumn("retries", F.lit(retries))
    options = {"request": id, "queue": queue, "klass": klass, "limit": limit, "priority": priority}
    writer = rows.write.format("qmodel").mode("append").options(**options).option("idColumns", ",".join(keys))
    (writer.option("url", url) if url else writer).save()


def _check_apart(pieces: DataFrame, keys: Sequence[str]) -> None:
    """Refuse pieces with equal keys. Raises ValueError."""
    for twice in pieces.groupBy(*keys).count().where("count > 1").take(1):
        told = ", ".join(f"{name} = {twice[name]!r}" for name in keys)
        raise ValueError(f"{twice['count']} pieces have {told} and would be one job. Name more columns as the key.")


def wait(id: str, *, timeout: Duration = math.inf, url: str | None = None) -> replies.Request:
    """Sleep until a request has ended; give its state.

    Raises RequestNotEnded, a TimeoutError, after `timeout` seconds; RequestNotFound; and AnswersWouldBeLost if the
    server does not keep so many complete jobs.
    """
    with Client(_url(url)) as client:
        check_kept(client, id)
        return client.requests[id].wait(timeout)


def gather(pieces: DataFrame, id: str, *, key: str | Sequence[str], url: str | None = None) -> DataFrame:
    """Read the present answers of a request's pieces: the key, and the columns of `answers.ANSWERS`.

    Failed pieces have rows too. The frame must have the same pieces as when they were put.
    """
    keys, where = _keys(key), _url(url)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with Client(where) as client:
            for batch in batches:
                yield answers(client, batch, id, keys)

    wanted = pieces.select(*keys)
    schema = StructType([*wanted.schema.fields, *from_arrow_schema(ANSWERS).fields])
    return wanted.mapInArrow(rows, schema).orderBy(*keys)


def perform(
    pieces: DataFrame,
    id: str,
    *,
    queue: str,
    klass: str,
    key: str | Sequence[str],
    limit: int = 100,
    priority: int = 0,
    retries: int | None = None,
    timeout: Duration = math.inf,
    url: str | None = None,
) -> DataFrame:
    """Put pieces, wait until the request has ended, and give the answers; see `submit`, `wait` and `gather`.

    The answers are computed at once: later, some jobs might no longer be kept.
    """
    submit(pieces, id, queue=queue, klass=klass, key=key, limit=limit, priority=priority, retries=retries, url=url)
    wait(id, timeout=timeout, url=url)
    found = gather(pieces, id, key=key, url=url).persist()
    found.count()
    return found


def _keys(key: str | Sequence[str]) -> tuple[str, ...]:
    """Read the names of the key columns. Raises ValueError if there are none, or if answers have such a column."""
    keys = (key,) if isinstance(key, str) else tuple(key)
    if not keys:
        raise ValueError("Name the columns that identify a piece: key=...")
    if taken := [name for name in keys if name.lower() in ANSWERS.names]:
        raise ValueError(
            f"The answers have a column {taken[0]!r} of their own: give the key another name, for example with "
            f"withColumnRenamed({taken[0]!r}, {'piece_' + taken[0]!r})."
        )
    return keys


def _url(url: str | None) -> str:
    return Given({"url": url or os.environ.get("QMODEL_URL", "")}, ("url",)).url()
