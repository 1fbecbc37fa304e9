"""Spark makes the same tables of jobs and attempts as DuckDB, and each continues where the other ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.histories import histories
from tests.pipeline.kept import keep
from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()
pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `duckdb`")

from qmodel.pipeline.archive.layout import Archive  # noqa: E402
from qmodel.pipeline.silver.build import update  # noqa: E402
from qmodel.pipeline.spark.statistics import Spark  # noqa: E402
from qmodel.pipeline.statistics.local import DuckDB  # noqa: E402
from tests.pipeline.test_queries import queries  # noqa: E402
from tests.pipeline.test_silver import lives, rows, tables  # noqa: E402


def test_spark_and_duckdb_make_the_same_tables_in_turn(spark: Any, tmp_path: Path) -> None:
    root, out, there = tmp_path / "archive", str(tmp_path / "silver"), Spark(spark)
    some = {f"n{number}:": one.events for number, one in enumerate(histories()[::12]) if len(one.events) > 60}
    with DuckDB(memory="500MB") as here:
        for namespace, events in some.items():
            keep(root, namespace, events[:50])
        update(here, Archive(str(root)), out)
        for namespace, events in some.items():
            keep(root, namespace, events[50:])
        assert update(there, Archive(str(root)), out)
        assert update(here, Archive(str(root)), out) == {}
        for namespace, events in some.items():
            assert tables(here, namespace) == rows(lives(events))
        for name in ("jobs", "attempts"):
            assert there.rows(f"select count(*) from {name}") == here.rows(f"select count(*) from {name}")
        for text in queries().values():
            assert len(there.rows(text.replace("unnest", "explode"))) == len(here.rows(text))


def test_moments_are_those_of_the_events_in_every_time_zone(spark: Any, tmp_path: Path) -> None:
    root, out, there = tmp_path / "archive", str(tmp_path / "silver"), Spark(spark)
    events = next(one.events for one in histories() if len(one.events) > 60)
    moments = "select jid, life, {0}(put_at), {0}(started_at), {0}(ended_at) from attempts order by all"
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with DuckDB(memory="500MB") as here:
            for until, engine in ((30, here), (50, there), (60, here)):
                keep(root, "n:", [one for one in events[:until] if one.seq > Archive(str(root)).last("n:")])
                update(engine, Archive(str(root)), out)
                update(there, Archive(str(root)), out)
                update(here, Archive(str(root)), out)
                assert there.rows(moments.format("unix_millis")) == here.rows(moments.format("epoch_ms"))
            told = "select count(*) from attempts join events using (jid) where event = 'popped' and "
            assert here.rows(told + "happened_at = started_at") == here.rows("select count(*) from attempts")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
