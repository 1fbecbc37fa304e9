"""New events into the archive, in ranges that can be written anywhere, and are added in their order.

Each range is a task: it reads its events through a client of its own, with the proof that none is missing, and writes
one file for each day among them. `archive` plans the ranges from the archive's names and the newest event, lets them be
written by whoever is told to, and commits them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.archive.commit import Writer, sync, told, writing
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit, File
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.decode import events_of, read, tables
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack
from qmodel.pipeline.events.schema import VERSION
from qmodel.processes import Run

ROWS = 100_000
"""How many events a task writes: it needs 80 MB for them."""

TOGETHER = 10
"""How many tasks are committed together."""

GROUP = 100_000
"""Rows that a reader must read of a file, at least, if it wants any."""

DAY_MS = 86_400_000


class Task(NamedTuple):
    """A range of events, after a sequence and up to another, that is to be written to a folder."""

    url: str
    root: str
    folder: str
    namespace: str
    after: int
    last: int
    skip_gaps: bool


class Written(NamedTuple):
    """What a task wrote: files, with their paths below its folder, and which events were gone."""

    files: tuple[File, ...]
    gaps: tuple[Gap, ...]


class Progress(NamedTuple):
    """How far the archive is after a commit."""

    namespace: str
    last: int  # in the archive
    newest: int  # on the server
    rows: int  # added by this commit
    files: int
    holes: tuple[Gap, ...]
    kept: int  # by the server, of the newest
    margin: int  # so many more events before this, and some would have been lost


def namespace_of(client: Client) -> str:
    """The namespace of a client: what its keys begin with; "" where it has none."""
    return str(getattr(getattr(client.backend, "options", None), "prefix", ""))


def write(task: Task) -> Written:
    """Write a range into its folder. Raises EventsGone where some are gone, unless those may be."""
    gaps: list[Gap] | None = [] if task.skip_gaps else None
    with Client(task.url) as client:
        table = tables(read(client, task.after, task.last, gaps=gaps))
    if table.num_rows + sum(map(len, gaps or ())) != task.last - task.after:
        raise SequenceWentBack(task.last, task.after + table.num_rows)
    with told(task.root):
        archive = Archive(task.root)
        parts = sorted(days(table).items())
        files = tuple(write_file(archive, task.folder, task.namespace, day, part) for day, part in parts)
    return Written(files, tuple(gaps or ()))


def days(table: pa.Table) -> dict[str, pa.Table]:
    """The rows of each day, by its date."""
    day = day_of(table)
    return {str(one.as_py().date()): table.filter(pc.equal(day, one)) for one in day.unique()}


def day_of(table: pa.Table) -> pa.ChunkedArray:
    """The start of each row's day, in UTC."""
    return pc.floor_temporal(table.column("at").cast(pa.timestamp("ms")), unit="day")


def write_file(archive: Archive, folder: str, namespace: str, day: str, table: pa.Table) -> File:
    """Write some rows of a day to a folder, sorted; `path` is the name below that folder."""
    bounds = pc.min_max(table.column("seq"))
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    path = f"{first}-{day}.part"
    whole = archive.at(f"{folder}/{path}")
    with archive.fs.open_output_stream(whole) as out:
        pq.write_table(_ordered(table), out, row_group_size=GROUP, compression="zstd")
    if archive.local:
        sync(whole)
    return File(namespace, day, first, last, table.num_rows, VERSION, path)


def _ordered(table: pa.Table) -> pa.Table:
    """The rows by queue and sequence. Columns without a value take no part: they are most."""
    count = table.num_rows
    used = [name for name in table.column_names if table.column(name).null_count < count]
    found = table.select(list(dict.fromkeys([*used, "queue"]))).sort_by([("queue", "ascending"), ("seq", "ascending")])
    columns = [found.column(f.name) if f.name in used else pa.nulls(count, f.type) for f in table.schema]
    return pa.Table.from_arrays(columns, schema=table.schema)


def archive(
    url: str,
    root: str,
    *,
    namespace: str = "",
    run: Run = map,
    rows: int = ROWS,
    together: int = TOGETHER,
    skip_gaps: bool = False,
) -> Iterator[Progress]:
    """Add to an archive what is not in it, up to the newest event at the beginning; gives the progress of each commit.

    `namespace` is the name there, by default what the keys begin with; `run` performs the tasks, of `rows` events each,
    and so many `together` are committed. Raises EventsGone where the server keeps no longer what was to be archived
    next, with `skip_gaps` records that as a hole and goes on; SequenceWentBack where the archive is ahead of the
    server; ArchiveError where the archive is not whole, or another one writes to it, or cannot, or it is of others.
    """
    with Client(url) as client:
        namespace = namespace or namespace_of(client)
        newest = client.newest()
        kept = int(client.execute(ops.ConfigGet("max-events")))
    if not namespace:
        raise ArchiveError(f"{url} has no prefix: give the namespace a name under which the archive keeps it.")
    with told(root), writing(Archive(root), namespace) as writer:
        last = writer.archive.last(namespace)
        if newest < last:
            raise SequenceWentBack(last, newest)
        _compare(url, writer.archive, namespace, last)
        if last == newest:
            yield Progress(namespace, last, newest, 0, 0, (), kept, kept)
        while last < newest:
            until, margin = min(newest, last + rows * together), max(kept - (newest - last), 0)
            starts = range(last, until, rows)
            done, holes = _add(
                writer,
                run,
                [
                    Task(url, writer.archive.place, "", namespace, start, min(start + rows, until), skip_gaps)
                    for start in starts
                ],
            )
            last = until
            yield Progress(namespace, last, newest, sum(file.rows for file in done), len(done), holes, kept, margin)


def _compare(url: str, archive: Archive, namespace: str, last: int) -> None:
    """See that the last event of the archive is the server's, if it keeps that one still.

    A server that was emptied, or restored from an older copy, tells of other events with the same sequences, and may
    have told of more by now than are archived.
    """
    files = [file for file in archive.files(namespace, after=last - 1) if file.last == last]
    with Client(url) as client:
        there = client.execute(ops.Events(last - 1, 1)) if files else ()
    if not there or there[0].seq != last:
        return
    with archive.fs.open_input_file(files[0].path) as opened:
        rows = pq.read_table(opened, filters=[("seq", "=", last)])
    kept = next(events_of(rows), None)
    if kept != there[0]:
        raise ArchiveError(
            f"Event {last} on the server is not the one in the archive {archive.root}: the server was emptied, or "
            f"restored from an older copy, and {namespace!r} has other events now. Nothing was added. Archive them "
            f"under another name: --namespace."
        )


def _add(writer: Writer, run: Run, tasks: list[Task]) -> tuple[list[File], tuple[Gap, ...]]:
    """Let ranges be written, and commit them."""
    folder = writer.begin()
    results: list[Written] = list(run(write, [task._replace(folder=folder) for task in tasks]))
    files = [file for written in results for file in written.files]
    holes = tuple(sorted(gap for written in results for gap in written.gaps))
    writer.commit(folder, Commit(tuple((file.path, file.name) for file in files), (), holes))
    return files, holes


__all__ = ["EventsGone", "Progress", "Task", "Written", "archive", "days", "namespace_of", "write", "write_file"]
