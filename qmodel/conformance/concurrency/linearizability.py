"""Linearizability: can what many clients were answered have happened one operation after the other?

A history says of each operation which client asked for it, when it was called and when its reply came, and what that
was. The history is linearizable (Herlihy and Wing, TOPLAS 12, 1990) if each operation can be given one moment between
its call and its return, so that the model, stepped in the order of these moments, replies what the clients were
replied. That is searched for as by Wing and Gong (JPDC 17, 1993), with the memory of dead ends that Lowe added
(CCPE 29, 2017), as Porcupine does: the next operation is one that was called before any that is left had returned; the
model says whether it fits; where nothing fits, the last choice is taken back.

An operation whose reply was lost may have happened at any moment after its call, or never. It fits anywhere, with
whatever reply, and need not be placed.

**Time** is an argument of each operation (law 7), so the history holds it, and the search need not guess it. Clients
that send no moment cannot be checked. Moments may go back from one operation to the next, as between clients they do.

**What makes it fast.** Most choices are none:

- A read, and what was refused, changes nothing wherever it is placed (laws 1 and 5). So what of it fits is placed at
  once and for good: if an order exists that places it later, the same order with it moved to here exists too. That is
  not so for what only happens to change nothing here, such as a put sent again: elsewhere it may be needed.
- Sequence numbers have no gaps, and a lease's token is one. So the reply of a pop says how many events came before it,
  and what would make one too many fits nowhere. The reply of `events` tells the moment of each event, which is that of
  the operation that made it: where no two operations share a moment, that is the whole order of what made any. See
  calls.Makers; all this only discards what the model would refuse later.
- A dead end is remembered by which operations were placed and a fingerprint of the state, when it is left: a search
  that never turns back pays nothing for it. What nobody asks for (copying.UNSEEN) is not part of the fingerprint.
  States far back are dropped, and made again if needed, so memory does not grow with what a state holds.

**Partition.** Histories of different namespaces are checked one by one: namespaces share nothing, and linearizability
is local to objects that share nothing. Within one namespace nothing is partitioned, not by queue and not by job:
tokens come from one sequence, so an operation on one queue changes the replies on all others. Checking queues apart,
with tokens equal up to renaming, would call linearizable what is not; tests/conformance/test_linearizability.py has a
history that shows it.

The verdict is that the history is linearizable, or that it is not, or that the search was given up, and how far it
came.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from qmodel.conformance.concurrency.calls import Call, Makers, Unplaced
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.copies import Fingerprints, copy
from qmodel.model.state.store import Store

Answer = Literal["linearizable", "violation", "undecided"]


@dataclass(slots=True)
class Verdict:
    """What was found of the history of one namespace.

    `order` holds the places in `history` of the operations in the longest order that was found to fit, all of them when
    it is linearizable. `stuck` is the place of the operation that has to come next, and cannot; `instead` is what the
    model says to it and to the others that could come next. For those to which the model says what they were told,
    `taken` has the number of the event that they would make, and the operations that may have made it.
    """

    answer: Answer
    history: Sequence[Call]
    order: list[int] = field(default_factory=list)
    stuck: int | None = None
    instead: dict[int, Any] = field(default_factory=dict)
    taken: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        lost = sum(call.returned is None for call in self.history)
        size = f"{len(self.history)} operations of {len({call.client for call in self.history})} clients"
        size += f", {lost} of them without a reply" if lost else ""
        effort = f"{self.steps:,} steps of the model, {self.seconds:.1f} s"
        if self.answer == "linearizable":
            return f"Linearizable: {size} ({effort})."
        if self.answer == "undecided":
            return f"Undecided: {size}; the longest order found so far has {len(self.order)} of them ({effort})."
        return f"Not linearizable: {size}; no order has more than {len(self.order)} of them ({effort})."


def check(
    history: Sequence[Call], seconds: float = 60.0, steps: int | None = None, start: Store | None = None
) -> Verdict:
    """Decide whether a history is linearizable; give the verdict of the first namespace that is not.

    The search is given up after so many seconds of the processor, or steps of the model, in each namespace. `start` is
    the state before the first operation, empty if it is not given.
    """
    verdict = Verdict("linearizable", history)
    spaces = dict.fromkeys(call.namespace for call in history)
    for namespace in spaces:
        part = [call for call in history if call.namespace == namespace] if len(spaces) > 1 else history
        verdict = _Search(part, start or Store()).run(seconds, steps)
        if verdict.answer != "linearizable":
            break
    return verdict


KEPT = 64
"""How many states are kept of the last nodes, and each so many-th of those before: the others are made again when the
search turns back so far, by stepping from the last one that is kept."""

NO_STORE = Store()


class _Node:
    """A state that the search reached: what was placed to get here, and what there is still to try."""

    __slots__ = ("choices", "events", "free", "key", "placed", "spare", "store")

    def __init__(self, store: Store, placed: int, key: int, events: bytes) -> None:
        self.store = store
        self.spare: Store | None = None
        self.placed = placed
        self.key = key
        self.events = events
        self.free: list[int] = []
        self.choices: list[int] = []


class _Search:
    """The search in the history of one namespace."""

    def __init__(self, history: Sequence[Call], start: Store) -> None:
        self.history = [call for call in history if not (call.returned is None and call.op.spec.reads)]
        self._origin = [n for n, call in enumerate(history) if not (call.returned is None and call.op.spec.reads)]
        self._unplaced = Unplaced(self.history)
        self._makers = Makers(self.history, start.seq)
        self._prints = Fingerprints(call.op for call in self.history)
        numbers = random.Random(0)
        self._keys = [numbers.getrandbits(128) for _ in self.history]
        self._dead: dict[int, set[bytes]] = {}
        self._path: list[_Node] = []
        self._verdict = Verdict("undecided", history)
        self._placed = [False] * len(self.history)
        self._left = sum(call.returned is not None for call in self.history)
        self._best = -1
        self._start = copy(start)

    def run(self, seconds: float, steps: int | None) -> Verdict:
        """Search until an order is found, all are excluded, or the effort is spent."""
        began = time.process_time()
        until = began + seconds
        verdict = self._verdict
        self._enter(_Node(self._start, -1, 0, b""))
        while self._left and self._path:
            if time.process_time() > until or (steps is not None and verdict.steps > steps):
                self._keep_longest()
                break
            self._advance()
        else:
            verdict.answer = "linearizable" if self._path else "violation"
        if verdict.answer == "linearizable":
            self._keep_longest()
        verdict.seconds = time.process_time() - began
        return verdict

    def _advance(self) -> None:
        """Try the next choice of the last node; leave it if it has none."""
        node = self._path[-1]
        if not node.choices:
            self._leave(node)
            return
        n = node.choices.pop()
        store, fits = self._try(node, n)
        if not fits:
            return
        node.spare = None
        events = self._prints.events(node.events, node.store.seq, store)
        self._enter(_Node(store, n, node.key ^ self._keys[n], events))

    def _try(self, node: _Node, n: int) -> tuple[Store, bool]:
        """Step a copy of a node's state; say whether that fits. What is refused leaves the copy good."""
        call = self.history[n]
        store = node.spare or copy(node.store)
        node.spare = None
        outcome = self._step(store, call)
        if isinstance(outcome, Refusal):
            node.spare = store
            return store, False
        fits = call.returned is None or outcome == call.outcome
        return store, fits and self._agrees(n, node.store.seq, store.seq)

    def _agrees(self, n: int, before: int, after: int) -> bool:
        """Whether what is known of who made which event allows an operation to make those between two numbers."""
        makers = self._makers
        return makers.taken(n, before, after) is None and not makers.strands(n, after, self._placed)

    def _step(self, store: Store, call: Call) -> Any:
        self._verdict.steps += 1
        return engine.step(store, call.now, call.op)

    # ---- nodes

    def _enter(self, node: _Node) -> None:
        """Begin with a node: place what an earlier choice or none decides, and list the choices."""
        if node.placed >= 0:
            self._place(node.placed)
        self._path.append(node)
        old = len(self._path) - 1 - KEPT
        if old > 0 and old % KEPT:
            self._path[old].store, self._path[old].spare = NO_STORE, None
        self._place_free(node)
        if node.key in self._dead and self._prints.state(node.store, node.events) in self._dead[node.key]:
            return
        node.choices = self._choices(node)

    def _place(self, n: int) -> None:
        self._unplaced.take(n)
        self._placed[n] = True
        self._left -= self.history[n].returned is not None

    def _take_back(self, n: int) -> None:
        self._unplaced.put_back(n)
        self._placed[n] = False
        self._left += self.history[n].returned is not None

    def _place_free(self, node: _Node) -> None:
        """Place all that fits and changes nothing, until no more does."""
        tried: set[int] = set()
        while True:
            new = [n for n in self._unplaced.called() if n not in tried]
            if not new:
                return
            tried.update(new)
            for n in new:
                if self._is_free(node, n):
                    self._place(n)
                    node.free.append(n)
                    node.key ^= self._keys[n]

    def _is_free(self, node: _Node, n: int) -> bool:
        call = self.history[n]
        if call.op.spec.reads:
            return bool(self._step(node.store, call) == call.outcome)
        if not isinstance(call.outcome, Refusal):
            return False
        store = node.spare or copy(node.store)
        outcome = self._step(store, call)
        node.spare = store if isinstance(outcome, Refusal) else None
        return bool(outcome == call.outcome)

    def _choices(self, node: _Node) -> list[int]:
        """What may come next and changes something; the likeliest last.

        That is who made the next event, if it is known; then what returned first; at the end what was lost.
        """
        makers, seq = self._makers, node.store.seq
        found = []
        for n in self._unplaced.called():
            call = self.history[n]
            if call.op.spec.reads or isinstance(call.outcome, Refusal) or makers.must_wait(n, seq):
                continue
            lost = call.returned is None
            found.append((lost, makers.rank(n, seq), call.called if lost else call.returned, n))
        return [n for *_, n in sorted(found, reverse=True)]

    def _leave(self, node: _Node) -> None:
        """Turn back from a dead end, and remember it."""
        self._keep_longest()
        self._dead.setdefault(node.key, set()).add(self._prints.state(node.store, node.events))
        self._path.pop()
        for n in reversed(node.free):
            self._take_back(n)
        if node.placed >= 0:
            self._take_back(node.placed)
        if self._path and self._path[-1].store is NO_STORE:
            self._restore()

    def _restore(self) -> None:
        """Make the states again that the last nodes had."""
        first = len(self._path) - 1
        while self._path[first - 1].store is NO_STORE:
            first -= 1
        for before, node in pairwise(self._path[first - 1 :]):
            node.store = copy(before.store)
            self._step(node.store, self.history[node.placed])

    def _keep_longest(self) -> None:
        """Keep the order in which operations were placed so far, if none before was longer."""
        placed = [n for node in self._path for n in (node.placed, *node.free) if n >= 0]
        known = sum(self.history[n].returned is not None for n in placed)
        if known <= self._best:
            return
        self._best = known
        verdict = self._verdict
        verdict.order = [self._origin[n] for n in placed]
        first = self._unplaced.first_return()
        verdict.stuck = self._origin[first] if first >= 0 else None
        verdict.instead, verdict.taken = {}, {}
        for n in self._unplaced.called():
            if self.history[n].returned is not None:
                self._keep_reply(self._path[-1].store, n)

    def _keep_reply(self, before: Store, n: int) -> None:
        """Keep what the model says to an operation that could come next, and which event stands against it."""
        store = copy(before)
        self._verdict.instead[self._origin[n]] = self._step(store, self.history[n])
        seq = self._makers.taken(n, before.seq, store.seq)
        if seq is not None:
            self._verdict.taken[self._origin[n]] = (seq, [self._origin[one] for one in self._makers.of(seq)])
