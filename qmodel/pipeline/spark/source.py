"""Read events into Spark: `spark.read.format("qmodel")`.

The driver finds the newest event and cuts the read into ranges of sequences. Each task reads its range through a client
of its own, with the proof that none is missing. So a read is of a fixed set of events. When Spark computes it again, it
gives the same events or fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import SequenceWentBack
from qmodel.pipeline.events.histories import Position, gone
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.journal import tables
from qmodel.pipeline.spark.archived import KINDS, NAMESPACE, ArchiveReader, PushedArchiveReader, archive_options
from qmodel.pipeline.spark.namespaces import NamespacesStream
from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.spark.ranged import Pushed, RangeReader
from qmodel.pipeline.spark.ranges import Range, chosen, read_range
from qmodel.pipeline.spark.recorded import JournalReader, PushedJournalReader
from qmodel.pipeline.spark.stream import EventsStream, JournalStream, RangeStream, stream_options
from qmodel.pipeline.spark.tables import PushedTableReader, TableReader, table_options
from qmodel.pipeline.spark.wanted import OPTIONS, Wanted, wanted
from qmodel.pipeline.spark.writer import JobsStreamWriter, JobsWriter, target
from qmodel.pipeline.tables.live import TABLES

EVENTS, JOURNAL, GAPS = "events", "journal", "gaps"
"""The tables of what happened, which are read by ranges of numbers; the others are of what there is."""


STREAMS: dict[str, type[RangeStream]] = {EVENTS: EventsStream, JOURNAL: JournalStream}


GAPS_SCHEMA: pa.Schema = pa.schema([("first", pa.int64()), ("last", pa.int64()), ("events", pa.int64())])
"""The columns of the table of gaps: the first event that is gone, the last one, and how many these are."""


class EventsSource(DataSource):
    """The data source `qmodel`."""

    @classmethod
    def name(cls) -> str:
        """Give the format's name."""
        return "qmodel"

    def _table(self) -> str:
        """Give the table to read. Raises ValueError for an unknown one."""
        name = self.options.get("table", EVENTS)
        if name not in (EVENTS, GAPS, JOURNAL, *TABLES):
            known = ", ".join((EVENTS, GAPS, *TABLES, JOURNAL))
            raise ValueError(f"There is no table {name!r}. The tables are {known}.")
        return name

    def schema(self) -> StructType:
        """Give the columns of `qmodel.pipeline.events.schema`, or of another table."""
        name = self._table()
        own = {EVENTS: SCHEMA, JOURNAL: tables.SCHEMA, GAPS: GAPS_SCHEMA}
        found = own[name] if name in own else TABLES[name].schema
        return from_arrow_schema(found.insert(0, NAMESPACE) if self._is_of_many() else found)

    def _is_of_many(self) -> bool:
        """Whether the rows may be of several namespaces."""
        return bool(self.options.get("namespaces") or self.options.get("archive"))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make a reader of a fixed set of events or journal entries, or of the present state of a table.

        Spark refuses a reader that takes conditions if `spark.sql.python.filterPushdown.enabled` is not set. So a
        reader takes them only with the option `pushdown`.
        """
        name, pushed = self._table(), Given(self.options, OPTIONS).flag("pushdown", False)
        if self.options.get("archive"):
            if name not in KINDS:
                raise ValueError(f"The table {name!r} is of a server: an archive has {' and '.join(KINDS)}.")
            known = KINDS[name][1].insert(0, NAMESPACE)
            of_archive = PushedArchiveReader if pushed else ArchiveReader
            return of_archive(archive_options(self.options, name), chosen(schema, known))
        if name == JOURNAL:
            entries = PushedJournalReader if pushed else JournalReader
            return entries(wanted(self.options), chosen(schema, tables.SCHEMA))
        if name == EVENTS:
            reader = PushedEventsReader if pushed else EventsReader
            return reader(wanted(self.options), chosen(schema))
        if name == GAPS:
            return GapsReader(wanted(self.options), chosen(schema, GAPS_SCHEMA, name))
        what, columns = table_options(name, self.options), chosen(schema, TABLES[name].schema, name)
        return PushedTableReader(what, columns) if pushed else TableReader(what, columns)

    def streamReader(self, schema: StructType) -> RangeStream | NamespacesStream:
        """Make a reader of the stream of events, or of the journal. Raises ValueError for another table."""
        name, what = self._table(), stream_options(self.options)
        if name not in STREAMS:
            raise ValueError(f"The table {name!r} is no stream: there are streams of {' and '.join(STREAMS)}.")
        make = STREAMS[name]
        if what.namespaces:
            return NamespacesStream(what, chosen(schema, make.columns.insert(0, NAMESPACE)), make)
        return make(what, chosen(schema, make.columns))

    def writer(self, schema: StructType, overwrite: bool) -> JobsWriter:
        """Make a writer that turns rows into jobs. Raises ValueError for other modes than append."""
        if overwrite:
            raise ValueError(
                'Rows become jobs, and no job is removed: use mode("append"). To begin empty, drain the queue first.'
            )
        return JobsWriter(target(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> JobsStreamWriter:
        """Make the same for a stream. Raises ValueError for other output modes than append and update."""
        if overwrite:
            raise ValueError('Rows become jobs, and no job is removed: use outputMode("append") or "update".')
        return JobsStreamWriter(target(self.options, schema, streaming=True))


class GapsReader(DataSourceReader):
    """Names the events of a range that the server no longer keeps: those that a read of the range lacks."""

    def __init__(self, what: Wanted, schema: pa.Schema = GAPS_SCHEMA) -> None:
        self.what, self.schema = what, schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the gaps."""
        with Client(self.what.url) as client:
            found = gone(client, ops.Events, self.what.after, min(self.what.last, client.newest()))
        rows = [{"first": gap.first, "last": gap.last, "events": len(gap)} for gap in found]
        yield pa.RecordBatch.from_pylist(rows, GAPS_SCHEMA).select(self.schema.names)


class EventsReader(RangeReader):
    """Cuts the events into ranges, and reads one."""

    number, columns, table = "seq", SCHEMA, ops.Events

    def newest(self, client: Client) -> Position:
        """Find the newest event."""
        return Position(*client.position())

    def went_back(self, newest: int) -> SequenceWentBack:
        """Make the error for a newest event that is older than `after`."""
        return SequenceWentBack(self.what.after, newest)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range."""
        return read_range(self.what.url, partition, self.schema, fail_on_data_loss=self.what.fail_on_data_loss)


class PushedEventsReader(Pushed, EventsReader):
    """Reads only the events that a query asks for."""

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range, without rows that do not fit."""
        return self.fitting(super().read(partition))
