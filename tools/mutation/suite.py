"""The suite that mutants are measured against: generated histories, and those of `directed`."""

from __future__ import annotations

from qmodel.conformance.compare.runner import draw
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.histories.directed.load import directed
from qmodel.conformance.histories.script import Named

HISTORIES = 300
STEPS = 60


def generated(histories: int = HISTORIES, steps: int = STEPS, *, seed: str = "mutation") -> list[Named]:
    """Generated histories; any language could send what is in them."""
    return [
        Named(f"{seed} {number}", draw(RandomChooser(f"{seed} {number}"), steps, typed=False))
        for number in range(histories)
    ]


def quick() -> list[Named]:
    """What `./dev mutate` measures: the generated histories, then the directed ones."""
    return [*generated(), *directed()]
