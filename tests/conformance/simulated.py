"""Simulated histories of concurrent clients: the model replies at a moment between each call and its return."""

from __future__ import annotations

import heapq
import random
from itertools import combinations, permutations
from typing import Any

from qmodel.conformance.concurrency.calls import LOST, Call
from qmodel.conformance.histories.blind import BlindClient
from qmodel.contract import operations as ops
from qmodel.model import engine
from qmodel.model.state.store import Store


def history(seed: str, clients: int, count: int, jobs: int = 4, lose: float = 0.0, watched: bool = True) -> list[Call]:
    """A history that is linearizable. `lose` is the part of replies that are lost; of those some did not happen.

    At the end somebody reads all events, if it is `watched`.
    """
    chance = random.Random(seed)
    store = Store()
    blind = [BlindClient(f"w{n}", jobs, seed) for n in range(clients)]
    found: list[Call] = []
    coming: list[tuple[int, int, Any]] = [(chance.randrange(100), n, None) for n in range(clients)]
    while len(found) < count:
        at, n, asked = heapq.heappop(coming)
        if asked is None:
            heapq.heappush(coming, (at + chance.randrange(1, 100), n, (at, blind[n].draw())))
            continue
        called, op = asked
        now = 1000 + called * clients + n
        returned = at + chance.randrange(1, 100)
        lost = chance.random() < lose
        happens = not lost or chance.random() < 0.7
        outcome = engine.step(store, now, op) if happens else LOST
        if lost:
            found.append(Call(f"w{n}", called, None, now, op, LOST))
        else:
            blind[n].learn(op, outcome)
            found.append(Call(f"w{n}", called, returned, now, op, outcome))
        heapq.heappush(coming, (returned + 1, n, None))
    if watched:
        last = max(max(call.called, call.returned or 0) for call in found) + 1
        found.append(
            Call("watcher", last, last + 1, 0, ops.Events(0, 1000), engine.step(store, 0, ops.Events(0, 1000)))
        )
    return found


def spoiled(calls: list[Call], seed: str) -> list[Call]:
    """Exchange two replies of a history, or shift a call in time: the result may not be linearizable."""
    chance = random.Random(seed)
    calls = list(calls)
    known = [n for n, call in enumerate(calls) if call.returned is not None]
    if chance.random() < 0.5:
        a, b = chance.choice(known), chance.choice(known)
        kind = type(calls[a].op)
        same = [n for n in known if type(calls[n].op) is kind]
        b = chance.choice(same) if chance.random() < 0.8 else b
        one, other = calls[a].outcome, calls[b].outcome
        calls[a], calls[b] = calls[a]._replace(outcome=other), calls[b]._replace(outcome=one)
    else:
        n = chance.choice(known)
        by = chance.randrange(-300, 300)
        called, returned = calls[n].called + by, calls[n].returned
        assert returned is not None
        calls[n] = calls[n]._replace(called=called, returned=returned + by)
    return calls


def is_linearizable(calls: list[Call]) -> bool:
    """Decide by the definition: try every order of every choice of lost operations. For short histories only."""
    known = [call for call in calls if call.returned is not None]
    lost = [call for call in calls if call.returned is None]
    chosen = (list(some) for size in range(len(lost) + 1) for some in combinations(lost, size))
    return any(_fits(order) for some in chosen for order in permutations(known + some) if _in_time(order))


def _in_time(order: tuple[Call, ...]) -> bool:
    """Whether no operation comes before another one that returned before its call."""
    latest = -(10**9)
    for call in order:
        latest = max(latest, call.called)
        if call.returned is not None and call.returned < latest:
            return False
    return True


def _fits(order: tuple[Call, ...]) -> bool:
    store = Store()
    for call in order:
        outcome = engine.step(store, call.now, call.op)
        if call.returned is not None and outcome != call.outcome:
            return False
    return True
