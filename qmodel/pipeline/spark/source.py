"""The events as a source of data for Spark: `spark.read.format("qmodel")`.

The driver looks for the newest event and cuts what is to be read into ranges of sequences; each task reads its range
through a client of its own, with the proof that none is missing. So a read is of a fixed set of events, whenever Spark
computes it: again, it is the same, or it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from qmodel.client import Client
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.gaps import SequenceWentBack
from qmodel.pipeline.listing import TABLES
from qmodel.pipeline.schema import SCHEMA
from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.spark.ranges import ROWS, Range, chosen, cut, read_range
from qmodel.pipeline.spark.streaming import ALL, EventsStream, stream_options
from qmodel.pipeline.spark.tables import PushedTableReader, TableReader, table_options
from qmodel.pipeline.spark.writer import JobsStreamWriter, JobsWriter, target


class Wanted(NamedTuple):
    """What the options of a read say."""

    url: str
    after: int
    last: int
    rows: int
    min_partitions: int
    fail_on_data_loss: bool


OPTIONS = ("url", "table", "pushdown", "after", "last", "rowsPerPartition", "minPartitions", "failOnDataLoss")


def wanted(options: Mapping[str, str]) -> Wanted:
    """Read the options of events, all but `table` and `pushdown`. Raises ValueError."""
    given = Given(options, OPTIONS)
    given.text("table")
    given.flag("pushdown", False)
    found = Wanted(
        given.url(),
        given.whole("after", 0),
        given.whole("last", ALL),
        given.whole("rowsPerPartition", ROWS, low=1),
        given.whole("minPartitions", 1, low=1),
        given.flag("failOnDataLoss", True),
    )
    given.end()
    return found


class EventsSource(DataSource):
    """Events, for Spark."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "qmodel"

    def _table(self) -> str:
        """Which table is read. Raises ValueError for one that there is not."""
        name = self.options.get("table", "events")
        if name != "events" and name not in TABLES:
            raise ValueError(f"There is no table {name!r}: they are events, {', '.join(TABLES)}.")
        return name

    def schema(self) -> StructType:
        """The columns of `qmodel.pipeline.schema`, or of another table (`qmodel.pipeline.listing`)."""
        name = self._table()
        return from_arrow_schema(SCHEMA if name == "events" else TABLES[name].schema)

    def reader(self, schema: StructType) -> EventsReader | TableReader:
        """What reads a fixed set of events, or another table as it is.

        Spark refuses to read where a reader takes conditions and `spark.sql.python.filterPushdown.enabled` is not set,
        so it takes them with `pushdown` only.
        """
        name, pushed = self._table(), Given(self.options, OPTIONS).flag("pushdown", False)
        if name != "events":
            what = table_options(name, self.options)
            return PushedTableReader(what) if pushed else TableReader(what)
        reader = PushedEventsReader if pushed else EventsReader
        return reader(wanted(self.options), chosen(schema))

    def streamReader(self, schema: StructType) -> EventsStream:
        """What reads events as they come."""
        return EventsStream(stream_options(self.options), chosen(schema))

    def writer(self, schema: StructType, overwrite: bool) -> JobsWriter:
        """What makes jobs of rows. Raises ValueError for other modes than append."""
        if overwrite:
            raise ValueError(
                'Rows become jobs, and none goes: say mode("append"). Drain or obliterate the queue before.'
            )
        return JobsWriter(target(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> JobsStreamWriter:
        """The same for a stream. Raises ValueError for other output modes than append and update."""
        if overwrite:
            raise ValueError('Rows become jobs, and none goes: say outputMode("append"), or "update".')
        return JobsStreamWriter(target(self.options, schema, streaming=True))


class EventsReader(DataSourceReader):
    """Cuts the events into ranges, and reads one."""

    def __init__(self, what: Wanted, schema: pa.Schema = SCHEMA) -> None:
        self.what = what
        self.schema = schema
        self.floor = 0  # what the query wants is after that

    def partitions(self) -> Sequence[Range]:
        """One range for each task. Raises SequenceWentBack where the newest event is older than `after`."""
        what = self.what
        with Client(what.url) as client:
            newest = client.newest()
        if newest < what.after:
            raise SequenceWentBack(what.after, newest)
        last = min(what.last, newest)
        return cut(min(max(what.after, self.floor), last), last, what.rows, what.min_partitions)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """The batches of a range."""
        return read_range(self.what.url, partition, self.schema, fail_on_data_loss=self.what.fail_on_data_loss)


class PushedEventsReader(EventsReader):
    """The same, narrowed to the sequences that a query asks for."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Read no more than the conditions on `seq` ask for; Spark looks at them again."""
        for one in filters:
            if getattr(one, "attribute", None) == ("seq",):
                self._narrow(one)
        return filters

    def _narrow(self, one: Filter) -> None:
        if isinstance(one, EqualTo | GreaterThanOrEqual):
            self.floor = max(self.floor, int(one.value) - 1)
        if isinstance(one, GreaterThan):
            self.floor = max(self.floor, int(one.value))
        if isinstance(one, EqualTo | LessThanOrEqual):
            self.what = self.what._replace(last=max(0, min(self.what.last, int(one.value))))
        if isinstance(one, LessThan):
            self.what = self.what._replace(last=max(0, min(self.what.last, int(one.value) - 1)))
