"""Steps of histories with budgets that are too small for them: what the model does with each (`budgets`).

Histories have few steps that exceed the budget of an operation, for that takes hundreds of jobs. With a smaller budget
any step of several jobs does: it is refused, or leaves some of its work. Many steps do the same with small budgets, so
only the first ones of each kind are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from qmodel.conformance.graph import budgets
from qmodel.conformance.graph.budgets import Tried
from qmodel.conformance.histories.script import Named
from qmodel.conformance.subjects.base import Step
from qmodel.model import engine, snapshot
from qmodel.model.copies import are_equal, copy
from qmodel.model.state import budget
from qmodel.model.state.store import Store

JOBS: Final = 40
"""Steps with more jobs than these are not tried."""

UNITS: Final = 200
"""Steps that need more units than these are not tried."""

ALIKE: Final = 2
"""How many steps of a kind are tried: of one operation, with as many units, and about as large."""


class Tight(NamedTuple):
    """A step, the state before it, and what it does with budgets that are too small."""

    at: int
    step: Step
    store: Store
    tried: list[Tried]

    @property
    def units(self) -> list[int]:
        """The budgets."""
        return [one.units for one in self.tried]

    def agrees(self) -> bool:
        """Tell whether the step does the same again with each budget: on the model as it is now."""
        return all(self._agrees(one) for one in self.tried)

    def _agrees(self, tried: Tried) -> bool:
        reply, after = _with(tried.units, self.store, self.step)
        if reply != tried.reply:
            return False
        return are_equal(tried.store, after) or snapshot.of(tried.store) == snapshot.of(after)


def of(histories: Iterable[Named]) -> Iterator[tuple[Named, list[Tight]]]:
    """Find the steps to try of each history, if it has any."""
    met: Counter[Any] = Counter()
    for named in histories:
        found = list(_of_history(named, met))
        if found:
            yield named, found


def _of_history(named: Named, met: Counter[Any]) -> Iterator[Tight]:
    store = Store()
    for at, step in enumerate(named.steps):
        before = copy(store) if len(store.jobs) <= JOBS else None
        reply = engine.step(store, *step)
        size = len(repr(reply)) // 50, len(repr(step.op)) // 500
        kind = step.op.spec.name, budget.UNITS - store.room, type(reply), size
        if before is None or met[kind] == ALIKE:
            continue
        if _is_enough(1, before, step, reply, store) or not _is_enough(UNITS, before, step, reply, store):
            continue
        met[kind] += 1
        tried = list(budgets.worth_trying(before, *step, reply, store, most=UNITS))
        yield Tight(at, step, before, tried)


def _is_enough(units: int, before: Store, step: Step, reply: Any, after: Store) -> bool:
    """Tell whether a step with a budget does what it does with the usual one."""
    found, there = _with(units, before, step)
    return bool(found == reply) and are_equal(after, there)


def _with(units: int, before: Store, step: Step) -> tuple[Any, Store]:
    """Execute a step with a budget; give the reply and the state after it."""
    there = copy(before)
    with budgets.within(units):
        return engine.step(there, *step), there
