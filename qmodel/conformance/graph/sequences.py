"""Sequences of operations that a family executes in one call, or in a row: any two, and of three and more a part.

A state has thousands of rows of three. What only a third operation shows, it shows behind many pairs and in many
states. So one row in eight is drawn, and more states are visited.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from qmodel.conformance.graph.alphabet import Moves
from qmodel.conformance.subjects.base import Step
from qmodel.model import engine
from qmodel.model.copies import copy
from qmodel.model.state.store import Store

PART: Final = 1 / 8
"""The part of the sequences of more than two operations that is drawn."""

Sequence = tuple[tuple[Step, ...], list[Any], Store]
"""The steps, their replies, and the state after them."""


def sequences(
    moves: Moves,
    store: Store,
    moments: tuple[int, ...],
    most: int,
    drawn: random.Random,
    before: tuple[Step, ...] = (),
    replies: tuple[Any, ...] = (),
) -> Iterator[Sequence]:
    """Give two operations that write and more, up to `most`, at the first moment; the last one also at the others."""
    for moment in moments if before else moments[:1]:
        for op in moves.of(store, moment):
            if op.spec.reads or (len(before) > 1 and drawn.random() > PART):
                continue
            after = copy(store)
            steps, told = (*before, Step(moment, op)), (*replies, engine.step(after, moment, op))
            if before:
                yield steps, list(told), after
            if len(steps) < most and moment == moments[0]:
                yield from sequences(moves, after, moments, most, drawn, steps, told)
