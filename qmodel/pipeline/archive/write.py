"""Archive new events, in ranges that can be written anywhere and are committed in order.

Each range is a task. It reads its events through a client of its own, with the proof that none is missing, and writes
one file for each day. `archive` plans the ranges from the archive's names and the newest event, runs the tasks, and
commits their files together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.errors import Forked
from qmodel.pipeline.archive import kinds
from qmodel.pipeline.archive.commit import Overtaken, Writer, explained, sync, writing
from qmodel.pipeline.archive.forks import Rows, joined
from qmodel.pipeline.archive.kinds import opened
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit, File, Lost
from qmodel.pipeline.archive.read import reading
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.decode import events_of, read, tables
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack
from qmodel.pipeline.events.histories import STOP, Position, epochs_at
from qmodel.pipeline.events.schema import VERSION, current
from qmodel.processes import Run

ROWS = 100_000
"""The number of events in a task, which needs 80 MB for them."""

TOGETHER = 10
"""The number of tasks in a commit."""

GROUP = 100_000
"""The rows in a row group: a reader that needs one of them reads them all."""

DAY_MS = 86_400_000

TRIES = 3
"""The number of times that the position is compared with the server again, if it fails over meanwhile."""


class Task(NamedTuple):
    """A range of events, after a sequence and up to another, to write to a folder. An unknown epoch is None."""

    url: str
    root: str
    folder: str
    namespace: str
    after: int
    last: int
    skip_gaps: bool
    epoch: int | None = None  # of the event `after`
    last_epoch: int | None = None


class Written(NamedTuple):
    """The result of a task: its files, with paths below its folder, and the events that were gone."""

    files: tuple[File, ...]
    gaps: tuple[Gap, ...]


class Progress(NamedTuple):
    """The state of the archive after a commit."""

    namespace: str
    last: int  # in the archive
    newest: int  # on the server
    rows: int  # added by this commit
    files: int
    holes: tuple[Gap, ...]
    kept: int  # by the server, of the newest
    margin: int  # so many more events before this commit would have lost some
    epoch: int | None = None  # of the last event in the archive, if it is known
    lost: tuple[Lost, ...] = ()  # taken back before this commit, because the server lost them


def namespace_of(client: Client) -> str:
    """Give the namespace of a client: the prefix of its keys; "" if it has none."""
    return str(getattr(getattr(client.backend, "options", None), "prefix", ""))


def write(task: Task) -> Written:
    """Write a range into its folder.

    Raises EventsGone if some are gone, unless gaps are to be skipped, and Forked if the server lost one of the ends.
    """
    gaps: list[Gap] | None = [] if task.skip_gaps else None
    with Client(task.url) as client:
        table = tables(read(client, task.after, task.last, epoch=task.epoch, last_epoch=task.last_epoch, gaps=gaps))
    if table.num_rows + sum(map(len, gaps or ())) != task.last - task.after:
        raise SequenceWentBack(task.last, task.after + table.num_rows)
    with explained(task.root):
        archive = Archive(task.root)
        parts = sorted(days(table).items())
        files = tuple(write_file(archive, task.folder, task.namespace, day, part) for day, part in parts)
    return Written(files, tuple(gaps or ()))


def days(table: pa.Table) -> dict[str, pa.Table]:
    """Split rows by day; the keys are dates."""
    day = day_of(table)
    return {str(one.as_py().date()): table.filter(pc.equal(day, one)) for one in day.unique()}


def day_of(table: pa.Table) -> pa.ChunkedArray:
    """Give the start of each row's day, in UTC."""
    return pc.floor_temporal(table.column("happened_at").cast(pa.timestamp("ms")), unit="day")


def write_file(archive: Archive, folder: str, namespace: str, day: str, table: pa.Table) -> File:
    """Write rows of one day to a folder, sorted; `path` is the name below that folder."""
    bounds = pc.min_max(table.column("seq"))
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    path = f"{first}-{day}.part"
    whole = archive.at(f"{folder}/{path}")
    with archive.fs.open_output_stream(whole) as out:
        pq.write_table(_ordered(table), out, row_group_size=GROUP, compression="zstd")
    if archive.local:
        sync(whole)
    return File(namespace, day, first, last, table.num_rows, VERSION, path, pc.max(table.column("epoch")).as_py())


def _ordered(table: pa.Table) -> pa.Table:
    """Sort rows by queue and sequence. Most columns have no value; these are not sorted, to save time."""
    count = table.num_rows
    used = [name for name in table.column_names if table.column(name).null_count < count]
    found = table.select(list(dict.fromkeys([*used, "queue"]))).sort_by([("queue", "ascending"), ("seq", "ascending")])
    columns = [found.column(f.name) if f.name in used else pa.nulls(count, f.type) for f in table.schema]
    return pa.Table.from_arrays(columns, schema=table.schema)


EVENTS = Rows("event", "seq", write_file, current)
"""The rows of an archive of events."""


