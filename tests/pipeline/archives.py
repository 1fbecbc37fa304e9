"""Make events for archives, and read archives with plain Parquet readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qmodel import Client
from qmodel.contract import operations as ops

DAY_MS = 86_400_000


def put(client: Client, count: int, day: int = 20_000) -> None:
    """Make put events of jobs in three queues, on a day since 1970."""
    newest = client.newest()
    for number in range(count):
        client.execute(ops.Put(f"q{number % 3}", f"j{newest + number}", "Send", ""), now=day * DAY_MS + number)


def stored(root: Path) -> list[int]:
    """List the sequences in all files that a plain reader finds, in order."""
    import pyarrow.parquet as pq

    found = [seq for path in root.rglob("*.parquet") for seq in pq.ParquetFile(path).read().column("seq").to_pylist()]
    return sorted(found)


def as_version_2(table: Any) -> Any:
    """Give a table the columns of version 2: those named as their facts, and moments as numbers."""
    import pyarrow as pa

    from qmodel.pipeline.events import schema

    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in table.itercolumns()
    ]
    names = [schema.FACT_OF.get(name, name) for name in table.column_names]
    return pa.table(columns, names).replace_schema_metadata({schema.VERSION_KEY: b"2"})
