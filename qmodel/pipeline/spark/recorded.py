"""Read the entries of the journal into Spark: `option("table", "journal")`, at once or as a stream.

They are read like events: each range comes with the proof that none of it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.histories import Position
from qmodel.pipeline.journal import pages
from qmodel.pipeline.journal.pages import JournalWentBack
from qmodel.pipeline.journal.tables import SCHEMA
from qmodel.pipeline.spark.entries import read_entries
from qmodel.pipeline.spark.ranged import Pushed, RangeReader
from qmodel.pipeline.spark.ranges import Range


class JournalReader(RangeReader):
    """Cuts the journal into ranges, and reads one."""

    number, columns, table = "number", SCHEMA, ops.Journal

    def newest(self, client: Client) -> Position:
        """Find the newest entry."""
        return pages.position(client)

    def went_back(self, newest: int) -> JournalWentBack:
        """Make the error for a journal that ends before `after`."""
        return JournalWentBack(self.what.after)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range."""
        return read_entries(self.what.url, partition, self.schema, fail_on_data_loss=self.what.fail_on_data_loss)


class PushedJournalReader(Pushed, JournalReader):
    """Reads only the entries that a query asks for."""

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range, without rows that do not fit."""
        return self.fitting(super().read(partition))
