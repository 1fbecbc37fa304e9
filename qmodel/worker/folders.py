"""The folder of a worker, in which each of its jobs has one of its own; and what killed workers left behind.

A worker holds a lock on its folder for as long as it lives, so one that nobody holds belongs to nobody: process ids
would not tell, for they are used again, and containers that share a folder each have their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "qmodel-worker-"


class Home:
    """A new folder, held until it is closed."""

    def __init__(self) -> None:
        sweep()
        while not self._make():  # another worker may have taken it for left behind, before it was held
            pass

    def _make(self) -> bool:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            self._held = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        fcntl.flock(self._held, fcntl.LOCK_EX)
        if self.path.exists():
            return True
        os.close(self._held)
        return False

    def close(self) -> None:
        """Remove it, with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def sweep() -> None:
    """Remove the folders that killed workers of the same user left behind."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if os.fstat(held).st_uid == os.getuid():
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(held)
