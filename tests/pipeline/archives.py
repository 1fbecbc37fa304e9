"""Make events for archives, and read archives with plain Parquet readers."""

from __future__ import annotations

from pathlib import Path

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
