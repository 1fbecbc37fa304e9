"""Report what an audit found as a table: a row for each difference, and one for the end of each segment.

`kind` names the sort of row: `reply`, an entry with another outcome in production than in the model; `state`, a part of
the state that differs at the end of the segment (`expected` names it); `stopped`, the reason why a segment was not
audited to its end; `end`, the number of entries in the segment.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from qmodel.errors import QmodelError
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.audit.replay import Audit, differences, without_collection
from qmodel.pipeline.journal import archive
from qmodel.pipeline.journal.archive import Segment
from qmodel.pipeline.journal.pages import Row

_TEXTS = pa.list_(pa.string())

SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("namespace", pa.string()),
        pa.field("after", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("call", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("expected", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("expected_seq", pa.int64()),
        pa.field("before", _TEXTS),
        pa.field("jobs", _TEXTS),
        pa.field("entries", pa.int64()),
        pa.field("seconds", pa.float64()),
    ]
)

MOST = 1000
"""The most differences that are reported for a segment; then its audit stops."""

Finding = dict[str, Any]


def found(root: str, segment: Segment, entries: Iterable[Row], save: bool = False) -> Iterator[Finding]:
    """Audit the entries of a segment; with `save`, keep the state after the last segment."""
    said = {"namespace": segment.namespace, "after": segment.after}
    began, audit = time.monotonic(), Audit()
    try:
        if segment.after:
            audit = Audit(archive.state(root, segment.namespace, segment.after))
        for told, difference in enumerate(audit.follow(entries), 1):
            yield {**said, "kind": "reply", **difference._asdict()}
            if told == MOST:
                raise QmodelError(f"More than {MOST} entries differ.")
        yield from _state(root, segment, audit, said)
        if save and not segment.last:
            archive.keep(root, segment.namespace, audit.state())
    except (QmodelError, ValueError, OSError) as error:
        yield {**said, "kind": "stopped", "number": audit.number, "expected": str(error)}
    seconds = time.monotonic() - began
    yield {**said, "kind": "end", "number": audit.number, "entries": audit.entries, "seconds": seconds}


def _state(root: str, segment: Segment, audit: Audit, said: Finding) -> Iterator[Finding]:
    """Compare the state at the end of a segment with the state at the start of the next one, if that was kept."""
    if not segment.last:
        return
    if audit.number != segment.last:
        raise QmodelError(f"The segment ends with entry {audit.number} instead of {segment.last}.")
    if segment.last not in archive.states(root, segment.namespace):  # entries behind it are lost
        return
    for path in differences(audit.state(), archive.state(root, segment.namespace, segment.last))[:MOST]:
        yield {**said, "kind": "state", "number": segment.last, "expected": path}


def batch(rows: Iterable[Finding]) -> pa.RecordBatch:
    """Convert findings to a batch."""
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def audited(root: str, segment: Segment, save: bool = False) -> list[Finding]:
    """Audit a segment of an archive in this process."""
    entries = archive.rows(root, segment.namespace, segment.after, segment.last or None)
    with without_collection():
        return list(found(root, segment, entries, save))
