"""A frame's pieces are worked off by ordinary workers, as sub-requests of one request; their answers are a frame again.

    answers = perform(pieces, "fit-2026-11-21", queue="models", klass="Fit", key="store", limit=8)

Spark only puts the pieces and fetches the answers; how many run at a time, in which order, and how often one is tried
again is for the engine, and what a piece means for the worker, which may be a program in another language, on a machine
with a GPU. Each step may be done again, for a piece is known by its key, in the request: who is killed in the middle
calls the same again, and nothing is performed twice.
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
    """Put the rows of a frame as the sub-requests of one request, and close it; done again, it puts what is missing.

    `key` names the columns that tell pieces apart. A piece's data are those of the column `data`, beside which there
    may be others of a put (`tags`, `delay_ms`, ...); where there is none, they are the row. At most `limit` run at
    once. One that fails is tried again `retries` times, by default 5 as with any put: what a job type says of that is
    for its own puts. Raises ValueError for columns that cannot be, and for two pieces with one key; a request of that
    id that was opened otherwise is refused.
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
    """Refuse pieces that have the same key: ValueError."""
    for twice in pieces.groupBy(*keys).count().where("count > 1").take(1):
        told = ", ".join(f"{name} = {twice[name]!r}" for name in keys)
        raise ValueError(f"{twice['count']} pieces have {told}, and would be one job. Name more columns as their key.")


def wait(id: str, *, timeout: Duration = math.inf, url: str | None = None) -> replies.Request:
    """Sleep until a request has ended; give how.

    Raises RequestNotEnded, a TimeoutError, after `timeout` seconds, RequestNotFound, and AnswersWouldBeLost where
    complete jobs are not kept for so many.
    """
    with Client(_url(url)) as client:
        check_kept(client, id)
        return client.requests[id].wait(timeout)


def gather(pieces: DataFrame, id: str, *, key: str | Sequence[str], url: str | None = None) -> DataFrame:
    """The answers of a request's pieces as they are now: the key, and the columns of `answering.ANSWERS`, by key.

    Failed pieces are rows as others are. The frame has to have the same pieces as when they were put.
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

    The frame is computed here, for a job that is kept no longer would be gone from it later.
    """
    submit(pieces, id, queue=queue, klass=klass, key=key, limit=limit, priority=priority, retries=retries, url=url)
    wait(id, timeout=timeout, url=url)
    found = gather(pieces, id, key=key, url=url).persist()
    found.count()
    return found


def _keys(key: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the columns. Raises ValueError for none."""
    keys = (key,) if isinstance(key, str) else tuple(key)
    if not keys:
        raise ValueError("Say which columns tell the pieces apart: key=...")
    return keys


def _url(url: str | None) -> str:
    return Given({"url": url or os.environ.get("QMODEL_URL", "")}, ("url",)).url()
