"""Spark follows the journal: each entry once, in bounded batches; and makes figures of a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows  # noqa: E402

from qmodel.pipeline.audit.replay import Audit  # noqa: E402
from qmodel.pipeline.journal.pages import EntriesGone, JournalWentBack, newest  # noqa: E402
from qmodel.pipeline.journal.tables import rows_of  # noqa: E402
from qmodel.pipeline.spark.live import windows  # noqa: E402
from qmodel.pipeline.spark.source import EventsSource  # noqa: E402
from qmodel.pipeline.spark.stream import JournalStream, stream_options  # noqa: E402
from tests.pipeline.test_auditing import work  # noqa: E402


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 60)
        yield client


def reader(url: str, **options: str) -> JournalStream:
    return JournalStream(stream_options({"url": url, "table": "journal", **options}))


def started(spark: Any, url: str, folder: Path, table: str, **options: str) -> Any:
    """Give a stream of a table, and how to write it: all that there is now, from where it stopped."""
    found = spark.readStream.format("qmodel").option("url", url).option("table", table).options(**options).load()
    return found, lambda frame: frame.writeStream.option("checkpointLocation", str(folder)).trigger(availableNow=True)


def test_a_query_audits_the_journal_from_where_it_was(spark: Any, client: Client, url: str, tmp_path: Path) -> None:
    audit, wrong = Audit(), list[Any]()

    def check(batch: Any, number: int) -> None:
        wrong.extend(audit.follow(rows_of(batch.orderBy("number").toArrow())))

    for _ in range(2):
        stream, written = started(spark, url, tmp_path, "journal", maxOffsetsPerTrigger="50", minPartitions="2")
        query = written(stream).foreachBatch(check).start()
        query.awaitTermination(120)
        assert (audit.number, wrong) == (newest(client), [])
        assert json.loads(query.lastProgress.sources[0].endOffset)["seq"] == audit.number
        work(client, 20)
    assert sum(one.numInputRows for one in query.recentProgress) < audit.number


def test_how_far_a_batch_of_the_journal_goes(client: Client, url: str) -> None:
    stream = reader(url)
    at = stream.initialOffset()
    assert at["seq"] == 0
    at = stream.latestOffset(at, ReadMaxRows(30))
    assert at["seq"] == 30
    work(client, 20)
    at = stream.latestOffset(at, ReadAllAvailable())
    assert at["seq"] == stream.reportLatestOffset()["seq"] == newest(client) == newest(client, 30)
    assert stream.latestOffset(at, ReadAllAvailable()) == at
    parts = stream.partitions({"seq": 30, "epoch": at["epoch"]}, at)
    numbers = [number for part in parts for batch in stream.read(part) for number in batch["number"].to_pylist()]
    assert numbers == list(range(31, newest(client) + 1))
    with pytest.raises(ValueError, match=f"the newest entry is {newest(client)}"):
        reader(url, startingOffsets="100000").initialOffset()
    stream.stop()


def test_entries_that_are_gone_are_named(client: Client, url: str) -> None:
    client.execute(ops.ConfigSet("max-journal", 20))
    work(client, 60)
    last = newest(client)
    with pytest.raises(EntriesGone, match=f"The entries 1 to {last - 20} "):
        reader(url).latestOffset({"seq": 0, "epoch": 0}, ReadAllAvailable())
    stream = reader(url, failOnDataLoss="false")
    at = stream.latestOffset({"seq": 0, "epoch": 0}, ReadAllAvailable())
    assert (at["lost"], at["gaps"]) == (last - 20, [[1, last - 20]])
    (part,) = stream.partitions({"seq": 0, "epoch": 0}, at)
    assert sum(batch.num_rows for batch in stream.read(part)) == 20
    with pytest.raises(JournalWentBack, match=f"Entry {last + 5} "):
        stream.latestOffset({"seq": last + 5, "epoch": at["epoch"]}, ReadAllAvailable())
    stream.stop()


def test_other_tables_are_no_streams(url: str) -> None:
    source = EventsSource({"url": url, "table": "jobs"})
    with pytest.raises(ValueError, match="no stream: there are streams of events and journal"):
        source.streamReader(source.schema())


def test_the_figures_of_a_stream_are_those_of_a_table(spark: Any, client: Client, url: str, tmp_path: Path) -> None:
    stream, written = started(spark, url, tmp_path / "checkpoint", "events", maxOffsetsPerTrigger="70")
    query = written(windows(stream)).outputMode("complete").format("memory").queryName("live").start()
    query.awaitTermination(120)
    table = spark.read.format("qmodel").option("url", url).load()
    order = ("begins_at", "queue")
    expected = windows(table).orderBy(*order).collect()
    assert spark.table("live").orderBy(*order).collect() == expected
    events = list(client.events())
    assert sum(row.put for row in expected) == sum(one.event == "put" for one in events)
    waits = [one.named["wait_ms"] for one in events if one.event == "popped"]
    assert sum(row.waits for row in expected) == len(waits)
    assert max(row.wait_p99_ms for row in expected if row.waits) <= max(waits)
