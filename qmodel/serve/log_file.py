"""The log of a generation, and the mark that says how much of it was acknowledged.

A line is the checksum, a blank, and the text. The checksum is the CRC-32 of the text, continued from the checksum of
the line before it, so that a line which is changed, lost, repeated or moved breaks the chain there. The first line is
the header. A commit is some lines of entries and a line `commit <entries so far>`.

The mark has two slots of 512 bytes, written in turns, so that a write which a power failure tears leaves the other one.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from qmodel.serve.disk import Disk
from qmodel.serve.files import FORMAT, Bad

SLOT: Final = 512
_LINE: Final = re.compile(rb"([0-9a-f]{8}) (.*)\n", re.S)


class Mark(NamedTuple):
    """How far a log is acknowledged: its length in bytes, its number of entries, and its last checksum."""

    offset: int
    entries: int
    crc: int

    def packed(self) -> bytes:
        """Write it as a slot."""
        text = b"%d %d %08x" % self
        return (b"%08x " % zlib.crc32(text) + text + b"\n").ljust(SLOT, b"\0")


def read_mark(file: Path) -> Mark:
    """Read a mark. Raises Bad if it is missing, or neither slot is whole."""
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise Bad(f"{file.name}, which tells how much was acknowledged, is missing") from None
    found = [one for one in (_slot(raw[at : at + SLOT]) for at in (0, SLOT)) if one is not None]
    if not found:
        raise Bad(f"{file.name}, which tells how much was acknowledged, does not match its checksum")
    return max(found)


def _slot(raw: bytes) -> Mark | None:
    line = _LINE.fullmatch(raw.rstrip(b"\0"))
    if line is None or int(line[1], 16) != zlib.crc32(line[2]) or len(raw) != SLOT:
        return None
    offset, count, crc = line[2].split()
    return Mark(int(offset), int(count), int(crc, 16))


class Writer:
    """Appends commits to a log, each acknowledged by the mark."""

    def __init__(self, disk: Disk, log: Path, marks: Path, at: Mark) -> None:
        self.at = at
        self._disk = disk
        self._log, self._marks = disk.open(log), disk.open(marks)
        self._turn = 0
        disk.truncate(self._log, at.offset)
        disk.sync(self._log)
        for _ in range(2):
            self._mark()
            disk.sync(self._marks)

    def commit(self, entries: Sequence[str]) -> None:
        """Write entries, wait for the disk, and mark them as acknowledged. After an OSError nothing is added."""
        lines, crc = [], self.at.crc
        count = self.at.entries + len(entries)
        for text in (*entries, f"commit {count}"):
            crc = zlib.crc32(text.encode(), crc)
            lines.append(f"{crc:08x} {text}\n")
        raw = "".join(lines).encode()
        try:
            self._disk.write(self._log, raw, self.at.offset)
            self._disk.sync(self._log)
            self.at = Mark(self.at.offset + len(raw), count, crc)
            self._mark()
        except OSError:
            self._disk.truncate(self._log, self.at.offset)
            raise

    def close(self) -> None:
        """Close both files; the mark is on the disk then."""
        self._disk.sync(self._marks)
        self._disk.close(self._log)
        self._disk.close(self._marks)

    def _mark(self) -> None:
        self._disk.write(self._marks, self.at.packed(), self._turn * SLOT)
        self._turn = 1 - self._turn


def begin(disk: Disk, log: Path, generation: int, digest: str) -> Mark:
    """Begin a log: its header names the generation and the snapshot before it."""
    text = "log " + json.dumps({"format": FORMAT, "generation": generation, "snapshot": digest})
    raw = f"{zlib.crc32(text.encode()):08x} {text}\n".encode()
    with disk.create(log) as file:
        file.write(raw)
        disk.finish(file)
    return Mark(len(raw), 0, zlib.crc32(text.encode()))


def has_entries(log: Path) -> bool:
    """Say whether a log has more than its header, or the beginning of one."""
    return log.exists() and log.read_bytes().count(b"\n") > 1


class Log:
    """Reads a log. After reading, `end` is the end of the last whole commit.

    `damage` says what is wrong, if anything is. `torn` is the number of bytes after `end` if they are the beginning of
    a commit that was never acknowledged.
    """

    def __init__(self, file: Path, mark: Mark | None, generation: int, digest: str | None) -> None:
        self.name = file.name
        self.end = Mark(0, 0, 0)
        self.damage = ""
        self.torn = 0
        self._file = file
        self._mark = mark
        self._header = {"format": FORMAT, "generation": generation}
        self._expected = digest
        self.digest: str | None = None

    def commits(self) -> Iterator[list[Any]]:
        """Give the entries of each whole commit."""
        try:
            with open(self._file, "rb") as file:
                yield from self._commits(file)
                self._judge_rest(file)
        except FileNotFoundError:
            self.damage = f"{self.name} is missing"

    def _commits(self, file: BinaryIO) -> Iterator[list[Any]]:
        at, entries = Mark(0, 0, 0), list[Any]()
        passed = self._mark is None
        for line in file:
            text = _text(line, at.crc)
            if text is None:
                return
            at = Mark(at.offset + len(line), at.entries, zlib.crc32(text, at.crc))
            if not self.end.offset:
                if not self._is_header(text):
                    return
                self.end = at
            elif text.startswith(b"commit "):
                if text != b"commit %d" % (at.entries + len(entries)):
                    return
                at = at._replace(entries=at.entries + len(entries))
                self.end = at
                yield entries
                entries = []
            else:
                entries.append(json.loads(text))
            passed = passed or at == self._mark
            if not passed and self._mark is not None and at.offset >= self._mark.offset and not entries:
                self.damage = f"{self.name} is another log than {self._file.name.replace('log', 'mark')} tells of"
                return

    def _is_header(self, text: bytes) -> bool:
        found = json.loads(text[4:]) if text.startswith(b"log ") else {}
        self.digest = found.pop("snapshot", None)
        return bool(found == self._header and self._expected in (None, self.digest))

    def _judge_rest(self, file: BinaryIO) -> None:
        """Tell a torn tail from damage, after the last whole commit."""
        length = os.fstat(file.fileno()).st_size
        known = self._mark.offset if self._mark else 0
        if self.damage:
            return
        if length < known:
            self.damage = f"{self.name} ends at byte {length}, but {known} bytes were acknowledged"
        elif self.end.offset < known or not self.end.offset or _commits_in(file, self.end) > 1:
            self.damage = f"{self.name} does not match its checksum after byte {self.end.offset} of {length}"
        else:
            self.torn = length - self.end.offset


def _text(line: bytes, crc: int) -> bytes | None:
    """Give the text of a line if its checksum continues the chain."""
    found = _LINE.fullmatch(line)
    return found[2] if found and int(found[1], 16) == zlib.crc32(found[2], crc) else None


def _commits_in(file: BinaryIO, end: Mark) -> int:
    """Count the commits after a place that are whole in themselves: a torn write has one at most."""
    file.seek(end.offset)
    found, before = 0, b""
    for line in file:
        one = _LINE.fullmatch(line)
        if one and one[2].startswith(b"commit ") and before and _text(line, int(before, 16)) is not None:
            found += 1
        before = one[1] if one else b""
    return found
