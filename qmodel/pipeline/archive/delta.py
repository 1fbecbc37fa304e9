"""Add the events of a server to a table of Delta Lake (extra `delta`), each once.

The table is partitioned by its first columns, `namespace` and `day`; the others are those of
`qmodel.pipeline.events.schema`.
The position is in the table: an application transaction of Delta for the last sequence of a namespace, and one for its
epoch, are part of each commit. Both are read from the snapshot that the commit is based on. If another process has
added events of the namespace since, Delta refuses the commit. So a writer may be killed at any moment, and of two that
write the same events one succeeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.exceptions import DeltaError as Failed

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.errors import Forked, QmodelError
from qmodel.pipeline.archive.write import namespace_of
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.decode import read, tables
from qmodel.pipeline.events.gaps import Gap, SequenceWentBack, named
from qmodel.pipeline.events.histories import Position, check, epochs_at, gone, is_gap
from qmodel.pipeline.events.schema import SCHEMA

ROWS = 100_000
"""The default number of events of a commit."""

HEAD = ("namespace", "day")
"""The columns before those of events."""


class DeltaError(QmodelError):
    """Raised if the table cannot take the events. The message says why."""


class Added(NamedTuple):
    """A commit: the last sequence in the table, the newest one at the start, the rows that were added, and what of
    its range the server no longer kept.
    """

    namespace: str
    last: int
    newest: int
    rows: int
    gaps: tuple[Gap, ...] = ()


def columns() -> pa.Schema:
    """The columns of the table: its moments count microseconds, as Delta's do."""
    micro = pa.timestamp("us", "UTC")
    fields = [pa.field(one.name, micro if pa.types.is_timestamp(one.type) else one.type) for one in SCHEMA]
    return pa.schema([*(pa.field(name, pa.string()) for name in HEAD), *fields])


def position(table: Any, namespace: str) -> Position:
    """Give the last event of a namespace in a snapshot of the table."""
    number = table.transaction_version(namespace)
    return Position(number or 0, table.transaction_version(f"{namespace} epoch"))


def append(
    url: str, place: str, *, namespace: str = "", rows: int = ROWS, storage: Any = None, skip_gaps: bool = False
) -> Iterator[Added]:
    """Add new events to the table at a folder or URL, up to the newest one at the start; yield after each commit.

    `namespace` is the name in the table, by default the prefix of the keys; `storage` are options of Delta for the
    object store. Raises EventsGone if the server no longer keeps the next events; with `skip_gaps`, leaves these out
    and continues. Raises Forked if it lost events that are in the table, SequenceWentBack if the table is ahead of the
    server, and DeltaError if another process has added events, or the table cannot be opened or has other rows.
    """
    with Client(url) as client:
        name = namespace or namespace_of(client)
        table = _opened(place, storage)
        begin, newest = position(table, name), Position(*client.position())
        try:
            check(client, ops.Events, begin)
        except Forked as fork:
            if not is_gap(client, ops.Events, fork):
                raise
        if newest.number < begin.number:
            raise SequenceWentBack(begin.number, newest.number)
        kept_after = begin.number  # a commit ends with an event that the server keeps, so that its epoch is known
        if skip_gaps and (gap := gone(client, ops.Events, begin.number, newest.number)):
            kept_after = gap[0].last
        cuts = [begin.number, *range(kept_after, newest.number, rows)[1:], newest.number]
        epochs = [begin.epoch, *epochs_at(client, ops.Events, cuts[1:-1]), newest.epoch]
        ends = [Position(*pair) for pair in zip(cuts, epochs, strict=True)] if newest.number > begin.number else []
        for after, until in pairwise(ends):
            gaps: list[Gap] | None = [] if skip_gaps else None
            found = tables(
                read(client, after.number, until.number, epoch=after.epoch, last_epoch=until.epoch, gaps=gaps)
            )
            _commit(table, name, after, until, found, storage, gaps or ())
            yield Added(name, until.number, newest.number, found.num_rows, tuple(gaps or ()))
            table.update_incremental()


def _opened(place: str, storage: Any) -> Any:
    """Open the table, or make it. Raises DeltaError if that is not possible, or if it has other rows."""
    try:
        table = DeltaTable.create(
            place, columns(), mode="ignore", partition_by=list(HEAD), storage_options=storage, name="events"
        )
        names = {field.name for field in table.schema().fields}
        is_of_events = table.metadata().partition_columns == list(HEAD) and {"seq", "event", "epoch"} <= names
    except (Failed, OSError) as error:
        said = str(error).partition("\n")[0]
        raise DeltaError(
            f"{place} cannot be opened as a table of Delta Lake: {said}. Give a folder, or a URL such as s3:// or gs://."
        ) from None
    if not is_of_events:
        raise DeltaError(f"{place} is a table with other rows. Nothing was added. Give a folder or URL of its own.")
    return table


def _commit(
    table: Any, name: str, after: Position, until: Position, found: pa.Table, storage: Any, gaps: Sequence[Gap]
) -> None:
    """Add events after a position of the table's snapshot, and the new position, in one commit."""
    if position(table, name).number != after.number:
        raise DeltaError(f"Another process has added events of {name!r} after {after.number} to the table meanwhile.")
    days = pc.strftime(found.column("happened_at"), "%Y-%m-%d")
    rows = found.add_column(0, "day", days).add_column(0, "namespace", pa.repeat(name, len(found)))
    at = [Transaction(name, until.number), Transaction(f"{name} epoch", until.epoch or 0)]
    told = {"qmodel_gone": named(gaps)} if gaps else None
    try:
        write_deltalake(
            table,
            rows.cast(columns()),
            mode="append",
            schema_mode="merge",
            storage_options=storage,
            commit_properties=CommitProperties(custom_metadata=told, app_transactions=at),
        )
    except CommitFailedError as error:
        raise DeltaError(
            f"Another process has added events of {name!r} to the table meanwhile, and nothing was added: {error}"
        ) from None
