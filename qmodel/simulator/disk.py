"""The disk: what a crash leaves of the files of a journal.

The folder is a real one, and holds what the kernel would show. For each change that is not yet on the disk, the change
that undoes it is remembered. A crash of the process undoes nothing. A power failure undoes changes that were never
synced: all of them, or those after some point, the first of them perhaps in part (a torn write). A disk that `lies`
says that data is synced when it is not: then a power failure goes back to the last point at which everything really
was, and so does a failover to a replica that lags.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import BinaryIO, Final, NamedTuple

from qmodel.serve.disk import Disk
from qmodel.simulator.baton import Baton

WRITTEN_BACK: Final = 1.0
"""Seconds after which the kernel writes what nobody synced."""


class Change(NamedTuple):
    """A change that is not on the disk: when it was made, what it changed, how to undo it, and how to undo a part."""

    at: float
    what: object
    undo: Callable[[], None]
    tear: Callable[[float], None] | None = None


class SimulatedDisk(Disk):
    """A disk that takes its time, and a crash may come meanwhile. If it `lies`, nothing is synced before `settle`."""

    def __init__(self, baton: Baton, chance: Random, lies: bool = False, slow: float = 0.001) -> None:
        self.lies = lies
        self.full = False
        self.refused = self.undone = 0
        self.settled_at = 0.0
        self._baton = baton
        self._chance = chance
        self._slow = slow
        self._changes: list[Change] = []
        self._open: dict[int, Path] = {}
        self._handles: set[int] = set()

    # ---- what the journal asks for

    def lock(self, folder: Path) -> int:
        """Lock nothing: a killed server holds no lock."""
        folder.mkdir(parents=True, exist_ok=True)
        return -1

    def unlock(self, lock: int) -> None:
        """Unlock nothing."""

    def open(self, path: Path) -> int:
        """Open a file; make it if there is none."""
        self._work()
        is_new = not path.exists()
        file = super().open(path)
        self._open[file] = path
        self._handles.add(file)
        if is_new:
            self._changed(path.parent, lambda: path.unlink(missing_ok=True))
        return file

    def write(self, file: int, raw: bytes, at: int) -> None:
        """Write bytes; the disk may be full, or the process killed before it is done."""
        self._baton.check()
        if self.full:
            self.refused += 1
            raise OSError(28, os.strerror(28))
        path = self._open[file]
        size = os.fstat(file).st_size
        before = _read(path, at, len(raw)) if at < size else b""
        super().write(file, raw, at)

        def tear(part: float) -> None:
            _overwrite(path, raw[: int(len(raw) * part)], at)

        self._changed(path, lambda: _restore(path, before, at, size), tear)
        self._work()

    def truncate(self, file: int, length: int) -> None:
        """Cut a file."""
        path = self._open[file]
        self._baton.check()
        size = os.fstat(file).st_size
        before = _read(path, length, size - length) if length < size else b""
        super().truncate(file, length)
        if before:
            self._changed(path, lambda: _restore(path, before, length, size))

    def sync(self, file: int) -> None:
        """Put the changes of a file on the disk, unless it lies."""
        self._work()
        path = self._open.get(file)
        if not self.lies:
            self._forget(path)

    def close(self, file: int) -> None:
        """Close a file."""
        self._baton.check()
        self._open.pop(file, None)
        if file in self._handles:
            self._handles.discard(file)
            super().close(file)

    def create(self, path: Path) -> BinaryIO:
        """Begin a file in place of another one."""
        self._work()
        before = path.read_bytes() if path.exists() else None
        file = super().create(path)
        self._open[file.fileno()] = path
        self._changed(path, lambda: _put_back(path, before))
        return file

    def replace(self, old: Path, new: Path) -> None:
        """Rename a file."""
        self._work()
        before, moved = (new.read_bytes() if new.exists() else None), old.read_bytes()
        super().replace(old, new)

        def undo() -> None:
            _put_back(old, moved)
            _put_back(new, before)

        self._changed(new.parent, undo)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        self._baton.check()
        if path.exists():
            before = path.read_bytes()
            super().remove(path)
            self._changed(path.parent, lambda: _put_back(path, before))

    def sync_folder(self, folder: Path) -> None:
        """Put the names of a folder on the disk, unless it lies."""
        self._work()
        if not self.lies:
            self._forget(folder)

    # ---- what happens to it

    def settle(self) -> None:
        """Put everything on the disk."""
        self._changes.clear()
        self.settled_at = self._baton.now

    def lose(self, since: float | None = None) -> None:
        """Undo what is not on the disk: an honest disk keeps a part of it, and a lying one what is before `since`."""
        if since is None:
            keep = self._chance.randrange(len(self._changes) + 1)
            kept, gone = self._changes[:keep], self._changes[keep:]
        else:
            kept = [one for one in self._changes if one.at <= since]
            gone = self._changes[len(kept) :]
        for one in reversed(gone):
            one.undo()
        self.undone += len(gone)
        if since is None and gone and gone[0].tear is not None and self._chance.random() < 0.5:
            gone[0].tear(self._chance.random())
        self._changes = []

    def abandon(self) -> None:
        """Close the files of a killed server."""
        for file in self._handles:
            os.close(file)
        self._handles.clear()
        self._open.clear()

    def _forget(self, what: object) -> None:
        """Forget the changes of a file or a folder that is synced, and those that the kernel has written by itself."""
        since = self._baton.now - WRITTEN_BACK
        self._changes = [one for one in self._changes if one.what != what and one.at > since]

    def _changed(self, what: object, undo: Callable[[], None], tear: Callable[[float], None] | None = None) -> None:
        self._changes.append(Change(self._baton.now, what, undo, tear))

    def _work(self) -> None:
        """Let time pass, as the disk needs it; the process may be killed meanwhile."""
        until = self._baton.now + self._chance.random() * self._slow
        while self._baton.now < until:
            self._baton.block(until)


def _read(path: Path, at: int, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(size)


def _overwrite(path: Path, raw: bytes, at: int) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(raw)


def _restore(path: Path, before: bytes, at: int, size: int) -> None:
    _overwrite(path, before, at)
    os.truncate(path, size)


def _put_back(path: Path, before: bytes | None) -> None:
    if before is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(before)
