"""Write histories as archives, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qmodel.contract.events import Event


def keep(root: Path, namespace: str, events: Sequence[Event]) -> None:
    """Write events as one file of an archive, under one day even if they have several: few files are read faster."""
    import pyarrow.parquet as pq

    from qmodel.pipeline.archive.layout import File
    from qmodel.pipeline.events.decode import batch, tables
    from qmodel.pipeline.events.schema import VERSION

    file = File(namespace, "2026-11-21", events[0].seq, events[-1].seq, len(events), VERSION, "", events[-1].epoch)
    path = root / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(tables([batch(events)]).sort_by([("queue", "ascending"), ("seq", "ascending")]), path)
