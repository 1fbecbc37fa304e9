"""Convert events to Arrow batches, from the entries of the stream or from a client, and back.

`read` gets them page by page, and proves that each page follows the one before. A program that has the entries by other
means, such as XRANGE on a replica or a dump, calls `entry` for each, and then `batch` for all of their events.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, TypeVar

from qmodel.client.sync import Client
from qmodel.contract.events import BETWEEN_TAGS, EVENTS, OPTIONAL, WHOLE, Event, is_whole
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.columns import LEFT_OUT, UnknownEvent, batch_of
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.pages import Page, has_texts, pages, texts
from qmodel.pipeline.events.schema import (
    FACT_OF,
    HEADS,
    MOMENT,
    MOMENTS,
    NAMED,
    SCHEMA,
    VERSION,
    current,
    moment,
    version_of,
)

T = TypeVar("T")

ROWS = 10_000
"""The rows of a batch, up to one page more: the columns of a small batch cost more than its rows."""


def entry(id: bytes, fields: dict[bytes, bytes]) -> list[Event]:
    """Make the events of an entry of the stream, as Redis clients give it. Raises UnknownEvent."""
    last, epoch = map(int, id.split(b"-"))
    lines = fields[b"e"].decode().split("\n")
    return [_event(last - len(lines) + i, text, epoch) for i, text in enumerate(lines, 1)]


def _event(seq: int, text: str, epoch: int) -> Event:
    at, kind, *facts = text.split("\t")
    if not is_whole(kind, len(facts)):
        raise UnknownEvent(seq, text)
    pairs = zip(EVENTS[kind], facts, strict=kind not in OPTIONAL)
    return Event(seq, int(at), kind, tuple(int(fact) if name in WHOLE else fact for name, fact in pairs), epoch)


def batch(events: Sequence[Event], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """Make a batch of events in their order, with all columns or those of a narrower schema."""
    count = len(events)
    seqs, ats, kinds, facts, epochs = zip(*events, strict=True) if events else ((), (), (), (), ())
    rows: dict[str, list[int]] = defaultdict(list)
    for row, kind in enumerate(kinds):
        rows[kind].append(row)
    wanted = frozenset(schema.names)
    columns: dict[str, list[Any]] = defaultdict(lambda: [None] * count)
    for kind, places in rows.items():  # kind by kind: row by row takes half as long again
        values_of = zip_longest if kind in OPTIONAL else partial(zip, strict=True)
        for name, values in zip(EVENTS[kind], values_of(*(facts[row] for row in places)), strict=kind not in OPTIONAL):
            if (named := NAMED.get(name, name)) in wanted:
                column = columns[named]
                for row, value in zip(places, values, strict=True):
                    column[row] = value
    if "tags" in columns:
        columns["tags"] = [None if one is None else one.split(BETWEEN_TAGS) for one in columns["tags"]]
    found = columns | dict(zip(HEADS, (seqs, ats, kinds, epochs), strict=True))
    arrays = [
        _array(found[field.name], field) if field.name in found else pa.nulls(count, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    return moment(pa.array(values, pa.int64()), field.type) if field.name in MOMENTS else pa.array(values, field.type)


def events_of(table: pa.RecordBatch | pa.Table) -> Iterator[Event]:
    """Yield the events of a batch or a table, in its order. Those of version 1 are of epoch 0.

    Raises ValueError for a table that has no events or was written by a later version, and UnknownEvent for an event
    that is not in this catalogue.
    """
    found = version_of(table.schema)
    if not 0 < found <= VERSION:
        raise ValueError(f"a table of events has version 1 to {VERSION}, and this has {found or 'none'}")
    if found < VERSION:
        table = current(table if isinstance(table, pa.Table) else pa.Table.from_batches([table]))
    named = [name for name in table.schema.names if table.column(name).null_count < table.num_rows]
    columns = {FACT_OF.get(name, name): _values(table.column(name)) for name in named}
    epochs = columns.get("epoch") or [0] * table.num_rows
    absent = [None] * table.num_rows
    for row in range(table.num_rows):
        kind = columns["event"][row]
        names = EVENTS.get(kind, ())
        if kind in OPTIONAL:
            names = tuple(name for name in names if name not in LEFT_OUT or columns.get(name, absent)[row] is not None)
        if not names or not columns.keys() >= set(names):
            raise UnknownEvent(columns["seq"][row], kind)
        facts = tuple(columns[name][row] for name in names)
        yield Event(columns["seq"][row], columns["at"][row], kind, facts, epochs[row] or 0)


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Give the values of a column; decimals are tokens, which are whole numbers, lists are tags, timestamps moments."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(MOMENT).cast(pa.int64())
    found: list[Any] = column.to_pylist()
    if pa.types.is_list(column.type):
        return [None if value is None else BETWEEN_TAGS.join(value) for value in found]
    if pa.types.is_decimal(column.type):
        return [None if value is None else int(value) for value in found]
    return found


def read(
    client: Client,
    after: int = 0,
    last: int | None = None,
    *,
    epoch: int | None = None,
    last_epoch: int | None = None,
    gaps: list[Gap] | None = None,
    schema: pa.Schema = SCHEMA,
) -> Iterator[pa.RecordBatch]:
    """Yield the events of `qmodel.pipeline.events.pages` in batches of some pages each, with all columns or some."""
    if has_texts(client):
        for seqs, epochs, some in _gathered(texts(client, after, last, epoch=epoch, last_epoch=last_epoch, gaps=gaps)):
            yield batch_of(seqs, epochs, some, schema)
    else:
        found = (
            ([one.seq for one in page], [one.epoch for one in page], page)
            for page in pages(client, after, last, epoch=epoch, last_epoch=last_epoch, gaps=gaps)
        )
        for _, _, events in _gathered(found):
            yield batch(events, schema)


def _gathered(pages: Iterable[Page[T]]) -> Iterator[Page[T]]:
    """Join pages into batches."""
    seqs: list[int] = []
    epochs: list[int] = []
    some: list[T] = []
    for numbers, of, page in pages:
        seqs += numbers
        epochs += of
        some += page
        if len(seqs) >= ROWS:
            yield seqs, epochs, some
            seqs, epochs, some = [], [], []
    if seqs:
        yield seqs, epochs, some


def tables(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Join batches into one table; no batches give an empty table."""
    return pa.Table.from_batches(batches, schema=SCHEMA)
