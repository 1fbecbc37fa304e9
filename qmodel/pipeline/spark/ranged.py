"""Reading what happened, for Spark: what is numbered without gaps is cut into ranges, and each task reads one.

The driver looks for the newest, so a read is of a fixed set, whenever Spark computes it: again, it is the same, or it
fails.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from pyspark.sql.datasource import DataSourceReader, Filter

from qmodel.client.sync import Client
from qmodel.errors import QmodelError
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.spark.ranges import Range, cut, narrowed
from qmodel.pipeline.spark.wanted import Wanted


class RangeReader(DataSourceReader):
    """Cuts what is to be read into ranges."""

    number: ClassVar[str]
    """The column that counts."""

    columns: ClassVar[pa.Schema]
    """All that there are; a read may ask for some."""

    def __init__(self, what: Wanted, schema: pa.Schema | None = None) -> None:
        self.what = what
        self.schema = self.columns if schema is None else schema
        self.floor = 0  # what the query wants is after that

    @abstractmethod
    def newest(self, client: Client) -> int:
        """The number of the newest that there is."""

    @abstractmethod
    def went_back(self, newest: int) -> QmodelError:
        """What is wrong where the newest is older than `after`."""

    def partitions(self) -> Sequence[Range]:
        """One range for each task. Raises what `went_back` says."""
        what = self.what
        with Client(what.url) as client:
            newest = self.newest(client)
        if newest < what.after:
            raise self.went_back(newest)
        last = min(what.last, newest)
        return cut(min(max(what.after, self.floor), last), last, what.rows, what.min_partitions)


class Pushed(RangeReader):
    """Takes conditions, and narrows what is read to the numbers that a query asks for."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Read no more than the conditions on the column that counts ask for; Spark looks at them again."""
        self.floor, last = narrowed(filters, self.number, self.floor, self.what.last)
        self.what = self.what._replace(last=last)
        return filters
