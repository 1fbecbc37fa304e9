"""The choice of the steps that are tried with faults (faults.py) and with smaller budgets.

A step is chosen if it is of a first history or of a row, or runs a line of `state/writes.lua`, or a line in which its
operation counts what it does, that no step before it has run; or if its history was written for what is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from qmodel.backends.embedded.keyspace import same
from tools.mutation import damages, faults
from tools.mutation.faults import Call, Scene, Written
from tools.mutation.loaded import Keys, Loaded, Recorded, after

DENIED, NAMED = 5, 2
"""In so many of the first histories each write of a step fails in turn, and in so many each of its commands."""

BUDGETS = 32
"""Budgets from this one on are not tried."""

UNITS = "units_of_"
"""Of histories with such names each step is tried with smaller budgets, because other lines count in them than run."""

FEW = 100
"""Only steps with no more keys and arguments are tried with faults and with smaller budgets."""


class Choice:
    """The steps that are chosen of a suite."""

    def __init__(self, texts: Mapping[str, str], firsts: Mapping[str, int]) -> None:
        self.writes: dict[int, Counter[str]] = {}
        """What the steps write that are tried with faults."""
        self.tight: list[int] = []
        """The steps that are tried with smaller budgets."""
        self._met: set[object] = set()
        first = firsts["state/writes"]
        self._writing = frozenset(range(first + 1, first + texts["state/writes"].count("\n") + 1))
        self._counting = _lines_of(texts, firsts, r"\bbudget\.")

    def note(self, index: int, step: Recorded, history: str, lines: frozenset[int], loaded: Loaded) -> None:
        """Note a step of a history, which was executed just now."""
        if max(len(step.before), len(step.call.args)) > FEW:
            return
        name = step.call.step.op.spec.name
        writing, counting = lines & self._writing, {(name, line) for line in lines & self._counting}
        if not self._met.issuperset(writing) or step.history < DENIED or history.endswith(faults.ROWS):
            self.writes[index] = loaded.writes()
        if not self._met.issuperset(counting) or history.startswith(UNITS):
            self.tight.append(index)
        self._met |= writing | counting


def _lines_of(texts: Mapping[str, str], firsts: Mapping[str, int], pattern: str) -> frozenset[int]:
    """List the lines of the library in which something stands."""
    split = [(firsts[name], text.split("\n")) for name, text in texts.items()]
    return frozenset(first + at for first, of in split for at, line in enumerate(of, 1) if re.search(pattern, line))


def scenes(
    choice: Choice, steps: Sequence[Recorded], names: Sequence[str], of: Callable[[int], range], loaded: Loaded
) -> Iterator[Scene]:
    """Give the scenes of the steps that were chosen; `of` gives the steps of a history."""
    yield from _tightened(choice, steps, names, loaded)

    def written(index: int) -> Written:
        one = steps[index]
        writes = choice.writes.get(index, Counter())
        call = Call(one.call.step, one.call.args)
        return Written(names[one.history], one.at, call, one.before, after(one.before, one.written), writes)

    yield from damages.damaged()
    chosen = {index: written(index) for index in choice.writes}
    yield from faults.failing(list(chosen.values()))
    named = [index for index in chosen if not NAMED <= steps[index].history < DENIED]
    yield from faults.failing_by_name([chosen[index] for index in named])
    for name in faults.ROWS:
        for number in (number for number, other in enumerate(names) if other.endswith(name)):
            row = [written(index) for index in of(number)]
            yield from faults.failing_in_row(row)
            yield from faults.live(row)
            yield from faults.changed_elsewhere(row)
            yield from faults.in_turns(row)
            yield from faults.misspelt(row) if name == faults.BARE_ROW else ()
    for number in range(1, min(DENIED, len(names))):
        yield from faults.wrong([written(index) for index in of(number)])


def _tightened(choice: Choice, steps: Sequence[Recorded], names: Sequence[str], loaded: Loaded) -> Iterator[Scene]:
    """Give the steps with the budgets with which they do more, or less, than with one unit more."""
    loaded.host.coverage(False)
    for index in choice.tight:
        recorded, last = steps[index], None
        given = set[int]()
        for units in range(1, BUDGETS):
            loaded.set(recorded.before)
            loaded.parts.begin()
            found = loaded.within(units, recorded.call.step, recorded.call.args), loaded.keyspace.changed()
            if last is not None and not _is_like(found, last):
                given |= {units - 1, units}
            if _is_like(found, (recorded.reply, recorded.written)):
                break
            last = found
        calls = [Call(recorded.call.step, recorded.call.args, 0, units) for units in sorted(given)]
        name = f"tight {names[recorded.history]} {recorded.at}"
        yield from (Scene(f"{name} {call.units}", recorded.before, [call]) for call in calls)


def _is_like(one: tuple[Any, Keys], other: tuple[Any, Keys]) -> bool:
    """Tell whether two executions replied and wrote the same."""
    keys, others = one[1], other[1]
    return (
        bool(one[0] == other[0]) and keys.keys() == others.keys() and all(same(keys[key], others[key]) for key in keys)
    )
