"""Spark reads events as they arrive: each once, in bounded batches, from where it stopped."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmodel import Client, connect
from qmodel.contract.arguments import TOKEN_EPOCH
from qmodel.errors import Forked
from qmodel.pipeline.events.gaps import EventsGone, SequenceWentBack
from tests.pipeline.forks import jobs, restored
from tests.pipeline.sparking import needed
from tests.servers import Server

pytestmark = pytest.mark.spark
needed()

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows  # noqa: E402

from qmodel.pipeline.events.decode import tables  # noqa: E402
from qmodel.pipeline.spark.ranges import Range  # noqa: E402
from qmodel.pipeline.spark.source import EventsReader  # noqa: E402
from qmodel.pipeline.spark.stream import EventsStream, StreamForked, stream_options  # noqa: E402
from qmodel.pipeline.spark.wanted import wanted  # noqa: E402


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        put(client, 300)
        yield client


def put(client: Client, count: int) -> None:
    client.queues["q"].put_many([("Send", number) for number in range(count)])


def reader(url: str, **options: str) -> EventsStream:
    return EventsStream(stream_options({"url": url, **options}))


def run(spark: Any, url: str, folder: Path, **options: str) -> tuple[list[int], list[Any]]:
    """Read all events into a folder's table; give all sequences in it, and the progress of the batches."""
    stream = spark.readStream.format("qmodel").option("url", url).options(**options).load()
    query = (
        stream.select("seq")
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "rows"), "parquet")
    )
    query.awaitTermination(120)
    read = spark.read.parquet(str(folder / "rows")).collect()
    return sorted(row.seq for row in read), [one for one in query.recentProgress if one.numInputRows]


def test_a_query_goes_on_where_it_was_in_bounded_batches(spark: Any, client: Client, url: str, tmp_path: Path) -> None:
    seqs, progress = run(spark, url, tmp_path, maxOffsetsPerTrigger="200", minPartitions="2")
    assert seqs == list(range(1, client.newest() + 1))
    assert [one.numInputRows for one in progress] == [200, client.newest() - 200]
    at = client.position()
    assert json.loads(progress[0].sources[0].latestOffset) == {"seq": at.seq, "epoch": at.epoch, "spans": [[*at]]}
    put(client, 50)
    seqs, progress = run(spark, url, tmp_path, startingOffsets="latest", minPartitions="2")
    assert seqs == list(range(1, client.newest() + 1))
    assert [one.numInputRows for one in progress] == [50]


def test_a_query_fails_where_events_are_gone_that_it_did_not_read(
    spark: Any, client: Client, url: str, tmp_path: Path
) -> None:
    run(spark, url, tmp_path, maxOffsetsPerTrigger="1000")
    last = client.newest()
    client.config.set("max-events", 20)
    put(client, 60)
    with pytest.raises(Exception, match=f"Events {last + 1} to"):
        run(spark, url, tmp_path)
    seqs, progress = run(spark, url, tmp_path, failOnDataLoss="false", maxOffsetsPerTrigger="50")
    first = client.newest() - 19
    assert seqs == [*range(1, last + 1), *range(first, client.newest() + 1)]
    end = json.loads(progress[-1].sources[0].endOffset)
    assert (end["lost"], end["gaps"]) == (first - last - 1, [[last + 1, first - 1]])


def test_a_stream_that_may_lose_events_names_all_of_them(client: Client, url: str) -> None:
    stream = reader(url, failOnDataLoss="false")
    at = stream.initialOffset()
    for _ in range(2):
        client.config.set("max-events", 20)
        put(client, 60)
        at = stream.latestOffset(at, ReadMaxRows(40))
        at = stream.latestOffset(at, ReadAllAvailable())
        assert at["gaps"][-1][1] == client.newest() - 20
    assert at["lost"] == sum(last - first + 1 for first, last in at["gaps"])
    assert len(at["gaps"]) == 2
    with pytest.raises(EventsGone, match=f"Events 1 to {client.newest() - 20} are gone"):
        reader(url).latestOffset({"seq": 0, "epoch": 0}, ReadAllAvailable())
    assert "gaps" not in reader(url).latestOffset({"seq": client.newest() - 1, "epoch": None}, ReadAllAvailable())
    stream.stop()


