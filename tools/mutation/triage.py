"""Read `mutants.toml`: the equivalent mutants, which no test can notice, and the reasons.

    [[equivalent]]
    file = "lua/state/stats.lua"
    operator = "constant"
    line = "local FOLD = 64"
    becomes = ["local FOLD = 65"]       # if left out: every change of this line by the operator
    reason = "When durations are folded shows nowhere: readers fold what is pending."

A line is identified by its text, so that it may move; `nth = [2]` is the second of several equal lines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.mutation.mutants import Mutant

FILE = Path(__file__).resolve().parents[2] / "mutants.toml"


@dataclass
class Entry:
    """One entry: the mutants that it matches, and why no test can notice them."""

    file: str
    operator: str
    line: str
    becomes: tuple[str, ...]
    nth: tuple[int, ...]
    reason: str
    met: list[Mutant] = field(default_factory=list)

    def covers(self, mutant: Mutant) -> bool:
        """Tell whether the entry matches a mutant."""
        return (
            self.file == path(mutant)
            and self.operator in ("*", mutant.operator)
            and self.line == mutant.was
            and (not self.becomes or mutant.becomes in self.becomes)
            and (not self.nth or mutant.nth in self.nth)
        )


def path(mutant: Mutant) -> str:
    """Give the path of a mutant's file in the repository."""
    return f"lua/{mutant.file}.lua" if mutant.side == "lua" else f"qmodel/{mutant.file}.py"


class Triage:
    """All entries."""

    def __init__(self, text: str | None = None) -> None:
        found: dict[str, Any] = tomllib.loads(text if text is not None else FILE.read_text(encoding="utf-8"))
        self.entries = [
            Entry(
                one["file"],
                one["operator"],
                one["line"],
                tuple(one.get("becomes", ())),
                tuple(one.get("nth", ())),
                one["reason"],
            )
            for one in found.get("equivalent", [])
        ]
        self._by_line: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries:
            self._by_line.setdefault((entry.file, entry.line), []).append(entry)

    def entry(self, mutant: Mutant) -> Entry | None:
        """Find the entry for an equivalent mutant, if there is one."""
        for entry in self._by_line.get((path(mutant), mutant.was), ()):
            if entry.covers(mutant):
                entry.met.append(mutant)
                return entry
        return None

    def stale(self, mutated: Iterable[str]) -> list[Entry]:
        """List the entries of these files that matched no mutant: their lines have changed."""
        files = set(mutated)
        return [entry for entry in self.entries if entry.file in files and not entry.met]
