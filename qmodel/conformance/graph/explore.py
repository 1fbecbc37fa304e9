"""The search: every state of a family in a scope, level by level, and every edge of each.

An edge is one operation in one concrete state (or a tick of the clock). On each edge:

- the model's reply, events and state are compared with those of another subject, if one is given;
- a refusal changes nothing, and neither does a read in the subject;
- a new state keeps the invariants.

Where the family says so, several operations are also executed in one call, and in calls between which the library
forgets nothing, and compared with the edges one after the other; or each operation is executed with every budget that
is too small for it, or with each of its commands failing. No new state is reached so.

The first state that arrives at a canonical form represents it, and has the shortest history. Another one that arrives
there is, with the probability `pairs`, tried under all operations too: the forms that follow must be the same, or the
canonical form is refuted. Liveness is asked of the whole graph once it is closed (`live.py`).
"""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Container, Iterator, Sequence
from typing import Any, Final, NamedTuple

from qmodel.conformance.compare.report import call
from qmodel.conformance.graph import budgets, live
from qmodel.conformance.graph.alphabet import COMMON, Family, Moves, Scope
from qmodel.conformance.graph.canonical import Canonical, told_apart
from qmodel.conformance.graph.compare import Keys, LuaCorner, changes_nothing
from qmodel.conformance.graph.costs import name_of
from qmodel.conformance.graph.failures import Failing
from qmodel.conformance.graph.findings import Explored, Finding
from qmodel.conformance.graph.sequences import sequences
from qmodel.conformance.graph.server import ServerCorner
from qmodel.conformance.graph.shapes import Paths, Shapes, kind
from qmodel.conformance.graph.spare import Spare
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine, invariants, snapshot
from qmodel.model.copies import copy
from qmodel.model.state import budget
from qmodel.model.state.store import Store

AT_ONE_JOB: Final = {"job.history"}
"""What is live in scopes of one job only: with more, the graph of these families does not close."""

LEVELS: Final = 0.4
"""The part of its edges for which a search that strays goes level by level."""

ON: Final = 0.7
"""How often it then goes on from a state that it has just found, and not from any."""


class _Node(NamedTuple):
    """A state on the frontier."""

    id: int
    store: Store
    now: int
    keys: Keys
    seq: int
    """The last sequence of the state before it."""


