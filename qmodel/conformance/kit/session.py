"""One run of the kit: plays histories on drivers, and finds the wrong answers.

With one driver this is `qmodel conformance driver`. With several it is `qmodel conformance mixed`: they work on one
namespace, and each operation is dealt to one of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from qmodel.conformance.compare import shrink
from qmodel.conformance.kit import judge, vectors
from qmodel.conformance.kit.driver import Broken, Driver, Outcome
from qmodel.conformance.kit.judge import Difference
from qmodel.conformance.kit.namespace import Namespaces
from qmodel.conformance.kit.protocol import operations_of
from qmodel.conformance.kit.requirements import REQUIREMENTS, Requirement
from qmodel.conformance.subjects.base import Step

BATCH = 50
MOST_TRIES = 400
"""The maximum number of times that a history is played again to shorten it."""

MOST_RESTARTS = 30
"""The same limit, if a driver must be started again each time."""

Deal = Callable[[int, Step], int]
"""Chooses the driver for a step, by the step's number in the history and the step itself."""


class Finding(NamedTuple):
    """A wrong answer or a broken protocol: the requirement, and a short history that shows it.

    `dealt` says which driver executed each step. `blamed` is the step that makes the history right when qmodel itself
    sends it.
    """

    requirement: Requirement
    history: Sequence[Step]
    expected: Sequence[Outcome]
    difference: Difference | None = None
    broken: Broken | None = None
    dealt: tuple[str, ...] = ()
    blamed: int | None = None


