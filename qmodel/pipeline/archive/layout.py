"""Define the archive: all events of one or more namespaces, as Parquet files that any tool can read.

    <root>/namespace=ql%3A/day=2026-11-21/000000000001-000000100000-100000-v3-e0.parquet

- `namespace` is the prefix of the keys, or another name, percent-encoded; `day` is the UTC day of `happened_at`.
  Readers that know partitions by folder (Spark, DuckDB, Polars, Arrow) show both as columns beside those of
  `schema.SCHEMA`.
- The name of a file has its first sequence, its last sequence, the number of its rows, the version of its columns
  (`schema.VERSION`) and the epoch of its last event. Names of version 1 have no epoch, because all is of epoch 0. Rows
  are sorted by queue, then by sequence, so a query about one queue skips most of the file.
  There are no folders by queue: those would be many, and small.
- Columns that were added later are null in older files. Files of a later version are refused.

**The names are the checkpoint.** The names of the files say what is archived, so no other state can be lost or
disagree. A range of sequences is written to `<root>/_work/`, which no reader looks into. Then `commit.json` is written
there: it says where each file belongs, and which files it replaces. Then the files are moved. A later writer that finds
a `commit.json` finishes the moves. So a writer may be killed at any moment: before that file nothing has happened,
after it everything has. `files` follows the same rule: while files are moved or replaced, it gives each event once.
Only one process commits at a time, under a lock (`qmodel.pipeline.archive.commit`), and only if the archive still ends
where its work begins, and has what it replaces. Tasks that outlive their archiver cannot change the archive.

**Merged files** go to `<root>/namespace=ql%3A/_merged/`, under names that no reader of Parquet looks for. They stay
there for a while, for those that listed them before: `Archive.open` finds a file where it is, or was put.
(`qmodel.pipeline.archive.compact`.)

**Holes** are events that the server no longer kept: `<root>/namespace=ql%3A/_holes/<first>-<last>`. They are recorded
only if the caller accepts losses. So `rows and holes == the last sequence` holds at all times, and is checked before
anything is added. (`qmodel.pipeline.archive.verify` also reads the files.)

**Lost events** are those that the server lost after they were archived, so that it has others with the same sequences
now. They are moved to `<root>/namespace=ql%3A/_lost/`, which readers of partitions skip, so that the other files have
one history. (`qmodel.pipeline.archive.forks`.)

The root is a folder, or a URL (`qmodel.pipeline.archive.remote`). An object store has no locks. There a commit is
decided by the conditional create of `<root>/_commits/namespace=ql%3A/<number>.json`. So two writers cannot both
decide the same number, and each looks at the archive again after the other's. `<number>.done` says that its moves are
done. On a URL that only `pyarrow.fs` knows (hdfs://), nothing keeps out a second writer of a namespace.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from pyarrow import fs

from qmodel.errors import QmodelError
from qmodel.pipeline.archive.remote import opened
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.histories import Position

TRIES = 3
"""The number of times that names are listed again if they do not add up: a writer may be adding files."""

WORK, HOLES, LOST, MERGED, COMMIT = "_work", "_holes", "_lost", "_merged", "commit.json"
COMMITS, DONE = "_commits", ".done"
"""Readers of partitions skip folders with names that begin with _."""

_FILE = r"day=(\d{4}-\d\d-\d\d)/(\d+)-(\d+)-(\d+)-v(\d+)(?:-e(\d+))?\.parquet"
_NAME = re.compile(rf"namespace=([^/]+)/{_FILE}")
_LOST = re.compile(rf"namespace=([^/]+)/{LOST}/{_FILE}")
_HOLE = re.compile(r"namespace=([^/]+)/_holes/(\d+)-(\d+)")


class ArchiveError(QmodelError):
    """Raised if an archive is inconsistent, or another process writes to it. The message says what to do."""


class File(NamedTuple):
    """A file of the archive, read from its name. `path` is where it is now."""

    namespace: str
    day: str
    first: int
    last: int
    rows: int
    version: int
    path: str
    epoch: int = 0  # of the last event

    @property
    def name(self) -> str:
        """The name under the root where it belongs."""
        return f"{folder_of(self.namespace)}/{self._name}"

    @property
    def lost_name(self) -> str:
        """The name under the root where it belongs if its events were lost by the server."""
        return f"{folder_of(self.namespace)}/{LOST}/{self._name}"

    @property
    def merged_name(self) -> str:
        """The name under the root where it stays for a while after a merge."""
        return f"{folder_of(self.namespace)}/{MERGED}/{self._name}.merged"

    @property
    def _name(self) -> str:
        epoch = f"-e{self.epoch}" if self.version > 1 else ""
        return f"day={self.day}/{self.first:012}-{self.last:012}-{self.rows}-v{self.version}{epoch}.parquet"


class Lost(NamedTuple):
    """Archived events that the server lost: their epoch, the first and the last."""

    epoch: int
    first: int
    last: int


class Commit(NamedTuple):
    """An atomic change: files move in from the work folder, others are removed or merged, holes are recorded."""

    moves: tuple[tuple[str, str], ...] = ()  # from a name in the work folder to a name under the root
    removes: tuple[str, ...] = ()
    holes: tuple[Gap, ...] = ()
    merged: tuple[str, ...] = ()  # names under the root, of files that are replaced and stay for a while
    number: int = 0  # on an object store

    @property
    def replaced(self) -> tuple[str, ...]:
        """The names of all files that it takes away."""
        return (*self.removes, *self.merged)


def folder_of(namespace: str) -> str:
    """Name the folder of a namespace.

    >>> folder_of("{shop}:ql:")
    'namespace=%7Bshop%7D%3Aql%3A'
    """
    if not namespace:
        raise ValueError("an archive needs a name for the namespace: give one")
    return f"namespace={quote(namespace, safe='')}"


def parse(name: str, path: str = "") -> File | None:
    """Read a file from its name under the root; None if it is not a file of an archive."""
    return _parsed(_NAME, name, path)


def _parsed(pattern: re.Pattern[str], name: str, path: str) -> File | None:
    found = pattern.fullmatch(name)
    if found is None:
        return None
    namespace, day, *numbers = found.groups()
    first, last, rows, version, epoch = (int(number or 0) for number in numbers)
    return File(unquote(namespace), day, first, last, rows, version, path, epoch)


class Archive:
    """An archive: its content, and its paths."""

    def __init__(self, root: str) -> None:
        """Open a folder, or a URL that fsspec or `pyarrow.fs` knows; it need not exist yet."""
        self.root = str(root)
        if "://" in self.root:
            try:
                self.fs, self.path, self.remote = opened(self.root)
            except (OSError, ValueError, QmodelError) as error:
                raise ArchiveError(
                    f"{self.root} cannot hold an archive: {error}. Give a folder, or a URL such as s3:// or gs://."
                ) from None
        else:
            self.fs, self.path, self.remote = fs.LocalFileSystem(), os.path.abspath(self.root), None
        self.local = self.fs.type_name == "local"
        self.place = self.root if "://" in self.root else self.path
        """The root, as processes that work elsewhere find it."""

    def at(self, name: str) -> str:
        """Give the path of a name under the root."""
        return f"{self.path}/{name}"

    def open(self, file: File) -> Any:
        """Open a file for reading, where it is, or where it was put since it was listed.

        Raises FileNotFoundError if it is gone: it was merged some time ago, or taken back.
        """
        for path in (file.path, self.at(file.name), self.at(file.merged_name)):
            with suppress(FileNotFoundError):
                return self.fs.open_input_file(path)
        raise FileNotFoundError(errno.ENOENT, "it was merged or taken back", file.path)

    # ---- looking

    def namespaces(self) -> list[str]:
        """List the namespaces."""
        names = (PurePosixPath(found.path).name for found in self._listed("", recursive=False))
        return sorted(unquote(name.partition("=")[2]) for name in names if name.startswith("namespace="))

    def chosen(self, namespace: str | None) -> list[str]:
        """List one namespace, or all. Raises ArchiveError if there is no such namespace, or no archive."""
        there = self.namespaces()
        if not there:
            raise ArchiveError(f"There is no archive in {self.root}.")
        if namespace not in (None, *there):
            raise ArchiveError(f"The archive {self.root} has no namespace {namespace!r}; it has {there}.")
        return there if namespace is None else [namespace]

    def files(
        self,
        namespace: str | None = None,
        *,
        after: int = 0,
        last: int | None = None,
        days: Collection[str] | None = None,
    ) -> list[File]:
        """List the files of one namespace or all, in order; each event is in one of them, also during a merge.

        They may have events after a sequence, up to another, and of some days (`2026-11-21`).
        """
        spaces = self.namespaces() if namespace is None else [namespace]
        found = [file for space in spaces for file in self._settled(space)]
        return [
            file
            for file in sorted(found, key=lambda file: (file.namespace, file.first, file.day))
            if file.last > after and (last is None or file.first <= last) and (days is None or file.day in days)
        ]

    def holes(self, namespace: str) -> list[Gap]:
        """List the recorded losses of a namespace, in order."""
        matches = [_HOLE.fullmatch(name) for name in self._names(f"{folder_of(namespace)}/{HOLES}")]
        found = {Gap(int(match[2]), int(match[3])) for match in matches if match}
        for _, commit in self.pending(namespace):
            removed = {match for match in map(_HOLE.fullmatch, commit.removes) if match}
            found = found.difference(Gap(int(match[2]), int(match[3])) for match in removed).union(commit.holes)
        return sorted(found)

    def lost(self, namespace: str) -> list[Lost]:
        """List the archived events of a namespace that the server lost, in order."""
        names = self._names(f"{folder_of(namespace)}/{LOST}")
        files = [file for file in (_parsed(_LOST, name, "") for name in names) if file]
        found: list[Lost] = []
        for file in sorted(files, key=lambda file: (file.epoch, file.first)):
            if found and found[-1].epoch == file.epoch and found[-1].last + 1 >= file.first:
                found[-1] = found[-1]._replace(last=max(found[-1].last, file.last))
            else:
                found.append(Lost(file.epoch, file.first, file.last))
        return found

    def last(self, namespace: str) -> int:
        """Give the last sequence of a namespace that is archived or recorded as lost; 0 if there is none.

        Raises ArchiveError if the names show that something before it is missing or there twice.
        """
        return self.position(namespace).number

    def position(self, namespace: str) -> Position:
        """Give the last sequence, as `last` does, and its epoch: None if that event is recorded as a hole."""
        for _ in range(TRIES):
            files, holes = self.files(namespace), self.holes(namespace)
            last = max([file.last for file in files] + [hole.last for hole in holes], default=0)
            known = sum(file.rows for file in files) + sum(map(len, holes))
            if known == last:
                break
        else:
            raise ArchiveError(
                f"The archive {self.root} ends with number {last} of {namespace!r}, and has {known} of them, as files "
                f"are named. Nothing was added. Of events, `qmodel archive verify {self.root}` lists those that are "
                f"missing or there twice. A journal needs its files again; or archive it into another folder, with "
                f"--skip-gaps and --take."
            )
        return Position(last, next((file.epoch for file in files if file.last == last), None))

    def pending(self, namespace: str) -> list[tuple[str, Commit]]:
        """List the commits that were decided and may not be finished: the work folders and what each says."""
        if self.remote is not None:
            names = [commit_name(namespace, number) for number in self.commits(namespace)[0]]
        else:
            names = [name for name in self._names(work_of(namespace)) if name.endswith(f"/{COMMIT}")]
        found = []
        for name in names:
            try:
                with self.fs.open_input_stream(self.at(name)) as file:
                    said = json.loads(file.read())
            except FileNotFoundError:  # done meanwhile
                continue
            moves = tuple((one, other) for one, other in said["moves"])
            holes = tuple(Gap(*hole) for hole in said["holes"])
            said = {"merged": (), "number": 0, "folder": name.removesuffix(f"/{COMMIT}")} | said  # version 2 had none
            commit = Commit(moves, tuple(said["removes"]), holes, tuple(said["merged"]), said["number"])
            found.append((said["folder"], commit))
        return found

    def commits(self, namespace: str) -> tuple[list[int], int]:
        """List the numbers of the decided commits on an object store that may not be finished; the newest number."""
        names = self.commit_names(namespace)
        done = {number for name, number in names if name.endswith(DONE)}
        decided = {number for name, number in names if not name.endswith(DONE)}
        return sorted(decided - done), max(decided, default=0)

    def commit_names(self, namespace: str) -> list[tuple[str, int]]:
        """List the objects of commits on an object store: each name under the root, and the commit's number."""
        names = list(self._names(f"{COMMITS}/{folder_of(namespace)}"))
        return [(name, int(PurePosixPath(name).stem)) for name in names]

    def modified_ns(self, found: Any) -> int:
        """Give the time of the last change of a listed file, in nanoseconds since 1970."""
        if self.remote is not None:
            return self.remote.modified_ns(found.path)
        return int(found.mtime_ns or 0)

    def move(self, name: str, other: str) -> None:
        """Move a file; both names are under the root. Raises FileNotFoundError if it is not there."""
        (self.remote or self.fs).move(self.at(name), self.at(other))

    def _settled(self, namespace: str) -> Iterable[File]:
        """Give the files as they will be when all decided commits are finished.

        A listing takes longer than a commit, so it may have one in part. Names never come back: what two listings have
        in common was there between them.
        """
        before: tuple[list[tuple[str, Commit]], list[str]] | None = None
        while (now := (self.pending(namespace), sorted(self._names(folder_of(namespace))))) != before:
            before = now
        pending, names = now
        found = {name: parse(name, self.at(name)) for name in names}
        for folder, commit in pending:
            for source, name in commit.moves:
                if name not in found:
                    found[name] = parse(name, self.at(f"{folder}/{source}"))
            for name in commit.replaced:
                found.pop(name, None)
        return [file for file in found.values() if file is not None]

    def _names(self, folder: str) -> Iterator[str]:
        """List the names of all files in a folder and below, under the root."""
        for found in self._listed(folder, recursive=True):
            if found.type == fs.FileType.File:
                yield found.path[len(self.path) + 1 :]

    def _listed(self, folder: str, *, recursive: bool) -> list[Any]:
        path = f"{self.path}/{folder}".rstrip("/")
        try:
            found: list[Any] = self.fs.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=recursive))
        except FileNotFoundError:  # a folder went away while it was listed
            return self._listed(folder, recursive=recursive)
        return found


def commit_name(namespace: str, number: int) -> str:
    """Name the object that decides a commit on an object store."""
    return f"{COMMITS}/{folder_of(namespace)}/{number:012}.json"


def work_of(namespace: str) -> str:
    """Name the work folder of a namespace."""
    return f"{WORK}/{folder_of(namespace)}"


def files(
    root: str,
    namespace: str | None = None,
    *,
    after: int = 0,
    last: int | None = None,
    days: Collection[str] | None = None,
) -> list[File]:
    """List the files of an archive: `Archive(root).files`."""
    return Archive(root).files(namespace, after=after, last=last, days=days)
