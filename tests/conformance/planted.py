"""Subjects that other processes can open: wrong ones, and one whose server dies."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qmodel.conformance.subjects.base import ModelSubject, Subject
from qmodel.contract.operations import Operation
from tests.conformance.faults import FAULTS, Wrong


@dataclass(frozen=True)
class Planted:
    """Opens a model with the fault of this number."""

    number: int

    def __call__(self) -> Subject:
        """Open it."""
        return Wrong(FAULTS[self.number])


class _Mortal(ModelSubject):
    """Executes operations on the model until one operation kills the process."""

    name = "mortal"

    def __init__(self, deadly: str, lives: Path) -> None:
        super().__init__()
        self.deadly, self.lives = deadly, lives
        self.dead = False

    def reset(self) -> None:
        """Start again, if that is still possible."""
        if self.dead:
            raise ConnectionError("the server is gone")
        super().reset()

    def step(self, now: int, op: Operation) -> Any:
        """Execute one operation."""
        if op.spec.name == self.deadly and len(self.lives.read_text()) > 0:
            self.lives.write_text(self.lives.read_text()[1:])
            self.dead = True
        if self.dead:
            raise ConnectionError("the server is gone")
        return super().step(now, op)

    def run(self, history: Any, every: int = 1) -> Any:
        """Execute a history; raise when the server is gone."""
        found = super().run(history, every)
        if self.dead:
            raise ConnectionError("the server is gone")
        return found


@dataclass(frozen=True)
class Mortal:
    """Opens a subject whose server dies at this operation, as many times as a file has characters."""

    deadly: str
    lives: str

    def __call__(self) -> Subject:
        """Open it."""
        return _Mortal(self.deadly, Path(self.lives))


def end(_: int) -> int:
    """End the process at once."""
    os._exit(1)
