"""Campaigns: many histories against one subject. `qmodel conformance run` is this.

Each history has a number and is drawn from the campaign's seed and that number alone. So a history does not depend on
the process that runs it, and parts of a campaign may run anywhere, in any order (`parts.py`).
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from qmodel.conformance.campaign.reached import Reached, count_outcomes
from qmodel.conformance.compare import runner
from qmodel.conformance.compare.report import Failure
from qmodel.conformance.compare.shrink import MOST_TRIES, shrink
from qmodel.conformance.histories import plain_rows
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.subjects.base import Step, Subject
from qmodel.present.numbers import counted

STEPS = 60

QLESS = (0, 5)
"""The kinds of histories, of ten, that have calls by the rules of qless."""

PLAIN = {3: (), 8: plain_rows.JOURNALED}
"""The kinds that consist mostly of plain calls, with what comes before."""


@dataclass(slots=True)
class Progress:
    """The progress of a campaign."""

    subject: str
    histories: int = 0
    steps: int = 0
    seconds: float = 0.0
    failures: list[Any] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Tell whether no difference was found."""
        return not self.failures

    def __str__(self) -> str:
        rate = self.steps / self.seconds if self.seconds else 0
        found = counted(len(self.failures), "difference") if self.failures else "no difference"
        return (
            f"{self.subject}: {counted(self.histories, 'history', 'histories')}, {counted(self.steps, 'step')}"
            f" in {self.seconds:.1f} s"
            f" ({rate:.0f} a second): {found}"
        )


@dataclass(slots=True)
class Summary(Progress):
    """The result of a campaign: what it ran, which outcomes it reached, and its failures."""

    failures: list[Failure] = field(default_factory=list)
    reached: Counter[Reached] = field(default_factory=Counter)


def run(
    examples: int,
    seed: int | str,
    subject: Subject,
    progress: Callable[[Summary], None] = lambda summary: None,
    *,
    steps: int = STEPS,
    every: int = 1,
    typed: bool = True,
    most_failures: int = 1,
    lawful: bool = False,
) -> Summary:
    """Run `examples` histories of `steps` steps, drawn from a seed, against a subject.

    `progress` is called after each. Ends early with `most_failures` failures, each of them shrunk.
    The state is compared after every `every`-th step. `typed`: see Generator. With `lawful`, the laws are checked too.
    """
    summary = Summary(subject.name)
    began = time.monotonic()
    for number in range(examples):
        name = f"{seed}.{number}"
        history = drawn(name, steps, typed)
        difference = runner.first_difference(history, subject, every, lawful=lawful)
        summary.histories += 1
        summary.steps += len(history)
        count_outcomes(history, summary.reached)
        if difference is not None:
            summary.failures.append(failure(subject, name, history, difference))
        summary.seconds = time.monotonic() - began
        progress(summary)
        if len(summary.failures) >= most_failures:
            break
    return summary


def drawn(name: str, steps: int, typed: bool = True) -> list[Step]:
    """Draw the history with this name: a campaign's seed and the history's number, `seed.number`.

    One in five has calls by the rules of qless, and one in five consists mostly of plain calls; half of these are
    recorded in a journal.
    """
    kind = zlib.crc32(name.encode()) % 10
    if typed and kind in PLAIN:
        return plain_rows.drawn(name, steps, PLAIN[kind])[:steps]
    return runner.draw(RandomChooser(name), steps, typed=typed, qless=kind in QLESS)


def failure(
    subject: Subject, seed: str, history: list[Step], difference: runner.Difference, tries: int = MOST_TRIES
) -> Failure:
    """Shrink a history that fails, in at most this many tries."""
    lawful = difference.what == "laws"

    def fails(candidate: list[Step]) -> bool:
        return runner.first_difference(candidate, subject, lawful=lawful) is not None

    short = shrink(history[: difference.at + 1], fails, tries)
    again = runner.first_difference(short, subject, lawful=lawful) or difference
    return Failure(subject.name, seed, history, short, again)
