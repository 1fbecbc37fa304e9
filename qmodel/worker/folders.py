"""The work folder of a worker, with a folder for each job; and the removal of folders that killed workers left behind.

A worker holds a lock on its folder for as long as it lives, so a folder without a lock is abandoned. Process ids would
not show that: they are reused, and containers that share a folder have separate ones.
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


class WorkFolder:
    """A new folder, locked until it is closed."""

    def __init__(self) -> None:
        sweep()
        while not self._make():  # another worker may have removed it as abandoned before it was locked
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
        """Remove the folder and everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def sweep() -> None:
    """Remove the abandoned folders of the same user."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if os.fstat(held).st_uid == os.getuid():
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(held)
