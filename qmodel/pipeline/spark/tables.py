"""Read jobs, failures, statistics, queues and workers into Spark: `option("table", "jobs")`.

`qmodel.pipeline.tables.live` says what these tables promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql.datasource import DataSourceReader, EqualNullSafe, EqualTo, Filter, In, InputPartition

from qmodel.client.sync import Client
from qmodel.contract.lifecycle import STATES
from qmodel.contract.operations import CATALOGUE
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.tables.live import TABLES, Narrow, Part, read

PUSHED = {"jobs": ("queue", "state", "klass"), "failures": ("group", "queue", "klass"), "stats": ("queue",)}
"""The columns with conditions `=` that narrow the read: those that mean the same as an argument of a search."""

ACCEPTS = {one.name: one.kind for one in CATALOGUE["search"].arguments}


class Wanted(NamedTuple):
    """The options of a read of a table."""

    url: str
    table: str
    narrow: Narrow
    rows: int
    days: int


def table_options(name: str, options: Mapping[str, str]) -> Wanted:
    """Read the options of a table. Raises ValueError."""
    narrows = TABLES[name].narrows
    given = Given(options, ("url", "table", "pushdown", "rowsPerPartition", *narrows, *_DAYS.get(name, ())))
    given.text("table")
    given.flag("pushdown", False)
    narrow = Narrow(**{one: given.text(one) or None for one in narrows})
    rows = given.whole("rowsPerPartition", 20_000, low=1)
    days = given.whole("days", 7, low=1) if name in _DAYS else 1
    url = given.url()
    given.end()
    for one, said in narrow._asdict().items():
        if said is not None and not ACCEPTS[one].accepts(said):
            raise ValueError(f"{one} is {ACCEPTS[one].expected}, and not {said!r}.")
    return Wanted(url, name, narrow, rows, days)


_DAYS = {"stats": ("days",)}


class TablePart(InputPartition):
    """Some queues, states or groups."""

    def __init__(self, part: Part | None) -> None:
        self.part = part


class TableReader(DataSourceReader):
    """Cuts a table into parts, and reads one."""

    def __init__(self, what: Wanted, schema: pa.Schema | None = None) -> None:
        self.what = what
        self.names = (TABLES[what.table].schema if schema is None else schema).names

    def partitions(self) -> Sequence[TablePart]:
        """Give one part for each task."""
        what = self.what
        with Client(what.url) as client:
            parts = TABLES[what.table].parts(client, what.narrow, what.rows)
        return [TablePart(part) for part in parts] or [TablePart(None)]

    def read(self, partition: TablePart) -> Iterator[pa.RecordBatch]:
        """Yield the pages of a part."""
        if partition.part is None:
            return
        with Client(self.what.url) as client:
            for batch in read(client, self.what.table, self.what.narrow, partition.part, self.what.days):
                yield batch.select(self.names)


class PushedTableReader(TableReader):
    """Reads only what the conditions of a query allow."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrow the read; Spark checks all conditions again, because jobs change meanwhile."""
        narrow = self.what.narrow
        for one in filters:
            for column in PUSHED.get(self.what.table, ()):
                said = equal_to(one, column)
                if said is not None and getattr(narrow, column) is None and _may_be(column, said):
                    narrow = narrow._replace(**{column: said})
        self.what = self.what._replace(narrow=narrow)
        return filters


def equal_to(one: Filter, column: str) -> str | None:
    """Give the one value that a condition allows for a column, or None."""
    if isinstance(one, EqualTo | EqualNullSafe) and one.attribute == (column,):
        return str(one.value) if one.value is not None else None
    if isinstance(one, In) and one.attribute == (column,) and len(one.value) == 1:
        return str(one.value[0])
    return None


def _may_be(column: str, said: str) -> bool:
    return said in STATES if column == "state" else ACCEPTS[column].accepts(said)
