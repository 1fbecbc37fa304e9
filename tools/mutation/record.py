"""A record of verdicts: a file with a JSON line for each. A hunt that was stopped goes on where it was.

A verdict stands for a mutant while the text of its file is the same. That it was detected stands while the history that
did so is in the suite. One that survived is tried again on the histories that the suite did not have then, and on no
others. Changes of other files are not looked at: for a figure of one day, begin a new record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qmodel.conformance.graph.record import Lines
from tools.mutation.mutants import Mutant, digest
from tools.mutation.replay import Kill, Verdict
from tools.mutation.report import Result

_NO_HISTORY = ("compile", "load")
"""How mutants are detected that no history can execute."""

_TOLD = ("steps", "given_up", "alike", "silent")
"""What else of a verdict is recorded."""


class Record:
    """A file of verdicts, or none; `histories` are digests of what the suite has, and `where` gives that of a kill."""

    def __init__(
        self, path: str | None, histories: Sequence[str], where: Callable[[Kill], str], read: Callable[[str], str]
    ) -> None:
        self._file = Lines(path)
        self._histories, self._where, self._read = frozenset(histories), where, read
        self._suite = digest(*histories)
        self._suites: dict[str, frozenset[str]] = {}
        self._lines: dict[str, dict[str, Any]] = {}
        for one in self._file:
            if "histories" in one:
                self._suites[one["suite"]] = frozenset(one["histories"])
            else:
                self._lines[one["digest"]] = one
        if self._suite not in self._suites:
            self._file.append({"suite": self._suite, "histories": list(histories)})

    def result(self, mutant: Mutant) -> Result | None:
        """Give what stands there of a mutant, if it holds for this suite."""
        found = self._lines.get(self._digest(mutant))
        if found is None:
            return None
        holds = found["history"] in self._histories if found["history"] else self._passed(found) >= self._histories
        return _result(mutant, found) if holds or found["by"] in _NO_HISTORY else None

    def passed(self, mutant: Mutant) -> frozenset[str]:
        """Give the histories that a mutant has survived."""
        found = self._lines.get(self._digest(mutant))
        return frozenset() if found is None or found["by"] else self._passed(found)

    def add(self, result: Result) -> Result:
        """Append a result, with what the mutant did on the histories that it had survived before."""
        mutant, verdict = result.mutant, result.verdict
        key, by = self._digest(mutant), verdict.kills[0].by if verdict.kills else ""
        before = self._lines.get(key)
        if before is not None and not before["by"]:
            verdict.steps += before["steps"]
            result.seconds += before["seconds"]
        history = self._where(verdict.kills[0]) if by and by not in _NO_HISTORY else ""
        told = {name: getattr(verdict, name) for name in _TOLD}
        line = {"digest": key, "suite": self._suite, "by": by, "history": history, **told, "seconds": result.seconds}
        self._file.append({**line, "mutant": str(mutant)})
        return result

    def _passed(self, found: dict[str, Any]) -> frozenset[str]:
        return self._suites[found["suite"]]

    def _digest(self, mutant: Mutant) -> str:
        return digest(mutant.name, self._read(mutant.file))


def _result(mutant: Mutant, found: dict[str, Any]) -> Result:
    kills = [Kill(0, found["by"])] if found["by"] else []
    return Result(mutant, Verdict(kills, **{name: found[name] for name in _TOLD}), found["seconds"])
