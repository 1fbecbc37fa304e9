"""Go on after a fork: the server lost the end of its log, and has other events with the same sequences now.

A fork is noticed by the epoch of the last archived event (`qmodel.pipeline.events.histories`). The archived events
after the newest common one are not part of the server's history. `take_back` moves them to `_lost`, in one commit, so
readers of the archive see one history before and after it, and never two.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.client.sync import Client
from qmodel.errors import Forked
from qmodel.pipeline.archive.commit import Writer, hole_name
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit, File, Lost
from qmodel.pipeline.archive.read import reading
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.histories import KEEP, Common, Position, Span, Table, check, is_gap, newest_common

Write = Callable[[Archive, str, str, str, pa.Table], File]
"""Writes rows of a day to a work folder, as `write.write_file` does."""


Moved = tuple[list[tuple[str, str]], list[str]]
"""Other moves and removes of a commit."""

More = Callable[[Archive, str, str, int], Moved]
"""Gives what else belongs to the rows after a number: archive, work folder, namespace, number."""


def _no_more(archive: Archive, folder: str, namespace: str, number: int) -> Moved:
    return [], []


class Rows:
    """The kind of rows in an archive: what they are called, the column of their numbers, and how files are written."""

    def __init__(self, noun: str, number: str, write: Write, current: Callable[[pa.Table], pa.Table]) -> None:
        self.noun = noun
        self.number = number
        self.write = write
        self.current = current


class ArchiveForked(ArchiveError):
    """Raised if archived rows are not part of the server's history.

    `after` and `epoch` are of the last archived row, `current` is the server's epoch, and `common` the newest row that
    both have.
    """

    def __init__(self, noun: str, root: str, after: int, epoch: int, current: int, common: Common) -> None:
        super().__init__(noun, root, after, epoch, current, common)
        self.noun, self.root, self.after, self.epoch, self.current = noun, root, after, epoch, current
        self.common = common.number
        self.is_known = common.is_known

    def __str__(self) -> str:
        what = f"{self.noun} {self.after} of epoch {self.epoch}"
        says = (
            f"The archive {self.root} has {what}, which is not part of the server's history: the server lost the end "
            f"of its log, and its epoch is {self.current} now. Nothing was added."
        )
        if not self.is_known:
            return (
                f"{says} The server no longer keeps the point where the histories part, so nobody can tell which "
                f"archived rows are lost. Archive under another name from now on: --namespace."
            )
        return (
            f"{says} The newest common {self.noun} is {self.common}. To go on, use --on-fork keep: what was archived "
            f"from {self.common + 1} to {self.after} is moved to _lost, and the server's own follow. Whoever has read "
            f"those from the archive has to take them back."
        )


def joined(
    client: Client,
    table: Table,
    writer: Writer,
    namespace: str,
    rows: Rows,
    on_fork: str,
    more: More = _no_more,
) -> tuple[Position, tuple[Lost, ...]]:
    """Find where to go on, in the server's history; give it, and what was taken back. Raises ArchiveForked."""
    archive = writer.archive
    at = archive.position(namespace)
    try:
        check(client, table, at)
    except Forked as fork:
        if is_gap(client, table, fork):
            return at, ()
        with writer.locked():
            if archive.position(namespace) != at:  # another archiver went on meanwhile
                return joined(client, table, writer, namespace, rows, on_fork, more)
            common = newest_common(client, table, fork, spans(archive, namespace, rows))
            if on_fork != KEEP or not common.is_known:
                now = int(fork.current)
                raise ArchiveForked(rows.noun, archive.root, at.number, at.epoch or 0, now, common) from None
            return Position(common.number, common.epoch), take_back(writer, namespace, common.number, rows, more)
    return at, ()


def spans(archive: Archive, namespace: str, rows: Rows) -> list[Span]:
    """Find the epochs of the archived rows. Files between two of the same epoch are not read."""
    first: dict[int, int] = {}
    until = before = 0
    for file in archive.files(namespace):
        if not first or file.epoch != before or file.first <= until:
            for epoch, number in _epochs(archive, file, rows):
                first[epoch] = min(first.get(epoch, number), number)
        until, before = max(until, file.last), file.epoch
    return sorted((number, epoch) for epoch, number in first.items())


def _epochs(archive: Archive, file: File, rows: Rows) -> list[tuple[int, int]]:
    """Give the epochs of a file, each with its first number."""
    if file.version == 1:
        return [(0, file.first)]
    with reading(archive, file) as opened:
        table = pq.ParquetFile(opened).read(columns=[rows.number, "epoch"])
    found = table.group_by("epoch").aggregate([(rows.number, "min")])
    return list(zip(found.column("epoch").to_pylist(), found.column(f"{rows.number}_min").to_pylist(), strict=True))


def epoch_of(archive: Archive, namespace: str, number: int, rows: Rows) -> int | None:
    """Give the epoch of an archived row; None if it is not archived."""
    for file in archive.files(namespace, after=number - 1, last=number):
        if file.last == number or file.version == 1:
            return file.epoch
        with reading(archive, file) as opened:
            found = pq.read_table(opened, columns=["epoch"], filters=[(rows.number, "=", number)])
        if found.num_rows:
            return int(found.column("epoch")[0].as_py())
    return None


def take_back(
    writer: Writer,
    namespace: str,
    common: int,
    rows: Rows,
    more: More = _no_more,
) -> tuple[Lost, ...]:
    """Move all rows after a number to `_lost`, with what else belongs to them; give their ranges."""
    archive, folder = writer.archive, writer.begin()
    moves, removes = more(archive, folder, namespace, common)
    lost = list[Lost]()
    for file in archive.files(namespace, after=common):
        with reading(archive, file) as opened:
            table = rows.current(pq.ParquetFile(opened).read())
        column = table.column(rows.number)
        kept = table.filter(pc.less_equal(column, common))
        if kept.num_rows:
            made = rows.write(archive, folder, namespace, file.day, kept)
            moves.append((made.path, made.name))
        gone = table.filter(pc.greater(column, common))
        for epoch in sorted(gone.column("epoch").unique().to_pylist()):
            part = gone.filter(pc.equal(gone.column("epoch"), epoch))
            made = rows.write(archive, folder, namespace, file.day, part)
            moves.append((made.path, made.lost_name))
            lost.append(Lost(epoch, made.first, made.last))
        removes.append(file.name)
    holes = []
    for hole in archive.holes(namespace):
        if hole.last > common:
            removes.append(hole_name(namespace, hole))
            if hole.first <= common:
                holes.append(Gap(hole.first, common))
    writer.commit(folder, Commit(tuple(moves), tuple(removes), tuple(holes)))
    return tuple(lost)
