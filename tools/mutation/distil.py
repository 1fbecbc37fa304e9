"""Choose vectors: a few thousand operations that notice nearly as many mutants as the whole suite.

The vectors that are there stay, because an id is never given to another history; others are added for what they miss.
The choice uses mutants of one half, and the lines that each operation runs: a mutant can be noticed only where its line
runs. The power of the result is measured on mutants of the other half, because a choice fits the data it was made from.
Only histories that are short enough are tried, in random order: a mutant is judged until a few histories have noticed
it, and these should not be the same histories for all mutants. A vector is the beginning of a history, up to the last
step that is worth its price, followed by reads: their replies show the state to bindings that cannot compare states.

The result is the vectors of the level `core` (`conformance.kit.vectors`).
"""

from __future__ import annotations

import random
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from zlib import crc32

from qmodel.conformance.histories.directed.load import reasons
from qmodel.conformance.histories.script import Named
from qmodel.conformance.kit.vectors import Vector, made, path_of
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.state.store import Store
from tools.mutation.mutants import Mutant
from tools.mutation.replay import GENERATED, Kill, Recording, Verdict

FILE = path_of("core")
OPERATIONS = 6500
"""About how many operations all vectors may have."""

LEARNT = 2500
HELD_OUT = 1000
"""How many mutants the choice uses, and on how many others it is measured."""

TRIED_STEPS = 2500
"""The most steps that a mutant is tried on: those that nothing notices would take minutes otherwise."""

THERE = -1
"""In place of a step: vectors that are there notice a mutant already."""

GRAPH = "graph "
"""The prefix of the names of the closed graph's histories."""

TRIED = 120
PRICE = 200
"""How many generated histories are tried, and the highest price of a vector."""

READS = 15
"""About how many reads follow at the end of a vector."""

AGAIN = 1 / 3
"""The factor by which a mutant counts less for each time that it is noticed already."""

Kills = dict[str, list[tuple[int, int]]]
"""Where each mutant was noticed: pairs of a history and a step in it."""

LINE = "line "
"""The prefix of the names of what stands for a line that an operation runs, among the mutants of `Kills`."""

LINES_WEIGH = 0.005
"""What running such a line counts, compared with noticing a mutant."""

PLACES = 12
"""In how many histories each of these lines is looked for."""


def lines(recording: Recording) -> Kills:
    """Find where each operation runs each line, for the first time in some histories."""
    found: Kills = {}
    for line, indexes in recording.running.items():
        for index in indexes:
            recorded = recording.steps[index]
            places = found.setdefault(f"{LINE}{line} {recorded.call.step.op.spec.name}", [])
            if len(places) < PLACES and (not places or places[-1][0] != recorded.history):
                places.append((recorded.history, recorded.at))
    return found


def _weight(name: str) -> float:
    return LINES_WEIGH if name.startswith(LINE) else 1.0


def candidates(suite: Sequence[Named]) -> list[Named]:
    """List the histories to choose from: some generated ones, all directed ones and those of the closed graph, cut off
    where they exceed PRICE. No binding has to read the journal, so none of them does.
    """
    generated = [named for named in suite if named.name.startswith(GENERATED)]
    written = [named for named in suite if not named.name.startswith(GENERATED)]
    found = []
    for name, steps in [*generated[:TRIED], *written]:
        asked = [step for step in steps if step.op.spec.name != "journal"]
        found.append(Named(name, asked[: bisect(_prices(asked), PRICE) - 1]))
    random.Random("candidates").shuffle(found)
    return found


def judge(there: Recording, recorded: Recording, mutant: Mutant) -> Verdict:
    """Tell whether vectors that are there notice a mutant, or else which histories do, up to six."""
    verdict = there.judge(mutant)
    if verdict.kills:
        return Verdict([Kill(THERE, verdict.kills[0].by)])
    steps = list(recorded.steps_of(mutant))
    if len(steps) > TRIED_STEPS:
        steps = sorted(random.Random(mutant.name).sample(steps, TRIED_STEPS))
    return recorded.judge(mutant, most=6, steps=steps)