class Session:
    """The running drivers, and the namespaces that they work in."""

    def __init__(self, drivers: Sequence[Driver], namespaces: Namespaces, seed: str = "") -> None:
        self.drivers = tuple(drivers)
        self.namespaces = namespaces
        self.deal: Deal = _alone if len(drivers) == 1 else _dealer(seed, len(drivers))
        self.operations = 0
        self.batches = True
        """Whether histories may be sent in batches, by drivers that understand them."""

    @property
    def can(self) -> frozenset[str]:
        """List the operations that every driver announced."""
        return frozenset.intersection(*(operations_of(driver.hello.features) for driver in self.drivers))

    def start(self) -> None:
        """Start the drivers that are not running."""
        for driver in self.drivers:
            if not driver.runs:
                driver.start()

    def close(self) -> None:
        """End the drivers."""
        for driver in self.drivers:
            driver.close()

    # ---- playing

    def play(self, history: Sequence[Step], deal: Deal | None = None) -> list[Outcome]:
        """Execute a history in an empty namespace. Raises Broken."""
        self.start()
        prefix = self.namespaces.fresh()
        for driver in self.drivers:
            driver.reset(self.namespaces.url, prefix)
        self.operations += len(history)
        if len(self.drivers) > 1:
            deal = deal or self.deal
            return [self.drivers[deal(at, step)].step(step) for at, step in enumerate(history)]
        driver = self.drivers[0]
        if not (self.batches and driver.hello.batch):
            return [driver.step(step) for step in history]
        parts = [history[at : at + BATCH] for at in range(0, len(history), BATCH)]
        return [found for part in parts for found in driver.batch(part)]

    def difference(
        self, history: Sequence[Step], expected: Sequence[Outcome] | None = None, deal: Deal | None = None
    ) -> Difference | None:
        """Play a history; give the first wrong answer."""
        expected = vectors.expected(history) if expected is None else expected
        for at, (one, other) in enumerate(zip(expected, self.play(history, deal), strict=True)):
            by = self.drivers[(deal or self.deal)(at, history[at])].name
            found = judge.compare(at, by, one, other)
            if found is not None:
                return found
        return None

    # ---- finding

    def judge(
        self, history: Sequence[Step], expected: Sequence[Outcome] | None = None, about: str = ""
    ) -> Finding | None:
        """Play a history, with several drivers in several deals; give the wrong answer and a shorter history."""
        for deal in self._deals():
            try:
                difference = self.difference(history, expected, deal)
            except Broken as broken:
                return self._breaking(history, broken, deal)
            if difference is not None:
                return self._finding(history[: difference.at + 1], difference, deal, about)
        return None

    def _finding(self, history: Sequence[Step], difference: Difference, deal: Deal, about: str) -> Finding:
        """Make a finding of a wrong answer. A history that tests one requirement is short already."""
        short = list(history) if about else self._shrunk(history, deal)
        again = self._tried(short, deal)
        if not isinstance(again, Difference):  # the driver did not repeat the wrong answer
            short, again = list(history), difference
        dealt = tuple(self.drivers[deal(at, step)].name for at, step in enumerate(short))
        expected = vectors.expected(short)
        if self._only_together(short):
            return Finding(REQUIREMENTS["MIXED-1"], short, expected, again, dealt=dealt)
        blamed = None if about else self._blamed(short, expected, deal)
        requirement = judge.broken(short, expected, again, about, again.at if blamed is None else blamed)
        return Finding(requirement, short, expected, again, dealt=dealt, blamed=blamed)

    def _only_together(self, history: Sequence[Step]) -> bool:
        """Tell whether each of several drivers is right when it works alone."""
        alone = [Session([driver], self.namespaces) for driver in self.drivers]
        return len(alone) > 1 and all(session._tried(history, _alone) is None for session in alone)

    def _blamed(self, history: Sequence[Step], expected: Sequence[Outcome], deal: Deal) -> int | None:
        """Find the last step that makes the history right when the kit executes it itself."""
        if not self.namespaces.ours:
            return None
        for at in reversed(range(len(history))):
            try:
                found = self._with_ours(history, at, deal)
            except Broken:
                continue
            if not any(judge.compare(0, "", *pair) for pair in zip(expected, found, strict=True)):
                return at
        return None

    def _with_ours(self, history: Sequence[Step], ours: int, deal: Deal) -> list[Outcome]:
        """Play a history, and execute one of its steps by the kit itself."""
        self.start()
        prefix = self.namespaces.fresh()
        for driver in self.drivers:
            driver.reset(self.namespaces.url, prefix)
        return [
            self.namespaces.execute(prefix, step) if at == ours else self.drivers[deal(at, step)].step(step)
            for at, step in enumerate(history)
        ]

    def _tried(self, history: Sequence[Step], deal: Deal) -> Difference | Broken | None:
        try:
            return self.difference(history, deal=deal)
        except Broken as broken:
            return broken

    def _shrunk(self, history: Sequence[Step], deal: Deal) -> list[Step]:
        """Find a shorter history with a wrong answer in the same deal."""
        return shrink.shrink(history, lambda one: isinstance(self._tried(one, deal), Difference), MOST_TRIES)

    def _deals(self) -> list[Deal]:
        """List ways to deal the steps, simplest first: one driver changes, another reads; the original deal is last."""
        if len(self.drivers) == 1:
            return [_alone]
        pairs = [(a, b) for a in range(len(self.drivers)) for b in range(len(self.drivers)) if a != b]
        return [*(_changes_and_reads(a, b) for a, b in pairs), self.deal]

    def _breaking(self, history: Sequence[Step], broken: Broken, deal: Deal) -> Finding:
        """Make a finding of a broken protocol, shortened if the driver breaks it again."""

        def fails(candidate: list[Step]) -> bool:
            again = self._tried(candidate, deal)
            return isinstance(again, Broken) and again.requirement == broken.requirement

        short = list(history)
        if broken.requirement != "DRIVER-3":  # each try would wait for the whole time limit
            short = shrink.shrink(history, fails, MOST_RESTARTS)
        dealt = tuple(self.drivers[deal(at, step)].name for at, step in enumerate(short))
        requirement = "MIXED-1" if self._only_together(short) else broken.requirement
        return Finding(REQUIREMENTS[requirement], short, vectors.expected(short), broken=broken, dealt=dealt)


def _alone(at: int, step: Step) -> int:
    return 0


def _dealer(seed: str, drivers: int) -> Deal:
    """Deal steps at random, the same for the same seed and place."""
    return lambda at, step: zlib.crc32(f"{seed} {at}".encode()) % drivers


def _changes_and_reads(changes: int, reads: int) -> Deal:
    return lambda at, step: reads if step.op.spec.reads else changes
