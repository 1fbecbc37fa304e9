"""From the matrix of kills to vectors: a few thousand operations that notice nearly as many mutants as the whole suite.

Half of the mutants are learnt from, and the power is told as it is on the other half (a choice fits what it was made
from). A vector is the beginning of a history, up to the last step that is worth its price, and then some reads: they
show in replies what the state is, for those who cannot compare states.

The file is JSON lines: one object about the file, then for each vector `{"history": name, "steps": n}` and as many
steps, as `codec` has them and with `reply` or `refusal` (a code and its facts).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qmodel import engine
from qmodel import operations as ops
from qmodel.arguments import MOST
from qmodel.conformance import codec
from qmodel.conformance.directed import Named
from qmodel.conformance.subjects import Step
from qmodel.operations import Operation
from qmodel.refusals import Refusal
from qmodel.state.store import Store

FILE = Path(__file__).resolve().parents[1] / "vectors" / "core.jsonl"
OPERATIONS = 3000
READS = 15
"""About how many reads end a vector."""

Kills = dict[str, list[tuple[int, int]]]
"""For each mutant, where it was noticed: history, and the step in it."""


class Vector(NamedTuple):
    """A history with what must come of each step."""

    name: str
    steps: list[Step]
    outcomes: list[Any]


def choose(suite: Sequence[Named], kills: Kills, budget: int = OPERATIONS) -> list[tuple[int, int]]:
    """Which histories to take, and how many steps of each: always what notices most that is new for its price."""
    prices = [_prices(named) for named in suite]
    by_history: dict[int, list[tuple[int, str]]] = {}
    for mutant, found in kills.items():
        for history, at in found:
            if history < len(suite):
                by_history.setdefault(history, []).append((at, mutant))
    for listed in by_history.values():
        listed.sort()
    taken: dict[int, int] = {}
    noticed: set[str] = set()
    spent = 0.0
    while spent < budget:
        best = max(
            (_best(prices[h], listed, taken.get(h, 0), noticed, h) for h, listed in by_history.items()), default=None
        )
        if best is None or best[0] <= 0:
            break
        _, history, length = best
        spent += prices[history][length] - (prices[history][taken[history]] if history in taken else -READS)
        taken[history] = length
        noticed.update(mutant for at, mutant in by_history[history] if at < length)
    return sorted(taken.items())


def _best(
    prices: list[float], listed: list[tuple[int, str]], have: int, noticed: set[str], history: int
) -> tuple[float, int, int]:
    gain, best = 0, (0.0, history, have)
    met: set[str] = set()
    paid = prices[have] if have else -READS
    for at, mutant in listed:
        if mutant not in noticed and mutant not in met:
            met.add(mutant)
            gain += 1
            length = max(at + 1, have)
            best = max(best, (gain / max(prices[length] - paid, 0.5), history, length))
    return best


def _prices(named: Named) -> list[float]:
    """What each beginning of a history costs: its operations, and its length as text."""
    prices = [0.0]
    for step in named.steps:
        prices.append(prices[-1] + 1 + max(len(repr(step.op)) - 400, 0) / 200)
    return prices


def vectors(suite: Sequence[Named], chosen: Iterable[tuple[int, int]]) -> list[Vector]:
    """The vectors, with the model's replies."""
    found = []
    for history, length in chosen:
        store, outcomes = Store(), []
        steps = list(suite[history].steps[:length])
        for step in steps:
            outcomes.append(engine.step(store, *step))
        for op in reads(store):
            steps.append(Step(steps[-1].now if steps[-1].now >= 0 else 0, op))
            outcomes.append(engine.step(store, *steps[-1]))
        found.append(Vector(suite[history].name, steps, outcomes))
    return found


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
    found += [ops.Stats(queue, day) for day, queue in list(store.days)[:8]]
    found += [ops.Workers(0, 100), *(ops.Worker(name) for name, worker in store.workers.items() if worker.held)]
    found += [ops.Failed(name, 0, 100) for name in store.groups] + [ops.Tagged(tag, 0, 100) for tag in store.tags]
    if store.completed:
        found.append(ops.Completed(0, 100))
    if store.tracked:
        found.append(ops.Tracked(0, 100))
    return [*found, ops.Config(), ops.Events(max(store.seq - 40, 0), 100)]


# ---- the file


def plain(value: Any) -> Any:
    """A reply for JSON: records are objects, tuples are arrays."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    return [plain(part) for part in value] if isinstance(value, tuple) else value


def outcome(value: Any) -> dict[str, Any]:
    """A reply or refusal for JSON."""
    if isinstance(value, Refusal):
        return {"refusal": [value.code, *value.facts]}
    return {"reply": plain(value)}


def dumps(found: Iterable[Vector], about: dict[str, Any]) -> str:
    """The file."""
    lines: list[Any] = [about]
    for vector in found:
        lines.append({"history": vector.name, "steps": len(vector.steps)})
        lines += [codec.dump(step) | outcome(was) for step, was in zip(vector.steps, vector.outcomes, strict=True)]
    return "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines)


def loads(text: str) -> tuple[dict[str, Any], list[Vector]]:
    """What is said about the file, and its vectors; outcomes are as `outcome` gives them."""
    about, *lines = [json.loads(line) for line in text.splitlines()]
    found: list[Vector] = []
    for line in lines:
        if "history" in line and "op" not in line:
            found.append(Vector(line["history"], [], []))
            continue
        found[-1].outcomes.append({key: line.pop(key) for key in ("reply", "refusal") if key in line})
        found[-1].steps.append(codec.load(line))
    return about, found
