"""Read events into Spark as a stream: `spark.readStream.format("qmodel")`; or the journal, with the table `journal`.

An offset is the last sequence that was read, and its epoch, so a batch is a range of sequences of one history. It is
the same whenever Spark computes it again, and each task proves that its part is complete. The server knows nothing of
the readers: no consumer is registered, and any number of queries read the same events, each from its own checkpoint.
Options have the names of Spark's source for Kafka where they mean the same.

If the server lost events that were read, because it lost the end of its log, the query stops with StreamForked. With
`onFork=keep` it goes on: the next offset also has `common`, the newest common event, and its batch begins after that.
So its first row is of the new history, and the query has to take back its rows after `common` of earlier epochs. An
offset knows the last epochs with their first events, because only these tell where the histories part.

With `failOnDataLoss=false`, an offset also says which events were never read: `gaps`, and how many these are: `lost`.
Spark keeps offsets in the checkpoint and shows them in the query's progress.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

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
from qmodel.errors import Forked, QmodelError
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack, joined
from qmodel.pipeline.events.histories import (
    KEEP,
    STOP,
    Common,
    Position,
    Span,
    Table,
    check,
    epoch_at,
    gone,
    is_gap,
    newest_common,
    spans_between,
)
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.journal import pages, tables
from qmodel.pipeline.journal.pages import EntriesGone, JournalWentBack
from qmodel.pipeline.spark.entries import read_entries
from qmodel.pipeline.spark.options import Given
from qmodel.pipeline.spark.ranges import ROWS, Range, cut, pinned, read_range

EARLIEST, LATEST = "earliest", "latest"

OPTIONS = (
    "url", "table", "startingOffsets", "maxOffsetsPerTrigger", "rowsPerPartition", "minPartitions", "failOnDataLoss",
    "onFork", "namespaces",
)  # fmt: skip

GAPS = 100
"""The newest gaps that an offset names; it counts the events of all."""

SPANS = 1000
"""The epochs that an offset knows."""

Offset = dict[str, Any]

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
    on_fork: str = STOP
    namespaces: str = ""  # a pattern; empty for that of the URL alone


class StreamForked(QmodelError):
    """Raised if events that a query has read are not part of the server's history.

    `after` and `epoch` are of the last event read, `current` is the server's epoch, and `common` the newest event of
    both.
    """

    def __init__(self, after: int, epoch: int, current: int, common: Common, one: str = "event") -> None:
        super().__init__(after, epoch, current, common, one)
        self.one = one
        self.after, self.epoch, self.current, self.common = after, epoch, current, common.number
        self.is_known = common.is_known

    def __str__(self) -> str:
        says = (
            f"The query has read {self.one} {self.after} of epoch {self.epoch}, which is not part of the server's "
            f"history: the server lost the end of its log, and its epoch is {self.current} now."
        )
        if not self.is_known:
            return (
                f"{says} The server no longer keeps the point where the histories part. Begin a new query, with "
                f"another checkpoint and sink."
            )
        return (
            f"{says} The newest common {self.one} is {self.common}. To go on from there, set option('onFork', 'keep'), "
            f"and let the query take back its rows with a number above {self.common} and another epoch."
        )


def stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Read the options of a stream. Raises ValueError for impossible ones."""
    options = Given(given, OPTIONS)
    options.text("table")
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
        options.text("onFork", STOP).lower(),
        options.text("namespaces"),
    )
    options.end()
    if found.on_fork not in (STOP, KEEP):
        raise ValueError(f"onFork must be {STOP} or {KEEP}, not {found.on_fork!r}.")
    return found


def limit_of(what: StreamOptions) -> ReadLimit:
    """Give the limit of a batch."""
    return ReadMaxRows(what.most) if what.most < ALL else ReadAllAvailable()


class RangeStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Decides how far a batch goes, and cuts it into ranges."""

    table: ClassVar[Table]
    """The read of the rows."""

    columns: ClassVar[pa.Schema]
    """All columns; a stream may ask for some of them."""

    one: ClassVar[str]
    """The name of a row in messages."""

    def __init__(self, what: StreamOptions, schema: pa.Schema | None = None) -> None:
        self.what = what
        self.schema = self.columns if schema is None else schema
        self.target: int | None = None
        self.client: Client | None = None

    @abstractmethod
    def newest(self, client: Client) -> Position:
        """Find the newest row."""

    @abstractmethod
    def lost(self, gaps: Sequence[Gap]) -> QmodelError:
        """Make the error for rows that are gone."""

    @abstractmethod
    def went_back(self, after: int, newest: int) -> QmodelError:
        """Make the error for a newest row that is older than one that was read."""

    def initialOffset(self) -> Offset:
        """Give the start of a query that has no checkpoint."""
        starting, newest = self.what.starting, self._newest()
        if starting == LATEST:
            return _offset(newest)
        if starting == EARLIEST:
            oldest = self._asked().execute(self.table(0, 1))
            return self._offset_at(oldest[0][0] - 1) if oldest else _offset(newest)
        assert isinstance(starting, int), starting
        after = max(starting - 1, 0)
        if after > newest.number:
            raise ValueError(
                f"startingOffsets is {starting}, and the newest {self.one} is {newest.number}: there is none to begin."
            )
        return self._offset_at(after)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Limit a batch to the rows that maxOffsetsPerTrigger allows."""
        return limit_of(self.what)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Give the end of the next batch.

        Raises StreamForked if the server lost rows that were read; the error of `went_back` if the newest row is older
        than `start` but of the same epoch; and the error of `lost` if the next rows are not kept.
        """
        newest = self._newest()
        begin, common = self._joined(start, newest)
        if newest.number < begin.number:
            raise self.went_back(begin.number, newest.number)
        until = newest.number if self.target is None else max(min(self.target, newest.number), begin.number)
        if isinstance(limit, ReadMaxRows):
            until = min(until, begin.number + limit.max_rows)
        elif isinstance(limit, ReadMinRows) and self.target is None and until - begin.number < limit.min_rows:
            until = begin.number
        if until == begin.number and not common:
            return start
        end = newest if until == newest.number else self._position_at(until, begin)
        spans = [span for span in _spans(start) if span[0] <= begin.number]
        added = spans_between(self._asked(), self.table, begin, end)
        return {**_offset(end, [*spans, *added]), **common, **self._gaps(start, begin.number, until)}

    def _gaps(self, start: Offset, after: int, until: int) -> Offset:
        """Give what the query did not read because the server no longer kept it, up to the end of the next batch.

        Raises the error of `lost` if nothing may be lost: before Spark notes the batch in the checkpoint, without its
        gaps.
        """
        new = gone(self._asked(), self.table, after, until)
        if new and self.what.fail_on_data_loss:
            raise self.lost(new)
        known = [Gap(*gap) for gap in start.get("gaps", ()) if gap[1] <= after]
        gaps = joined([*known, *new])
        lost = start.get("lost", 0) - sum(map(len, known)) + sum(map(len, gaps))
        return {"lost": lost, "gaps": [list(gap) for gap in gaps[-GAPS:]]} if lost else {}

    def _joined(self, start: Offset, newest: Position) -> tuple[Position, Offset]:
        """Find where the next batch begins; after a fork, with what its offset has to say."""
        begin = _position(start)
        if begin.epoch == newest.epoch:
            return begin, {}
        try:
            check(self._asked(), self.table, begin)
        except Forked as fork:
            if is_gap(self._asked(), self.table, fork):
                return begin, {}
            found = newest_common(self._asked(), self.table, fork, _spans(start))
            if self.what.on_fork != KEEP or not found.is_known:
                raise StreamForked(begin.number, begin.epoch or 0, int(fork.current), found, self.one) from None
            return Position(found.number, found.epoch), {"common": found.number, "common_epoch": found.epoch}
        return begin, {}

    def _offset_at(self, seq: int) -> Offset:
        return _offset(self._position_at(seq, Position(0, 0)))

    def _position_at(self, seq: int, known: Position) -> Position:
        """Give the position of an event; if it is not kept, its epoch is not known."""
        return known if seq == known.number else Position(seq, epoch_at(self._asked(), self.table, seq))

    def prepareForTriggerAvailableNow(self) -> None:
        """Read the events that exist now, and no later ones."""
        self.target = self._newest().number

    def reportLatestOffset(self) -> Offset:
        """Give the newest event for the progress of the query: the distance to it is the lag."""
        return _offset(self._newest())

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        """Give one range for each task."""
        begin, last = _position(start), _position(end)
        if "common" in end:
            begin = Position(end["common"], end["common_epoch"])
        ranges = cut(begin.number, last.number, self.what.rows, self.what.min_partitions)
        return pinned(self._asked(), self.table, ranges, begin.epoch, last.epoch)

    def _newest(self) -> Position:
        return self.newest(self._asked())

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


class EventsStream(RangeStream):
    """Reads events."""

    table, columns, one = ops.Events, SCHEMA, "event"

    def newest(self, client: Client) -> Position:
        """Find the newest event."""
        return Position(*client.position())

    def lost(self, gaps: Sequence[Gap]) -> EventsGone:
        """Make the error for events that are gone."""
        return EventsGone(gaps)

    def went_back(self, after: int, newest: int) -> SequenceWentBack:
        """Make the error for a newest event that is older than one that was read."""
        return SequenceWentBack(after, newest)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range."""
        return read_range(self.what.url, partition, self.schema, fail_on_data_loss=self.what.fail_on_data_loss)


class JournalStream(RangeStream):
    """Reads entries of the journal."""

    table, columns, one = ops.Journal, tables.SCHEMA, "entry"
    known = 0

    def newest(self, client: Client) -> Position:
        """Find the newest entry, from the last one that was found."""
        self.known = pages.newest(client, self.known)
        return Position(self.known, epoch_at(client, self.table, self.known))

    def lost(self, gaps: Sequence[Gap]) -> EntriesGone:
        """Make the error for entries that are gone."""
        return EntriesGone(gaps[0].first, gaps[-1].last)

    def went_back(self, after: int, newest: int) -> JournalWentBack:
        """Make the error for a journal that ends before an entry that was read."""
        return JournalWentBack(after)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range."""
        return read_entries(self.what.url, partition, self.schema, fail_on_data_loss=self.what.fail_on_data_loss)


def _offset(at: Position, spans: Sequence[Span] = ()) -> Offset:
    """Make an offset; `spans` are the epochs up to it, each with its first known event."""
    known = spans or ([] if at.epoch is None else [(at.number, at.epoch)])
    return {"seq": at.number, "epoch": at.epoch, "spans": [list(span) for span in known[-SPANS:]]}


def _position(offset: Offset) -> Position:
    """Read the position of an offset; one that was written before there were epochs is of epoch 0."""
    return Position(offset["seq"], offset.get("epoch", 0))


def _spans(offset: Offset) -> list[Span]:
    """Read the epochs that an offset knows."""
    return [(first, epoch) for first, epoch in offset.get("spans", [[0, 0]])]
