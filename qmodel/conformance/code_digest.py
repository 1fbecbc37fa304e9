"""Digests of files of code, to tell whether what was made with them is still current."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


def digest_of(root: Path, patterns: Iterable[str]) -> str:
    """Digest the names and contents of the files below a folder that match one of the patterns."""
    found = hashlib.sha256()
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


class Stamp(NamedTuple):
    """A file that says with which code something was made: with the files below `root` that match a pattern."""

    file: Path
    root: Path
    patterns: tuple[str, ...]

    def is_current(self) -> bool:
        """Whether the code is still the one of the stamp."""
        return self.file.exists() and self.file.read_text(encoding="utf-8").strip() == self._digest()

    def renew(self) -> None:
        """Write that it was made with the code as it is."""
        self.file.write_text(self._digest() + "\n", encoding="utf-8")

    def _digest(self) -> str:
        return digest_of(self.root, self.patterns)
