"""The archive: all events of one or more namespaces, as Parquet files that anything can read.

    <root>/namespace=ql%3A/day=2026-11-21/000000000001-000000100000-100000-v1.parquet

- `namespace` is what the keys begin with, or another name, percent-encoded; `day` is that of `at`, in UTC. Readers that
  know partitions by folder (Spark, DuckDB, Polars, Arrow) have both as columns beside those of `schema.SCHEMA`.
- A file's name says which is the first sequence in it, which the last, how many rows it has, and in which version its
  columns are (`schema.VERSION`). Inside it is sorted by queue, then by sequence: a question about one queue skips most
  of it. Not by folders of queues: those would be many, and small.
- Columns that were added since are null in older files. Files of a later version are refused, not guessed at.

**The names are the checkpoint.** What is archived is what the names say, so there is nothing else to lose, or to agree
with. A range of sequences is written to `<root>/_work/`, which no reader looks into; then `commit.json` is written
there, which says where each file belongs and which ones it replaces; then they are moved. Whoever finds a `commit.json`
does what is left of it. So a writer may be killed anywhere: before that file nothing has happened, after it everything
has. `files` answers so, too: while files are moved or replaced, it gives each event once. Only one process commits,
under a lock (`committing`); tasks that outlive it have no way into the archive.

**Holes** are events that the server kept no longer: `<root>/namespace=ql%3A/_holes/<first>-<last>`, made only by who
says that he may lose some. So `rows and holes == the last sequence` at all times, which is looked at before anything is
added. (`verifying` looks into the files.)

The root is a folder, or a URL that `pyarrow.fs` knows (s3://, gs://, hdfs://); there, nothing keeps two archivers of a
namespace apart.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from pyarrow import fs

from qmodel.errors import QmodelError
from qmodel.pipeline.events.gaps import Gap

TRIES = 3
"""How often one looks anew where numbers do not add up: somebody may be adding some."""

WORK, HOLES, COMMIT = "_work", "_holes", "commit.json"
"""Folders whose names begin with _ are passed over by whoever reads partitions."""

_NAME = re.compile(r"namespace=([^/]+)/day=(\d{4}-\d\d-\d\d)/(\d+)-(\d+)-(\d+)-v(\d+)\.parquet")
_HOLE = re.compile(r"namespace=([^/]+)/_holes/(\d+)-(\d+)")


class ArchiveError(QmodelError):
    """The archive is not as it has to be, or somebody else writes to it; the sentence says what to do."""


class File(NamedTuple):
    """A file of the archive, as its name tells. `path` is where it is now."""

    namespace: str
    day: str
    first: int
    last: int
    rows: int
    version: int
    path: str

    @property
    def name(self) -> str:
        """Where it belongs, under the root."""
        folder = f"{folder_of(self.namespace)}/day={self.day}"
        return f"{folder}/{self.first:012}-{self.last:012}-{self.rows}-v{self.version}.parquet"


class Commit(NamedTuple):
    """What is to be done at once: files come from the folder of the work, others go, holes are known."""

    moves: tuple[tuple[str, str], ...] = ()  # from a name in that folder, to a name under the root
    removes: tuple[str, ...] = ()
    holes: tuple[Gap, ...] = ()


def folder_of(namespace: str) -> str:
    """The folder of a namespace.

    >>> folder_of("{shop}:ql:")
    'namespace=%7Bshop%7D%3Aql%3A'
    """
    if not namespace:
        raise ValueError("an archive keeps the events of a namespace under a name, and this has none: give one")
    return f"namespace={quote(namespace, safe='')}"


def parse(name: str, path: str = "") -> File | None:
    """A file, by its name under the root; None for what is no file of an archive."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    namespace, day, *numbers = found.groups()
    first, last, rows, version = map(int, numbers)
    return File(unquote(namespace), day, first, last, rows, version, path)


