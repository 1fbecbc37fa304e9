"""Change an archive: under a lock, and atomically. This is the only way to change one.

Each commit takes the lock, and not a whole run: what is committed is prepared beside other writers, in a work folder.
So a commit says what it was prepared from, and is refused as overtaken if another one has changed that meanwhile.
A writer keeps a lock on its work as long as it lives: the work of others that live is left alone, and what dead ones
left is finished if it was decided, and otherwise removed.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from pyarrow import fs

from qmodel.pipeline.archive.layout import (
    COMMIT,
    DONE,
    HOLES,
    MERGED,
    Archive,
    ArchiveError,
    Commit,
    commit_name,
    folder_of,
    parse,
    work_of,
)
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.events.histories import Position

PATIENCE = 60
"""The seconds that a commit waits for another one of the same namespace."""

COMMITS_KEPT = 1000
"""How many commits stay on an object store: the newest ones."""

DAY_NS = 24 * 3600 * 10**9

ALIVE = "_alive"
"""The file in a writer's work that it keeps locked."""

_threads: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
"""Locks between the threads of this process, by the lock file's path: a lock of the file system is of a process."""

_living: set[str] = set()
"""The work of writers in this process. Their files must not be opened: to close one would give up its lock."""


class Busy(ArchiveError):
    """Raised if another process holds the lock of a namespace."""


class Overtaken(ArchiveError):
    """Raised if another writer has changed what a commit was prepared from. Nothing was done: prepare it again."""


