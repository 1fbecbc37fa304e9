"""Spark reads all events or fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from qmodel import Client, connect
from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

from qmodel.pipeline.events.decode import events_of, tables  # noqa: E402
from qmodel.pipeline.events.schema import SCHEMA  # noqa: E402
from qmodel.pipeline.spark.source import EventsReader  # noqa: E402
from qmodel.pipeline.spark.wanted import wanted  # noqa: E402


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        for number in range(150):
            client.queues["q"].put("Send", number)
        while popped := client.queues["q"].pop(25, worker="w"):
            for job in popped:
                job.complete()
        yield client


def test_a_read_is_all_events_in_ranges(spark: Any, client: Client, url: str) -> None:
    frame = spark.read.format("qmodel").option("url", url).option("rowsPerPartition", 300).load()
    table = frame.toArrow().cast(SCHEMA.remove_metadata()).replace_schema_metadata(SCHEMA.metadata)
    assert list(events_of(table)) == list(client.events())
    assert frame.where("event = 'completed' and run_ms >= 0").groupBy("worker").count().collect() == [("w", 150)]


def test_a_read_may_ask_for_some_columns(spark: Any, client: Client, url: str) -> None:
    source = spark.read.format("qmodel").option("url", url).option("minPartitions", 3)
    some = source.schema("event string, seq bigint, wait_ms bigint").load()
    assert some.rdd.getNumPartitions() == 3
    found = some.where("wait_ms is not null").collect()
    assert [row.seq for row in found] == [one.seq for one in client.events() if one.event == "popped"]
    for schema, said in (("seq bigint, speed bigint", "no column 'speed'"), ("seq int", "'seq' of events is int64")):
        with pytest.raises(Exception, match=said):
            source.schema(schema).load().count()


def test_a_read_fails_where_events_are_gone_unless_it_may_lose_some(spark: Any, client: Client, url: str) -> None:
    client.config.set("max-events", 100)
    newest, kept = client.newest(), next(client.events()).seq
    source = spark.read.format("qmodel").option("url", url)
    with pytest.raises(Exception, match=f"Events 1 to {kept - 1} are gone"):
        source.load().count()
    gaps = source.option("table", "gaps")
    assert [tuple(row) for row in gaps.load().collect()] == [(1, kept - 1, kept - 1)]
    assert gaps.option("after", str(kept - 1)).load().collect() == []
    assert source.option("table", "events").option("failOnDataLoss", "false").load().count() == newest - kept + 1


def test_a_task_names_the_events_that_it_did_not_read(
    client: Client, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    client.config.set("max-events", 100)
    kept = next(client.events()).seq
    what = EventsReader(wanted({"url": url, "failOnDataLoss": "false"}))
    assert sum(batch.num_rows for batch in what.read(*what.partitions())) == client.newest() - kept + 1
    assert caplog.messages == [
        f"Events 1 to {kept - 1} are gone from the server and were not read: failOnDataLoss is false."
    ]


def test_ranges_are_read_without_spark_too(client: Client, url: str) -> None:
    reader = EventsReader(wanted({"url": url, "AFTER": "10", "last": "260", "rowsPerPartition": "100"}))
    ranges = reader.partitions()
    assert [(one.after, one.last) for one in ranges] == [(10, 110), (110, 210), (210, 260)]
    nothing = EventsReader(wanted({"url": url, "after": "451"}))
    assert tables(nothing.read(*nothing.partitions())).num_rows == 0
    assert tables(reader.read(ranges[1])).column("seq").to_pylist() == list(range(111, 211))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs the URL of a server"),
        ({"url": "memory://x"}, "needs the URL of a server"),
        ({"url": "redis://h", "after": "-1"}, "after must be a whole number from 0"),
        ({"url": "redis://h", "rowsPerPartition": "0"}, "whole number from 1"),
        ({"url": "redis://h", "failOnDataLoss": "no"}, "true or false"),
        ({"url": "redis://h", "form": "x"}, "no option 'form'"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QMODEL_URL", raising=False)
    with pytest.raises(ValueError, match=said):
        wanted(given)
