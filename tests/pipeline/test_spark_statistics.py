"""Statistics on Spark equal those of DuckDB to the last bit, and each continues where the other ended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.histories import counted, histories
from tests.pipeline.kept import keep
from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()
pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `duckdb`")
pq = pytest.importorskip("pyarrow.parquet")

from qmodel.model.state.stats import bin_of  # noqa: E402
from qmodel.pipeline.archive.commit import writing  # noqa: E402
from qmodel.pipeline.archive.layout import Archive, Commit  # noqa: E402
from qmodel.pipeline.events.gaps import Gap  # noqa: E402
from qmodel.pipeline.spark.statistics import PARTITIONS, Spark  # noqa: E402
from qmodel.pipeline.statistics.cells import SHIFT, cell_sql, fine_of  # noqa: E402
from qmodel.pipeline.statistics.count import collect, count  # noqa: E402
from qmodel.pipeline.statistics.figures import Name  # noqa: E402
from qmodel.pipeline.statistics.local import DuckDB  # noqa: E402
from qmodel.pipeline.statistics.ordered import fold_of  # noqa: E402
from qmodel.pipeline.statistics.runs import StatisticsError  # noqa: E402
from qmodel.pipeline.statistics.tables import publish  # noqa: E402


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_spark_and_duckdb_count_the_same_also_in_turn(spark: Any, tmp_path: Path, scheme: str) -> None:
    root, out = tmp_path / "archive", f"{scheme}{tmp_path}/out"
    some = {f"{{n'{number}}}:%41\\": one.events for number, one in enumerate(histories()[::8])}
    archive, there = Archive(str(root)), Spark(spark)
    with DuckDB(memory="500MB") as here:
        for namespace, events in some.items():
            keep(root, namespace, events[:50])
        count(here, archive, out)
        for namespace, events in some.items():
            if len(events) > 50:
                keep(root, namespace, events[50:])
        assert count(there, archive, out)
        found = collect(there)
        count(here, archive, None)
        assert found == collect(here)
        publish(there, out)
        rows = pq.read_table(tmp_path / "out" / "statistics.parquet").sort_by(
            [(name, "ascending") for name in Name._fields]
        )
        assert rows.to_pylist() == [one.shown(name) for name, one in found.items()]
        assert count(here, archive, out) == {}
        assert found == collect(here)


def test_a_cell_is_the_same_on_spark(spark: Any) -> None:
    edges = sorted({2**power + near for power in range(43) for near in (-1, 0, 1)} - {0})
    spark.createDataFrame([(edge,) for edge in edges], "ms bigint").createOrReplaceTempView("edges")
    found = Spark(spark).rows(f"select ms, {cell_sql('ms')} from edges")
    assert dict(found) == {edge: fine_of(edge) * SHIFT + bin_of(edge) for edge in edges}


def test_on_spark_durations_are_added_in_the_order_of_their_events(spark: Any, tmp_path: Path) -> None:
    watched = max(histories(), key=lambda one: len(one.events))
    keep(tmp_path, "a:", watched.events)
    fold = fold_of(Spark(spark), Archive(str(tmp_path)), "a:")
    for (day, queue), there in watched.store.days.items():
        assert counted(there) == counted(fold.tally("queue", queue, day))


def test_on_spark_the_name_of_a_folder_is_no_pattern(spark: Any, tmp_path: Path) -> None:
    events, counted_at = histories()[0].events, dict[str, Any]()
    for name in ("a", "a{b,c}[1]? *", "ab"):
        keep(tmp_path / name, "n:", events[: 30 + len(name)])
        root, out = Archive(str(tmp_path / name)), str(tmp_path / name / "out")
        count(Spark(spark), root, out)
        counted_at[name] = collect(Spark(spark))
        with DuckDB() as engine:
            count(engine, root, None)
            assert counted_at[name] == collect(engine)
    shutil.rmtree(tmp_path / "ab" / "out" / "runs" / "000001" / "cells")
    with pytest.raises(StatisticsError, match=r"000001/cells .*is gone\. Use another folder"):
        count(Spark(spark), root, out)


def test_on_spark_events_that_are_all_lost_count_nothing(spark: Any, tmp_path: Path) -> None:
    keep(tmp_path / "other", "a:", histories()[0].events)
    count(Spark(spark), Archive(str(tmp_path / "other")), None)
    with writing(Archive(str(tmp_path / "archive")), "a:") as writer:
        writer.commit(writer.begin(), Commit(holes=(Gap(1, 10),)))
    assert count(Spark(spark), Archive(str(tmp_path / "archive")), str(tmp_path / "out"))["a:"][:2] == (0, 10)
    assert collect(Spark(spark)) == {}


def test_partitions_follow_from_the_events_unless_somebody_has_said_them(spark: Any, tmp_path: Path) -> None:
    keep(tmp_path, "a:", histories()[0].events)
    archive, own = Archive(str(tmp_path)), spark.newSession()
    Spark(own).events("archived", archive, archive.files("a:"))
    assert own.conf.get(PARTITIONS) == "2"  # as the tests' session has it
    free = Spark(own)
    free.told = False
    free.events("archived", archive, [file._replace(rows=10**7) for file in archive.files("a:")])
    assert own.conf.get(PARTITIONS) == "40"
