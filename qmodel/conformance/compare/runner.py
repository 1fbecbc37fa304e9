"""The runner: executes a history on the model and on a subject, and finds the first difference.

After every step it compares the reply or refusal, the events, and the whole state. If asked, it also checks the laws
(`qmodel/conformance/laws`) on what the subject did, which find rules that are wrong on both sides.

A history is drawn whole, by looking at the model alone, so a subject may execute it in one round trip: its replies do
not change the next operation.
"""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any, NamedTuple

from qmodel.conformance import laws
from qmodel.conformance.histories.choose import Chooser
from qmodel.conformance.histories.generate import Generator
from qmodel.conformance.subjects.base import (
    Crash,
    History,
    ModelSubject,
    Seen,
    Step,
    Subject,
    observe,
)
from qmodel.model import snapshot


class Difference(NamedTuple):
    """The first step after which a subject differs from the model, and how.

    `what` is `reply`, `events` or `state`; each of `paths` reads `path: model's != subject's`. It is `laws` if both do
    the same, and break a law by it; then `paths` are the laws, with a detail.
    """

    at: int
    what: str
    paths: tuple[str, ...]
    expected: Seen
    found: Seen


def draw(
    chooser: Chooser, steps: int, *, typed: bool = True, qless: bool = False, only: Container[str] | None = None
) -> list[Step]:
    """Draw a history of at most `steps` steps, on a new model; with `only`, of these operations alone. `typed` and
    `qless`: see Generator.
    """
    model = ModelSubject()
    generator = Generator(chooser, typed=typed, qless=qless)
    drawn = []
    for _ in range(steps):
        step = generator.step(model.store)
        if step is not None and (only is None or step.op.spec.name in only):
            drawn.append(step)
            try:
                model.step(*step)
            except Exception:  # the history ends where the model raises; its run reports that
                break
    return drawn


def first_difference(history: History, subject: Subject, every: int = 1, *, lawful: bool = False) -> Difference | None:
    """Execute a history on the model and on a subject; give the first difference.

    The state is compared after every `every`-th step and the last one. With `lawful`, and a state after every step, the
    laws are checked on what the subject did.
    """
    expected = observe(ModelSubject(), history, every)
    try:
        found = subject.run(history, every)
    except Exception:  # one by one, to see where
        found = observe(subject, history, every)
    for at, (one, other) in enumerate(zip(expected, found, strict=False)):
        difference = compare(at, one, other)
        if difference is not None:
            return difference
    assert len(found) == len(history), "the subject did not execute the whole history"
    broken = next(laws.observe(history, found), None) if lawful and every == 1 else None
    if broken is None:
        return None
    at, law = broken
    return Difference(at, "laws", (f"{law.name}: {law.detail}",), expected[at], found[at])


def compare(at: int, expected: Seen, found: Seen) -> Difference | None:
    """Compare a subject's step with the model's; give the difference, if there is one."""
    one, other = expected.outcome, found.outcome
    if one != other or isinstance(one, Crash) or not _same_types(one, other):
        what, paths = "reply", tuple(snapshot.compare("reply", one, other))
        paths = paths or (f"reply: {one!r} != {other!r}",)
    elif expected.events != found.events:
        what, paths = "events", tuple(snapshot.compare("events", expected.events, found.events))
    elif expected.snapshot is not None and found.snapshot is not None:
        what, paths = "state", tuple(snapshot.difference(expected.snapshot, found.snapshot))
    else:
        return None
    return Difference(at, what, paths, expected, found) if paths else None


def _same_types(one: Any, other: Any) -> bool:
    """Tell whether equal replies also have equal types: 1 == True and 1 == 1.0 do not count."""
    return type(one) is type(other) and (not isinstance(one, tuple) or json.dumps(one) == json.dumps(other))
