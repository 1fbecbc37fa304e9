"""Store conformance campaigns as tables: a row for each part of a campaign."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qmodel.conformance.campaign.parts import Campaign, Found, Part, perform
from qmodel.conformance.campaign.reached import Reached
from qmodel.pipeline.arrow import pa

_REACHED = pa.struct(
    [
        ("operation", pa.string()),
        ("situation", pa.string()),
        ("outcome", pa.string()),
        ("times", pa.int64()),
    ]
)
_FOUND = pa.struct(
    [
        ("history", pa.string()),
        ("what", pa.string()),
        ("operation", pa.string()),
        ("drawn", pa.int64()),
        ("steps", pa.int64()),
        ("shrunk", pa.bool_()),
        ("text", pa.string()),
        ("vector", pa.string()),
    ]
)
SCHEMA: pa.Schema = pa.schema(
    [
        ("first", pa.int64()),
        ("histories", pa.int64()),
        ("steps", pa.int64()),
        ("seconds", pa.float64()),
        ("by", pa.string()),
        ("subject", pa.string()),
        ("reached", pa.list_(_REACHED)),
        ("failures", pa.list_(_FOUND)),
    ]
)
"""The columns of a table of parts: the fields of `qmodel.conformance.campaign.parts.Part`."""


def batch(part: Part) -> pa.RecordBatch:
    """Turn a part into a table of one row."""
    row = part._asdict()
    row["reached"] = [{**reached._asdict(), "times": times} for reached, times in part.reached]
    row["failures"] = [found._asdict() for found in part.failures]
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def part(row: Mapping[str, Any]) -> Part:
    """Turn a row back into a part."""
    reached = tuple((Reached(r["operation"], r["situation"], r["outcome"]), int(r["times"])) for r in row["reached"])
    failures = tuple(Found(**{name: one[name] for name in Found._fields}) for one in row["failures"])
    return Part(**{**{name: row[name] for name in Part._fields}, "reached": reached, "failures": failures})


def parts(what: Campaign, firsts: Iterable[int], examples: int, size: int) -> Iterator[pa.RecordBatch]:
    """Run the parts that begin with these numbers in this process; yield a table of one row when a part is done."""
    for first in firsts:
        yield batch(perform(what, first, min(size, examples - first)))
