"""Define the columns of a table of events: three that every event has, and one for each fact of the catalogue.

A column has the name and the type of its fact, and is null for events without that fact. So one table has all events,
and a query needs no list of kinds. Columns that are entirely null cost next to nothing in Parquet.

VERSION is written into each table. It rises when a column is removed or changes its type or meaning. A new column does
not raise it: tables of one version are joined by column name, and missing columns are null.
"""

from __future__ import annotations

from qmodel.contract.events import EVENTS, WHOLE
from qmodel.pipeline.arrow import pa

VERSION = 1
VERSION_KEY = b"qmodel.contract.events"

HEADS = ("seq", "at", "event")
"""The columns that every event has."""

FACTS: tuple[str, ...] = tuple(sorted({fact for facts in EVENTS.values() for fact in facts}))
"""The facts of all events, by name."""


def _type(fact: str) -> pa.DataType:
    return pa.int64() if fact in WHOLE else pa.string()


SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),  # milliseconds since 1970, as everywhere
        pa.field("event", pa.string(), nullable=False),
        *(pa.field(fact, _type(fact)) for fact in FACTS),
    ],
    metadata={VERSION_KEY: str(VERSION).encode()},
)
"""The columns of every table of events."""


def version_of(schema: pa.Schema) -> int:
    """Read the version of a table of events; 0 if the table has no events."""
    return int((schema.metadata or {}).get(VERSION_KEY, b"0"))
