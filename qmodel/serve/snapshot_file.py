"""The snapshot of a generation: the whole state, as one file.

Each part is a line `part <checksum> <JSON>`, where the JSON is database, prefix, number of the part, number of parts of
this namespace and size in bytes, and then its bytes. The checksum is the CRC-32 of both. The last line is
`end <parts> <SHA-256 of everything before it>`; the manifest repeats both numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from qmodel.serve import snapshot_bytes
from qmodel.serve.disk import Disk
from qmodel.serve.files import Bad, Manifest
from qmodel.serve.namespaces import Spaces
from qmodel.version import __version__


class Part(NamedTuple):
    """A part of a namespace: `number` is its place among `of` parts."""

    db: int
    prefix: str
    number: int
    of: int
    data: bytes


def write(disk: Disk, file: Path, spaces: Spaces, generation: int) -> Manifest:
    """Write the state, and wait for the disk; give the manifest of the generation."""
    digest, count = hashlib.sha256(), 0
    with disk.create(file) as out:
        for part in _parts(spaces):
            head = json.dumps([*part[:4], len(part.data)]).encode()
            piece = b"part %08x %b\n" % (zlib.crc32(part.data, zlib.crc32(head)), head)
            for raw in (piece, part.data):
                digest.update(raw)
                out.write(raw)
            count += 1
        out.write(f"end {count} {digest.hexdigest()}\n".encode())
        size = out.tell()
        disk.finish(out)
    return Manifest(generation, __version__, size, count, digest.hexdigest())


def _parts(spaces: Spaces) -> Iterator[Part]:
    for space in spaces:
        of = 1 - -len(space.store.jobs) // snapshot_bytes.PART
        for number, data in enumerate(snapshot_bytes.parts(space.store)):
            yield Part(space.db, space.prefix, number, of, data)


class Snapshot:
    """Reads a snapshot. After reading, `damage` says what is wrong, if anything is."""

    def __init__(self, file: Path, expected: Manifest | None) -> None:
        self.name = file.name
        self.damage: list[str] = []
        self.found: Manifest | None = None
        self._file = file
        self._expected = expected
        self._digest = hashlib.sha256()

    def parts(self) -> Iterator[Part]:
        """Give the parts that match their checksums."""
        try:
            with open(self._file, "rb") as file:
                yield from self._parts(file)
        except FileNotFoundError:
            self.damage.append(f"{self.name} is missing")

    def _parts(self, file: BinaryIO) -> Iterator[Part]:
        count, length = 0, os.fstat(file.fileno()).st_size
        while (line := file.readline()).startswith(b"part "):
            at = file.tell()
            try:
                part = _part(line, file, length)
            except Bad as error:
                self.damage.append(f"{self.name} does not match its checksum at byte {at - len(line)}: {error}")
                if file.tell() == at:
                    return
                continue
            self._digest.update(line + part.data)
            count += 1
            yield part
        self._check_end(line, count, file)

    def _check_end(self, line: bytes, count: int, file: BinaryIO) -> None:
        at = file.tell()
        right = line == f"end {count} {self._digest.hexdigest()}\n".encode() and not file.read(1)
        self.found = Manifest(0, "", at, count, self._digest.hexdigest())
        same = self._expected is None or self._expected[2:] == self.found[2:]
        if not self.damage and not (right and same):
            self.damage.append(f"{self.name} is not the file that was written: it ends at byte {at}, part {count}")


def _part(line: bytes, file: BinaryIO, length: int) -> Part:
    """Read a part after its line. Raises Bad; then the file is behind the part if its size could be read."""
    try:
        db, prefix, number, of, size = json.loads(line[14:])
    except (ValueError, TypeError):
        raise Bad("the line before a part cannot be read") from None
    if type(size) is not int or not 0 <= size <= length - file.tell():
        raise Bad(f"part {number} of {prefix!r} goes beyond the end of the file")
    data = file.read(size)
    if line[:14] != b"part %08x " % zlib.crc32(data, zlib.crc32(line[14:-1])):
        raise Bad(f"part {number + 1} of {of} of the namespace {prefix!r} of database {db}")
    return Part(db, prefix, number, of, data)
