"""What a search gives: its figures, and its findings with the histories that show them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from qmodel.conformance.compare.report import call
from qmodel.conformance.graph.alphabet import Scope
from qmodel.conformance.graph.costs import Costs
from qmodel.conformance.subjects.base import Step


class Finding(NamedTuple):
    """What is wrong, and the shortest history that shows it: its last step is the edge. None, if a sum shows it."""

    what: str
    lines: list[str]
    history: list[Step]

    def __str__(self) -> str:
        """Show it with the history in the notation of directed histories."""
        now, steps = self.history[0].now if self.history else 0, list[str]()
        for step in self.history:
            steps.append(f"+{step.now - now} {call(step.op)}" if step.now > now else call(step.op))
            now = step.now
        shown = ["its shortest history:", *steps] if steps else []
        return "\n".join([self.what, *(f"    {line}" for line in self.lines[:20]), *shown])


@dataclass
class Explored:
    """The result of a search."""

    family: str
    scope: Scope
    closed: bool = False
    states: int = 0
    edges: int = 0
    refused: int = 0
    outside: int = 0
    pairs: int = 0
    stuck: int = 0
    cpu: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    apart: Counter[str] = field(default_factory=Counter)
    """For each field that is not in the canonical form: in how many pairs that were tried it differed."""
    costs: Costs = field(default_factory=Costs)
