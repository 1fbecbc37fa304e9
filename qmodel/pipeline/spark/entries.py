"""Read a task's part of the journal: a range of numbers, through a client of its own."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.client.sync import Client
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.journal import pages
from qmodel.pipeline.journal.pages import JournalWentBack
from qmodel.pipeline.journal.tables import table as as_table
from qmodel.pipeline.spark.ranges import Range, warn_of


def read_entries(url: str, part: Range, schema: pa.Schema, *, fail_on_data_loss: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a range of entries.

    Raises EntriesGone if some are gone, unless losses are accepted, JournalWentBack if the journal ends before, and
    Forked if the server lost one of the ends of the range.
    """
    gaps: list[Gap] | None = None if fail_on_data_loss else []
    read = part.after
    with Client(url) as client:
        for page in pages.pages(client, part.after, part.last, epoch=part.epoch, last_epoch=part.last_epoch, gaps=gaps):
            read = page[-1].number
            yield from as_table(page).select(schema.names).cast(schema).to_batches()
    warn_of(gaps or (), "Entries")
    if read < part.last and gaps is None:
        raise JournalWentBack(part.last)
