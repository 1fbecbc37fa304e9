"""Entries of the journal as tables: what the archive of journals and Spark read and write.

A module of its own, for each task of Spark imports it, and nothing that keeps archives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from qmodel.contract.replies import Recorded, record
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.journal.pages import head

VERSION = 1

SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("call", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
    ],
    metadata={b"qmodel.journal": str(VERSION).encode()},
)
"""Of every table of entries."""

COLUMNS = ["number", "seq", "call", "outcome"]
"""What an entry is made of; the others say the same as its call."""


def table(found: Sequence[Recorded]) -> pa.Table:
    """Entries as a table."""
    heads = [head(one) for one in found]
    columns = [
        [one.number for one in found],
        [one.seq for one in found],
        [at for at, _ in heads],
        [operation for _, operation in heads],
        [one.call for one in found],
        [one.outcome for one in found],
    ]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def entries_of(batch: pa.RecordBatch | pa.Table) -> Iterator[Recorded]:
    """The entries of a table, in its order."""
    columns = (batch.column(name).to_pylist() for name in COLUMNS)
    yield from map(_entry, zip(*columns, strict=True))


_entry = partial(record, Recorded)
"""What `Recorded._make` does, a million times."""
