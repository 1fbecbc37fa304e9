"""A mutant: one file with one small change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file.

    file        as in `ops/putting`, without `lua/` or `qmodel/` and without its ending
    operator    what kind of change it is
    line        where it begins, and `first` to `last` are the lines of the smallest statement around it
    start, end  which bytes of the file are replaced, and `new` by what
    was         the line of the file before, without the blanks around it, and `becomes` after
    nth         which of the lines of the file that read the same it is, from 1
    """

    side: str
    file: str
    operator: str
    line: int
    first: int
    last: int
    start: int
    end: int
    new: str
    was: str
    becomes: str
    nth: int

    @property
    def name(self) -> str:
        """Identify a mutant, as long as its file does not change."""
        return f"{self.side}:{self.file}:{self.line}:{self.start}:{self.end}:{self.operator}:{self.new}"

    @property
    def half(self) -> int:
        """The half of all mutants that it belongs to, by a checksum: 0 to learn from, 1 held out."""
        return crc32(f"{self.file} {self.was} {self.becomes} {self.operator}".encode()) & 1

    def apply(self, text: str) -> str:
        """Give the whole text of the mutated file."""
        raw = text.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.end :]).decode()

    def __str__(self) -> str:
        place = f"{'lua' if self.side == 'lua' else 'qmodel'}/{self.file}.{'lua' if self.side == 'lua' else 'py'}"
        return f"{place}:{self.line} [{self.operator}] {self.was!r} -> {self.becomes!r}"


class Maker:
    """Collects the mutants of one file; the same mutated text is added once."""

    def __init__(self, side: str, file: str, text: str) -> None:
        self._side, self._file, self._raw = side, file, text.encode()
        self._lines = [0]
        for line in self._raw.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.mutants: list[Mutant] = []
        self._known: set[tuple[int, int, str]] = set()

    def add(self, operator: str, span: tuple[int, int], new: str, lines: tuple[int, int]) -> None:
        """Add the mutant with these bytes replaced; `lines` are the lines of the statement around them, from 1."""
        start, end = span
        if (start, end, new) in self._known or self._raw[start:end].decode() == new:
            return
        self._known.add((start, end, new))
        line = next(i for i, at in enumerate(self._lines) if at > start)
        begin, stop = self._lines[line - 1], self._line_end(end)
        changed = self._raw[begin:start] + new.encode() + self._raw[end:stop]
        self.mutants.append(
            Mutant(
                self._side, self._file, operator, line, *lines, start, end, new,
                _one_line(self._raw[begin:stop]), _one_line(changed), self._nth(line),
            )
        )  # fmt: skip

    def _nth(self, line: int) -> int:
        lines = [one.strip() for one in self._raw.splitlines()[:line]]
        return lines.count(lines[-1])

    def _line_end(self, at: int) -> int:
        found = self._raw.find(b"\n", at)
        return len(self._raw) if found < 0 else found


def _one_line(raw: bytes) -> str:
    text = " ".join(raw.decode().split())
    return text if len(text) <= 200 else f"{text[:150]} ... {text[-45:]}"


def by_file(mutants: Iterable[Mutant]) -> dict[str, list[Mutant]]:
    """Mutants by the file that they change."""
    found: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        found.setdefault(mutant.file, []).append(mutant)
    return found


def digest(*parts: object) -> str:
    """Digest what is to be told apart, by its texts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]