def test_where_a_query_begins(client: Client, url: str) -> None:
    newest = client.newest()
    assert reader(url).initialOffset()["seq"] == 0
    assert reader(url, startingOffsets="Latest").initialOffset()["seq"] == newest
    assert reader(url, startingOffsets="7").initialOffset()["seq"] == 6
    assert reader(url, startingOffsets="0").initialOffset()["seq"] == 0
    with pytest.raises(ValueError, match=f"the newest event is {newest}"):
        reader(url, startingOffsets=str(newest + 2)).initialOffset()
    client.config.set("max-events", 100)
    assert reader(url).initialOffset()["seq"] == client.newest() - 100


def test_how_far_a_batch_goes(client: Client, url: str, spark_server: Server) -> None:
    newest, epoch = client.position()

    def at(seq: int) -> dict[str, object]:
        return {"seq": seq, "epoch": epoch, "spans": [[1, epoch]]}

    stream = reader(url, maxOffsetsPerTrigger="100")
    assert stream.getDefaultReadLimit() == ReadMaxRows(100)
    assert reader(url).getDefaultReadLimit() == ReadAllAvailable()
    assert stream.latestOffset(at(10), ReadMaxRows(100))["seq"] == 110
    assert stream.latestOffset(at(10), ReadAllAvailable())["seq"] == newest
    assert stream.latestOffset(at(newest), ReadMaxRows(100))["seq"] == newest
    assert stream.latestOffset(at(10), ReadMinRows(10**6))["seq"] == 10
    assert stream.latestOffset(at(10), ReadMinRows(10))["seq"] == newest
    stream.prepareForTriggerAvailableNow()
    put(client, 10)
    assert stream.latestOffset(at(10), ReadAllAvailable())["seq"] == newest
    assert stream.latestOffset(at(newest), ReadMinRows(10**6))["seq"] == newest
    assert stream.reportLatestOffset()["seq"] == client.newest()
    with pytest.raises(SequenceWentBack):
        stream.latestOffset(at(10**6), ReadAllAvailable())
    stream.stop()


def test_a_batch_is_cut_into_ranges_that_are_read_elsewhere(client: Client, url: str) -> None:
    stream = reader(url, rowsPerPartition="80", minPartitions="2")
    stream.reportLatestOffset()
    parts = stream.partitions({"seq": 0}, {"seq": 200})
    assert [(one.after, one.last) for one in parts] == [(0, 80), (80, 160), (160, 200)]
    assert len(stream.partitions({"seq": 0}, {"seq": 50})) == 2
    assert len(stream.partitions({"seq": 50}, {"seq": 50})) == 1
    there = pickle.loads(pickle.dumps(stream))
    assert tables(there.read(parts[1])).column("seq").to_pylist() == list(range(81, 161))
    stream.stop()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": ""}, "needs the URL of a server"),
        ({"startingOffsets": "newest"}, "startingOffsets must be earliest, latest or the sequence"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be a whole number from 1"),
        ({"minPartitions": "x"}, "minPartitions must be a whole number from 1"),
        ({"endingOffsets": "latest"}, "no option 'endingoffsets'"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QMODEL_URL", raising=False)
    with pytest.raises(ValueError, match=said):
        stream_options({"url": "redis://h", **given})


# ---- forks


def written(spark: Any, url: str, folder: Path, **options: str) -> list[tuple[int, int]]:
    """Read all new events into a folder's table; give the sequences and epochs of all its rows."""
    stream = spark.readStream.format("qmodel").option("url", url).options(**options).load()
    query = (
        stream.select("seq", "epoch", "event", "token")
        .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "rows"), "parquet")
    )
    query.awaitTermination(120)
    return sorted((row.seq, row.epoch) for row in spark.read.parquet(str(folder / "rows")).collect())


