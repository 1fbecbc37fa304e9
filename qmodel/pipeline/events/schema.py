"""Define the columns of a table of events: four that every event has, and one for each fact of the catalogue.

A column has the name and the type of its fact, and is null for events without that fact; `tags` is a list, and moments
are timestamps. So one table has all events, and a query needs no list of kinds. Facts whose names are words of SQL have
other names as columns (`NAMED`), so that no query needs quotes. Columns that are entirely null cost
next to nothing in Parquet.

VERSION is written into each table. It rises when a column is removed or changes its type or meaning. A new column does
not raise it: tables of one version are joined by column name, and missing columns are null.

Version 1 had no epochs, so all its events are of epoch 0; and its tokens had 64 bits. A token has up to 30 digits since
it is made of an epoch and a sequence. Up to version 2 columns had the names of their facts, and moments were numbers.
"""

from __future__ import annotations

from qmodel.contract.events import EVENTS, WHOLE
from qmodel.pipeline.arrow import pa

VERSION = 3
VERSION_KEY = b"qmodel.contract.events"

HEADS = ("seq", "happened_at", "event", "epoch")
"""The columns that every event has."""

FACTS: tuple[str, ...] = tuple(sorted({fact for facts in EVENTS.values() for fact in facts} - {"epoch"}))
"""The facts of all events, by name. The epoch that begins is the epoch of the event."""

NAMED: dict[str, str] = {
    "at": "happened_at",
    "group": "failure_group",
    "left": "left_count",
    "limit": "request_limit",
    "to": "to_queue",
    "unique": "unique_key",
}
"""The columns that have another name than their fact."""

FACT_OF: dict[str, str] = {column: fact for fact, column in NAMED.items()}
"""The facts of those columns."""

MOMENT: pa.DataType = pa.timestamp("ms", "UTC")
"""The type of moments."""

MOMENTS = ("happened_at", "due_at", "last_at", "next_at", "ready_at")
"""The columns that are moments."""

TOKEN: pa.DataType = pa.decimal128(38, 0)
"""The type of tokens: whole numbers of up to 30 digits."""


def _type(fact: str) -> pa.DataType:
    if fact == "token":
        return TOKEN
    if fact == "tags":
        return pa.list_(pa.string())
    if fact in MOMENTS:
        return MOMENT
    return pa.int64() if fact in WHOLE else pa.string()


SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("happened_at", MOMENT, nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        *(pa.field(NAMED.get(fact, fact), _type(fact)) for fact in FACTS),
    ],
    metadata={VERSION_KEY: str(VERSION).encode()},
)
"""The columns of every table of events."""


def version_of(schema: pa.Schema) -> int:
    """Read the version of a table of events; 0 if the table has no events."""
    return int((schema.metadata or {}).get(VERSION_KEY, b"0"))


def moment(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert milliseconds since 1970, or texts of them, to timestamps of a type."""
    return values.cast(pa.int64()).cast(MOMENT).cast(kind)


def current(table: pa.Table) -> pa.Table:
    """Convert a table of an earlier version to the current one; another one is returned as it is."""
    version = version_of(table.schema)
    if not 0 < version < VERSION:
        return table
    if version == 1:
        table = _of_version_2(table)
    names = [NAMED.get(name, name) for name in table.schema.names]
    columns = [
        moment(column, MOMENT) if name in MOMENTS else column for name, column in zip(names, table.columns, strict=True)
    ]
    fields = [
        SCHEMA.field(name) if name in SCHEMA.names else field for name, field in zip(names, table.schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=SCHEMA.metadata))


def _of_version_2(table: pa.Table) -> pa.Table:
    """Add what version 1 did not have: epochs, and tokens of more than 64 bits."""
    if "token" in table.schema.names:
        at = table.schema.get_field_index("token")
        tokens = table.column("token").cast(pa.decimal128(19, 0)).cast(TOKEN)
        table = table.set_column(at, pa.field("token", TOKEN), tokens)
    if "epoch" not in table.schema.names:
        table = table.append_column(SCHEMA.field("epoch"), pa.repeat(pa.scalar(0, pa.int64()), table.num_rows))
    return table
