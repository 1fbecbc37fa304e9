"""Convert entries of the journal to tables: for the archive of journals and for Spark.

This module stands alone, because each task of Spark imports it without the code of archives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from qmodel.contract.replies import Recorded
from qmodel.pipeline.arrow import array, pa
from qmodel.pipeline.events.schema import MOMENT, moment
from qmodel.pipeline.journal.pages import Row, head

VERSION = 3
"""Version 1 had no epochs; up to version 2 the moment was a number, `at`."""

SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("happened_at", MOMENT, nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("call", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
    ],
    metadata={b"qmodel.journal": str(VERSION).encode()},
)
"""The columns of a table of entries."""

COLUMNS = ["number", "seq", "call", "outcome", "epoch"]
"""The columns that make an entry; the others repeat what its call says."""


def table(found: Sequence[Recorded]) -> pa.Table:
    """Convert entries to a table."""
    heads = [head(one) for one in found]
    columns: list[list[Any]] = [
        [one.number for one in found],
        [one.seq for one in found],
        [at for at, _ in heads],
        [operation for _, operation in heads],
        [one.call for one in found],
        [one.outcome for one in found],
        [one.epoch for one in found],
    ]
    arrays = [
        moment(pa.array(values, pa.int64()), MOMENT) if field.name == "happened_at" else array(values, field.type)
        for values, field in zip(columns, SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def current(table: pa.Table) -> pa.Table:
    """Convert a table of an earlier version, with all its columns or some: entries of version 1 are of epoch 0."""
    if "at" in table.column_names:
        place = table.column_names.index("at")
        table = table.set_column(place, SCHEMA.field("happened_at"), moment(table.column("at"), MOMENT))
    if "epoch" not in table.column_names:
        table = table.append_column(SCHEMA.field("epoch"), pa.repeat(pa.scalar(0, pa.int64()), table.num_rows))
    return table.replace_schema_metadata(SCHEMA.metadata)


def rows_of(batch: pa.RecordBatch | pa.Table) -> Iterator[Row]:
    """Give the entries of a table, in its order."""
    return zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
