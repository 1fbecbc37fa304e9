"""Read `mutants.toml`: the equivalent mutants, which no test can notice, and the reasons.

    [[equivalent]]
    file = "lua/state/stats.lua"
    operator = "constant"
    line = "local FOLD = 64"
    becomes = ["local FOLD = 65"]       # if left out: every change of this line by the operator
    reason = "When durations are folded shows nowhere: readers fold what is pending."

A line is identified by its text, so that it may move; `nth = [2]` is the second of several equal lines, and "*" stands
for any operator. Instead of a line, `within = "store.list"` covers every change of the arguments of calls of a function
of the library, one whose arguments never matter.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qmodel.backends.bundle import read
from tools.mutation import lua
from tools.mutation.mutants import Mutant
from tools.mutation.uses import FUNCTIONS

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
    within: str = ""
    met: list[Mutant] = field(default_factory=list)

    def covers(self, mutant: Mutant) -> bool:
        """Tell whether the entry matches a mutant."""
        return (
            self.file == path(mutant)
            and self.operator in ("*", mutant.operator)
            and (is_within(mutant, self.within) if self.within else self.line == mutant.was)
            and (not self.becomes or mutant.becomes in self.becomes)
            and (not self.nth or mutant.nth in self.nth)
        )


def is_within(mutant: Mutant, function: str) -> bool:
    """Tell whether a mutant of the library changes the arguments of a call of this function."""
    node = lua.tree(read(mutant.file)).descendant_for_byte_range(mutant.start, mutant.end)
    while node is not None and node.type not in FUNCTIONS:
        if node.type == "function_call" and node.children[0].text.decode() == function:
            arguments = node.children[-1]
            return bool(arguments.start_byte < mutant.start and mutant.end < arguments.end_byte)
        node = node.parent
    return False


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
                one.get("line", ""),
                tuple(one.get("becomes", ())),
                tuple(one.get("nth", ())),
                one["reason"],
                one.get("within", ""),
            )
            for one in found.get("equivalent", [])
        ]
        self._by_line: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries:
            self._by_line.setdefault((entry.file, entry.line), []).append(entry)

    def entry(self, mutant: Mutant) -> Entry | None:
        """Find the entry for an equivalent mutant, if there is one."""
        file = path(mutant)
        of_line, within = (self._by_line.get((file, line), []) for line in (mutant.was, ""))
        for entry in [*of_line, *within]:
            if entry.covers(mutant):
                entry.met.append(mutant)
                return entry
        return None

    def stale(self, mutated: Iterable[str]) -> list[Entry]:
        """List the entries of these files that matched no mutant: their lines have changed."""
        files = set(mutated)
        return [entry for entry in self.entries if entry.file in files and not entry.met]
