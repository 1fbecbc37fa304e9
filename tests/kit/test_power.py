"""Measure how many faults of a binding the kit notices: mutants of our own codec of calls and replies.

python -m tests.kit.test_power        tells the share, and the survivors
"""

from __future__ import annotations

import json
import types
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost
from qmodel.backends.redis.common import unencodable
from qmodel.conformance.kit import vectors
from qmodel.conformance.subjects.base import Step
from tools.mutation import python
from tools.mutation.mutants import Mutant

pytestmark = pytest.mark.tester

PREFIX = "ql:"


class Coding:
    """A text of `qmodel/wire/codec.py`, over the library in this process."""

    def __init__(self, text: str) -> None:
        self.module = types.ModuleType("wire_mutant")
        exec(compile(text, "wire", "exec"), self.module.__dict__)
        self.host = HOST

    def outcome(self, step: Step) -> Any:
        """Give the answer of a driver with this coding."""
        try:
            words = self.module.encode(step.op, step.now)
        except self.module.Unencodable:
            return vectors.outcome(unencodable(step.op, step.now))
        raw = self.host.fcall(bundle.function_name(step.op.spec.name), (PREFIX,), words)
        return json.loads(json.dumps(vectors.outcome(self.module.decode(step.op, raw))))

    def conforms(self, found: list[vectors.Vector]) -> bool:
        """Whether a driver with this coding answers all vectors as expected."""
        for vector in found:
            self.host.fresh()
            for step, expected in zip(vector.steps, vector.outcomes, strict=True):
                try:
                    if self.outcome(step) != expected:
                        return False
                except Exception:
                    return False
        return True


HOST = LuaHost(lambda: 0.0)
HOST.load(bundle.library(None))


def survivors(mutants: list[Mutant], found: list[vectors.Vector]) -> list[Mutant]:
    """Give the mutants that conform."""
    text = python.read("wire/codec")
    left = []
    for mutant in mutants:
        try:
            coding = Coding(mutant.apply(text))
        except Exception:  # it does not even load
            continue
        if coding.conforms(found):
            left.append(mutant)
    return left


def test_the_right_coding_conforms() -> None:
    assert Coding(python.read("wire/codec")).conforms(vectors.load("smoke"))


def test_the_probes_notice_most_faults_of_a_binding() -> None:
    """The mutants that they miss change nothing, or change checks of types, which only Python callers need."""
    some = python.mutants("wire/codec")[::6]
    assert len(survivors(some, vectors.load("smoke"))) < 0.2 * len(some)


if __name__ == "__main__":
    mutants = python.mutants("wire/codec")
    left = mutants
    for level in ("smoke", "core"):
        left = survivors(left, vectors.load(level))
        print(f"{level}: {len(left)} of {len(mutants)} survive, {100 - 100 * len(left) / len(mutants):.1f} % noticed")
    for mutant in left:
        print(f"  {mutant}")
