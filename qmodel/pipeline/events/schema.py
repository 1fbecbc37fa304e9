"""Define the columns of a table of events: four that every event has, and one for each fact of the catalogue.

A column has the name and the type of its fact, and is null for events without that fact; `tags` is a list. So one table
has all events, and a query needs no list of kinds. Columns that are entirely null cost next to nothing in Parquet.

VERSION is written into each table. It rises when a column is removed or changes its type or meaning. A new column does
not raise it: tables of one version are joined by column name, and missing columns are null.

Version 1 had no epochs, so all its events are of epoch 0; and its tokens had 64 bits. A token has up to 30 digits since
it is made of an epoch and a sequence.
"""

from __future__ import annotations

from qmodel.contract.events import EVENTS, WHOLE
from qmodel.pipeline.arrow import pa

VERSION = 2
VERSION_KEY = b"qmodel.contract.events"

HEADS = ("seq", "at", "event", "epoch")
"""The columns that every event has."""

FACTS: tuple[str, ...] = tuple(sorted({fact for facts in EVENTS.values() for fact in facts} - {"epoch"}))
"""The facts of all events, by name. The epoch that begins is the epoch of the event."""

TOKEN: pa.DataType = pa.decimal128(38, 0)
"""The type of tokens: whole numbers of up to 30 digits."""


def _type(fact: str) -> pa.DataType:
    if fact == "token":
        return TOKEN
    if fact == "tags":
        return pa.list_(pa.string())
    return pa.int64() if fact in WHOLE else pa.string()


SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),  # milliseconds since 1970, as everywhere
        pa.field("event", pa.string(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        *(pa.field(fact, _type(fact)) for fact in FACTS),
    ],
    metadata={VERSION_KEY: str(VERSION).encode()},
)
"""The columns of every table of events."""


def version_of(schema: pa.Schema) -> int:
    """Read the version of a table of events; 0 if the table has no events."""
    return int((schema.metadata or {}).get(VERSION_KEY, b"0"))


def current(table: pa.Table) -> pa.Table:
    """Convert a table of version 1 to the current version; another one is returned as it is."""
    if version_of(table.schema) != 1:
        return table
    if "token" in table.schema.names:
        at = table.schema.get_field_index("token")
        tokens = table.column("token").cast(pa.decimal128(19, 0)).cast(TOKEN)
        table = table.set_column(at, pa.field("token", TOKEN), tokens)
    if "epoch" not in table.schema.names:
        table = table.append_column(SCHEMA.field("epoch"), pa.repeat(pa.scalar(0, pa.int64()), table.num_rows))
    return table.replace_schema_metadata(SCHEMA.metadata)
