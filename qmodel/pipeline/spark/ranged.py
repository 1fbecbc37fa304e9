"""Read numbered rows for Spark: they have no gaps, so they are cut into ranges, and each task reads one.

The driver fixes the newest row, so a read is of a fixed set of rows. When Spark computes it again, it gives the same
rows or fails.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from pyspark.sql.datasource import DataSourceReader, Filter

from qmodel.client.sync import Client
from qmodel.errors import Forked, QmodelError
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.histories import Position, Table, check, epochs_at, is_gap
from qmodel.pipeline.spark.conditions import condition
from qmodel.pipeline.spark.ranges import Range, cut, narrowed, pinned
from qmodel.pipeline.spark.wanted import Wanted


class RangeReader(DataSourceReader):
    """Cuts the rows to read into ranges."""

    number: ClassVar[str]
    """The column with the number."""

    columns: ClassVar[pa.Schema]
    """All columns; a read may ask for some of them."""

    def __init__(self, what: Wanted, schema: pa.Schema | None = None) -> None:
        self.what = what
        self.schema = self.columns if schema is None else schema
        self.floor = 0  # the query wants later numbers only

    table: ClassVar[Table]
    """The read of the rows."""

    @abstractmethod
    def newest(self, client: Client) -> Position:
        """Find the newest row."""

    @abstractmethod
    def went_back(self, newest: int) -> QmodelError:
        """Make the error for a newest row that is older than `after`."""

    def partitions(self) -> Sequence[Range]:
        """Give one range for each task. Raises the error of `went_back`, and Forked."""
        what = self.what
        with Client(what.url) as client:
            newest = self.newest(client)
            try:
                check(client, self.table, Position(what.after, what.epoch))
            except Forked as fork:
                if not is_gap(client, self.table, fork):
                    raise
            if newest.number < what.after:
                raise self.went_back(newest.number)
            last = min(what.last, newest.number)
            after = min(max(what.after, self.floor), last)
            ranges = cut(after, last, what.rows, what.min_partitions)
            first, end = epochs_at(client, self.table, [after, last])
            return pinned(client, self.table, ranges, first, newest.epoch if last == newest.number else end)


class Pushed(RangeReader):
    """Takes conditions of a query: reads only the numbers that they allow, and drops rows that do not fit."""

    conditions: Sequence[Filter] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrow the range by the conditions on the number; keep the others. Spark checks all conditions again."""
        self.conditions = filters
        self.floor, last = narrowed(filters, self.number, self.floor, self.what.last)
        self.what = self.what._replace(last=last)
        return filters

    def fitting(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Drop rows before they are sent to Spark."""
        where = condition(self.conditions, self.schema)
        for batch in batches:
            yield batch if where is None else batch.filter(where)
