"""The shapes of edges, and short histories with one edge of each.

Two edges have one shape if they have the same operation, the same optional arguments, the same kind of reply, and write
the same kinds of keys. Edges of one shape hardly ever show different faults, so one of each replaces the whole graph
where every edge would take too long: on a real server, on thousands of mutants, and in vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX
from qmodel.contract.operations import Operation
from qmodel.contract.reasons import Reason
from qmodel.contract.refusals import Refusal

_KIND = re.compile(r"([a-z]+:|[a-z-]+$).*?(-[a-z]+|:jobs)?$")


@cache
def kinds(keys: frozenset[bytes]) -> frozenset[str]:
    """Give the kinds of keys: their names without those of jobs, queues and so on."""
    return frozenset(_KIND.sub(r"\1\2", key.decode().removeprefix(PREFIX)) for key in keys)


def of_reply(reply: Any) -> Any:
    """Give what tells replies of one operation apart: the code of a refusal or of a reason, words, the number, the
    state of a job, and which fields are empty.
    """
    if isinstance(reply, Refusal):
        return reply.code, *filter(_is_word, reply.facts)
    if isinstance(reply, Reason):
        return reply.code
    if type(reply) is tuple and reply and isinstance(reply[0], Reason):
        return tuple(map(of_reply, reply))
    if type(reply) is tuple:
        return len(reply), *map(of_reply, reply[:2])
    if _is_word(reply):
        return reply
    if isinstance(reply, bool):
        return reply
    fields = tuple(map(bool, reply)) if isinstance(reply, tuple) else ()
    return type(reply).__name__, getattr(reply, "state", ""), fields


def _is_word(value: Any) -> bool:
    """Tell whether a value is a word of the contract, or empty; no job and no worker has such a name."""
    return isinstance(value, str) and (value.islower() or not value)


def kind(reply: Any) -> Any:
    """Give what follows from a state alone, and not from its past: an old lease's outcome may stand in a reply."""
    if isinstance(reply, Refusal):
        return reply.code
    if type(reply) is tuple:
        return len(reply)
    return reply if isinstance(reply, bool) or reply == "" else type(reply).__name__


class Shapes:
    """The shapes seen so far, in any number of searches."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def is_new(self, op: Operation, reply: Any, touched: set[bytes]) -> bool:
        """Tell whether no edge of this shape was seen yet; from now on, one was."""
        given = tuple(argument.name for argument in op.spec.arguments if getattr(op, argument.name) != argument.default)
        key = op.spec.name, given, of_reply(reply), kinds(frozenset(touched))
        if key in self.seen:
            return False
        self.seen.add(key)
        return True


class Paths:
    """Edges of one search, from which histories are made that share as many steps as they can."""

    def __init__(self) -> None:
        self._loops: dict[int, list[Step]] = {}
        self._leaves: dict[int, list[Step]] = {}

    def add(self, state: int, step: Step, changes: bool) -> None:
        """Add an edge of a state; one that changes nothing is repeated by any history through the state."""
        (self._leaves if changes else self._loops).setdefault(state, []).append(step)

    def histories(self, setup: Sequence[Step], steps: Sequence[tuple[int, Step | None]]) -> Iterator[list[Step]]:
        """Make the histories; `steps` has for each state the one before it, and the step between, None for a tick."""
        children: dict[int, list[int]] = {}
        needed = set(self._loops) | set(self._leaves)
        for state in range(len(steps) - 1, 0, -1):
            if state in needed:
                before = steps[state][0]
                needed.add(before)
                children.setdefault(before, []).append(state)
        left: list[tuple[int, list[Step]]] = [(0, list(setup))]
        while left:
            state, path = left.pop()
            told = [*path, *self._loops.get(state, ())]
            reached = {step for child in children.get(state, ()) if (step := steps[child][1]) is not None}
            ways: list[tuple[int, Step | None]] = [(child, steps[child][1]) for child in children.get(state, ())]
            ways += [(0, step) for step in self._leaves.get(state, ()) if step not in reached]
            if not ways:
                yield told
            for child, step in ways:
                longer = told if step is None else [*told, step]
                told = path
                if child:
                    left.append((child, longer))
                else:
                    yield longer
