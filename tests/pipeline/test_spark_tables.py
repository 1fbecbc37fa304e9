"""Spark reads tables of jobs, failures, statistics, queues and workers; conditions narrow what is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from qmodel import Client, connect
from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThanOrEqual  # noqa: E402
from pyspark.sql.types import LongType, StructType  # noqa: E402

from qmodel.pipeline.spark.source import EventsSource, PushedEventsReader  # noqa: E402
from qmodel.pipeline.spark.tables import PushedTableReader, TableReader, table_options  # noqa: E402
from qmodel.pipeline.spark.wanted import wanted  # noqa: E402
from qmodel.pipeline.tables.live import Narrow  # noqa: E402
from tests.pipeline.test_listing import filled  # noqa: E402


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        filled(client)
        yield client


def test_tables_are_read_and_conditions_narrow_them_where_that_is_wanted(spark: Any, client: Client, url: str) -> None:
    source = spark.read.format("qmodel").option("url", url)
    jobs = source.option("table", "jobs").option("rowsPerPartition", 1).load()
    assert {tuple(row) for row in jobs.groupBy("state").count().collect()} == {
        (state, 2) for state in ("complete", "depends", "failed", "running", "scheduled", "waiting")
    }
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = source.option("pushdown", "true").load().where("state = 'failed' and queue = 'a'")
        assert [row.jid for row in pushed.select("jid").collect()] == ["a1"]
        assert pushed.rdd.getNumPartitions() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_some_columns_of_a_table_are_read(spark: Any, client: Client, url: str) -> None:
    source = spark.read.format("qmodel").option("url", url)
    jobs = source.option("table", "jobs").schema("options map<string,string>, state string, jid string").load()
    assert jobs.where("jid = 'a1'").collect() == [({}, "failed", "a1")]
    assert source.option("table", "gaps").schema("last bigint").load().collect() == []
    with pytest.raises(ValueError, match=r"Failures have no column 'seq': they have group, jid"):
        EventsSource({"url": url, "table": "failures"}).reader(StructType().add("seq", LongType()))


def test_statistics_of_more_days_than_are_kept_are_those_of_all(client: Client, url: str) -> None:
    def rows(**options: str) -> list[Any]:
        reader = TableReader(table_options("stats", {"url": url, **options}))
        return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]

    assert rows(days="99999") == rows() != []


def test_conditions_become_arguments_of_a_search(client: Client, url: str) -> None:
    reader = PushedTableReader(table_options("jobs", {"url": url, "table": "jobs", "klass": "Fetch"}))
    filters = [
        EqualTo(("state",), "complete"),
        In(("queue",), ("b",)),
        EqualTo(("klass",), "Other"),
        EqualTo(("priority",), 0),
    ]
    assert list(reader.pushFilters(filters)) == filters
    assert reader.what.narrow == Narrow(queue="b", state="complete", klass="Fetch")
    assert [row for part in reader.partitions() for batch in reader.read(part) for row in batch["jid"].to_pylist()] == [
        "b0"
    ]
    nothing = PushedTableReader(table_options("jobs", {"url": url}))
    list(nothing.pushFilters([EqualTo(("state",), "asleep"), In(("queue",), ("a", "b"))]))
    assert nothing.what.narrow == Narrow()


def test_conditions_on_sequences_become_ranges(client: Client, url: str) -> None:
    newest = client.newest()

    def ranges(*filters: Any, **options: str) -> list[tuple[int, int]]:
        reader = PushedEventsReader(wanted({"url": url, **options}))
        reader.pushFilters(list(filters))
        return [(one.after, one.last) for one in reader.partitions()]

    assert ranges(GreaterThan(("seq",), 3), LessThanOrEqual(("seq",), 8)) == [(3, 8)]
    assert ranges(EqualTo(("seq",), 5)) == [(4, 5)]
    assert ranges(GreaterThan(("seq",), 10**9)) == [(newest, newest)]
    assert ranges(GreaterThan(("at",), 5), after="2") == [(2, newest)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"table": "job"}, "no table 'job'. The tables are events, gaps, jobs, failures"),
        ({"table": "jobs", "state": "asleep"}, "state is one of"),
        ({"table": "jobs", "days": "3"}, "no option 'days'"),
        ({"table": "stats", "days": "0"}, "days must be a whole number from 1"),
        ({"table": "workers", "pushdown": "yes"}, "pushdown must be true or false"),
    ],
)
def test_tables_and_options_that_there_are_not_are_refused(given: dict[str, str], said: str) -> None:
    source = EventsSource({"url": "redis://h", **given})
    with pytest.raises(ValueError, match=said):
        source.reader(source.schema())
