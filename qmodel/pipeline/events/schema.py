"""The columns of a table of events: three that all have, and one for each fact of the catalogue.

A column has the name and the type of its fact, and is empty (null) where an event has no such fact. So one table
holds all events, and a query needs no list of kinds. The columns that are empty throughout cost next to nothing in
Parquet.

VERSION is written into each table. It rises when a column goes or changes its type or meaning; a column that is added
does not raise it: tables of one version are put together by name, and what an older one has not is null.
"""

from __future__ import annotations

from qmodel.contract.events import EVENTS, WHOLE
from qmodel.pipeline.arrow import pa

VERSION = 1
VERSION_KEY = b"qmodel.contract.events"

HEADS = ("seq", "at", "event")
"""What all events have."""

FACTS: tuple[str, ...] = tuple(sorted({fact for facts in EVENTS.values() for fact in facts}))
"""The facts that events have, by name."""


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
"""Of every table of events."""


def version_of(schema: pa.Schema) -> int:
    """The version with which a table was written, 0 for a table that is none of events."""
    return int((schema.metadata or {}).get(VERSION_KEY, b"0"))
