"""Read a task's part of the events: a range of sequences, through a client of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from qmodel.client.sync import Client
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.decode import read
from qmodel.pipeline.events.gaps import Gap, joined, named
from qmodel.pipeline.events.histories import Table, epochs_at
from qmodel.pipeline.events.schema import SCHEMA
from qmodel.pipeline.spark.types import micro, read_of

LOG = logging.getLogger("qmodel.pipeline")

ROWS = 100_000
"""The default number of events in a task: a task with few rows costs more than its rows."""


class Range(InputPartition):
    """The events after a sequence, up to another, of one history."""

    def __init__(self, after: int, last: int, epoch: int | None = None, last_epoch: int | None = None) -> None:
        self.after = after
        self.last = last
        self.epoch = epoch  # of the event `after`, if it is known
        self.last_epoch = last_epoch


def cut(after: int, last: int, rows: int, least: int = 1) -> list[Range]:
    """Cut a range into ranges of so many rows, or of fewer if there must be at least so many ranges.

    There is always at least one range: from an empty list Spark makes a partition of its own, without a range.
    """
    rows = max(min(rows, -(-(last - after) // least)), 1)
    return [Range(start, min(start + rows, last)) for start in range(after, last, rows)] or [Range(last, last)]


def pinned(client: Client, table: Table, ranges: list[Range], epoch: int | None, last_epoch: int | None) -> list[Range]:
    """Give each range the epochs at its ends, so that all tasks together prove that they read one history."""
    epochs = [epoch, *epochs_at(client, table, [one.last for one in ranges[:-1]]), last_epoch]
    return [Range(one.after, one.last, epochs[at], epochs[at + 1]) for at, one in enumerate(ranges)]


def chosen(schema: StructType, known: pa.Schema = SCHEMA, what: str = "") -> pa.Schema:
    """Give the columns of events that a read asks for by `schema("seq bigint, event string")`; by default all.

    Entries of the journal have other columns, given as `known`, and so have the rows of other tables, named as `what`.
    Raises ValueError for an unknown column or a wrong type.
    """
    asked = read_of(schema)
    of_events = "event" in known.names
    where = "docs/catalogue.md has those that they have" if of_events else f"they have {', '.join(known.names)}"
    what = what or ("events" if of_events else "entries")
    for field in asked:
        if field.name not in known.names:
            raise ValueError(f"{what.title()} have no column {field.name!r}: {where}.")
        found = micro(known).field(field.name)
        if found.type != field.type:
            raise ValueError(f"The column {field.name!r} of {what} is {found.type}, and not {field.type}.")
    return asked


def narrowed(filters: Iterable[Filter], column: str, after: int, last: int) -> tuple[int, int]:
    """Narrow a range by conditions on the number; give its bounds: after the first, up to the second."""
    for one in filters:
        if getattr(one, "attribute", None) != (column,):
            continue
        if isinstance(one, EqualTo | GreaterThanOrEqual):
            after = max(after, int(one.value) - 1)
        if isinstance(one, GreaterThan):
            after = max(after, int(one.value))
        if isinstance(one, EqualTo | LessThanOrEqual):
            last = max(0, min(last, int(one.value)))
        if isinstance(one, LessThan):
            last = max(0, min(last, int(one.value) - 1))
    return after, last


def read_range(url: str, part: Range, schema: pa.Schema, *, fail_on_data_loss: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a range.

    Raises EventsGone if some events are gone, unless losses are accepted, and Forked if the server lost one of the
    ends of the range.
    """
    gaps: list[Gap] | None = None if fail_on_data_loss else []
    with Client(url) as client:
        yield from read(
            client, part.after, part.last, epoch=part.epoch, last_epoch=part.last_epoch, gaps=gaps, schema=schema
        )
    warn_of(gaps or (), "Events")


def warn_of(gaps: Iterable[Gap], what: str) -> None:
    """Log what is gone from a range that was read with failOnDataLoss=false."""
    if some := joined(gaps):
        LOG.warning("%s %s are gone from the server and were not read: failOnDataLoss is false.", what, named(some))