class Search:
    """The search of one family in one scope."""

    def __init__(
        self,
        family: Family,
        scope: Scope,
        corner: LuaCorner | None = None,
        server: ServerCorner | None = None,
        pairs: float = 0.0,
        limit: float = 0.0,
        most: int = 1,
        shapes: Shapes | None = None,
        edges: int = 0,
        compared: Container[str] | None = None,
        strays: bool = False,
    ) -> None:
        """`limit` is in seconds of the processor, `edges` the most edges, 0 for none; `most` findings end the search.

        With `shapes`, and with a corner, the histories of edges that have new shapes are kept (`histories`). With
        `compared`, the corner executes only operations with these names, and what leads to a new state. A search that
        strays goes level by level for a part of its edges only, in each level first to what time brings, and then on
        from states that it draws.
        """
        self.moves = Moves(family, scope)
        live_fields = family.live - (AT_ONE_JOB if scope.jobs > 1 else set())
        self.canonical = Canonical(self.moves.jobs, self.moves.workers, live_fields, family.horizon)
        self._shapes, self._paths = shapes if corner is not None else None, Paths()
        self._family, self._corner, self._server = family, corner, server if corner is not None else None
        self._compared, self._strays = compared, strays
        self._share, self._limit, self._most, self._edges = pairs, limit, most, edges
        self._bound = family.bound()
        self._drawn, self._rows = (random.Random(f"{what}{family.name} {scope}") for what in ("", "rows of "))
        self._failed: set[Any] = set()
        self._ids: dict[str, int] = {}
        self._steps: list[tuple[int, Step | None]] = []
        self._first: dict[int, tuple[Store, int]] = {}
        self._successors: dict[int, Counter[Any]] = {}
        self._graph = live.Graph()
        self.result = Explored(family.name, scope)

    def run(self) -> Explored:
        """Search until the graph is closed, the time is over, or there are enough findings."""
        usual, begun = budget.UNITS, time.process_time()
        try:
            frontier, fresh = deque([self._start()]), 1  # the setup has the usual budget
            budget.UNITS = self._family.units or usual
            while frontier and not self._is_over(begun):
                before = len(frontier) - 1
                frontier.extend(self._expand(self._next(frontier, fresh)))
                fresh = len(frontier) - before
            self.result.closed = not self._is_over(begun)
        finally:
            budget.UNITS = usual
            self.result.cpu = time.process_time() - begun
        self.result.states = len(self._ids)
        if self.result.closed and any("Pop(" in letter.text for letter in self._family.letters):
            self._look_for_stuck()
        return self.result

    def histories(self) -> list[list[Step]]:
        """Give histories that show one edge of each new shape."""
        return list(self._paths.histories(self._setup, self._steps))

    def _is_over(self, begun: float) -> bool:
        over = bool(self._limit) and time.process_time() - begun > self._limit
        over = over or 0 < self._edges <= self.result.edges
        return over or len(self.result.findings) >= self._most

    def _next(self, frontier: deque[_Node], fresh: int) -> _Node:
        """Take the next state: the first one, or where the search strays, one of the last `fresh` ones or any."""
        if self._strays and self.result.edges > self._edges * LEVELS:
            newest = fresh if fresh and self._drawn.random() < ON else len(frontier)
            frontier.rotate(self._drawn.randrange(newest) + 1)
        return frontier.popleft()

    def _start(self) -> _Node:
        store, keys = Store(), Keys()
        if self._corner is not None:
            self._corner.begin()
            self._corner.within(budget.UNITS)
        self._setup = [Step(self._family.start, op) for op in (*COMMON, *self._family.setup)]
        for step in self._setup:
            reply = engine.step(store, *step)
            assert not isinstance(reply, Refusal), step
            if self._corner is not None:
                self._set_up(self._corner, step, reply)
        if self._corner is not None:
            self._corner.within(self._family.units or budget.UNITS)
            keys = self._corner.keys()
        self._ids[self.canonical.of(store, self._family.start)] = 0
        self._steps.append((0, None))
        return _Node(0, store, self._family.start, keys, 0)

    def _set_up(self, corner: LuaCorner, step: Step, reply: Any) -> None:
        try:
            lines = list(snapshot.compare("reply", reply, corner.step(*step)))
        except Exception as error:
            lines = [f"crash: {error!r}"]
        if lines:
            self._found("the Lua library differs from the model", lines, 0, step.op)

    # ---- edges

    def _expand(self, node: _Node) -> Iterator[_Node]:
        """Follow every edge of a state; give the states that are new."""
        if self._corner is not None:
            self._corner.load(node.keys)
            if lines := self._corner.differences_of_events(node.seq, node.store):
                self._found("the Lua library reads other events than the model", lines, node.id, None)
        self._graph.add(node.id, node.store)
        if self._strays:
            yield from self._wait(node)
        spare = Spare(node.store)
        for op in self.moves.of(node.store, node.now):
            yield from self._edge(node, op, spare)
        if self._family.calls and self._corner is not None:
            self._try_calls(self._corner, node)
        if not self._strays:
            yield from self._wait(node)

    def _wait(self, node: _Node) -> Iterator[_Node]:
        """Let the clock go on by a step."""
        self.result.edges += 1
        later = _Node(0, node.store, node.now + self._family.step, node.keys, node.store.seq)
        yield from self._arrive(node, None, later, live.TICK)

    def _edge(self, node: _Node, op: Operation, spare: Spare) -> Iterator[_Node]:
        store = node.store if op.spec.reads else spare.take()
        self.result.edges += 1
        try:
            reply = engine.step(store, node.now, op)
        except Exception as error:
            self._found("crash of the model", [repr(error)], node.id, op)
            return
        same = changes_nothing(node.store, op, reply)
        if same:
            self.result.refused += 1
            if not op.spec.reads and not spare.give_back(store):
                lines = snapshot.difference(snapshot.of(node.store), snapshot.of(store))
                if lines:
                    self._found("changed although refused", lines, node.id, op)
        if self._corner is not None and (self._is_compared(op) or (not same and self._is_new(store, node.now))):
            self._compare(self._corner, node, op, reply, store)
            if self._shapes is not None and self._shapes.is_new(op, reply, self._corner.keyspace.touched):
                self._paths.add(node.id, Step(node.now, op), not same)
        if not same:
            yield from self._arrive(node, op, _Node(0, store, node.now, node.keys, node.store.seq), live.helps(op))
        if self._corner is not None:
            fails = not op.spec.reads and self._fails_otherwise(self._corner, (op.spec.name,))
            self._corner.undo()
            if self._family.budgets:
                self._try_budgets(self._corner, node, op, reply, store)
            if fails:
                self._try_failures(self._corner, node, (Step(node.now, op),), store)

    def _fails_otherwise(self, corner: LuaCorner, names: tuple[str, ...]) -> bool:
        """Tell whether no operations of these names were let fail that took the same ways, by the same commands."""
        if not self._family.fails:
            return False
        like = names, corner.ways, frozenset(corner.keyspace.calls.items())
        is_new = like not in self._failed
        self._failed.add(like)
        return is_new

    def _try_failures(self, corner: LuaCorner, node: _Node, steps: Sequence[Step], after: Store) -> None:
        """Let each command of an operation fail, the last one in a row, once or as long as the call lasts."""
        before = copy(node.store)
        for step in steps[:-1]:
            engine.step(before, *step)
        for lasts in (False, True):
            failing = Failing(0, lasts)
            while failing.has_failed:
                failing = Failing(failing.nth + 1, lasts)
                self.result.edges += 1
                try:
                    lines = corner.differences_of_failure(steps, failing, node.store, before, after)
                except Exception as error:
                    lines = [f"crash: {error!r}"]
                corner.undo()
                if lines:
                    self._found(f"the Lua library differs from the model after {failing}", lines, node.id, steps[-1].op)
                    return

    def _try_budgets(self, corner: LuaCorner, node: _Node, op: Operation, reply: Any, store: Store) -> None:
        """Execute an operation with budgets that are too small for it."""
        for tried in budgets.worth_trying(node.store, node.now, op, reply, store):
            with budgets.within(tried.units):
                corner.within(tried.units)
                self.result.edges += 1
                where = f" with a budget of {tried.units} units"
                self._compare(corner, node, op, tried.reply, tried.store, where)
                corner.undo()
        corner.within(budget.UNITS)

    def _is_compared(self, op: Operation) -> bool:
        return self._compared is None or op.spec.name in self._compared

    def _is_new(self, store: Store, now: int) -> bool:
        inside = self._bound is None or self._bound(store, now)
        return inside and self.canonical.of(store, now) not in self._ids

    def _compare(
        self, corner: LuaCorner, node: _Node, op: Operation, reply: Any, store: Store, where: str = ""
    ) -> None:
        what = f"the Lua library differs from the model{where}"
        try:
            lines = corner.differences(node.now, op, reply, node.store, store)
            cost = corner.cost(op.spec.name)
            if not where:
                self.result.costs.add(name_of(op), cost)
            if not lines and not where and self._server and self._server.wants(op, reply, corner.keyspace.touched):
                what = "the server differs from the model"
                lines = self._server.differences(node.keys, node.now, op, reply, node.store, store)
        except Exception as error:
            lines = [f"crash: {error!r}"]
        if lines:
            self._found(what, lines, node.id, op)

    def _try_calls(self, corner: LuaCorner, node: _Node) -> None:
        """Execute operations that write in one call, and in as many calls in a row; no new state is reached so."""
        for steps, replies, after in sequences(
            self.moves, node.store, (node.now, node.now + self._family.step), self._family.calls, self._rows
        ):
            for way, where in (corner.differences_of_call, "in the same call"), (corner.differences_of_row, "in a row"):
                self.result.edges += 1
                try:
                    lines = way(steps, replies, node.store, after)
                    names = tuple(step.op.spec.name for step in steps)
                    self.result.costs.add(name_of(steps[-1].op, where.split()[-1]), corner.cost(*names))
                except Exception as error:
                    lines = [f"crash: {error!r}"]
                fails = where == "in a row" and not lines and self._fails_otherwise(corner, names)
                corner.undo()
                if fails:
                    self._try_failures(corner, node, steps, after)
                if len(self.result.findings) >= self._most:
                    return
                if lines:
                    first = ", ".join(call(step.op) for step in steps[:-1])
                    what = f"the Lua library differs from the model after {first} {where}"
                    self._found(what, lines, node.id, steps[-1].op)
                    return

    def _arrive(self, node: _Node, op: Operation | None, to: _Node, helps: bool) -> Iterator[_Node]:
        """Look where an edge leads; give the state if it is new."""
        if self._bound is not None and not self._bound(to.store, to.now):
            self.result.outside += 1
            return
        form = self.canonical.of(to.store, to.now)
        known = self._ids.get(form)
        if known is None:
            known = self._ids[form] = len(self._ids)
            self._steps.append((node.id, None if op is None else Step(node.now, op)))
            if broken := invariants.check(snapshot.of(to.store)):
                self._found("broken invariant", [str(one) for one in broken], node.id, op)
            keys = self._corner.keys() if self._corner is not None and op is not None else node.keys
            if self._share:
                self._first[known] = to.store, to.now
            yield to._replace(id=known, keys=keys)
        elif self._share and known in self._first and self._drawn.random() < self._share:
            self._try_pair(known, node, op, to)
        if helps and known != node.id:
            self._graph.edge(node.id, known)

    # ---- pairs

    def _try_pair(self, known: int, node: _Node, op: Operation | None, to: _Node) -> None:
        """Compare what follows two states of one canonical form."""
        store, now = self._first[known]
        if store is to.store and now == to.now:
            return
        if known not in self._successors:
            self._successors[known] = self._follow(store, now)
        one, other = self._successors[known], self._follow(to.store, to.now)
        self.result.pairs += 1
        self.result.apart.update(told_apart(store, to.store))
        if one != other:
            there = [f"there: {step.now - self._family.start} {call(step.op)}" for step in self._history(known)]
            self._found("refuted canonical form", [*there, *_contrast(one - other, other - one)], node.id, op)

    def _follow(self, store: Store, now: int) -> Counter[Any]:
        """Count the kinds of edges of a state: operation, shape of the reply, canonical form of what follows."""
        found: Counter[Any] = Counter()
        mine, spare = self.canonical.of(store, now), Spare(store)
        for op in self.moves.of(store, now):
            if op.spec.reads:
                continue
            after = spare.take()
            reply = engine.step(after, now, op)
            form = mine if spare.give_back(after) else self.canonical.of(after, now)
            if form == mine and "LOCK_LOST" in op.spec.refusals:
                continue  # the reply to a call under an old token is of the past, which is not in the form
            found[op.spec.name, kind(reply), form] += 1
        found["tick", "", self.canonical.of(store, now + self._family.step)] += 1
        return found

    # ---- findings

    def _look_for_stuck(self) -> None:
        stuck = self._graph.stuck()
        self.result.stuck = len(stuck)
        if stuck:
            self._found("stuck: unfinished jobs that can never end", [], min(stuck), None)

    def _found(self, what: str, lines: list[str], at: int, op: Operation | None) -> None:
        history = self._history(at)
        if op is not None:
            history.append(Step(self._now(at), op))
        self.result.findings.append(Finding(what, lines, history))

    def _now(self, at: int) -> int:
        now = self._family.start
        while at:
            at, step = self._steps[at]
            now += self._family.step * (step is None)
        return now

    def _history(self, at: int) -> list[Step]:
        """Give the shortest history that leads to a state; ticks are in the moments of its steps."""
        steps: list[Step] = []
        while at:
            at, step = self._steps[at]
            if step is not None:
                steps.append(step)
        return self._setup + steps[::-1]


def _contrast(one: Counter[Any], other: Counter[Any]) -> list[str]:
    """Show an edge that only one of two states has, beside the most similar one of the other."""
    name, reply, form = next(iter(one or other))
    near = next((b for b in other if b[:2] == (name, reply)), None) if one else None
    lines = set(form.split("\n")) ^ set(near[2].split("\n") if near is not None else ())
    return [f"{name} -> {reply} leads elsewhere ({'only there' if one else 'only here'}):", *sorted(lines)]
