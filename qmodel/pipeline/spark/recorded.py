"""Read the entries of the journal into Spark: `option("table", "journal")`.

They are read like events: each range comes with the proof that none of it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.histories import Position
from qmodel.pipeline.journal import pages
from qmodel.pipeline.journal.pages import JournalWentBack
from qmodel.pipeline.journal.tables import SCHEMA
from qmodel.pipeline.journal.tables import table as as_table
from qmodel.pipeline.spark.ranged import Pushed, RangeReader
from qmodel.pipeline.spark.ranges import Range, warn_of


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
        """Yield the batches of a range. Raises EntriesGone if some are gone, unless losses are accepted; Forked."""
        gaps: list[Gap] | None = None if self.what.fail_on_data_loss else []
        read = partition.after
        with Client(self.what.url) as client:
            for page in pages.pages(
                client,
                partition.after,
                partition.last,
                epoch=partition.epoch,
                last_epoch=partition.last_epoch,
                gaps=gaps,
            ):
                read = page[-1].number
                yield from as_table(page).select(self.schema.names).cast(self.schema).to_batches()
        warn_of(gaps or (), "Entries")
        if read < partition.last and gaps is None:
            raise JournalWentBack(partition.last)


class PushedJournalReader(Pushed, JournalReader):
    """Reads only the numbers that a query asks for."""
