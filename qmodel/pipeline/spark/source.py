"""The events as a source of data for Spark: `spark.read.format("qmodel")`.

The driver looks for the newest event and cuts what is to be read into ranges of sequences; each task reads its range
through a client of its own, with the proof that none is missing. So a read is of a fixed set of events, whenever Spark
computes it: again, it is the same, or it fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from qmodel.client.sync import Client
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import SequenceWentBack
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.journal import tables
from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.spark.ranged import Pushed, RangeReader
from qmodel.pipeline.spark.ranges import Range, chosen, read_range
from qmodel.pipeline.spark.recorded import JournalReader, PushedJournalReader
from qmodel.pipeline.spark.stream import EventsStream, stream_options
from qmodel.pipeline.spark.tables import PushedTableReader, TableReader, table_options
from qmodel.pipeline.spark.wanted import OPTIONS, wanted
from qmodel.pipeline.spark.writer import JobsStreamWriter, JobsWriter, target
from qmodel.pipeline.tables.live import TABLES

EVENTS, JOURNAL = "events", "journal"
"""The tables of what happened, which are read by ranges of numbers; the others are of what there is."""


class EventsSource(DataSource):
    """Events, for Spark."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "qmodel"

    def _table(self) -> str:
        """Which table is read. Raises ValueError for one that there is not."""
        name = self.options.get("table", EVENTS)
        if name not in (EVENTS, JOURNAL, *TABLES):
            raise ValueError(f"There is no table {name!r}: they are {EVENTS}, {', '.join(TABLES)}, {JOURNAL}.")
        return name

    def schema(self) -> StructType:
        """The columns of `qmodel.pipeline.events.schema`, or of another table (`listing`, and `entry_tables`)."""
        name = self._table()
        own = {EVENTS: SCHEMA, JOURNAL: tables.SCHEMA}
        return from_arrow_schema(own[name] if name in own else TABLES[name].schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads a fixed set of events, or of entries of the journal, or another table as it is.

        Spark refuses to read where a reader takes conditions and `spark.sql.python.filterPushdown.enabled` is not set,
        so it takes them with `pushdown` only.
        """
        name, pushed = self._table(), Given(self.options, OPTIONS).flag("pushdown", False)
        if name == JOURNAL:
            entries = PushedJournalReader if pushed else JournalReader
            return entries(wanted(self.options), chosen(schema, tables.SCHEMA))
        if name == EVENTS:
            reader = PushedEventsReader if pushed else EventsReader
            return reader(wanted(self.options), chosen(schema))
        what = table_options(name, self.options)
        return PushedTableReader(what) if pushed else TableReader(what)

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


class EventsReader(RangeReader):
    """Cuts the events into ranges, and reads one."""

    number, columns = "seq", SCHEMA

    def newest(self, client: Client) -> int:
        """The sequence of the newest event."""
        return client.newest()

    def went_back(self, newest: int) -> SequenceWentBack:
        """The newest event is older than `after`."""
        return SequenceWentBack(self.what.after, newest)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """The batches of a range."""
        return read_range(self.what.url, partition, self.schema, fail_on_data_loss=self.what.fail_on_data_loss)


class PushedEventsReader(Pushed, EventsReader):
    """The same, narrowed to the sequences that a query asks for."""
