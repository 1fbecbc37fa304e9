"""Files of a data folder: their names, the lock, and the manifest.

The manifest is two lines: a JSON object, and the SHA-256 of that line. It is replaced as a whole by a rename.
Everything that writes is in `disk`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from qmodel.errors import LocalError

FORMAT: Final = 2
MANIFEST: Final = "manifest"
KINDS: Final = ("snapshot", "log", "mark")
"""The files of a generation, each named `<kind>-<generation>`."""

OLD: Final = "journal.sqlite3"
"""The file of format 1, which earlier builds wrote."""


class JournalError(LocalError):
    """The journal cannot be used, or can no longer be written."""


class DamagedError(JournalError):
    """Files of the journal are damaged. `--salvage` starts with what is readable."""


class Bad(ValueError):
    """A file, or a piece of it, is not as it was written; the sentence says where."""


class Manifest(NamedTuple):
    """The current generation, the version that began it, and the size, parts and SHA-256 of its snapshot."""

    generation: int
    version: str
    size: int
    parts: int
    sha256: str


def manifest_bytes(manifest: Manifest) -> bytes:
    """Write the manifest as the bytes of its file."""
    body = json.dumps({"format": FORMAT, **manifest._asdict()}).encode()
    return body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest. Raises FileNotFoundError, Bad, and JournalError for a newer format."""
    raw = (folder / MANIFEST).read_bytes()
    body, _, rest = raw.partition(b"\n")
    if rest != hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise Bad(f"{MANIFEST} does not match its checksum")
    found: dict[str, Any] = json.loads(body)
    version = found.pop("format")
    if version > FORMAT:
        raise JournalError(
            f"The journal in {folder} has format {version}; this version of qmodel reads only format {FORMAT}.",
            "Upgrade qmodel, or choose another folder for --data.",
        )
    return Manifest(**found)


def path(folder: Path, kind: str, generation: int) -> Path:
    """Give the path of a file of a generation."""
    return folder / f"{kind}-{generation}"


def generations(folder: Path) -> list[int]:
    """List the generations that have any file, the newest first."""
    found = (re.fullmatch(rf"(?:{'|'.join(KINDS)})-(\d{{1,15}})", one.name) for one in folder.iterdir())
    return sorted({int(one[1]) for one in found if one}, reverse=True)


def lock(folder: Path) -> int:
    """Lock a folder, for as long as this process lives or until the lock is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise JournalError(
            f"Nothing can be stored in {folder}: {error.strerror}.", "Choose another folder for --data."
        ) from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(held, 20, 0).decode(errors="replace").strip()
        os.close(held)
        raise JournalError(
            f"Another server (process {owner}) has the folder {folder}.",
            "Stop it, or choose another folder for --data.",
        ) from None
    os.ftruncate(held, 0)
    os.pwrite(held, str(os.getpid()).encode(), 0)
    return held
