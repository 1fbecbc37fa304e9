"""Many namespaces as one stream: each event of each once, also of those that begin later."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.errors import ConnectError
from tests.pipeline.sparking import needed
from tests.servers import Server

pytestmark = pytest.mark.spark
needed()

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows  # noqa: E402

from qmodel.backends.redis.namespaces import namespaces, with_prefix  # noqa: E402
from qmodel.pipeline.spark import namespaces as many  # noqa: E402
from qmodel.pipeline.spark.namespaces import NamespacesStream  # noqa: E402
from qmodel.pipeline.spark.source import EventsSource  # noqa: E402

PATTERN = "shop-*:"


@pytest.fixture
def clients(url: str) -> Iterator[dict[str, Client]]:
    found = {name: Client(with_prefix(url, name)) for name in ("shop-a:", "shop-b:", "shop-c:", "other:")}
    put(found["shop-a:"], 120)
    put(found["shop-b:"], 30)
    put(found["other:"], 10)
    yield found
    for client in found.values():
        client.close()


def put(client: Client, count: int) -> None:
    client.queues["q"].put_many([("Send", number) for number in range(count)])


def reader(url: str, **options: str) -> NamespacesStream:
    source = EventsSource({"url": url, "namespaces": PATTERN, **options})
    found = source.streamReader(source.schema())
    assert isinstance(found, NamespacesStream)
    return found


def seqs(stream: NamespacesStream, start: Any, end: Any) -> dict[str, list[int]]:
    """Read a batch, as tasks do."""
    found = defaultdict(list)
    for part in stream.partitions(start, end):
        for batch in pickle.loads(pickle.dumps(stream)).read(part):
            for name, seq in zip(batch["namespace"].to_pylist(), batch["seq"].to_pylist(), strict=True):
                found[name].append(seq)
    return dict(found)


def test_the_namespaces_of_a_server_are_found_by_a_pattern(
    clients: dict[str, Client], url: str, spark_server: Server
) -> None:
    spark_server.client().xadd("shop-x:events", {"not": "ours"})
    assert namespaces(url, PATTERN) == ["shop-a:", "shop-b:"]
    assert namespaces(url, "*") == ["other:", "shop-a:", "shop-b:"]
    assert namespaces(url, "none*") == []
    with pytest.raises(ConnectError, match="is a cluster"):
        namespaces("redis+cluster://host:7000/0", "*")


def test_a_query_reads_all_from_where_it_was(spark: Any, clients: dict[str, Client], url: str, tmp_path: Path) -> None:
    source = spark.readStream.format("qmodel").option("url", url).option("namespaces", PATTERN)
    for _ in range(2):
        stream = source.option("maxOffsetsPerTrigger", 100).load().select("namespace", "seq")
        written = stream.writeStream.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True)
        query = written.start(str(tmp_path / "rows"), "parquet")
        query.awaitTermination(120)
        rows = spark.read.parquet(str(tmp_path / "rows")).collect()
        known = [name for name in ("shop-a:", "shop-b:", "shop-c:") if clients[name].newest()]
        expected = [(name, seq) for name in known for seq in range(1, clients[name].newest() + 1)]
        assert sorted((row.namespace, row.seq) for row in rows) == expected
        assert all(one.numInputRows <= 100 for one in query.recentProgress)
        put(clients["shop-b:"], 20)
        put(clients["shop-c:"], 5)


def test_a_namespace_that_begins_later_joins(
    clients: dict[str, Client], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "LOOK", -1)
    stream = reader(url, startingOffsets="latest")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    put(clients["shop-c:"], 5)
    end = stream.latestOffset(start, ReadAllAvailable())
    assert seqs(reader(url), start, json.loads(json.dumps(end))) == {
        "shop-c:": list(range(1, clients["shop-c:"].newest() + 1))
    }
    put(clients["shop-c:"], 1)
    later = stream.latestOffset(end, ReadAllAvailable())
    assert seqs(stream, end, later) == {"shop-c:": [clients["shop-c:"].newest()]}
    assert stream.reportLatestOffset()["namespaces"].keys() == {"shop-a:", "shop-b:", "shop-c:"}
    assert stream.latestOffset(later, ReadAllAvailable()) == later
    assert seqs(stream, later, later) == {}
    stream.stop()


def test_what_one_namespace_does_not_need_of_a_batch_is_for_the_others(clients: dict[str, Client], url: str) -> None:
    stream = reader(url)
    at, sizes = stream.initialOffset(), list[dict[str, int]]()
    while (end := stream.latestOffset(at, ReadMaxRows(100))) != at:
        sizes.append({name: len(found) for name, found in seqs(stream, at, end).items()})
        at = end
    a, b = (clients[name].newest() for name in ("shop-a:", "shop-b:"))
    assert sizes == [{"shop-a:": 100 - b, "shop-b:": b}, {"shop-a:": a + b - 100}]
    stream.stop()


def test_the_journal_of_many_namespaces_is_a_stream(clients: dict[str, Client], url: str) -> None:
    for name in ("shop-a:", "shop-b:"):
        clients[name].execute(ops.ConfigSet("journal", 1))
    stream = reader(url, table="journal", startingOffsets="latest")
    start = stream.initialOffset()
    put(clients["shop-b:"], 2)
    (part,) = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    (batch,) = stream.read(part)
    assert (batch["namespace"].to_pylist(), batch["operation"].to_pylist()) == (["shop-b:"], ["put_many"])


def test_only_the_namespace_may_be_asked_for(clients: dict[str, Client], url: str) -> None:
    source = EventsSource({"url": url, "namespaces": PATTERN, "startingOffsets": "latest"})
    stream: Any = source.streamReader(source.schema()[:1])
    start = stream.initialOffset()
    put(clients["shop-a:"], 3)
    (part,) = stream.partitions(start, stream.latestOffset(start, ReadAllAvailable()))
    assert [name for batch in stream.read(part) for name in batch["namespace"].to_pylist()] == ["shop-a:"] * 3


def test_numbers_of_one_namespace_are_not_those_of_many(url: str) -> None:
    with pytest.raises(ValueError, match="earliest or latest for many namespaces"):
        reader(url, startingOffsets="7")
