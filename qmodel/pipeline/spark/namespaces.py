"""Read many namespaces of a server as one stream: `option("namespaces", "shop-*:")`.

Each namespace has an offset of its own within that of the stream, so all that is said of a stream holds for each of
them. The server is asked for new namespaces every LOOK seconds. Rows have the column `namespace`, the prefix.

The offset with which a namespace joins the stream also has its beginning, because the offset before does not know it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from qmodel.pipeline.arrow import pa
from qmodel.pipeline.spark.archived import NAMESPACE
from qmodel.pipeline.spark.ranges import Range
from qmodel.pipeline.spark.stream import Offset, RangeStream, StreamOptions, limit_of

LOOK = 30.0
"""The seconds between two looks for new namespaces: each reads the names of all keys."""

BEGIN = "begin"
FIRST: Offset = {"seq": 0, "epoch": 0, "spans": [[0, 0]]}
"""The offset with which a namespace joins: before its first row."""


class Part(InputPartition):
    """A range of a namespace."""

    def __init__(self, namespace: str, part: Range) -> None:
        self.namespace = namespace
        self.part = part


class NamespacesStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Combines the streams of namespaces."""

    def __init__(self, what: StreamOptions, schema: pa.Schema, make: type[RangeStream]) -> None:
        """`schema` has the columns to read, perhaps with `namespace`; `make` is the stream of one namespace."""
        if not isinstance(what.starting, str):
            raise ValueError("startingOffsets is earliest or latest for many namespaces: each has numbers of its own.")
        self.what, self.schema, self._make = what, schema, make
        self.streams = dict[str, RangeStream]()
        self.looked = 0.0
        self.is_fixed = False  # no namespace joins any more

    def initialOffset(self) -> Offset:
        """Give the start of a query that has no checkpoint."""
        self._look()
        return {"namespaces": {name: self._stream(name).initialOffset() for name in self.streams}}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Limit a batch to the rows that maxOffsetsPerTrigger allows."""
        return limit_of(self.what)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Give the end of the next batch. Rows are shared out evenly; what one does not use is for the others."""
        if time.monotonic() - self.looked > LOOK:
            self._look()
        known = {name: _plain(one) for name, one in start["namespaces"].items()}
        begins = {**{name: FIRST for name in self.streams}, **known}
        left, found = limit.max_rows if isinstance(limit, ReadMaxRows) else None, dict[str, Offset]()
        names = sorted(begins, key=lambda name: self._behind(name, begins[name]))
        for at, name in enumerate(names):
            begin = begins[name]
            share = limit if left is None else ReadMaxRows(-(-left // (len(names) - at)))
            end = self._stream(name).latestOffset(begin, share) if left != 0 else begin
            found[name] = end if name in known else {**end, BEGIN: begin}
            if left is not None:
                left -= min(left, end["seq"] - end.get("common", begin["seq"]))
        return start if found == known else {"namespaces": dict(sorted(found.items()))}

    def prepareForTriggerAvailableNow(self) -> None:
        """Read the rows that exist now, and no later ones."""
        self._look()
        self.is_fixed = True
        for stream in self.streams.values():
            stream.prepareForTriggerAvailableNow()

    def reportLatestOffset(self) -> Offset:
        """Give the newest row of each namespace for the progress of the query."""
        return {"namespaces": {name: stream.reportLatestOffset() for name, stream in sorted(self.streams.items())}}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:
        """Give ranges of all namespaces, those with no rows left out; at least one."""
        parts = []
        for name, until in end["namespaces"].items():
            begin = start["namespaces"].get(name) or until[BEGIN]
            if begin["seq"] < until["seq"] or "common" in until:
                parts += [Part(name, one) for one in self._stream(name).partitions(begin, until)]
        return parts or [Part("", Range(0, 0))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range, with the namespace."""
        assert isinstance(partition, Part)
        if partition.part.after == partition.part.last:
            return
        for batch in self._stream(partition.namespace).read(partition.part):
            names = pa.repeat(pa.scalar(partition.namespace, pa.string()), batch.num_rows)
            columns = [names if name == NAMESPACE.name else batch.column(name) for name in self.schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def stop(self) -> None:
        """Close the connections."""
        for stream in self.streams.values():
            stream.stop()

    def _look(self) -> None:
        """Find new namespaces, unless none may join any more."""
        if self.is_fixed:
            return
        from qmodel.backends.redis.namespaces import namespaces

        for name in namespaces(self.what.url, self.what.namespaces):
            self._stream(name)
        self.looked = time.monotonic()

    def _behind(self, name: str, at: Offset) -> int:
        return int(self._stream(name).reportLatestOffset()["seq"]) - int(at["seq"])

    def _stream(self, name: str) -> RangeStream:
        if name not in self.streams:
            from qmodel.backends.redis.namespaces import with_prefix

            columns = [field for field in self.schema if field.name != NAMESPACE.name] or [self._make.columns.field(0)]
            what = self.what._replace(url=with_prefix(self.what.url, name))
            made = self.streams[name] = self._make(what, pa.schema(columns))
            if self.is_fixed:
                made.prepareForTriggerAvailableNow()
        return self.streams[name]


def _plain(offset: Offset) -> Offset:
    """Give an offset to go on from: without what it says of its own batch."""
    return {name: value for name, value in offset.items() if name not in (BEGIN, "common", "common_epoch")}
