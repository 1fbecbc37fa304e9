"""The report of a hunt: figures, and the survivors by line."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from tools.mutation import bounds
from tools.mutation.mutants import Mutant
from tools.mutation.replay import Verdict
from tools.mutation.triage import Entry, path


@dataclass
class Result:
    """The result of one mutant."""

    mutant: Mutant
    verdict: Verdict
    seconds: float

    @property
    def valid(self) -> bool:
        """Tell whether the mutant is a valid program."""
        return not (self.verdict.kills and self.verdict.kills[0].by == "compile")


@dataclass
class Summary:
    """The results of the mutants of one side."""

    side: str
    killed: list[Result] = field(default_factory=list)
    survived: list[Result] = field(default_factory=list)
    equivalent: int = 0
    invalid: int = 0
    wrong: list[Result] = field(default_factory=list)
    """The mutants that were noticed although they are listed as equivalent."""
    stale: list[Entry] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, result: Result, known: bool) -> None:
        """Count one result; `known` means that the mutant is listed as equivalent."""
        self.seconds += result.seconds
        if not result.valid:
            self.invalid += 1
        elif known:
            if result.verdict.kills:
                self.wrong.append(result)
        else:
            (self.killed if result.verdict.kills else self.survived).append(result)

    @property
    def share(self) -> float:
        """The percentage killed of the mutants that are not equivalent."""
        total = len(self.killed) + len(self.survived)
        return 100 * len(self.killed) / total if total else 100.0

    def operations(self) -> list[int]:
        """How many operations were executed until each mutant was noticed, ascending."""
        return sorted(result.verdict.steps for result in self.killed)


def show(summary: Summary) -> str:
    """Write the report."""
    lines = [
        f"{summary.side}: {len(summary.killed) + len(summary.survived) + summary.equivalent} mutants"
        f" ({summary.equivalent} equivalent by mutants.toml), {summary.share:.2f} % of the others killed,"
        f" {len(summary.survived)} survived; {summary.seconds / 60:.1f} CPU-minutes"
    ]
    counts = summary.operations()
    if counts:
        mean = math.exp(sum(math.log(max(count, 1)) for count in counts) / len(counts))
        by = Counter(result.verdict.kills[0].by for result in summary.killed)
        lines.append(
            f"  operations to detect: geometric mean {mean:.0f}, median {counts[len(counts) // 2]},"
            f" p90 {counts[len(counts) * 9 // 10]}, p99 {counts[len(counts) * 99 // 100]};"
            f" by {', '.join(f'{name} {count}' for name, count in by.most_common())}"
        )
    for entry in summary.stale:
        lines.append(f"  stale: {entry.file} [{entry.operator}] {entry.line!r}")
    for result in summary.wrong:
        lines.append(f"  noticed, but listed as equivalent: {result.mutant}")
    kinds = Counter(kind(result) for result in summary.survived)
    if kinds:
        lines.append(f"  survived: {', '.join(f'{name} {count}' for name, count in kinds.most_common())}")
        files = Counter(path(result.mutant) for result in summary.survived)
        lines.append(f"  survived in: {', '.join(f'{file} {count}' for file, count in files.most_common())}")
    for result in sorted(summary.survived, key=lambda r: (path(r.mutant), r.mutant.line)):
        silent = f": {result.verdict.silent}" if result.verdict.silent else ""
        lines.append(f"  {result.mutant}  ({kind(result)}{silent})")
    return "\n".join(lines)


def kind(result: Result) -> str:
    """Say which kind of survivor a mutant is; the first two lie outside of what histories reach."""
    from tools.mutation import graph  # it imports the command line, which imports this

    mutant, verdict = result.mutant, result.verdict
    if bounds.of(mutant):
        return "bound out of reach"
    if graph.is_of_servers(mutant):
        return "only servers call it"
    if not verdict.steps:
        return "not reached"
    if verdict.alike:
        return "never another value"
    if verdict.silent:
        return "only bytes differ"
    return "given up" if verdict.given_up else "nothing differs"
