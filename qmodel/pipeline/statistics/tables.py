"""Figures as tables, for other tools."""

from __future__ import annotations

from qmodel.pipeline.arrow import pa
from qmodel.pipeline.statistics.figures import Figures, Name, group_rows, histogram_rows

HEAD = [("namespace", pa.string()), ("day", pa.string()), ("kind", pa.string()), ("name", pa.string())]
BINS = pa.schema([*HEAD, ("measure", pa.string()), ("from_s", pa.int64()), ("count", pa.int64())])
GROUPS = pa.schema([*HEAD, ("group", pa.string()), ("failures", pa.int64())])


def figures_schema() -> pa.Schema:
    """Of the table `statistics`."""
    row = Figures().shown(Name("", 0, "", ""))
    rest = [(name, pa.float64() if isinstance(value, float) else pa.int64()) for name, value in row.items()]
    return pa.schema([*HEAD, *rest[len(HEAD) :]])


def tables(found: dict[Name, Figures]) -> dict[str, pa.Table]:
    """The tables `statistics`, `histograms` (bins that are not empty, in seconds) and `failures` (by group)."""
    rows = [one.shown(name) for name, one in found.items()]
    return {
        "statistics": pa.Table.from_pylist(rows, schema=figures_schema()),
        "histograms": pa.Table.from_pylist(histogram_rows(found), schema=BINS),
        "failures": pa.Table.from_pylist(group_rows(found), schema=GROUPS),
    }
