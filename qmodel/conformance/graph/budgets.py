"""Which budgets of an operation are worth trying: those where one unit more makes a difference, on the model.

With one unit, an operation is refused or does as little as it can; with each unit more it may do more, up to the first
budget that is enough. Where a unit makes a difference, the subject is tried with it and without it: a subject that
counts a unit too many or too few differs at one of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.copies import are_equal, copy
from qmodel.model.state import budget
from qmodel.model.state.store import Store

MOST: Final = 64
"""Budgets from this one on are not tried in a search: the operation is too large."""


@dataclass
class Tried:
    """What an operation does on the model with a budget."""

    units: int
    reply: Any
    store: Store
    is_given: bool = False

    def is_like(self, other: Tried) -> bool:
        """Tell whether another budget makes no difference, but for the budget that a refusal names."""
        refused = isinstance(self.reply, Refusal) and isinstance(other.reply, Refusal)
        same = self.reply.code == other.reply.code if refused else self.reply == other.reply
        return bool(same) and are_equal(self.store, other.store)


@contextmanager
def within(units: int) -> Iterator[None]:
    """Give the model another budget within this context."""
    usual, budget.UNITS = budget.UNITS, units
    try:
        yield
    finally:
        budget.UNITS = usual


def worth_trying(store: Store, now: int, op: Operation, reply: Any, after: Store, most: int = MOST) -> Iterator[Tried]:
    """Give what the operation does with one unit, and with the budgets where a unit makes a difference, up to the first
    that does all: `reply` and `after` are those of the usual budget.
    """
    last: Tried | None = None
    for units in range(1, most):
        there = copy(store)
        with within(units):
            tried = Tried(units, engine.step(there, now, op), there)
        if last is None or not last.is_like(tried):
            for one in (tried,) if last is None else (last, tried):
                if not one.is_given:
                    one.is_given = True
                    yield one
        if tried.reply == reply and are_equal(after, there):
            return
        last = tried
