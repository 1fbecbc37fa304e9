"""Spark reads the journal as a table: each entry once, or an error names the missing ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

from pyspark.sql.datasource import EqualTo, GreaterThan, LessThan  # noqa: E402

from qmodel.client.sync import Client  # noqa: E402
from qmodel.contract import operations as ops  # noqa: E402
from qmodel.errors import LockLost  # noqa: E402
from qmodel.pipeline.journal import tables  # noqa: E402
from qmodel.pipeline.journal.pages import EntriesGone, JournalWentBack, newest  # noqa: E402
from qmodel.pipeline.spark.recorded import JournalReader, PushedJournalReader  # noqa: E402
from qmodel.pipeline.spark.source import EventsSource  # noqa: E402
from qmodel.pipeline.spark.wanted import wanted  # noqa: E402
from tests.pipeline.test_auditing import work  # noqa: E402


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 100)
        with pytest.raises(LockLost):
            client.execute(ops.Complete("j1", 1))
        yield client


def numbers(reader: JournalReader) -> list[int]:
    parts = reader.partitions()
    return [number for part in parts for batch in reader.read(part) for number in batch["number"].to_pylist()]


def test_the_journal_is_a_table(spark: Any, client: Client, url: str) -> None:
    source = spark.read.format("qmodel").option("url", url).option("table", "journal").option("rowsPerPartition", 50)
    last = newest(client)
    whole = source.load()
    assert whole.rdd.getNumPartitions() == -(-last // 50)
    assert [tuple(row) for row in whole.where("number = 2").select("seq", "call", "outcome").collect()] == [
        (one.seq, one.call, one.outcome) for one in client.journal() if one.number == 2
    ]
    refused = whole.where("outcome like '{\"refused\"%'")
    code = refused.selectExpr("operation", "get_json_object(outcome, '$.refused[0]') as code")
    assert [tuple(row) for row in code.groupBy("operation", "code").count().collect()] == [("complete", "LOCK_LOST", 1)]
    rows = source.schema("number bigint, operation string").load().collect()
    found = [(one.number, one.call.split('"')[3]) for one in client.journal()]
    assert sorted((row.number, row.operation) for row in rows) == found


def test_options_and_conditions_narrow_it(client: Client, url: str) -> None:
    last = newest(client)
    assert numbers(JournalReader(wanted({"url": url, "after": "5", "last": "9"}))) == [6, 7, 8, 9]
    assert numbers(JournalReader(wanted({"url": url, "after": str(last)}))) == []
    pushed = PushedJournalReader(wanted({"url": url, "minPartitions": "2"}))
    filters = [GreaterThan(("number",), 3), LessThan(("number",), 8), EqualTo(("seq",), 1)]
    assert list(pushed.pushFilters(filters)) == filters
    assert [(one.after, one.last) for one in pushed.partitions()] == [(3, 5), (5, 7)]


def test_entries_that_are_gone_are_told_or_passed_over(client: Client, url: str) -> None:
    last, early = newest(client), JournalReader(wanted({"url": url}))
    parts = early.partitions()
    client.execute(ops.ConfigSet("max-journal", 10))
    with pytest.raises(EntriesGone, match="entries 1 to"):
        numbers(early)
    assert numbers(JournalReader(wanted({"url": url, "failOnDataLoss": "false"})))[-10:] == [*range(last - 8, last + 2)]
    assert numbers(JournalReader(wanted({"url": url, "last": "5", "failOnDataLoss": "false"}))) == []
    with pytest.raises(JournalWentBack):
        numbers(JournalReader(wanted({"url": url, "after": str(last + 2)})))
    client.execute(ops.ConfigSet("max-journal", 0))
    with pytest.raises(JournalWentBack):
        list(early.read(parts[0]))


@pytest.mark.parametrize(
    ("given", "columns", "said"),
    [
        ({"pushdown": "perhaps"}, "number bigint", "pushdown must be true or false"),
        ({"days": "3"}, "number bigint", "no option 'days'"),
        ({"after": "-1"}, "number bigint", "after must be a whole number"),
        ({}, "jid string", "Entries have no column 'jid': they have number, seq"),
        ({}, "number string", "'number' of entries is int64"),
    ],
)
def test_options_and_columns_that_there_are_not_are_refused(given: dict[str, str], columns: str, said: str) -> None:
    from pyspark.sql.types import LongType, StringType, StructType

    name, kind = columns.split()
    asked = StructType().add(name, LongType() if kind == "bigint" else StringType())
    source = EventsSource({"url": "redis://h", "table": "journal", **given})
    assert source.schema().names == tables.SCHEMA.names
    with pytest.raises(ValueError, match=said):
        source.reader(asked)