def archive(
    url: str,
    root: str,
    *,
    namespace: str = "",
    run: Run = map,
    rows: int = ROWS,
    together: int = TOGETHER,
    skip_gaps: bool = False,
    on_fork: str = STOP,
) -> Iterator[Progress]:
    """Add new events to an archive, up to the newest one at the start; yield the progress after each commit.

    `namespace` is the name in the archive, by default the prefix of the keys. `run` executes the tasks, of `rows`
    events each; `together` tasks are committed at once. Raises EventsGone if the server no longer keeps the next
    events; with `skip_gaps`, records these as a hole and continues. Raises ArchiveForked if the server has lost events
    that are archived; with `on_fork` "keep", moves these to `_lost` and continues after the newest common event. Raises
    SequenceWentBack if the archive is ahead of the server, and ArchiveError if the archive has gaps, cannot be written,
    or belongs to other events. Another archiver may work beside this one: each commit is of one of them.
    """
    with Client(url) as client:
        namespace = namespace or namespace_of(client)
        kept = int(client.execute(ops.ConfigGet("max-events")))
        if not namespace:
            raise ArchiveError(f"{url} has no prefix: give a name for the namespace in the archive.")
        with explained(root), writing(opened(root, kinds.EVENTS), namespace) as writer:
            plan = Plan(url, client, writer, namespace, kept, run, rows, together, skip_gaps, on_fork)
            tries, overtaken = 0, Position(-1, None)
            while True:
                try:
                    yield from plan.perform()
                    return
                except Forked:  # the server failed over meanwhile: compare with it again
                    tries += 1
                    if tries == TRIES:
                        raise
                except Overtaken:  # by another archiver: go on after what it added
                    before, overtaken = overtaken, writer.archive.position(namespace)
                    if before == overtaken:
                        raise


class Plan(NamedTuple):
    """How to add the new events of a server to an archive."""

    url: str
    client: Client
    writer: Writer
    namespace: str
    kept: int
    run: Run
    rows: int
    together: int
    skip_gaps: bool
    on_fork: str

    def perform(self) -> Iterator[Progress]:
        """Add the events up to the newest one; yield the progress after each commit."""
        writer, namespace = self.writer, self.namespace
        (last, epoch), lost = joined(self.client, ops.Events, writer, namespace, EVENTS, self.on_fork)
        newest = Position(*self.client.position())
        if newest.number < last:
            raise SequenceWentBack(last, newest.number)
        with writer.locked():  # else the file may be merged before it is read
            _compare(self.url, writer.archive, namespace, last)
        if last == newest.number:
            yield Progress(namespace, last, last, 0, 0, (), self.kept, self.kept, epoch, lost)
        while last < newest.number:
            until = min(newest.number, last + self.rows * self.together)
            margin = max(self.kept - (newest.number - last), 0)
            tasks = self._tasks(Position(last, epoch), until, newest)
            done, holes = _add(writer, self.run, tasks, Position(last, epoch))
            last, epoch = until, tasks[-1].last_epoch
            added = sum(file.rows for file in done)
            yield Progress(namespace, last, newest.number, added, len(done), holes, self.kept, margin, epoch, lost)
            lost = ()

    def _tasks(self, after: Position, until: int, newest: Position) -> list[Task]:
        """Cut a range into tasks. Each knows the epochs at both its ends, so together they prove one history."""
        starts = range(after.number, until, self.rows)
        cuts = [*starts[1:], *([until] if until != newest.number else [])]
        epochs = [after.epoch, *epochs_at(self.client, ops.Events, cuts), newest.epoch]
        place = self.writer.archive.place
        return [
            Task(
                self.url, place, "", self.namespace, start, min(start + self.rows, until), self.skip_gaps,
                epochs[at], epochs[at + 1],
            )
            for at, start in enumerate(starts)
        ]  # fmt: skip


def _compare(url: str, archive: Archive, namespace: str, last: int) -> None:
    """Check that the last event of the archive is also the server's, if the server still keeps it.

    A server that was emptied, or restored from an older copy, has other events with the same sequences, and may have
    more of them by now than are archived.
    """
    files = [file for file in archive.files(namespace, after=last - 1) if file.last == last]
    with Client(url) as client:
        there = client.execute(ops.Events(last - 1, 1)) if files else ()
    if not there or there[0].seq != last:
        return
    with reading(archive, files[0]) as opened:
        rows = pq.read_table(opened, filters=[("seq", "=", last)])
    kept = next(events_of(rows), None)
    if kept != there[0]:
        raise ArchiveError(
            f"Event {last} on the server is not the one in the archive {archive.root}: the server was emptied, or "
            f"restored from an older copy, and {namespace!r} has other events now. Nothing was added. Archive them "
            f"under another name: --namespace."
        )


def _add(writer: Writer, run: Run, tasks: list[Task], after: Position) -> tuple[list[File], tuple[Gap, ...]]:
    """Run the tasks and commit their files, after what the archive ends with. Raises Overtaken."""
    folder = writer.begin()
    results: list[Written] = list(run(write, [task._replace(folder=folder) for task in tasks]))
    files = [file for written in results for file in written.files]
    holes = tuple(sorted(gap for written in results for gap in written.gaps))
    writer.commit(folder, Commit(tuple((file.path, file.name) for file in files), (), holes), after)
    return files, holes


__all__ = ["EventsGone", "Progress", "Task", "Written", "archive", "days", "namespace_of", "write", "write_file"]
