"""Check linearizability: is there an order of all operations in which the model gives the replies that clients got?

A history lists, for each operation, its client, the time of its call, the time of its return, and its reply. The
history is linearizable (Herlihy and Wing, TOPLAS 12, 1990) if each operation can be assigned one moment between its
call and its return such that the model, executing the operations in the order of these moments, gives the recorded
replies.

The search follows Wing and Gong (JPDC 17, 1993), with Lowe's memory of dead ends (CCPE 29, 2017), as Porcupine does.
It builds the order from the front. A candidate for the next place is an operation that was called before any remaining
operation returned. The model executes the candidate, and the reply decides whether it fits. If no candidate fits, the
search takes back its last choice.

An operation with a lost reply may have happened at any moment after its call, or never. It fits anywhere, with any
reply, and may be left out of the order.

**Time** is an argument of each operation (law 7), so the history contains it, and the search need not guess it.
Histories of clients that send no moment cannot be checked. Moments may decrease from one operation to the next, because
operations of different clients overlap.

**What makes the search fast.** Most operations leave no choice:

- Reads and refused operations change nothing, wherever they are placed (laws 1 and 5). One that fits is placed at once,
  and no other place is tried for it: if an order exists that places it later, the same order with the operation moved
  to this place exists too. That does not hold for an operation that merely changes nothing in this state, such as a put
  sent again: it may be needed at another place.
- Sequence numbers have no gaps, and the token of a lease is a sequence number. So the reply of a pop says how many
  events came before it, and an operation that would emit one event too many does not fit. The reply of `events` gives
  the moment of each event, which is the moment of the operation that emitted it. If no two operations share a moment,
  this determines the order of all operations that emitted events. See calls.Makers. These rules only discard
  candidates that the model would refuse later.
- When the search leaves a dead end, it remembers the set of placed operations and a fingerprint of the state. A search
  that never turns back pays nothing for this. The fingerprint omits the fields that no operation of the history reads
  (`model.copies.UNSEEN`). The search drops old states and computes them again when needed, so memory does not grow with
  the size of a state.

**Partition.** Namespaces are checked one by one: they share nothing, and linearizability is local to objects that share
nothing. A namespace is not partitioned further, neither by queue nor by job: tokens come from one sequence, so an
operation on one queue changes the replies on all others. Checking each queue separately, with tokens compared up to
renaming, would accept histories that are not linearizable; tests/conformance/test_linearizability.py has one.

The verdict is "linearizable", "violation", or "undecided" if the search was given up, with the longest order found.
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
from qmodel.present.numbers import counted

Answer = Literal["linearizable", "violation", "undecided"]


@dataclass(slots=True)
class Verdict:
    """The result of checking the history of one namespace.

    Operations are named by their index in `history`. `order` is the longest order that fits; in a linearizable history
    it contains all operations. `stuck` is the operation that has to come next but does not fit. `instead` gives the
    model's reply to `stuck` and to each other candidate for the next place. If a candidate would emit an event that
    another operation emitted, `taken` gives the event's sequence number and the operations that may have emitted it.
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
        clients = {call.client for call in self.history}
        size = f"{counted(len(self.history), 'operation')} of {counted(len(clients), 'client')}"
        size += f", {lost} of them without a reply" if lost else ""
        effort = f"{counted(self.steps, 'step')} of the model, {self.seconds:.1f} s"
        if self.answer == "linearizable":
            return f"Linearizable: {size} ({effort})."
        if self.answer == "undecided":
            return f"Undecided: {size}; the longest order found so far has {len(self.order)} of them ({effort})."
        return f"Not linearizable: {size}; no order has more than {len(self.order)} of them ({effort})."


def check(
    history: Sequence[Call], seconds: float = 60.0, steps: int | None = None, start: Store | None = None
) -> Verdict:
    """Decide whether a history is linearizable; give the verdict of the first namespace that is not.

    The search of each namespace is given up after `seconds` of processor time or `steps` of the model. `start` is the
    state before the first operation; the default is an empty store.
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
"""The search keeps the states of the last KEPT nodes, and of every KEPT-th node before them. If it turns back to
another node, it computes the state again from the nearest kept state before it."""

NO_STORE = Store()


class _Node:
    """A state that the search reached: the operation placed last, and the candidates still to try."""

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
    """Searches for an order of the operations of one namespace."""

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
        """Search until an order is found, all orders are excluded, or the limit of time or steps is reached."""
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
        """Try the next candidate of the last node; leave the node if it has none."""
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
        """Execute an operation on a copy of a node's state; tell whether it fits.

        A refused operation changes nothing, so the node keeps the copy for its next candidate.
        """
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
        """Whether an operation may have emitted the events between two sequence numbers, as far as replies show."""
        makers = self._makers
        return makers.taken(n, before, after) is None and not makers.strands(n, after, self._placed)

    def _step(self, store: Store, call: Call) -> Any:
        self._verdict.steps += 1
        return engine.step(store, call.now, call.op)

    # ---- nodes

    def _enter(self, node: _Node) -> None:
        """Append a node to the path: place its operation and all that need no choice, and list its candidates."""
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
        """Place the reads and refused operations that fit, until no more do."""
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
        """List the candidates that change the state, the most likely one last.

        Operations with a lost reply are the least likely; then the rank as emitter of the next event decides
        (calls.Makers.rank), then the time of the return.
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
        """Compute the dropped states of the last nodes again."""
        first = len(self._path) - 1
        while self._path[first - 1].store is NO_STORE:
            first -= 1
        for before, node in pairwise(self._path[first - 1 :]):
            node.store = copy(before.store)
            self._step(node.store, self.history[node.placed])

    def _keep_longest(self) -> None:
        """Keep the current order if it is longer than any before."""
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
        """Keep the model's reply to a candidate, and the first event that it would emit but cannot have emitted."""
        store = copy(before)
        self._verdict.instead[self._origin[n]] = self._step(store, self.history[n])
        seq = self._makers.taken(n, before.seq, store.seq)
        if seq is not None:
            self._verdict.taken[self._origin[n]] = (seq, [self._origin[one] for one in self._makers.of(seq)])
