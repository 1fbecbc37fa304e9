"""The two kinds of rows that an archive keeps: events, and entries of the journal.

    <root>/events/namespace=ql%3A/day=2026-11-21/...parquet
    <root>/journal/namespace=ql%3A/day=2026-11-21/...parquet

An archive of one kind may also stand in the root itself. Tables say what their rows are in their metadata, so a command
that is given a folder of the other kind says so, before it reads or adds a row.
"""

from __future__ import annotations

import pyarrow.parquet as pq
from pyarrow import fs

from qmodel.pipeline.archive.layout import Archive, ArchiveError, File
from qmodel.pipeline.arrow import pa
from qmodel.pipeline.events.schema import VERSION_KEY

EVENTS, JOURNAL = "events", "journal"
"""The kinds, and the names of their folders."""

_KEYS = {VERSION_KEY: EVENTS, b"qmodel.journal": JOURNAL}
_SAID = {EVENTS: "events", JOURNAL: "entries of the journal"}
_FILLED = {EVENTS: "qmodel archive run", JOURNAL: "qmodel archive run --journal"}
"""The commands that fill each."""


def opened(root: str, kind: str, *, apart: bool = False) -> Archive:
    """Open the archive of a kind: the root's folder for it, or the root itself. It need not exist yet.

    With `apart`, a new archive gets a folder for its kind. Raises ArchiveError if the root has the other kind.
    """
    whole = Archive(root)
    if not whole.namespaces():
        folder = Archive(f"{whole.root.rstrip('/')}/{kind}")
        if apart or any(_is_folder(whole, name) for name in _SAID):
            whole = folder
    check(whole, kind)
    return whole


def check(archive: Archive, kind: str) -> None:
    """Refuse an archive with the other kind of rows. Raises ArchiveError."""
    there = next((found for file in archive.files() if (found := kind_of(archive, file)) is not None), kind)
    if there != kind:
        raise ArchiveError(
            f"{archive.root} has {_SAID.get(there, 'other rows')}, and this needs {_SAID[kind]}. Nothing was done. "
            f"Give the folder that `{_FILLED[kind]}` fills."
        )


def kind_of(archive: Archive, file: File) -> str | None:
    """Give the kind of a file's rows; empty if they are of neither, None if the file was merged or is damaged."""
    try:
        with archive.open(file) as opened:
            metadata = pq.ParquetFile(opened).schema_arrow.metadata or {}
    except (OSError, pa.ArrowInvalid):
        return None
    return next((kind for key, kind in _KEYS.items() if key in metadata), "")


def _is_folder(archive: Archive, name: str) -> bool:
    return bool(archive.fs.get_file_info(archive.at(name)).type == fs.FileType.Directory)
