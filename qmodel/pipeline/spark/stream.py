"""Read events into Spark as a stream: `spark.readStream.format("qmodel")`.

An offset is the last sequence that was read, so a batch is a range of sequences. It is the same whenever Spark computes
it again, and each task proves that its part is complete. The server knows nothing of the readers: no consumer is
registered, and any number of queries read the same events, each from its own checkpoint. Options have the names of
Spark's source for Kafka where they mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import SequenceWentBack
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.spark.ranges import ROWS, Range, cut, read_range

EARLIEST, LATEST = "earliest", "latest"

OPTIONS = ("url", "startingOffsets", "maxOffsetsPerTrigger", "rowsPerPartition", "minPartitions", "failOnDataLoss")


ALL = 10**15 - 1
"""A bound that no sequence reaches."""


class StreamOptions(NamedTuple):
    """The options of a stream."""

    url: str
    starting: int | str  # the sequence of the first event, EARLIEST or LATEST
    most: int  # events in a batch
    rows: int
    min_partitions: int
    fail_on_data_loss: bool


def stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Read the options of a stream. Raises ValueError for impossible ones."""
    options = Given(given, OPTIONS)
    url, starting = options.url(), options.text("startingOffsets", EARLIEST).lower()
    if starting not in (EARLIEST, LATEST) and not re.fullmatch("[0-9]{1,15}", starting):
        raise ValueError(f"startingOffsets must be earliest, latest or the sequence of an event, not {starting!r}.")
    found = StreamOptions(
        url,
        starting if starting in (EARLIEST, LATEST) else int(starting),
        options.whole("maxOffsetsPerTrigger", ALL, 1),
        options.whole("rowsPerPartition", ROWS, 1),
        options.whole("minPartitions", 1, 1),
        options.flag("failOnDataLoss", True),
    )
    options.end()
    return found


class EventsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Decides how far a batch goes, cuts it into ranges, and reads one."""

    def __init__(self, what: StreamOptions, schema: pa.Schema = SCHEMA) -> None:
        self.what = what
        self.schema = schema
        self.target: int | None = None
        self.client: Client | None = None

    def initialOffset(self) -> dict[str, int]:
        """Give the start of a query that has no checkpoint."""
        starting, newest = self.what.starting, self._newest()
        if starting == LATEST:
            return _offset(newest)
        if starting == EARLIEST:
            oldest = self._asked().execute(ops.Events(0, 1))
            return _offset(oldest[0].seq - 1 if oldest else newest)
        assert isinstance(starting, int), starting
        after = max(starting - 1, 0)
        if after > newest:
            raise ValueError(
                f"startingOffsets is {starting}, and the newest event is {newest}: there is none to begin."
            )
        return _offset(after)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Limit a batch to the events that maxOffsetsPerTrigger allows."""
        return ReadMaxRows(self.what.most) if self.what.most < ALL else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Give the end of the next batch. Raises SequenceWentBack if the newest event is older than `start`."""
        after = start["seq"]
        newest = self._newest()
        if newest < after:
            raise SequenceWentBack(after, newest)
        until = newest if self.target is None else max(min(self.target, newest), after)
        if isinstance(limit, ReadMaxRows):
            until = min(until, after + limit.max_rows)
        elif isinstance(limit, ReadMinRows) and self.target is None and until - after < limit.min_rows:
            until = after
        return _offset(until)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read the events that exist now, and no later ones."""
        self.target = self._newest()

    def reportLatestOffset(self) -> dict[str, int]:
        """Give the newest event for the progress of the query: the distance to it is the lag."""
        return _offset(self._newest())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Range]:
        """Give one range for each task."""
        return cut(start["seq"], end["seq"], self.what.rows, self.what.min_partitions)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range."""
        return read_range(self.what.url, partition, self.schema, fail_on_data_loss=self.what.fail_on_data_loss)

    def _newest(self) -> int:
        return self._asked().newest()

    def _asked(self) -> Client:
        """Give the client of this process. Spark asks about ten times a second. Tasks get a reader without a client."""
        if self.client is None:
            self.client = Client(self.what.url)
        return self.client

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "client": None}

    def stop(self) -> None:
        """Close the connection."""
        if self.client is not None:
            self.client.close()
            self.client = None


def _offset(seq: int) -> dict[str, int]:
    return {"seq": seq}
