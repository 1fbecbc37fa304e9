"""Publish figures as tables for other tools.

A nightly run counts one day, and a folder may have a thousand. So a table is rewritten with new figures for the days
that runs have added to, and the other days are copied. Each file names the last run that it contains; if a process is
killed between, the next one makes up for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.pipeline.arrow import pa
from qmodel.pipeline.statistics.count import Engine, collect
from qmodel.pipeline.statistics.figures import Figures, Name, date_of, group_rows, histogram_rows
from qmodel.pipeline.statistics.runs import Busy, Runs, runs_at

RUN = b"qmodel.run"
"""The key in a file's metadata for the mark of the last run that the file contains."""

COPIED = 100_000
"""The number of rows that are copied at a time."""

HEAD = [("namespace", pa.string()), ("day", pa.string()), ("kind", pa.string()), ("name", pa.string())]
BINS = pa.schema([*HEAD, ("measure", pa.string()), ("from_s", pa.int64()), ("count", pa.int64())])
GROUPS = pa.schema([*HEAD, ("failure_group", pa.string()), ("failures", pa.int64())])


def figures_schema() -> pa.Schema:
    """The columns of the table `statistics`."""
    row = Figures().shown(Name("", 0, "", ""))
    rest = [(name, pa.float64() if isinstance(value, float) else pa.int64()) for name, value in row.items()]
    return pa.schema([*HEAD, *rest[len(HEAD) :]])


def tables(found: dict[Name, Figures]) -> dict[str, pa.Table]:
    """Make the tables `statistics`, `histograms` (bins that are not empty, in seconds) and `failures` (by group)."""
    rows = [one.shown(name) for name, one in found.items()]
    return {
        "statistics": pa.Table.from_pylist(rows, schema=figures_schema()),
        "histograms": pa.Table.from_pylist(histogram_rows(found), schema=BINS),
        "failures": pa.Table.from_pylist(group_rows(found), schema=GROUPS),
    }


def publish(engine: Engine, out: str) -> None:
    """Write the tables of all runs into their folder, each by one rename, unless another process counts into it."""
    runs = runs_at(out)
    try:
        with runs.alone():
            _publish(engine, runs)
    except Busy:
        return


def _publish(engine: Engine, runs: Runs) -> None:
    last, empty = max(runs.numbers(), default=0), tables({})
    known = min(_known(runs, name, table.schema) for name, table in empty.items())
    days = list[int]()
    if fresh := runs.cells(known):
        engine.parquet("cells", runs.cells())
        engine.parquet("fresh", fresh)
        days = [day for (day,) in engine.rows("select distinct day from fresh order by day")]
    elif known and known == last:
        return
    found, dates = tables(collect(engine, days=days)) if days else empty, set(map(date_of, days))
    for name, table in found.items():
        marked = table.replace_schema_metadata({RUN: runs.mark(last)})
        _write(marked, runs.table(f"_{name}"), runs.table(name) if known else None, dates)
        runs.publish(f"_{name}", name)


Place = tuple[Any, str]
"""A file system of pyarrow, and a path."""


def _known(runs: Runs, name: str, schema: pa.Schema) -> int:
    """Read the last run that a table contains; 0 if it must be written from scratch."""
    files, path = runs.table(name)
    try:
        found = pq.read_schema(path, filesystem=files)
    except (OSError, pa.ArrowInvalid):  # it is not there, or damaged
        return 0
    mark = (found.metadata or {}).get(RUN, b"0").decode()
    number = int(mark.split()[0])
    return number if found.equals(schema) and mark == runs.mark(number) else 0


def _write(table: pa.Table, made: Place, before: Place | None, days: Collection[str]) -> None:
    """Write a file from another one, without some days, and then a table."""
    files, path = made
    with (
        files.open_output_stream(path, compression=None) as out,
        pq.ParquetWriter(out, table.schema, compression="zstd") as writer,
    ):
        for batch in _batches(before) if before else ():
            others = batch.filter(pc.invert(pc.is_in(batch.column("day"), pa.array(sorted(days), pa.string()))))
            writer.write_batch(others.replace_schema_metadata(table.schema.metadata))
        writer.write_table(table)


def _batches(place: Place) -> Iterator[pa.RecordBatch]:
    files, path = place
    with files.open_input_file(path) as file:
        yield from pq.ParquetFile(file).iter_batches(COPIED)
