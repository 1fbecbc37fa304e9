"""Change an archive: under a lock, and atomically. This is the only way to change one."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyarrow import fs

from qmodel.pipeline.archive.layout import COMMIT, HOLES, Archive, ArchiveError, Commit, folder_of, work_of
from qmodel.pipeline.events.gaps import Gap

PATIENCE = 60
"""The seconds that a writer waits for another writer of the archive."""


class Busy(ArchiveError):
    """Raised if another process writes to the archive."""


class Writer:
    """The one writer of a namespace of an archive; made by `writing`."""

    def __init__(self, archive: Archive, namespace: str) -> None:
        self.archive = archive
        self.namespace = namespace
        self.recover()

    def begin(self) -> str:
        """Make a work folder; give its name under the root."""
        name = f"{work_of(self.namespace)}/{secrets.token_hex(6)}"
        self.archive.fs.create_dir(self.archive.at(name), recursive=True)
        return name

    def commit(self, folder: str, commit: Commit) -> None:
        """Move the files of a work folder into the archive and remove the files that they replace, all or nothing."""
        said = {"moves": commit.moves, "removes": commit.removes, "holes": commit.holes}
        path = self.archive.at(f"{folder}/{COMMIT}")
        with self.archive.fs.open_output_stream(f"{path}.part") as file:
            file.write(json.dumps(said).encode())
        self._sync(f"{path}.part")
        self.archive.fs.move(f"{path}.part", path)
        self._sync(os.path.dirname(path))
        self._finish(folder, commit)

    def recover(self) -> None:
        """Finish commits that were decided, and remove work that was not."""
        for folder, commit in self.archive.pending(self.namespace):
            self._finish(folder, commit)
        work = self.archive.at(work_of(self.namespace))
        if self.archive.fs.get_file_info(work).type == fs.FileType.Directory:
            self.archive.fs.delete_dir(work)

    def _finish(self, folder: str, commit: Commit) -> None:
        """Do the remaining moves of a commit; an earlier process may have done some."""
        archive = self.archive
        here = folder_of(self.namespace)
        made = {here, f"{here}/{HOLES}", *(name.rpartition("/")[0] for _, name in commit.moves)}
        for name in made:
            archive.fs.create_dir(archive.at(name), recursive=True)
        for source, name in commit.moves:
            if self._is_file(f"{folder}/{source}"):
                archive.fs.move(archive.at(f"{folder}/{source}"), archive.at(name))
        for hole in commit.holes:
            archive.fs.open_output_stream(archive.at(hole_name(self.namespace, hole))).close()
        for name in commit.removes:
            if self._is_file(name):
                archive.fs.delete_file(archive.at(name))
        for name in made:
            self._sync(archive.at(name))
        archive.fs.delete_file(archive.at(f"{folder}/{COMMIT}"))
        archive.fs.delete_dir(archive.at(folder))

    def _is_file(self, name: str) -> bool:
        return bool(self.archive.fs.get_file_info(self.archive.at(name)).type == fs.FileType.File)

    def _sync(self, path: str) -> None:
        if self.archive.local:
            sync(path)


def hole_name(namespace: str, hole: Gap) -> str:
    """Name the file that records a hole, under the root."""
    return f"{folder_of(namespace)}/{HOLES}/{hole.first:012}-{hole.last:012}"


def sync(path: str) -> None:
    """Flush a file or folder of this machine to the disk, so that it survives a loss of power."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def writing(archive: Archive, namespace: str, patience: float = PATIENCE) -> Iterator[Writer]:
    """Lock a namespace of an archive for writing, and finish what an earlier writer left.

    Raises Busy if another process of this machine still holds the lock after `patience` seconds.
    """
    with _locked(archive, namespace, patience):
        yield Writer(archive, namespace)


@contextmanager
def _locked(archive: Archive, namespace: str, patience: float) -> Iterator[None]:
    """Hold the lock of a namespace. It ends with this process, however that ends; child processes do not inherit it."""
    if not archive.local:
        yield
        return
    import fcntl

    folder = Path(archive.at(folder_of(namespace)))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "_lock").open("a") as file:
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise Busy(
                        f"Another process writes to {namespace!r} in {archive.root} now. Nothing was done. Wait "
                        f"until it ends, or stop it."
                    ) from None
            time.sleep(0.1)
        yield


@contextmanager
def explained(root: str) -> Iterator[None]:
    """Turn errors of the file system, such as a full disk or a read-only folder, into a sentence."""
    try:
        yield
    except OSError as error:
        raise ArchiveError(
            f"The archive {root} cannot be read or written: {error}. Unfinished work was discarded. Solve that "
            f"problem and run the command again."
        ) from error
