"""From the matrix of kills to vectors: a few thousand operations that notice nearly as many mutants as the whole suite.

Some of one half of the mutants are learnt from, and the power is told as it is on some of the other half (a choice fits
what it was made from). Only what is short enough to be chosen is tried, in an order by chance: each mutant
is noticed in the first few of them, and these should not always be the same. A vector is the beginning of a history, up
to the last step that is worth its price, and then some reads: they show in replies what the state is, for those who
cannot compare states.

They are the vectors of the level `core` (`conformance.kit.vectors`).
"""

from __future__ import annotations

import random
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Sequence

from qmodel.conformance.histories.directed.load import reasons
from qmodel.conformance.histories.script import Named
from qmodel.conformance.kit.vectors import Vector, made, path_of
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.state.store import Store
from tools.mutation.replay import GENERATED

FILE = path_of("core")
OPERATIONS = 3500
LEARNT = 2500
HELD_OUT = 1000
"""How many mutants are learnt from, and by how many the choice is measured."""

TRIED = 120
PRICE = 200
"""How many generated histories are tried, and what any vector may cost."""

READS = 15
"""About how many reads end a vector."""

AGAIN = 1 / 3
"""What a mutant counts for that is noticed already, for each time."""

Kills = dict[str, list[tuple[int, int]]]
"""For each mutant, where it was noticed: history, and the step in it."""


def candidates(suite: Sequence[Named]) -> list[Named]:
    """The histories of which vectors are made: some generated ones, and those with a purpose, as far as they may go."""
    generated = [named for named in suite if named.name.startswith(GENERATED)]
    written = [named for named in suite if not named.name.startswith(GENERATED)]
    found = [Named(name, steps[: bisect(_prices(steps), PRICE) - 1]) for name, steps in [*generated[:TRIED], *written]]
    random.Random("candidates").shuffle(found)
    return found


def choose(suite: Sequence[Named], kills: Kills, budget: int = OPERATIONS) -> list[tuple[int, int]]:
    """Which histories to take, and how many steps of each: always what notices most that is new for its price.

    What is noticed once already counts a third when it is noticed in another way, and so on: else the choice would end
    with what it learnt from, and miss what it did not.
    """
    prices = [_prices(named.steps) for named in suite]
    by_history: dict[int, list[tuple[int, str]]] = {}
    for mutant, found in kills.items():
        for history, at in found:
            if history < len(suite):
                by_history.setdefault(history, []).append((at, mutant))
    for listed in by_history.values():
        listed.sort()
    taken: dict[int, int] = {}
    noticed: Counter[str] = Counter()
    spent = 0.0
    while spent < budget:
        best = max(
            (_best(prices[h], listed, taken.get(h, 0), noticed, h) for h, listed in by_history.items()), default=None
        )
        if best is None or best[0] <= 0:
            break
        _, history, length = best
        have = taken.get(history, 0)
        spent += prices[history][length] - (prices[history][have] if have else -READS)
        taken[history] = length
        noticed.update(mutant for at, mutant in by_history[history] if have <= at < length)
    return sorted(taken.items())


def _best(
    prices: list[float], listed: list[tuple[int, str]], have: int, noticed: Counter[str], history: int
) -> tuple[float, int, int]:
    gain, best = 0.0, (0.0, history, have)
    paid = prices[have] if have else -READS
    for at, mutant in listed:
        if at >= have:
            gain += AGAIN ** noticed[mutant]
            best = max(best, (gain / max(prices[at + 1] - paid, 0.5), history, at + 1))
    return best


def _prices(steps: Sequence[Step]) -> list[float]:
    """What each beginning of a history costs: its operations, and its length as text."""
    prices = [0.0]
    for step in steps:
        prices.append(prices[-1] + 1 + max(len(repr(step.op)) - 400, 0) / 200)
    return prices


def vectors(suite: Sequence[Named], chosen: Iterable[tuple[int, int]]) -> list[Vector]:
    """The vectors."""
    found = []
    for history, length in chosen:
        store = Store()
        steps = list(suite[history].steps[:length])
        for step in steps:
            engine.step(store, *step)
        now = max(steps[-1].now, 0)
        steps += [Step(now, op) for op in reads(store)]
        name = suite[history].name
        found.append(made(name.replace("_", "-").replace(" ", "-"), "core", _why(name), steps))
    return found


def _why(name: str) -> str:
    """Say why a history is kept: its own reason, if it was written by hand."""
    generated = "A generated history, as far as it notices faults that no other one does, and reads of the end."
    return reasons().get(name, generated)


def reads(store: Store) -> list[Operation]:
    """What shows most of a state."""
    jids = tuple(store.jobs)[:MOST]
    found: list[Operation] = [ops.Multiget(jids)] if jids else []
    found.append(ops.Queues(0, MOST))
    for name, queue in store.queues.items():
        for read, place in ((ops.Waiting, queue.ready), (ops.Scheduled, queue.scheduled), (ops.Running, queue.locks)):
            if place:
                found.append(read(name, 0, 100))
        if queue.depends:
            found.append(ops.Depending(name, 0, 100))
            found.append(ops.Throttled(name, 0, 100))
    found += [ops.Stats(queue, day) for day, queue in list(store.days)[:8]]
    found += [ops.Workers(0, 100), *(ops.Worker(name) for name, worker in store.workers.items() if worker.held)]
    found += [ops.Failed(name, 0, 100) for name in store.groups] + [ops.Tagged(tag, 0, 100) for tag in store.tags]
    if store.completed:
        found.append(ops.Completed(0, 100))
    if store.tracked:
        found.append(ops.Tracked(0, 100))
    return [*found, ops.Config(), ops.Events(max(store.seq - 40, 0), 100)]
