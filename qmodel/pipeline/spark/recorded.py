"""The entries of the journal for Spark: `option("table", "journal")`.

They are read as events are: the driver looks for the newest entry and cuts what is to be read into ranges of numbers;
each task reads its range, with the proof that it has all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyspark.sql.datasource import DataSourceReader, Filter

from qmodel.client import Client
from qmodel.pipeline import journals
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.gaps import Gap
from qmodel.pipeline.journaling import JournalWentBack, newest, pages
from qmodel.pipeline.spark.ranges import Range, cut, narrowed
from qmodel.pipeline.spark.wanted import Wanted


class JournalReader(DataSourceReader):
    """Cuts the journal into ranges, and reads one."""

    def __init__(self, what: Wanted, schema: pa.Schema = journals.SCHEMA) -> None:
        self.what = what
        self.schema = schema
        self.floor = 0  # what the query wants is after that

    def partitions(self) -> Sequence[Range]:
        """One range for each task. Raises JournalWentBack where there is no entry `after` which to read."""
        what = self.what
        with Client(what.url) as client:
            until = newest(client)
        if until < what.after:
            raise JournalWentBack(what.after)
        last = min(what.last, until)
        return cut(min(max(what.after, self.floor), last), last, what.rows, what.min_partitions)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """The batches of a range. Raises EntriesGone where some are gone, unless those may be."""
        gaps: list[Gap] | None = None if self.what.fail_on_data_loss else []
        read = partition.after
        with Client(self.what.url) as client:
            for page in pages(client, partition.after, partition.last, gaps=gaps):
                read = page[-1].number
                yield from journals.table(page).select(self.schema.names).cast(self.schema).to_batches()
        if read < partition.last and gaps is None:
            raise JournalWentBack(partition.last)


class PushedJournalReader(JournalReader):
    """The same, narrowed to the numbers that a query asks for."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Read no more than the conditions on `number` ask for; Spark looks at them again."""
        self.floor, last = narrowed(filters, "number", self.floor, self.what.last)
        self.what = self.what._replace(last=last)
        return filters