@pytest.mark.long
def test_a_query_stops_at_a_fork_or_names_what_to_take_back(
    spark: Any, client: Client, url: str, tmp_path: Path, spark_server: Server
) -> None:
    jobs(client, 5, "both")
    common = client.newest()
    with restored(spark_server):
        jobs(client, 3, "lost")
        lost = client.position()
        read = written(spark, url, tmp_path, rowsPerPartition="4")
        assert read == [(event.seq, event.epoch) for event in client.events()]
    jobs(client, 9, "others")
    own = [(event.seq, event.epoch) for event in client.events()]
    with pytest.raises(Exception, match=f"The newest common event is {common}"):
        written(spark, url, tmp_path)
    found = written(spark, url, tmp_path, onFork="keep", rowsPerPartition="4")
    taken = {(seq, epoch) for seq, epoch in read if seq > common}
    assert sorted(set(found) - taken) == own and len(found) == len(set(found))
    assert max(taken) == tuple(lost)
    tokens = [row.token for row in spark.read.parquet(str(tmp_path / "rows")).where("event = 'completed'").collect()]
    assert {int(token) // TOKEN_EPOCH for token in tokens} == {epoch for _, epoch in found if epoch}


def test_offsets_of_a_fork_are_pairs_and_old_ones_are_of_epoch_0(
    client: Client, url: str, spark_server: Server
) -> None:
    jobs(client, 5, "both")
    common = client.position()
    stream = reader(url, startingOffsets="latest")
    with restored(spark_server):
        begin = stream.initialOffset()
        assert (begin["seq"], begin["epoch"]) == tuple(common)
        jobs(client, 3, "lost")
        end = stream.latestOffset(begin, ReadAllAvailable())
        assert stream.latestOffset(end, ReadAllAvailable()) == end
    jobs(client, 30, "others")
    with pytest.raises(StreamForked) as told:
        stream.latestOffset(end, ReadAllAvailable())
    assert (told.value.after, told.value.epoch, told.value.common) == (end["seq"], end["epoch"], common.seq)
    with pytest.raises(Forked):  # a batch that was planned before the fork
        [list(stream.read(part)) for part in stream.partitions(begin, end)]
    with pytest.raises(StreamForked):
        stream.latestOffset({"seq": end["seq"]}, ReadAllAvailable())  # of before there were epochs

    keeps = reader(url, onFork="keep")
    later = keeps.latestOffset(end, ReadAllAvailable())
    assert (later["common"], later["epoch"]) == (common.seq, client.position().epoch)
    seqs = [seq for part in keeps.partitions(end, later) for seq in tables(keeps.read(part)).column("seq").to_pylist()]
    assert seqs == list(range(common.seq + 1, client.newest() + 1))
    assert keeps.latestOffset(later, ReadAllAvailable()) == later
    jobs(client, 1, "after")
    assert "common" not in keeps.latestOffset(later, ReadAllAvailable())
    blind = [Range(end["seq"], later["seq"])]  # the twin, which ignores epochs, mixes
    assert tables(keeps.read(blind[0])).column("seq")[0].as_py() == end["seq"] + 1


def test_a_read_of_a_fixed_set_is_of_one_history(client: Client, url: str, spark_server: Server) -> None:
    jobs(client, 5, "both")
    with restored(spark_server):
        jobs(client, 3, "lost")
        at = client.position()
        planned = EventsReader(wanted({"url": url, "rowsPerPartition": "4"}))
        parts = planned.partitions()
    jobs(client, 30, "others")
    assert sum(table.num_rows for part in parts[:1] for table in planned.read(part)) == 4
    with pytest.raises(Forked):
        [list(planned.read(part)) for part in parts]
    with pytest.raises(Forked):
        EventsReader(wanted({"url": url, "after": str(at.seq), "epoch": str(at.epoch)})).partitions()