class Writer:
    """A writer of a namespace of an archive; made by `writing`."""

    def __init__(self, archive: Archive, namespace: str, patience: float = PATIENCE) -> None:
        self.archive = archive
        self.namespace = namespace
        self.patience = patience
        self.work = f"{work_of(namespace)}/{secrets.token_hex(6)}"
        self._holds = False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the namespace, and finish what dead writers decided. A block may be inside another one.

        Raises Busy if another process of this machine still holds it after the writer's patience.
        """
        if self._holds:
            yield
            return
        with _locked(self.archive, self.namespace, self.patience):
            self._holds = True
            try:
                self._recover()
                yield
            finally:
                self._holds = False

    def begin(self) -> str:
        """Make a work folder; give its name under the root."""
        name = f"{self.work}/{secrets.token_hex(6)}"
        self.archive.fs.create_dir(self.archive.at(name), recursive=True)
        return name

    def commit(self, folder: str, commit: Commit, after: Position | None = None) -> None:
        """Move the files of a work folder into the archive and remove the files that they replace, all or nothing.

        Raises Overtaken if the archive no longer has a file to remove, or does not end with `after`.
        """
        with self.locked():
            if self.archive.remote is not None:
                self._decide(folder, commit, after)
                return
            self._compare(folder, commit, after)
            said = commit._asdict() | {"folder": folder}
            path = self.archive.at(f"{folder}/{COMMIT}")
            with self.archive.fs.open_output_stream(f"{path}.part") as file:
                file.write(json.dumps(said).encode())
            self._sync(f"{path}.part")
            self.archive.fs.move(f"{path}.part", path)
            self._sync(os.path.dirname(path))
            self._finish(folder, commit)

    def _decide(self, folder: str, commit: Commit, after: Position | None) -> None:
        """Commit on an object store: of all that create the next number, one succeeds.

        The number is that behind those which were there before anything is compared, so what is compared is what they
        left.
        """
        archive = self.archive
        assert archive.remote is not None
        unfinished, newest = archive.commits(self.namespace)
        if unfinished:
            self._recover()
        self._compare(folder, commit, after)
        commit = commit._replace(number=newest + 1)
        said = json.dumps(commit._asdict() | {"folder": folder}).encode()
        try:
            archive.remote.create(archive.at(commit_name(self.namespace, commit.number)), said)
        except FileExistsError:
            raise self._overtaken(f"commit {commit.number} is of another one") from None
        self._finish(folder, commit)

    def _compare(self, folder: str, commit: Commit, after: Position | None) -> None:
        """Check that nobody has changed what a commit was prepared from. The epoch of a hole is not known."""
        gone = [
            name
            for name in (*commit.replaced, *(f"{folder}/{one}" for one, _ in commit.moves))
            if not self._is_file(name)
        ]
        if gone:
            raise self._overtaken(f"{gone[0]} is not there any more")
        at = self.archive.position(self.namespace) if after is not None else None
        if at and after and (at.number != after.number or (None not in (at.epoch, after.epoch) and at != after)):
            raise self._overtaken(f"it ends with number {at.number} of epoch {at.epoch} now")

    def _overtaken(self, what: str) -> Overtaken:
        return Overtaken(
            f"Another process has changed {self.namespace!r} in {self.archive.root} meanwhile: {what}. Nothing was "
            f"done. Run the command again."
        )

    def _recover(self) -> None:
        """Finish commits that were decided, and remove the work of dead writers that was not."""
        for folder, commit in self.archive.pending(self.namespace):
            self._finish(folder, commit)
        work = self.archive.at(work_of(self.namespace))
        for found in self.archive.fs.get_file_info(fs.FileSelector(work, allow_not_found=True)):
            if found.type == fs.FileType.Directory and not self._is_alive(found.path):
                self._remove(found.path[len(self.archive.path) + 1 :])

    def _is_alive(self, path: str) -> bool:
        """Say whether the writer lives that works in a folder. On a URL its files are younger than a day."""
        if path in _living:
            return True
        if not self.archive.local:
            files = self.archive.fs.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
            return any(time.time_ns() - self.archive.modified_ns(file) < DAY_NS for file in files if file.is_file)
        try:
            with Path(path, ALIVE).open("r+") as file:
                return not _take(file)
        except FileNotFoundError:
            return False

    def _finish(self, folder: str, commit: Commit) -> None:
        """Do the remaining moves of a commit; an earlier process may have done some."""
        archive = self.archive
        here = folder_of(self.namespace)
        merged = [(name, file.merged_name) for name in commit.merged if (file := parse(name))]
        made = {here, f"{here}/{HOLES}", *(name.rpartition("/")[0] for _, name in (*commit.moves, *merged))}
        for name in made:
            archive.fs.create_dir(archive.at(name), recursive=True)
        for source, name in commit.moves:
            if self._is_file(f"{folder}/{source}"):
                self._move(f"{folder}/{source}", name)
        for hole in commit.holes:
            archive.fs.open_output_stream(archive.at(hole_name(self.namespace, hole))).close()
        for name in commit.removes:
            if self._is_file(name):
                with suppress(FileNotFoundError):  # another process finishes the same commit
                    archive.fs.delete_file(archive.at(name))
        for name, other in merged:
            if self._is_file(name):
                if archive.local:
                    os.utime(archive.at(name))  # it is kept from now on
                self._move(name, other)
        for name in made:
            self._sync(archive.at(name))
        if commit.number:
            name = commit_name(self.namespace, commit.number).replace(".json", DONE)
            archive.fs.open_output_stream(archive.at(name)).close()
        else:
            archive.fs.delete_file(archive.at(f"{folder}/{COMMIT}"))
        self._remove(folder)

    def _move(self, name: str, other: str) -> None:
        with suppress(*self._tolerated()):  # another process may finish the same commit
            self.archive.move(name, other)

    def _tolerated(self) -> tuple[type[OSError], ...]:
        """Give the errors that say on an object store that another process was quicker."""
        return (FileNotFoundError,) if self.archive.remote is not None else ()

    def _remove(self, folder: str) -> None:
        """Remove a folder. An object store has none, if it is empty."""
        with suppress(*self._tolerated()):
            self.archive.fs.delete_dir(self.archive.at(folder))

    def vacuum(self, seconds: float) -> int:
        """Delete the merged files that were kept for so many seconds; give their number."""
        files = self.archive.fs
        where = self.archive.at(f"{folder_of(self.namespace)}/{MERGED}")
        old = [
            found.path
            for found in files.get_file_info(fs.FileSelector(where, allow_not_found=True, recursive=True))
            if found.type == fs.FileType.File and time.time_ns() - self.archive.modified_ns(found) >= seconds * 10**9
        ]
        if self.archive.remote is not None:
            old += self._old_commits()
        for path in old:
            with suppress(FileNotFoundError):  # another compactor was quicker
                files.delete_file(path)
        return len(old)

    def _old_commits(self) -> list[str]:
        """List the objects of commits that were done long ago: no writer can still be about to create one of them."""
        unfinished, newest = self.archive.commits(self.namespace)
        until = min([newest - COMMITS_KEPT, *(number - 1 for number in unfinished)])
        return [self.archive.at(name) for name, number in self.archive.commit_names(self.namespace) if number <= until]

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
    """Give a writer of a namespace, after what dead ones left was finished or removed. Others may write beside it.

    Each commit takes the lock, and raises Busy if another process holds it for `patience` seconds.
    """
    writer = Writer(archive, namespace, patience)
    path = archive.at(writer.work)
    with ExitStack() as kept:
        with writer.locked():
            archive.fs.create_dir(path, recursive=True)
            if archive.local:
                _take(kept.enter_context(Path(path, ALIVE).open("w")))
            _living.add(path)
            kept.callback(_living.discard, path)
        yield writer
        with suppress(OSError, Busy), writer.locked():  # which finishes what was decided first
            archive.fs.delete_dir(path)


@contextmanager
def _locked(archive: Archive, namespace: str, patience: float) -> Iterator[None]:
    """Hold the lock of a namespace. It ends with this process, however that ends; child processes do not inherit it."""
    if not archive.local:
        yield
        return
    folder = Path(archive.at(folder_of(namespace)))
    folder.mkdir(parents=True, exist_ok=True)
    path, until = folder / "_lock", time.monotonic() + patience
    if not _threads[str(path)].acquire(timeout=patience):
        raise _busy(archive, namespace)
    try:
        with path.open("a") as file:
            while not _take(file):
                if time.monotonic() > until:
                    raise _busy(archive, namespace)
                time.sleep(0.01)
            yield
    finally:
        _threads[str(path)].release()


def _take(file: IO[str]) -> bool:
    """Take the lock of a file for this process; say whether it could be had."""
    import fcntl

    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _busy(archive: Archive, namespace: str) -> Busy:
    return Busy(
        f"Another process writes to {namespace!r} in {archive.root} now. Nothing was done. Wait until it ends, or "
        f"stop it."
    )


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
