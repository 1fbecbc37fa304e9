"""Merge many small files into few large ones, for days that get no more events.

A day is closed when the archive has a later one. An event from a slow clock may still arrive for it. Such events make
new files, which the next compaction merges. Merging changes no row, and merging again changes nothing. Files
of an earlier version get the columns of the current one, also those of days that are not closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow.parquet as pq

from qmodel.pipeline.archive.commit import Overtaken, Writer, explained, writing
from qmodel.pipeline.archive.kinds import EVENTS, opened
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit, File
from qmodel.pipeline.archive.read import reading
from qmodel.pipeline.archive.write import write_file
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.schema import VERSION, current
from qmodel.processes import Run

MOST = 1_000_000
"""The most rows of a merged file: some 20 MB, which a task needs half a gigabyte to merge."""


GRACE = 3600.0
"""How long merged files stay, in seconds: a reader may have listed them before."""


class Merge(NamedTuple):
    """Files of a day, in order, that become one file in a work folder."""

    root: str
    folder: str
    files: tuple[File, ...]


class Compacted(NamedTuple):
    """The result of compacting a day."""

    namespace: str
    day: str
    before: int
    after: int
    rows: int


def compact(
    root: str,
    namespace: str | None = None,
    *,
    days: Iterable[str] | None = None,
    most: int = MOST,
    grace: float = GRACE,
    run: Run = map,
) -> Iterator[Compacted]:
    """Merge the files of one namespace or all, of the given days or all closed ones, into files of up to `most` rows.

    Each day is merged whole or not at all, and not if another writer changes its files meanwhile; archivers may add
    files. Merged files stay in `_merged` for `grace` seconds, until a compaction
    after that. Yields the days with merged files. Raises ArchiveError if a file has other events than its name says.
    """
    archive = opened(root, EVENTS)
    for space in (one for one in archive.namespaces() if namespace in (None, one)):
        with explained(root), writing(archive, space) as writer:
            writer.vacuum(grace)
            for day, files in sorted(_days(archive, space, days).items()):
                try:
                    done = _compact(writer, day, files, most, run)
                except Overtaken:  # the next compaction merges what there is now
                    continue
                if done:
                    yield done
            if not grace:
                writer.vacuum(grace)


def _compact(writer: Writer, day: str, files: Sequence[File], most: int, run: Run) -> Compacted | None:
    """Merge the files of a day. Raises Overtaken if another writer has merged or moved some of them meanwhile."""
    chunks = [chunk for chunk in pack(files, most) if len(chunk) > 1 or chunk[0].version < VERSION]
    if not chunks:
        return None
    folder = writer.begin()
    made: list[File] = list(run(merge, [Merge(writer.archive.place, folder, tuple(chunk)) for chunk in chunks]))
    moves = tuple((file.path, file.name) for file in made)
    old = [file for chunk in chunks for file in chunk]
    writer.commit(folder, Commit(moves, merged=tuple(file.name for file in old)))
    rows = sum(file.rows for file in made)
    return Compacted(writer.namespace, day, len(files), len(files) - len(old) + len(made), rows)


def _days(archive: Archive, namespace: str, days: Iterable[str] | None) -> dict[str, list[File]]:
    """Find the files of the days to compact: without those of a later version, and all those of an earlier one."""
    found: dict[str, list[File]] = defaultdict(list)
    for file in archive.files(namespace):
        found[file.day].append(file)
    wanted = set(sorted(found)[:-1] if days is None else days)
    return {
        day: [file for file in files if file.version <= (VERSION if day in wanted else VERSION - 1)]
        for day, files in found.items()
        if day in wanted or days is None
    }


def pack(files: Sequence[File], most: int) -> Iterator[list[File]]:
    """Group consecutive files by up to `most` rows; grouping the result again changes nothing."""
    group: list[File] = []
    for file in files:
        if group and sum(one.rows for one in group) + file.rows > most:
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def merge(what: Merge) -> File:
    """Write some files as one. Columns that are missing in a file are null."""
    archive = Archive(what.root)
    parts = []
    for file in what.files:
        try:
            with explained(what.root), reading(archive, file) as opened:
                parts.append(current(pq.ParquetFile(opened).read()))
        except ArchiveError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise Overtaken(f"{file.name} was merged or moved by another process.") from None
            raise
    table = pa.concat_tables(parts, promote_options="default")
    if table.num_rows != sum(file.rows for file in what.files):
        raise ArchiveError(
            f"{what.files[0].name} and those behind it have other events than their names say. Nothing was merged. "
            f"Run `qmodel archive verify {what.root}`."
        )
    with explained(what.root):
        return write_file(archive, what.folder, what.files[0].namespace, what.files[0].day, table)
