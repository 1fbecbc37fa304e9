"""Executes histories of calls on the model and on a subject, and finds the first difference."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from qmodel.conformance import laws
from qmodel.conformance.campaign.campaign import Progress
from qmodel.conformance.compare.shrink import shorten
from qmodel.conformance.dialects.calls import CallGenerator
from qmodel.conformance.dialects.subjects import Call, Calls, Heard, ModelSubject, Subject, operations, perform
from qmodel.conformance.histories.choose import Chooser, RandomChooser
from qmodel.conformance.subjects.base import ModelSubject as ModelOfSteps
from qmodel.conformance.subjects.base import Step, observe
from qmodel.model import snapshot
from qmodel.model.state.store import Store

STEPS = 60


def draw(chooser: Chooser, steps: int, *, documents: bool = False) -> list[Call | Step]:
    """Draw a history of at most `steps` steps, on a new model; for `documents` see CallGenerator."""
    store, generator = Store(), CallGenerator(chooser, documents=documents)
    drawn: list[Call | Step] = []
    for _ in range(steps):
        one = generator.step(store)
        if one is not None:
            drawn.append(one)
            perform(store, one)
    return drawn


@dataclass(frozen=True, slots=True)
class Difference:
    """The history up to the first step where a subject differs from the model, and how it differs."""

    history: Calls
    said: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{number}. {_told(one)}" for number, one in enumerate(self.history, 1)]
        return "\n".join([*lines, *self.said])


def _told(one: Call | Step) -> str:
    return (
        f"{one.document} {' '.join(map(repr, one.arguments))}" if isinstance(one, Call) else f"at {one.now}: {one.op}"
    )


def first_difference(history: Calls, subject: Subject) -> Difference | None:
    """Execute a history on the model and on a subject; give the first difference."""
    for at, (one, other) in enumerate(zip(ModelSubject().run(history), subject.run(history), strict=True)):
        said = tuple(compare(one, other))
        if said:
            return Difference(history[: at + 1], said)
    return None


def compare(one: Heard, other: Heard) -> list[str]:
    """Compare two steps; give lines `what: model's != subject's`."""
    if one.outcome != other.outcome or type(one.outcome) is not type(other.outcome):
        return [f"reply: {one.outcome!r} != {other.outcome!r}"]
    if one.published != other.published:
        return [f"published: {one.published!r} != {other.published!r}"]
    return list(snapshot.difference(one.snapshot, other.snapshot))


def first_broken(history: Calls) -> Difference | None:
    """Give the first law that the operations of a history's calls break on the model."""
    steps = operations(history)
    for at, broken in laws.observe(steps, observe(ModelOfSteps(), steps)):
        return Difference(tuple(history), (f"law: {broken.name}: {broken.detail} ({steps[at].op.spec.name})",))
    return None


def shrink(found: Difference, look: Callable[[Calls], Difference | None]) -> Difference:
    """Remove the steps that a difference does not need, which `look` finds; give the difference that is left."""

    def differs(history: Calls) -> int | None:
        shorter = look(history)
        return None if shorter is None else len(shorter.history) - 1

    return look(shorten(found.history, differs)) or found


@dataclass(slots=True)
class Summary(Progress):
    """The result of a campaign; `tally` counts commands by whether they were refused."""

    failures: list[Difference] = field(default_factory=list)
    tally: Counter[tuple[str, bool]] = field(default_factory=Counter)


def run(
    examples: int,
    seed: int | str,
    subject: Subject,
    progress: Callable[[Summary], None] = lambda summary: None,
    *,
    steps: int = STEPS,
    lawful: bool = False,
) -> Summary:
    """Run `examples` histories of `steps` steps against a subject; end with the first difference, shrunk.

    With `lawful`, the laws are checked on what the model did: they find rules that are wrong on both sides.
    """

    def look(history: Calls) -> Difference | None:
        return first_difference(history, subject) or (first_broken(history) if lawful else None)

    summary = Summary(f"{subject.name}, qless")
    began = time.monotonic()
    for number in range(examples):
        history = draw(RandomChooser(f"{seed}.{number}"), steps, documents=subject.has_documents)
        found = look(history)
        summary.histories += 1
        summary.steps += len(history)
        summary.tally += tally(history)
        summary.seconds = time.monotonic() - began
        progress(summary)
        if found is not None:
            summary.failures.append(shrink(found, look))
            break
    return summary


def tally(history: Calls) -> Counter[tuple[str, bool]]:
    """Count the commands of a history on the model, by whether they were refused."""
    store, counted = Store(), Counter[tuple[str, bool]]()
    for one in history:
        outcome, _ = perform(store, one)
        if isinstance(one, Call) and one.arguments:
            refused = str(outcome).startswith("ERR ") or (one.document != "" and outcome is None)
            counted[one.document + one.arguments[0], refused] += 1
    return counted
