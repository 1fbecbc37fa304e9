"""A digest of files of code, to tell whether what was made with them is still current."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest_of(root: Path, patterns: Iterable[str]) -> str:
    """Digest the names and contents of the files below a folder that match one of the patterns."""
    found = hashlib.sha256()
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()