class Archive:
    """An archive: what is in it, and the one way to change that."""

    def __init__(self, root: str) -> None:
        """`root` is a folder or a URL that `pyarrow.fs` knows; it need not be there yet."""
        self.root = str(root)
        if "://" in self.root:
            try:
                self.fs, self.path = fs.FileSystem.from_uri(self.root)
            except (OSError, ValueError) as error:
                raise ArchiveError(
                    f"{self.root} is no place for an archive: {error}. Give a folder, or s3://, gs:// or hdfs://."
                ) from None
        else:
            self.fs, self.path = fs.LocalFileSystem(), os.path.abspath(self.root)
        self.local = self.fs.type_name == "local"
        self.place = self.root if "://" in self.root else self.path
        """The root, as processes that work elsewhere find it."""

    def at(self, name: str) -> str:
        """The path of a name under the root."""
        return f"{self.path}/{name}"

    # ---- looking

    def namespaces(self) -> list[str]:
        """The namespaces that there are."""
        names = (PurePosixPath(found.path).name for found in self._listed("", recursive=False))
        return sorted(unquote(name.partition("=")[2]) for name in names if name.startswith("namespace="))

    def files(
        self,
        namespace: str | None = None,
        *,
        after: int = 0,
        last: int | None = None,
        days: Collection[str] | None = None,
    ) -> list[File]:
        """The files of one namespace or all, in their order, that may have events after a sequence, up to another, and
        of some days (`2026-11-21`). Each event is in one of them, also while others are merged.
        """
        spaces = self.namespaces() if namespace is None else [namespace]
        found = [file for space in spaces for file in self._settled(space)]
        return [
            file
            for file in sorted(found, key=lambda file: (file.namespace, file.first, file.day))
            if file.last > after and (last is None or file.first <= last) and (days is None or file.day in days)
        ]

    def holes(self, namespace: str) -> list[Gap]:
        """The events of a namespace that were lost, as somebody allowed, in their order."""
        matches = [_HOLE.fullmatch(name) for name in self._names(f"{folder_of(namespace)}/{HOLES}")]
        found = {Gap(int(match[2]), int(match[3])) for match in matches if match}
        return sorted(found.union(*(commit.holes for _, commit in self.pending(namespace))))

    def last(self, namespace: str) -> int:
        """The last sequence of a namespace that needs archiving no more; 0 where there is none.

        Raises ArchiveError where the names tell that something is missing before, or twice there.
        """
        for _ in range(TRIES):
            files, holes = self.files(namespace), self.holes(namespace)
            last = max([file.last for file in files] + [hole.last for hole in holes], default=0)
            known = sum(file.rows for file in files) + sum(map(len, holes))
            if known == last:
                break
        else:
            raise ArchiveError(
                f"The archive {self.root} ends with event {last} of {namespace!r}, and has {known} of them, as files "
                f"are named. Nothing was added. Run `qmodel spark verify --to {self.root}`: it says which are missing, "
                f"or there twice."
            )
        return last

    def pending(self, namespace: str) -> list[tuple[str, Commit]]:
        """What was decided, and may not be done yet: the folders of the work, and what each says."""
        found = []
        for name in self._names(work_of(namespace)):
            if name.endswith(f"/{COMMIT}"):
                try:
                    with self.fs.open_input_stream(self.at(name)) as file:
                        said = json.loads(file.read())
                except FileNotFoundError:  # done, meanwhile
                    continue
                moves = tuple((one, other) for one, other in said["moves"])
                holes = tuple(Gap(*hole) for hole in said["holes"])
                found.append((name.removesuffix(f"/{COMMIT}"), Commit(moves, tuple(said["removes"]), holes)))
        return found

    def _settled(self, namespace: str) -> Iterable[File]:
        """The files as they are when all that was decided is done."""
        while True:
            before = self.pending(namespace)
            found = {name: parse(name, self.at(name)) for name in self._names(folder_of(namespace))}
            after = self.pending(namespace)
            if before == after:
                break
        for folder, commit in after:
            for source, name in commit.moves:
                if name not in found:
                    found[name] = parse(name, self.at(f"{folder}/{source}"))
            for name in commit.removes:
                found.pop(name, None)
        return [file for file in found.values() if file is not None]

    def _names(self, folder: str) -> Iterator[str]:
        """The names of all files in a folder and below, under the root."""
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


def work_of(namespace: str) -> str:
    """The folder in which the work on a namespace is done."""
    return f"{WORK}/{folder_of(namespace)}"


def files(
    root: str,
    namespace: str | None = None,
    *,
    after: int = 0,
    last: int | None = None,
    days: Collection[str] | None = None,
) -> list[File]:
    """The files of an archive: `Archive(root).files`."""
    return Archive(root).files(namespace, after=after, last=last, days=days)
