"""The queries of the page run, and give what the page says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `duckdb`")

from qmodel.contract import operations as ops
from qmodel.pipeline.archive.layout import Archive
from qmodel.pipeline.silver.build import update
from qmodel.pipeline.statistics.local import DuckDB
from tests.pipeline.histories import Watched
from tests.pipeline.kept import keep

PAGE = Path(__file__).parents[2] / "docs/pipeline/queries.md"
HOUR = 3_600_000


def queries() -> dict[int, str]:
    """The queries of the page by their numbers."""
    found = re.findall(r"^## (\d+)\. .*?```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return {int(number): text for number, text in found}


def worked() -> Watched:
    """Two jobs of a queue at the same time; one fails and is tried again; a third one waits."""
    watched = Watched()
    watched.step(0, ops.Put("mail", "a", "Send", "", tags=("eu", "big")))
    watched.step(0, ops.Put("mail", "b", "Scan", "", tags=("eu",)))
    watched.step(1000, ops.Pop("mail", "w1"))
    a = watched.store.seq
    watched.step(3000, ops.Pop("mail", "w2"))
    b = watched.store.seq
    watched.step(4000, ops.Complete("a", a))
    watched.step(5000, ops.Fail("b", b, "no-disk", "It is full."))
    watched.step(HOUR, ops.RetryMany(group="no-disk", to="mail"))
    watched.step(HOUR + 500, ops.Pop("mail", "w2"))
    watched.step(HOUR + 900, ops.Complete("b", watched.store.seq))
    watched.step(HOUR + 1000, ops.Put("mail", "c", "Send", ""))
    return watched


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDB]:
    folder = tmp_path_factory.mktemp("queries")
    keep(folder / "archive", "a:", worked().events)
    with DuckDB(memory="500MB") as engine:
        update(engine, Archive(str(folder / "archive")), str(folder / "silver"))
        yield engine


EXPECTED: dict[int, list[tuple[Any, ...]]] = {
    1: [
        ("1970-01-01", "mail", "Scan", 2, 1750, 2875, 1200, 1920),
        ("1970-01-01", "mail", "Send", 1, 1000, 1000, 3000, 3000),
    ],
    2: [("Scan", 1, 3600900, 3600900, 3600900), ("Send", 1, 4000, 4000, 4000)],
    3: [("Scan", "no-disk", 1, 1, "1970-01-01 00:00:05")],
    4: [("Scan", 2, 1, 0.5), ("Send", 1, 0, 0)],
    5: [("b", "Scan", "mail", 2, "completed", "1970-01-01 00:00:00", "1970-01-01 01:00:00.900000")],
    6: [("mail", "Send", 1, "1970-01-01 01:00:01", 1)],
    7: [("1970-01-01 00:00:00", "mail", 1), ("1970-01-01 01:00:00", "mail", 1)],
    8: [("mail", 2)],
    9: [("w2", 2, pytest.approx(2400 / HOUR), 1, 0), ("w1", 1, pytest.approx(3000 / HOUR), 0, 0)],
    10: [("eu", 3, 1500, 3000), ("big", 1, 1000, 1000)],
}  # fmt: skip


def test_there_are_ten_queries() -> None:
    assert queries().keys() == EXPECTED.keys()


@pytest.mark.parametrize("number", EXPECTED)
def test_a_query_of_the_page_gives_what_it_asks_for(engine: DuckDB, number: int) -> None:
    def plain(value: Any) -> Any:
        return (
            value
            if isinstance(value, str | int | float)
            else float(value)
            if hasattr(value, "as_tuple")
            else str(value)
        )

    assert [tuple(map(plain, row)) for row in engine.rows(queries()[number])] == EXPECTED[number]
