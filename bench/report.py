"""Report a measurement: tables of text, for the terminal and for Markdown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.machine import describe

RESULTS = Path(__file__).parent / "results"


@dataclass
class Table:
    """Rows of cells under heads; the first column is text, all others are figures."""

    title: str
    heads: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """Add a row; a float is shown with one decimal."""
        self.rows.append([f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells])

    def lines(self) -> list[str]:
        """Format the table as aligned Markdown."""
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        return [self._line(row, widths) for row in (self.heads, rule, *self.rows)]

    @staticmethod
    def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
        first, *others = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join([first, *others]) + " |"


@dataclass
class Verdict:
    """A target, and the measured value."""

    target: str
    measured: float
    most: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.most if self.at_least else self.measured <= self.most

    def line(self) -> str:
        bound = "at least" if self.at_least else "at most"
        unit = f" {self.unit}" if self.unit else ""
        said = "met" if self.met else "**NOT MET**"
        return f"- {self.target}: {figure(self.measured)}{unit}, target {bound} {figure(self.most)}: {said}"


@dataclass
class Report:
    """A measurement's tables and targets, and its method; its result in one line, and as data, where it has those."""

    name: str
    command: str
    method: str
    tables: list[Table]
    verdicts: list[Verdict] = field(default_factory=list)
    versions: Iterable[str] = ()
    last: str = ""
    data: dict[str, Any] | None = None

    def markdown(self) -> str:
        """Format the page."""
        parts = [f"# {self.name}", f"`{self.command}`. {self.method}", _sentence(self.versions) + describe()]
        if self.verdicts:
            parts.append("\n".join(verdict.line() for verdict in self.verdicts))
        for table in self.tables:
            parts += [f"## {table.title}", "\n".join(table.lines())]
        return "\n\n".join(parts) + "\n"

    def keep(self) -> Path:
        """Write the page, and the data beside it."""
        path = RESULTS / f"{self.name}.md"
        if self.data is not None:
            text = json.dumps(self.data, indent=1, ensure_ascii=False)
            path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        path.write_text(self.markdown(), encoding="utf-8")
        return path


def _sentence(versions: Iterable[str]) -> str:
    said = ", ".join(versions)
    return said + "; " if said else ""


def figure(value: float) -> str:
    """Format a number with about three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Give the median of the ratios of measurements that ran side by side."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
