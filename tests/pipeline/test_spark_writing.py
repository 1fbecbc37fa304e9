"""Spark writes jobs: each row once, even if tasks fail and writes are repeated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmodel import Client, connect
from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

import pyarrow as pa  # noqa: E402
from pyspark import TaskContext  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402
from pyspark.sql import types  # noqa: E402

from qmodel.pipeline.spark.writer import JobsWriter, target  # noqa: E402

NUMBERS = types.StructType().add("n", "long")


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        yield client


def numbers(spark: Any, count: int, parts: int = 2) -> Any:
    return spark.range(0, count, 1, parts).select(F.struct("id").alias("data"))


def to(frame: Any, url: str, **options: Any) -> Any:
    given = {"url": url, "queue": "q", "klass": "Send", **options}
    return frame.write.format("qmodel").mode("append").options(**given)


def fails(frame: Any, attempts: int) -> Any:
    """Give the same rows; the first attempts of each task fail before its last row."""

    def rows(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        for batch in batches:
            yield batch.slice(0, batch.num_rows - 1)
            if context and context.attemptNumber() < attempts:
                raise RuntimeError("the worker died")
            yield batch.slice(batch.num_rows - 1)

    return frame.mapInArrow(rows, frame.schema)


def test_a_task_that_fails_and_is_tried_again_writes_each_row_once(spark: Any, client: Client, url: str) -> None:
    to(fails(numbers(spark, 3000), 1), url).save()
    events = Counter(event.event for event in client.events())
    assert (client.queues["q"].counts.waiting, events["put"]) == (3000, 3000)
    assert sorted(job.data["id"] for job in client.jobs.search("q")) == list(range(3000))


def test_a_write_that_was_given_up_is_done_by_writing_again(spark: Any, client: Client, url: str) -> None:
    frame = numbers(spark, 2000)
    with pytest.raises(Exception, match="the worker died"):
        to(fails(frame, 9), url, run="monday").save()
    assert client.queues["q"].counts.waiting < 2000
    for _ in range(2):
        to(frame, url, run="monday").save()
        assert client.queues["q"].counts.waiting == 2000


def test_a_write_may_be_a_request_that_ends_with_its_last_job(spark: Any, client: Client, url: str) -> None:
    frame = spark.range(0, 300, 1, 2).withColumn("keep_complete_ms", F.lit(0))
    to(fails(frame, 1), url, idColumns="id", request="fit", limit=300).save()
    while jobs := client.queues["q"].pop(100):
        client.complete_many(jobs)
    to(frame, url, idColumns="id", request="fit", limit=300).save()
    ended = client.requests["fit"].wait(5)
    assert (ended.state, ended.total, ended.done, client.queues["q"].length()) == ("done", 300, 300, 0)


def test_a_stream_that_does_a_batch_again_writes_each_row_once(
    spark: Any, client: Client, url: str, tmp_path: Path
) -> None:
    spark.range(0, 500, 1, 2).write.parquet(str(tmp_path / "in"))
    rows = spark.readStream.schema("id long").parquet(str(tmp_path / "in")).select(F.struct("id").alias("data"))

    def once() -> None:
        options = {"url": url, "queue": "q", "klass": "Send", "checkpointLocation": str(tmp_path / "checkpoint")}
        rows.writeStream.format("qmodel").options(**options).trigger(availableNow=True).start().awaitTermination(60)

    once()
    for kept in (tmp_path / "checkpoint" / "commits").iterdir():
        kept.unlink()  # as if it had died before it could note that the batch was written
    once()
    assert client.queues["q"].counts.waiting == 500


def test_a_second_write_says_how_many_rows_were_known(
    spark: Any, client: Client, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    writer = JobsWriter(target({"url": url, "queue": "q", "klass": "Send", "idColumns": "n"}, NUMBERS))
    rows = pa.record_batch({"n": pa.array(range(100), pa.int64())})
    with caplog.at_level("INFO", "qmodel.pipeline"):
        writer.commit([writer.write(iter([rows]))])
        writer.commit([writer.write(iter([rows])), None])
    assert caplog.messages == [
        "100 rows written to queue q: 100 new jobs, 0 known and not put again.",
        "100 rows written to queue q: 0 new jobs, 100 known and not put again.",
    ]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


def test_values_of_all_types_that_json_has_are_written(spark: Any, client: Client, url: str) -> None:
    values = spark.sql(
        """select named_struct('text', 'a', 'flag', true, 'byte', 1Y, 'short', 2S, 'int', 3, 'long', 4L, 'float', 0.5F,
        'double', 0.25D, 'sum', 1.50, 'day', date '2026-11-21', 'at', timestamp '2026-11-21 08:00:00', 'local',
        timestamp_ntz '2026-11-21 08:00:00', 'none', null, 'list', array(1, null), 'map', map('a', 1), 'clock',
        time '08:30:00') as data, timestamp '2026-11-21 08:00:00' as at"""
    )
    to(values, url, idColumns="at").save()
    (job,) = client.jobs.search("q")
    assert job.data == {
        "text": "a", "flag": True, "byte": 1, "short": 2, "int": 3, "long": 4, "float": 0.5, "double": 0.25,
        "sum": "1.50", "day": "2026-11-21", "at": "2026-11-21T08:00:00+00:00", "local": "2026-11-21T08:00:00",
        "none": None, "list": [1, None], "map": {"a": 1}, "clock": "08:30:00",
    }  # fmt: skip


def test_a_timestamp_names_the_moment_of_a_job(spark: Any, client: Client, url: str) -> None:
    to(
        spark.sql("select 'a' as jid, timestamp '2100-01-01 00:00:00.0015' as at union all select 'b', null"), url
    ).save()
    later, now = client.jobs["a"], client.jobs["b"]
    assert (later.state, later.ready_at_ms, now.state) == ("scheduled", 4_102_444_800_001, "waiting")
    with pytest.raises(Exception, match="The column 'at' is a timestamp_ntz, which names no moment"):
        to(spark.sql("select 'c' as jid, timestamp_ntz '2100-01-01 00:00:00' as at"), url).save()


def every_type(of: type[types.DataType]) -> Iterator[type[types.DataType]]:
    for one in of.__subclasses__():
        if one.__module__ == types.__name__:
            yield one
            yield from every_type(one)


KINDS = {
    types.AnsiIntervalType, types.AnyTimeType, types.AtomicType, types.DatetimeType, types.FractionalType,
    types.IntegralType, types.NumericType, types.SpatialType, types.StructField,
}  # fmt: skip
"""What types have in common; no column has one."""

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "CharType": (3,), "VarcharType": (3,), "GeometryType": (4326,), "GeographyType": (4326,),
    "ArrayType": (types.TimestampType(),), "MapType": (types.DateType(), types.LongType()),
}  # fmt: skip


@pytest.mark.parametrize("of", sorted({*every_type(types.DataType)} - KINDS, key=lambda one: one.__name__))
def test_every_type_of_spark_is_written_or_refused_by_its_name(of: type[types.DataType]) -> None:
    given = {"url": "redis://h", "queue": "q", "klass": "Send"}
    for make in (lambda one: one, types.ArrayType, lambda one: types.StructType().add("x", one)):
        one = of(*ARGUMENTS.get(of.__name__, ()))
        schema = types.StructType().add("data", make(one))
        if of.__name__ in REFUSED:
            with pytest.raises(ValueError, match=f"has the Spark type {re.escape(one.simpleString())}.*Write "):
                target(given, schema)
        else:
            target(given, schema)


REFUSED = {
    "BinaryType", "CalendarIntervalType", "DayTimeIntervalType", "GeographyType", "GeometryType", "UserDefinedType",
    "VariantType", "YearMonthIntervalType",
}  # fmt: skip


def test_other_modes_are_refused_with_what_to_do(spark: Any, url: str) -> None:
    frame = numbers(spark, 1)
    with pytest.raises(Exception, match=r'no job is removed: use mode\("append"\)'):
        to(frame, url).mode("overwrite").save()
    with pytest.raises(Exception, match="A job has no column 'color'"):
        to(frame.withColumn("color", F.lit("red")), url).save()


def test_a_write_that_is_given_up_says_what_is_left(url: str, caplog: pytest.LogCaptureFixture) -> None:
    from pyspark.sql.types import StructType

    where = target({"url": url, "queue": "q", "klass": "Send"}, StructType().add("data", "string"))
    writer = JobsWriter(where)
    writer.abort([None, None])
    assert f'option("run", "{where.writing.run}")' in caplog.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "memory://"}, "needs the URL of a server"),
        ({"limit": "-1"}, "limit must be a whole number from 0"),
        ({"Limit": "5"}, "limit belongs to a request"),
        ({"priority": "5"}, "priority belongs to a request"),
        ({"colour": "x"}, "no option 'colour'"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, str], said: str) -> None:
    from pyspark.sql.types import StructType

    with pytest.raises(ValueError, match=said):
        target({"url": "redis://h", "queue": "q", "klass": "k", **given}, StructType().add("jid", "string"))
