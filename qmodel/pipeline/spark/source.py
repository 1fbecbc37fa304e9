"""The events as a source of data for Spark: `spark.read.format("qmodel")`.

The driver looks for the newest event and cuts what is to be read into ranges of sequences; each task reads its range
through a client of its own, with the proof that none is missing. So a read is of a fixed set of events, whenever Spark
computes it: again, it is the same, or it fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from qmodel.client import Client
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.gaps import SequenceWentBack
from qmodel.pipeline.schema import SCHEMA
from qmodel.pipeline.spark.ranges import ROWS, Range, cut, read_range
from qmodel.pipeline.spark.streaming import EventsStream, stream_options
from qmodel.pipeline.spark.writer import JobsStreamWriter, JobsWriter, target


class Wanted(NamedTuple):
    """What the options of a read say."""

    url: str
    after: int
    last: int | None
    rows: int
    fail_on_data_loss: bool


def wanted(options: Mapping[str, str]) -> Wanted:
    """Read the options `url`, `after`, `last`, `rowsPerPartition` and `failOnDataLoss`; refuses others with ValueError.

    Without `url` it is that of QMODEL_URL on the driver: options are shown in plans, and a password should not be.
    """
    given = {name.lower(): value for name, value in options.items()}
    url = given.pop("url", None) or os.environ.get("QMODEL_URL", "")
    if not url or url.startswith("memory:"):
        raise ValueError(
            f"Spark reads from other processes, so it needs the URL of a server, and this is {url!r}. "
            f'Say option("url", "redis://localhost:6379/0"), or set QMODEL_URL.'
        )
    after, last = _whole(given, "after", 0), _whole(given, "last", -1)
    rows, fail = _whole(given, "rowsPerPartition", ROWS), given.pop("failondataloss", "true").lower()
    if fail not in ("true", "false"):
        raise ValueError(f"failOnDataLoss is true or false, and not {fail!r}.")
    if rows < 1:
        raise ValueError(f"rowsPerPartition is 1 or more, and not {rows}.")
    if given:
        raise ValueError(
            f"There is no option {min(given)!r}: they are url, after, last, rowsPerPartition and failOnDataLoss."
        )
    return Wanted(url, after, None if last < 0 else last, rows, fail == "true")


def _whole(given: dict[str, str], name: str, default: int) -> int:
    text = given.pop(name.lower(), None)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name} is a whole number from 0, and not {text!r}.")
    return int(text)


class EventsSource(DataSource):
    """Events, for Spark."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "qmodel"

    def schema(self) -> StructType:
        """The columns of `qmodel.pipeline.schema`."""
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> EventsReader:
        """What reads a fixed set of events."""
        return EventsReader(wanted(self.options))

    def streamReader(self, schema: StructType) -> EventsStream:
        """What reads events as they come."""
        return EventsStream(stream_options(self.options))

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

    def __init__(self, what: Wanted) -> None:
        self.what = what

    def partitions(self) -> Sequence[Range]:
        """One range for each task. Raises SequenceWentBack where the newest event is older than `after`."""
        what = self.what
        with Client(what.url) as client:
            newest = client.newest()
        if newest < what.after:
            raise SequenceWentBack(what.after, newest)
        return cut(what.after, newest if what.last is None else min(what.last, newest), what.rows)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """The batches of a range."""
        return read_range(self.what.url, partition, fail_on_data_loss=self.what.fail_on_data_loss)
