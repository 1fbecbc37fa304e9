"""The disk under the journal: everything that writes to a data folder, or locks it.

Reading needs no such object. The simulator puts a disk in its place that tears writes, loses what was not synced, and
fills up.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final

from qmodel.serve import files


class Disk:
    """The disk of this machine. Every method raises OSError."""

    def lock(self, folder: Path) -> int:
        """Lock a folder until `unlock`, or until this process ends."""
        return files.lock(folder)

    def unlock(self, lock: int) -> None:
        """Unlock a folder."""
        os.close(lock)

    # ---- files that are changed in place

    def open(self, path: Path) -> int:
        """Open a file for writing; make it if there is none."""
        return os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)

    def write(self, file: int, raw: bytes, at: int) -> None:
        """Write all bytes at a place."""
        view = memoryview(raw)
        while view:
            done = os.pwrite(file, view, at)
            view, at = view[done:], at + done

    def truncate(self, file: int, length: int) -> None:
        """Cut a file to a length."""
        os.ftruncate(file, length)

    def sync(self, file: int) -> None:
        """Wait until a file is on the disk."""
        os.fsync(file)

    def close(self, file: int) -> None:
        """Close a file."""
        os.close(file)

    # ---- files that are written once

    def create(self, path: Path) -> BinaryIO:
        """Begin an empty file in place of any other of this name."""
        return open(path, "wb")

    def finish(self, file: BinaryIO) -> None:
        """Write the buffer of a created file, and wait for the disk."""
        file.flush()
        self.sync(file.fileno())

    def replace(self, old: Path, new: Path) -> None:
        """Rename a file, in place of another one."""
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Delete a file if it exists."""
        path.unlink(missing_ok=True)

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in a folder are on the disk."""
        held = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(held)
        finally:
            os.close(held)


DISK: Final = Disk()
"""The disk of this machine."""
