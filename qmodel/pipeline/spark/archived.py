"""Read an archive into Spark: `spark.read.format("qmodel").option("archive", "s3://bucket/shop")`.

Plain `spark.read.parquet` reads the files, too. This reader knows the archive: it sees each row once beside archivers
and compactors, opens files that were merged since it listed them, and reads files of earlier versions. Before anything
is read, it leaves out files by their names: by namespace, day and number. In a file, Parquet's statistics leave out
groups of rows, which are sorted by queue. And it drops rows that do not fit before they are converted for Spark.
Conditions come from the query (`option("pushdown", "true")`), or from the options `namespace`, `since` and `until`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceReader, Filter, GreaterThanOrEqual, In, InputPartition, LessThan

from qmodel.pipeline.archive.kinds import EVENTS, JOURNAL, opened
from qmodel.pipeline.archive.layout import Archive, ArchiveError, File
from qmodel.pipeline.archive.read import undamaged
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events import schema as events
from qmodel.pipeline.journal import tables as journal
from qmodel.pipeline.spark.conditions import bounds, condition
from qmodel.pipeline.spark.options import Given

OPTIONS = ("archive", "table", "pushdown", "namespace", "since", "until", "rowsPerPartition")

NAMESPACE: pa.Field = pa.field("namespace", pa.string())
"""The first column of an archive's rows."""

SHARE = 250_000
"""The default number of rows in a task."""

BATCH = 20_000
"""The number of rows that are read at a time."""

Kind = tuple[str, pa.Schema, int, Any]
KINDS: dict[str, Kind] = {
    EVENTS: ("seq", events.SCHEMA, events.VERSION, events.current),
    JOURNAL: ("number", journal.SCHEMA, journal.VERSION, journal.current),
}
"""For each kind of rows its number, its columns, their version, and what converts an earlier one."""


class ArchiveOptions(NamedTuple):
    """The options of a read of an archive."""

    root: str
    kind: str
    rows: int
    namespace: str
    conditions: tuple[Filter, ...]  # of `since` and `until`


def archive_options(given: Mapping[str, str], kind: str) -> ArchiveOptions:
    """Read the options of an archive. Raises ValueError."""
    options = Given(given, OPTIONS)
    options.text("table")
    options.flag("pushdown", False)
    since, until = (_moment(options, name) for name in ("since", "until"))
    conditions: list[Filter] = [GreaterThanOrEqual(("happened_at",), since)] if since else []
    conditions += [LessThan(("happened_at",), until)] if until else []
    rows = options.whole("rowsPerPartition", SHARE, low=1)
    found = ArchiveOptions(options.text("archive"), kind, rows, options.text("namespace"), tuple(conditions))
    options.end()
    return found


def _moment(options: Given, name: str) -> datetime | None:
    said = options.text(name)
    try:
        found = datetime.fromisoformat(said) if said else None
    except ValueError:
        raise ValueError(f"{name} must be a moment such as 2026-11-21T08:00+01:00, not {said!r}.") from None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


class Files(InputPartition):
    """Some files of the archive at a place, which is found once, and not by each task."""

    def __init__(self, place: str, files: Sequence[File]) -> None:
        self.place, self.files = place, tuple(files)


class ArchiveReader(DataSourceReader):
    """Chooses files of an archive, and reads some of them."""

    def __init__(self, what: ArchiveOptions, schema: pa.Schema) -> None:
        self.what, self.schema = what, schema
        self.conditions = list(what.conditions)
        if what.namespace:
            self.conditions.append(In(("namespace",), (what.namespace,)))

    def partitions(self) -> Sequence[Files]:
        """Give the files of each task: of about as many rows."""
        archive, found, rows = opened(self.what.root, self.what.kind), [list[File]()], 0
        for file in self.chosen(archive):
            if found[-1] and rows + file.rows > self.what.rows:
                found.append([])
                rows = 0
            found[-1].append(file)
            rows += file.rows
        return [Files(archive.place, files) for files in found]

    def chosen(self, archive: Archive) -> Iterator[File]:
        """List the files that may have rows that fit, by their names.

        Raises ArchiveError for an archive or a namespace that is not there.
        """
        low, high = bounds(self.conditions, KINDS[self.what.kind][0])
        days = [one and one.astimezone(UTC).date().isoformat() for one in bounds(self.conditions, "happened_at")]
        first, last = days
        for name in filter(self._fits, archive.chosen(self.what.namespace or None)):
            for file in archive.files(name, after=0 if low is None else low - 1, last=high):
                if (first or file.day) <= file.day <= (last or file.day):
                    yield file

    def _fits(self, namespace: str) -> bool:
        """Say whether a namespace fits the conditions on its name."""
        one = pa.table({NAMESPACE.name: [namespace]})
        where = condition(self.conditions, one.schema)
        return where is None or bool(one.filter(where).num_rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files that fit."""
        assert isinstance(partition, Files)
        archive = Archive(partition.place)
        for file in partition.files:
            for batch in self._of(archive, file):
                names = pa.repeat(pa.scalar(file.namespace, pa.string()), batch.num_rows)
                columns = [names if name == NAMESPACE.name else batch.column(name) for name in self.schema.names]
                if batch.num_rows:
                    yield pa.RecordBatch.from_arrays(
                        [column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)],
                        schema=self.schema,
                    )

    def _of(self, archive: Archive, file: File) -> Iterator[pa.RecordBatch]:
        number, columns, version, current = KINDS[self.what.kind]
        names = [name for name in self.schema.names if name != NAMESPACE.name] or [number]
        where = condition(self.conditions, columns)
        try:
            stream = archive.open(file)
        except FileNotFoundError:
            raise ArchiveError(
                f"{file.name} in {archive.root} was merged since it was listed, and the grace time is over. Read again."
            ) from None
        with stream, undamaged(archive, file):
            if file.version < version:
                table = current(pq.ParquetFile(stream).read())
                table = pa.concat_tables([columns.empty_table(), table], promote_options="default")
                yield from ds.dataset(table).to_batches(columns=names, filter=where, batch_size=BATCH)
            else:
                found = ds.ParquetFileFormat().make_fragment(stream)
                yield from found.to_batches(schema=columns, columns=names, filter=where, batch_size=BATCH)


class PushedArchiveReader(ArchiveReader):
    """Reads only what the conditions of a query allow."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the conditions; Spark checks all of them again."""
        self.conditions += filters
        return filters
