"""The suite that mutants are measured against: generated and directed histories."""

from __future__ import annotations

from qmodel.conformance.compare.runner import draw
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.directed.load import directed
from qmodel.conformance.histories.script import Named

HISTORIES = 300
STEPS = 60


def generated(histories: int = HISTORIES, steps: int = STEPS, *, seed: str = "mutation") -> list[Named]:
    """Draw the generated histories; any language can send their values. One in five has calls by the rules of qless."""
    return [
        Named(f"{seed} {number}", draw(RandomChooser(f"{seed} {number}"), steps, typed=False, qless=number % 5 == 4))
        for number in range(histories)
    ]


def quick() -> list[Named]:
    """Give the suite of `./dev mutate`: the generated histories, then the directed ones."""
    return [*generated(), *directed()]
