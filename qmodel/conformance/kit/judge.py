"""The judge: compares a driver's answer with the model's, and finds the violated requirement.

Answers are compared as JSON, without conversion: a float instead of a whole number is a difference, and so is an
additional field. If the vector tests one requirement, that one is violated. Otherwise it is the requirement of a step
of the shrunk history: of its resend, its refusal, or its operation. A read may show a fault of an earlier step. So the
judge searches for the step at fault: the history succeeds if qmodel sends this step itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from qmodel.conformance.kit.requirements import REQUIREMENTS, Requirement, of_step
from qmodel.conformance.kit.vectors import Outcome, is_resend
from qmodel.conformance.subjects.base import Step

MOST_PATHS = 12


class Difference(NamedTuple):
    """The first wrong answer in a history: the step, the driver, and how the answer differs."""

    at: int
    by: str
    expected: Outcome
    found: Outcome
    paths: tuple[str, ...]


def compare(at: int, by: str, expected: Outcome, found: Outcome) -> Difference | None:
    """Compare an answer with the model's; give the difference, if there is one."""
    paths = tuple(_paths("", expected, found))
    return Difference(at, by, expected, found, paths) if paths else None


def _paths(path: str, one: Any, other: Any) -> Iterator[str]:
    """Give the paths at which two JSON values differ, as deep as possible."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{path}.{key}" if path else key
            if key not in other or key not in one:
                yield f"{inner}: {'missing' if key in one else 'unknown: ' + _shown(other[key])}"
            else:
                yield from _paths(inner, one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _paths(f"{path}[{at}]", left, right)
    elif not _equal(one, other):
        yield f"{path}: {_shown(one)} != {_shown(other)}"


def _equal(one: Any, other: Any) -> bool:
    """Tell whether two values are equal: 1 is not true, and 1.0 equals 1 only where fractions are allowed."""
    if isinstance(one, float) and type(other) in (int, float):
        return abs(other) <= sys.float_info.max and one == float(other)
    return type(one) is type(other) and bool(one == other)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:100]}... ({len(text)} characters)"


# ---- which requirement


def broken(
    history: Sequence[Step], expected: Sequence[Outcome], difference: Difference, about: str, blamed: int
) -> Requirement:
    """Find the requirement that a difference breaks: the vector's own, or else that of the step to blame."""
    found = difference.found
    if "skip" in found or "crash" in found:
        return REQUIREMENTS["DRIVER-8" if "skip" in found else "DRIVER-9"]
    if about.startswith("REFUSAL"):
        return REQUIREMENTS[_of_refusal(difference.expected, found)]
    if about:
        return REQUIREMENTS[about]
    op = history[blamed].op
    code = expected[blamed]["refusal"][0] if "refusal" in expected[blamed] else ""
    again = is_resend(op, {step.op for step in history[:blamed]})
    return REQUIREMENTS[of_step(op.spec.name, code, again=again)[0]]


def _of_refusal(expected: Outcome, found: Outcome) -> str:
    if "refusal" not in expected or "refusal" not in found:
        return "REFUSAL-1"
    return "REFUSAL-2" if expected["refusal"][0] != found["refusal"][0] else "REFUSAL-3"
