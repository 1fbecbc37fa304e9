"""Readers leave out what a query does not ask for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from qmodel.client.sync import Client
from tests.pipeline.archives import as_version_2, put
from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

import pyarrow.parquet as pq  # noqa: E402
from pyspark.sql.datasource import (  # noqa: E402
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from qmodel.pipeline.archive.compact import compact  # noqa: E402
from qmodel.pipeline.archive.layout import Archive, ArchiveError  # noqa: E402
from qmodel.pipeline.archive.write import archive  # noqa: E402
from qmodel.pipeline.arrow import pa  # noqa: E402
from qmodel.pipeline.events.schema import SCHEMA  # noqa: E402
from qmodel.pipeline.spark.archived import ArchiveReader, PushedArchiveReader  # noqa: E402
from qmodel.pipeline.spark.conditions import bounds, condition  # noqa: E402
from qmodel.pipeline.spark.source import EventsSource, PushedEventsReader  # noqa: E402
from qmodel.pipeline.spark.wanted import wanted  # noqa: E402

DAY = datetime(2024, 10, 4, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)


@pytest.fixture
def root(url: str, tmp_path: Path) -> Iterator[str]:
    """Archive two days of events, in several files."""
    with Client(url) as client:
        for day in (20_000, 20_001):
            put(client, 60, day)
            list(archive(url, str(tmp_path / "archive"), rows=50, together=1))
    yield str(tmp_path / "archive")


def reader(root: str, *filters: Filter, **options: str) -> ArchiveReader:
    source = EventsSource({"archive": root, **({"pushdown": "true"} if filters else {}), **options})
    found = source.reader(source.schema())
    assert isinstance(found, ArchiveReader)
    if filters:
        assert isinstance(found, PushedArchiveReader) and list(found.pushFilters(list(filters))) == list(filters)
    return found


def rows(found: ArchiveReader) -> list[dict[str, Any]]:
    return [row for part in found.partitions() for batch in found.read(part) for row in batch.to_pylist()]


def files(found: ArchiveReader) -> list[str]:
    return [file.day for part in found.partitions() for file in part.files]


def test_conditions_keep_every_row_that_fits() -> None:
    moments = [DAY + timedelta(milliseconds=ms) for ms in (0, 1, 2)]
    table = pa.table(
        {"seq": [1, 2, 3], "queue": ["a", None, "ab"], "happened_at": pa.array(moments, pa.timestamp("ms", "UTC"))}
    )

    def fits(*filters: Filter) -> list[int]:
        where = condition(filters, table.schema)
        return (table if where is None else table.filter(where)).column("seq").to_pylist()

    part = timedelta(microseconds=500)
    elsewhere = (DAY + timedelta(milliseconds=1)).astimezone(timezone(timedelta(hours=9)))
    assert fits(EqualTo(("queue",), "a")) == fits(EqualNullSafe(("queue",), "a")) == [1]
    assert fits(EqualNullSafe(("queue",), None)) == fits(IsNull(("queue",))) == [1, 2, 3]
    assert fits(EqualTo(("other",), 1), EqualTo(("queue", "x"), 1)) == [1, 2, 3]
    assert fits(In(("queue",), ("ab", None, "z"))) == [3]
    assert fits(StringStartsWith(("queue",), "a"), IsNotNull(("queue",))) == [1, 3]
    assert fits(GreaterThan(("seq",), 1), LessThanOrEqual(("seq",), 2)) == [2]
    assert fits(GreaterThanOrEqual(("happened_at",), elsewhere)) == [2, 3]
    assert fits(LessThan(("happened_at",), DAY + part)) == [1]
    assert fits(LessThanOrEqual(("happened_at",), moments[1])) == [1, 2]
    assert fits(LessThan(("happened_at",), moments[1])) == [1]
    assert fits(GreaterThan(("happened_at",), DAY + part)) == [2, 3]
    assert fits(GreaterThanOrEqual(("happened_at",), DAY + part)) == [2, 3]


def test_bounds_of_a_column() -> None:
    given = [In(("seq",), (7, 3)), GreaterThan(("seq",), 2), LessThan(("seq",), 9), EqualTo(("epoch",), 1)]
    assert bounds(given, "seq") == (3, 7)
    assert bounds(given, "queue") == (None, None)
    assert bounds([In(("seq",), (7, None, 3)), In(("epoch",), (None,))], "seq") == (3, 7)
    assert bounds([In(("epoch",), (None,))], "epoch") == (None, None)


@pytest.mark.parametrize(
    ("filters", "options", "days"),
    [
        ((), {}, 2),
        ((GreaterThanOrEqual(("happened_at",), NEXT),), {}, 1),
        ((LessThan(("happened_at",), DAY + timedelta(milliseconds=20)),), {}, 1),
        ((EqualTo(("queue",), "q1"), EqualTo(("event",), "put")), {}, 2),
        ((In(("klass",), ("Send", "Other")),), {}, 2),
        ((EqualTo(("namespace",), "none:"),), {}, 0),
        ((StringStartsWith(("namespace",), "spa"), LessThanOrEqual(("seq",), 30)), {}, 1),
        ((), {"since": NEXT.isoformat()}, 1),
        ((), {"until": "2024-10-05"}, 1),
        ((), {"namespace": "spark:"}, 2),
    ],
)
def test_only_what_fits_is_read(root: str, filters: tuple[Filter, ...], options: dict[str, str], days: int) -> None:
    whole, found = rows(reader(root)), reader(root, *filters, **options)
    assert len(set(files(found))) == days
    where = condition(found.conditions, found.schema)
    table = pa.Table.from_pylist(whole, schema=found.schema)
    expected = (table if where is None else table.filter(where)).to_pylist()
    assert sorted(row["seq"] for row in rows(found)) == sorted(row["seq"] for row in expected)
    assert all(row["namespace"] == "spark:" for row in whole)


def test_an_archive_is_read_beside_a_compactor_and_from_earlier_versions(root: str) -> None:
    whole = sorted(row["seq"] for row in rows(reader(root)))
    before = reader(root, rowsPerPartition="60")
    parts = before.partitions()
    assert len(parts) > 1
    list(compact(root, days=("2024-10-04", "2024-10-05")))
    assert sorted(row for part in parts for batch in before.read(part) for row in batch["seq"].to_pylist()) == whole
    list(compact(root, grace=0))
    with pytest.raises(ArchiveError, match="the grace time is over"):
        list(before.read(parts[0]))
    for file in Archive(root).files():
        old = as_version_2(pq.ParquetFile(file.path).read())
        pq.write_table(old, file.path.replace("-v3-", "-v2-"))
        Path(file.path).unlink()
    queues = [row["queue"] for row in rows(reader(root, EqualTo(("queue",), "q1")))]
    assert len(queues) == 40 and set(queues) == {"q1"}
    assert sorted(row["seq"] for row in rows(reader(root))) == whole


def test_an_archive_or_a_namespace_that_is_not_there_is_refused(root: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"has no namespace 'none:'; it has \['spark:'\]"):
        reader(root, namespace="none:").partitions()
    with pytest.raises(ArchiveError, match="There is no archive in"):
        reader(f"{tmp_path}/none").partitions()


def test_a_task_works_elsewhere_and_lists_nothing(root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    found = reader("archive")
    parts = found.partitions()
    monkeypatch.chdir("/")
    monkeypatch.setattr(Archive, "_listed", pytest.fail)
    assert sum(batch.num_rows for part in parts for batch in found.read(part)) == sum(
        file.rows for file in parts[0].files
    )


def test_a_damaged_file_is_named(root: str) -> None:
    found = reader(root)
    (part,) = found.partitions()
    Path(part.files[0].path).write_bytes(b"PAR1")
    with pytest.raises(ArchiveError, match=r"day=2024-10-04/.*is damaged: .*qmodel archive verify"):
        list(found.read(part))


def test_spark_asks_an_archive_and_a_server_for_what_it_needs(spark: Any, root: str, url: str) -> None:
    asked = "event = 'put' and queue in ('q0', 'q2') and happened_at >= timestamp'2024-10-05 00:00:00'"
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for option, value in (("archive", root), ("url", url)):
            source = spark.read.format("qmodel").option("pushdown", "true").option(option, value)
            assert source.load().where(asked).count() == 40
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    plain = spark.read.format("qmodel").option("archive", root).load()
    assert plain.where(asked).count() == 40
    assert plain.select("namespace").distinct().collect()[0].namespace == "spark:"


def test_rows_of_a_server_that_do_not_fit_are_dropped_by_the_task(url: str, root: str) -> None:
    found = PushedEventsReader(wanted({"url": url}))
    list(found.pushFilters([EqualTo(("queue",), "q1"), EqualTo(("event",), "put")]))
    batches = [batch for part in found.partitions() for batch in found.read(part)]
    assert sum(batch.num_rows for batch in batches) == 40
    assert batches[0].schema.names == SCHEMA.names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"since": "yesterday"}, "since must be a moment"),
        ({"table": "jobs"}, "an archive has events and journal"),
        ({"after": "3"}, "no option 'after'"),
    ],
)
def test_options_that_an_archive_does_not_have_are_refused(root: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        reader(root, **options)
