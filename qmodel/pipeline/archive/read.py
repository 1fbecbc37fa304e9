"""Read the events of an archive in the order in which they happened, as folds need them.

Files follow each other, except after a clock went back or around midnight. Overlapping files are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from qmodel.pipeline.archive.kinds import EVENTS, opened
from qmodel.pipeline.archive.layout import Archive, ArchiveError, File
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.gaps import Gap, prove
from qmodel.pipeline.events.schema import SCHEMA, current

TRIES = 5
"""The number of times that files are listed without one of them being read."""


def read(
    root: str, namespace: str, after: int = 0, last: int | None = None, *, gaps: list[Gap] | None = None
) -> Iterator[pa.Table]:
    """Yield the events of a namespace after a sequence, up to `last` or the end, in tables of some files each.

    Raises ArchiveError before a table that follows missing events; with a list for `gaps`, adds them to that list
    instead. Files that are gone meanwhile are listed again, from the last event that was read.
    """
    archive = opened(root, EVENTS)
    files = archive.files(namespace, after=after, last=last)
    if last is None:
        last = max([after, *(file.last for file in files)])
    groups, tries = together(files), 0
    while group := next(groups, None):
        try:
            table = _table(archive, group).filter((pc.field("seq") > after) & (pc.field("seq") <= last))
        except FileNotFoundError as error:
            tries += 1
            if tries == TRIES:
                raise ArchiveError(
                    f"{group[0].name} in {archive.root} is listed, and is not there: {error}. Run `qmodel archive "
                    f"verify {archive.root}`."
                ) from None
            groups = together(archive.files(namespace, after=after, last=last))
            continue
        tries = 0
        until = table.column("seq")[-1].as_py() if table.num_rows else after
        _prove(archive, table.column("seq").to_pylist(), after, until, gaps)
        after = until
        if table.num_rows:
            yield table
    _prove(archive, [], after, last, gaps)


def together(files: Sequence[File]) -> Iterator[list[File]]:
    """Group files with overlapping ranges of sequences."""
    group: list[File] = []
    until = 0
    for file in sorted(files, key=lambda file: file.first):
        if group and file.first > until:
            yield group
            group = []
        group.append(file)
        until = max(until, file.last)
    if group:
        yield group


def _table(archive: Archive, files: Sequence[File]) -> pa.Table:
    parts = [SCHEMA.empty_table()]
    for file in files:
        with reading(archive, file) as opened:
            parts.append(current(pq.ParquetFile(opened).read()))
    table = pa.concat_tables(parts, promote_options="default").sort_by("seq")
    return table.replace_schema_metadata(parts[-1].schema.metadata)


@contextmanager
def reading(archive: Archive, file: File) -> Iterator[Any]:
    """Open a file for reading. Raises ArchiveError if it is damaged, and FileNotFoundError if it is gone."""
    with archive.open(file) as opened, undamaged(archive, file):
        yield opened


@contextmanager
def undamaged(archive: Archive, file: File) -> Iterator[None]:
    """Name the file that cannot be read. Raises ArchiveError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowInvalid) as error:
        raise ArchiveError(
            f"{file.name} in {archive.root} is damaged: {error} Of events, `qmodel archive verify {archive.root}` "
            f"names all that are."
        ) from None


def _prove(archive: Archive, seqs: Sequence[int], after: int, last: int, gaps: list[Gap] | None) -> None:
    missing = prove(seqs, after, last)
    if missing and gaps is None:
        which = ", ".join(f"{gap.first} to {gap.last}" for gap in missing[:10])
        raise ArchiveError(
            f"The archive {archive.root} does not have the events {which}: they were recorded as lost, or files are "
            f"missing (qmodel archive verify). To continue without them, pass a list for `gaps`."
        )
    if gaps is not None:
        gaps.extend(missing)