def choose(
    suite: Sequence[Named], kills: Kills, budget: int = OPERATIONS, known: Kills | None = None
) -> list[tuple[int, int]]:
    """Choose histories, and the number of steps of each: always the choice that notices most new mutants for its price.

    `known` is what vectors that are there notice.

    A mutant that is noticed already counts a third when another history notices it, then a ninth, and so on. Otherwise
    the choice would stop as soon as all mutants of its own half are noticed, and miss others.
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
    noticed = Counter({name: len(places) for name, places in (known or {}).items()})
    spent = 0.0

    def best_of(history: int) -> tuple[float, int, int]:
        found = _best(prices[history], by_history[history], taken.get(history, 0), noticed, history)
        return -found[0], -history, -found[2]

    heap = [best_of(history) for history in by_history]
    heapify(heap)
    while heap and spent < budget:
        best = best_of(-heap[0][1])
        if best > heap[0]:  # others have taken what it counted on; gains only become smaller
            heapreplace(heap, best)
            continue
        loss, history, length = heappop(heap)
        if loss >= 0:
            break
        history, length = -history, -length
        have = taken.get(history, 0)
        spent += prices[history][length] - (prices[history][have] if have else -READS)
        taken[history] = length
        noticed.update(mutant for at, mutant in by_history[history] if have <= at < length)
        heappush(heap, best_of(history))
    return sorted(taken.items())


def _best(
    prices: list[float], listed: list[tuple[int, str]], have: int, noticed: Counter[str], history: int
) -> tuple[float, int, int]:
    gain, best = 0.0, (0.0, history, have)
    paid = prices[have] if have else -READS
    for at, mutant in listed:
        if at >= have:
            gain += _weight(mutant) * AGAIN ** noticed[mutant]
            best = max(best, (gain / max(prices[at + 1] - paid, 0.5), history, at + 1))
    return best


def _prices(steps: Sequence[Step]) -> list[float]:
    """Compute the price of each beginning of a history, from its operations and its length as text."""
    prices = [0.0]
    for step in steps:
        prices.append(prices[-1] + 1 + max(len(repr(step.op)) - 400, 0) / 200)
    return prices


def vectors(suite: Sequence[Named], chosen: Iterable[tuple[int, int]]) -> list[Vector]:
    """Make the vectors: the chosen steps, then reads of the final state. What another one begins with is left out."""
    found = []
    for history, steps in _apart({history: list(suite[history].steps[:length]) for history, length in chosen}):
        store = Store()
        for step in steps:
            engine.step(store, *step)
        now = max(steps[-1].now, 0)
        steps += [Step(now, op) for op in reads(store)]
        name = suite[history].name
        found.append(made(_id(name, steps), "core", _why(name), steps))
    return found


def _apart(chosen: dict[int, list[Step]]) -> Iterator[tuple[int, list[Step]]]:
    """Leave out what is the beginning of another one, and all but the first of equal ones."""
    for history, steps in chosen.items():
        longer = [other for other, more in chosen.items() if more[: len(steps)] == steps]
        if all(len(chosen[other]) == len(steps) and other >= history for other in longer):
            yield history, steps


def _id(name: str, steps: Sequence[Step]) -> str:
    """Give the id of a vector. The number of a drawn history says nothing, since all are drawn again after a change."""
    if name.startswith((GRAPH, GENERATED)):
        name = f"{name.rpartition(' ')[0]} {crc32(repr(steps).encode()):08x}"
    return id_of(name)


def id_of(name: str) -> str:
    """Give the id of a vector that is made of a history with this name."""
    return name.replace("_", "-").replace(" ", "-")


def _why(name: str) -> str:
    """Give the reason for a vector: the history's own reason if it was written by hand."""
    if name.startswith(GRAPH):
        return f"Shortest ways to edges of the closed graph, of the family {name.split()[1]}; then reads of the state."
    generated = "The part of a generated history that notices faults that other vectors miss; then reads of the state."
    return reasons().get(name, generated)


def reads(store: Store) -> list[Operation]:
    """List reads that show most of a state."""
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
