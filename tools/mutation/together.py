"""Judges that compare many mutants on every edge of one search.

A search of the right code visits the states; on each edge every mutant whose lines ran there executes the same
operation in the same state. As long as a mutant is not noticed, its states equal the right ones, so this finds what a
search of the mutant alone would find, and the search is paid once for all mutants. A search takes a judge in place of
the library that it compares the model with (`LuaCorner`): no mutant ends it, those that are noticed leave the judge.

A mutant may leave other content that no reply and no snapshot shows, and that shows later. Where that happened is kept
(`silent`), and has to be searched on the mutant's own states. So has one of the library that takes another way, or
calls another number of commands (`dearer`): its search shows whether its sums differ from the table (costs.py).
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

from qmodel.backends import bundle
from qmodel.backends.embedded.keyspace import same
from qmodel.conformance.graph.compare import MOST_EVENTS, VERB, Cost, Keys, LuaCorner, with_units
from qmodel.conformance.graph.failures import Failing
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX
from qmodel.contract.operations import Events, Operation
from qmodel.model import engine, snapshot
from qmodel.model.copies import are_equal, copy
from qmodel.model.state import budget
from qmodel.model.state.store import Store, events_after
from qmodel.wire import codec
from tools.mutation import model, python, replay
from tools.mutation.loaded import LIMIT
from tools.mutation.mutants import Mutant

STUCK: Final = 20.0
"""A mutant on which one edge takes more seconds of the processor loops for ever."""

SILENCES: Final = 50
"""After so many edges on which a mutant leaves other content silently, it is no longer tried in this search."""

_MARK: Final = "_ran"
"""The name under which a marked file of the model finds the function that notes lines."""

_Words = tuple[str, tuple[str], list[str]]
"""A call: its function, keys and arguments."""

Loaded = dict[Mutant | None, LuaCorner]
"""The libraries of mutants, and the right one under None."""

Place = tuple[str, int] | int
"""A file of the model and one of its lines, or a line of the library."""


class Judge(LuaCorner):
    """What judges have in common: the mutants that are left, by the lines where they can differ."""

    def __init__(self, mutants: Iterable[Mutant]) -> None:
        self.left = dict.fromkeys(mutants, 0)
        """The mutants that nothing has noticed so far, and how often they left other content silently."""
        self.dearer = set[Mutant]()
        """Those that cost otherwise on an edge."""
        self._by_place: dict[Place, list[Mutant]] = {}
        self._anywhere: list[Mutant] = []
        for mutant in self.left:
            lines = self.places(mutant)
            if lines is None:
                self._anywhere.append(mutant)
            for place in lines or ():
                self._by_place.setdefault(place, []).append(mutant)

    @property
    def silent(self) -> list[Mutant]:
        """The mutants that have to be searched by themselves."""
        return [mutant for mutant, times in self.left.items() if times]

    def places(self, mutant: Mutant) -> Iterable[Place] | None:
        """List the lines where a mutant can differ; None means all."""
        raise NotImplementedError

    def _chosen(self, ran: Iterable[Mutant]) -> list[Mutant]:
        """List those that are left of the mutants whose lines ran."""
        found = dict.fromkeys((*ran, *self._anywhere))
        return [mutant for mutant in found if mutant in self.left and self.left[mutant] < SILENCES]

    def _note(self, mutant: Mutant, seen: bool | None) -> None:
        """Note what was seen of a mutant: a difference, none, or one that shows nowhere (None)."""
        if seen:
            del self.left[mutant]
        elif seen is None:
            self.left[mutant] += 1


class ModelJudge(Judge):
    """Mutants of the model, beside the right model, which stands for the library: no edge of the graph differs."""

    def __init__(self, mutants: Iterable[Mutant]) -> None:
        super().__init__(mutants)
        self._store = Store()
        self._ran: set[Mutant] = set()
        self._marked = ExitStack()
        self._changes: dict[Mutant, list[model.Change]] = {}

    def places(self, mutant: Mutant) -> Iterable[Place] | None:
        """List the lines where a mutant can differ."""
        return model.lines_of(mutant)

    def __enter__(self) -> ModelJudge:
        """Let the functions of the right model tell which lines of mutants run, until the context ends."""
        for file in sorted({place[0] for place in self._by_place if isinstance(place, tuple)}):
            self._marked.enter_context(model.in_place(list(self._marks(file))))
        for one in list(self.left):
            try:
                self._changes[one] = model.changes(one.file, one.apply(python.read(one.file)))
            except Exception:  # it cannot be loaded
                self._note(one, True)
        return self

    def __exit__(self, *_: object) -> None:
        self._marked.close()

    def _marks(self, file: str) -> Iterator[model.Change]:
        """List the changes by which a file tells which of its lines run."""
        groups = {
            place[1]: found for place, found in self._by_place.items() if isinstance(place, tuple) and place[0] == file
        }
        module = model.module_of(file)
        tree = ast.fix_missing_locations(_Marks(groups).visit(ast.parse(python.read(file))))
        yield model.Change(module, _MARK, None, lambda *lines: self._ran.update(*map(groups.__getitem__, lines)))
        yield from model.functions(module, compile(tree, str(module.__file__), "exec"))

    def within(self, units: int) -> None:
        """Do nothing: mutants have the budget of the right model."""

    def load(self, keys: Keys, names: Sequence[bytes] = ()) -> None:
        """Take a state; the first one is empty, for the setup."""
        self._store = Store()

    def step(self, now: int, op: Operation) -> Any:
        """Execute an operation of the setup."""
        return engine.step(self._store, now, op)

    def begin(self) -> None:
        """Begin with an empty store."""
        self._store = Store()

    def cost(self, *names: str) -> Cost:
        """Give no cost: the model calls no commands."""
        return VERB, 0

    def undo(self) -> None:
        """Forget which lines ran on the edge."""
        self._ran.clear()

    def keys(self) -> Keys:
        """Give no keys: the model has its store."""
        return {}

    def differences(self, now: int, op: Operation, reply: Any, before: Store, after: Store) -> list[str]:
        """Try the mutants on an edge."""
        for mutant in self._chosen(self._ran):
            self._note(mutant, self._differs(mutant, now, op, reply, before, after))
        return []

    def differences_of_call(self, *_: Any) -> list[str]:
        """Try nothing: the model knows no calls of several operations."""
        return []

    def differences_of_row(self, *_: Any) -> list[str]:
        """Try nothing: each operation of a row is tried on its edge."""
        return []

    def differences_of_events(self, seq: int, store: Store) -> list[str]:
        """Try nothing: events are compared on the edge."""
        return []

    def _differs(self, mutant: Mutant, now: int, op: Operation, reply: Any, before: Store, after: Store) -> bool | None:
        store = copy(before)
        try:
            with model.in_place(self._changes[mutant]), model._limited(STUCK):
                found = engine.step(store, *model.own(Step(now, op)))
        except Exception:
            return True
        if type(reply) is not type(found) or reply != found or repr(reply) != repr(found):
            return True
        if are_equal(after, store):
            return False
        if events_after(after, before.seq, MOST_EVENTS) != events_after(store, before.seq, MOST_EVENTS):
            return True
        return True if snapshot.difference(snapshot.of(after), snapshot.of(store)) else None


class _Marks(ast.NodeTransformer):
    """Puts a call before each statement of a function that has lines with mutants."""

    def __init__(self, lines: Container[int]) -> None:
        self._lines, self._inside = lines, False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outside, self._inside = self._inside, True
        found = self.generic_visit(node)
        self._inside = outside
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if self._inside and isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, [new for one in value for new in (*self._mark(one), one)])
        return super().generic_visit(node)

    def _mark(self, node: ast.stmt) -> Iterator[ast.stmt]:
        inner = [one.lineno for one in getattr(node, "body", ())]
        last = min(inner) - 1 if inner else node.end_lineno or node.lineno
        lines = [line for line in range(node.lineno, max(last, node.lineno) + 1) if line in self._lines]
        if lines:
            call = ast.Call(ast.Name(_MARK, ast.Load()), [ast.Constant(line) for line in lines], [])
            yield ast.copy_location(ast.Expr(call), node)


class LuaJudge(Judge):
    """Mutants of the library, beside the right library, with a budget of so many units; 0 for the usual one.

    `loaded` keeps the libraries with this budget for other searches: to compile one takes as long as 200 edges.
    """

    def __init__(
        self, recorded: replay.Recording, mutants: Iterable[Mutant], units: int = 0, loaded: Loaded | None = None
    ) -> None:
        self._recorded, self._units = recorded, units
        Judge.__init__(self, mutants)
        LuaCorner.__init__(self, with_units(None, units))
        self._within = units or budget.UNITS
        self._subject.host.coverage(True)
        self._state = next(iter(self._subject.host._libraries.values()))
        self._cost: Cost = (VERB, 0)
        """The cost of the edge at hand."""
        self._mutated: Loaded = {} if loaded is None else loaded
        """The library of each mutant, and beside them the right one, on which an edge can be executed once more."""
        self._at: dict[Mutant | None, tuple[Keys, int]] = {}
        """The state and the budget that these have."""

    def places(self, mutant: Mutant) -> Iterable[Place] | None:
        """List the lines where a mutant can differ."""
        return self._recorded.lines_of(mutant)

    def within(self, units: int) -> None:
        """Set the budget of an operation."""
        super().within(units)
        self._within = units

    def cost(self, *names: str) -> Cost:
        """Give the cost of the edge that was tried last."""
        return self._cost

    def differences(self, now: int, op: Operation, reply: Any, before: Store, after: Store) -> list[str]:
        """Execute the right library, then the mutants."""
        try:
            args = codec.encode(op, now)
        except codec.Unencodable:
            return []
        self._try(
            [_words(op, args)],
            [op.spec.name],
            lambda corner: LuaCorner.differences(corner, now, op, reply, before, after),
        )
        return []

    def differences_of_call(self, steps: Sequence[Step], replies: list[Any], before: Store, after: Store) -> list[str]:
        """Do the same with a call of several operations."""
        args = list[str]()
        for now, op in steps:
            own = codec.encode(op, now)
            args += op.spec.name, str(len(own)), *own
        self._try(
            [(bundle.CALLS, (PREFIX,), args)],
            [step.op.spec.name for step in steps],
            lambda corner: LuaCorner.differences_of_call(corner, steps, replies, before, after),
        )
        return []

    def differences_of_row(self, steps: Sequence[Step], replies: list[Any], before: Store, after: Store) -> list[str]:
        """Do the same with as many calls in a row."""
        self._try(
            [_words(op, codec.encode(op, now)) for now, op in steps],
            [step.op.spec.name for step in steps],
            lambda corner: LuaCorner.differences_of_row(corner, steps, replies, before, after),
        )
        return []

    def differences_of_failure(
        self, steps: Sequence[Step], failing: Failing, first: Store, before: Store, after: Store
    ) -> list[str]:
        """Do the same with a command that fails in the last of several calls; its lines count."""
        for step in steps[:-1]:
            self._subject.step(*step)
        self._state.forget()
        LuaCorner.differences_of_failure(self, steps[-1:], failing, first, before, after)
        for mutant in self._chosen(mutant for line in self._state.lines() for mutant in self._by_place.get(line, ())):
            again = Failing(failing.nth, failing.lasts)
            self._note(mutant, self._repairs_otherwise(mutant, steps, again, first, before, after))
        return []

    def _repairs_otherwise(self, mutant: Mutant, steps: Sequence[Step], failing: Failing, *stores: Store) -> bool:
        try:
            corner = self._corner_of(mutant)
            return bool(corner.differences_of_failure(steps, failing, *stores))
        except Exception:
            return True
        finally:
            if mutant in self._mutated:
                self._mutated[mutant].undo()

    def differences_of_events(self, seq: int, store: Store) -> list[str]:
        """Do the same with a read of the newest events."""
        told = events_after(store, seq, MOST_EVENTS)
        self.differences(0, Events(seq, MOST_EVENTS), told, store, store)
        self.undo()
        return []

    def _try(self, calls: Sequence[_Words], names: Sequence[str], differences: Any) -> None:
        self._state.forget()
        reply = [self._subject.host.fcall(*words) for words in calls]
        chosen = self._chosen(mutant for line in self._state.lines() for mutant in self._by_place.get(line, ()))
        self._cost = super().cost(*names)
        written = self.keyspace.changed() if chosen else {}
        for mutant in chosen:
            self._note(mutant, self._differs(mutant, calls, names, reply, written, differences))

    def _differs(
        self,
        mutant: Mutant,
        calls: Sequence[_Words],
        names: Sequence[str],
        reply: Any,
        written: Keys,
        differences: Any,
    ) -> bool | None:
        try:
            corner = self._corner_of(mutant)
            found = [corner._subject.host.fcall(*words) for words in calls]
        except Exception:
            return True
        equal, cost = bool(found == reply) and self._is_same(corner, written), corner.cost(*names)
        corner.undo()
        if equal:
            if cost != self._cost and mutant not in self.dearer and self._is_dearer(mutant, calls, names):
                self.dearer.add(mutant)
            return False
        try:
            return True if differences(corner) else None
        except Exception:
            return True
        finally:
            corner.undo()

    def _is_dearer(self, mutant: Mutant, calls: Sequence[_Words], names: Sequence[str]) -> bool:
        """Tell whether a mutant costs otherwise where it and the right library know the same of the state at hand."""
        corners = self._corner_of(None), self._corner_of(mutant)
        for corner in (*corners, *corners):
            corner.meet([*corners[0].names, *corners[1].names])
        return self._cost_on(corners[0], calls, names) != self._cost_on(corners[1], calls, names)

    @staticmethod
    def _cost_on(corner: LuaCorner, calls: Sequence[_Words], names: Sequence[str]) -> Cost:
        for words in calls:
            corner._subject.host.fcall(*words)
        cost = corner.cost(*names)
        corner.undo()
        return cost

    def _is_same(self, corner: LuaCorner, written: Keys) -> bool:
        data = corner.keyspace._data
        more = corner.keyspace.touched - written.keys()
        return all(same(data.get(key), value) for key, value in written.items()) and all(
            same(data.get(key), self._keys.get(key)) for key in more
        )

    def _corner_of(self, mutant: Mutant | None) -> LuaCorner:
        """Give a mutant's library, or the right one, in the state at hand; fails if it cannot be loaded."""
        corner = self._mutated.get(mutant)
        if corner is None:
            texts = {mutant.file: mutant.apply(self._recorded.texts[mutant.file])} if mutant is not None else None
            corner = self._mutated[mutant] = LuaCorner(with_units(texts, self._units))
            corner.limit(LIMIT)
        if mutant not in self._at:
            corner.begin()
        keys, units = self._at.get(mutant, (None, 0))
        if keys is not self._keys:
            corner.load(self._keys, self.names)
        if units != self._within:
            corner.within(self._within)
        self._at[mutant] = self._keys, self._within
        return corner


def _words(op: Operation, args: list[str]) -> _Words:
    return bundle.function_name(op.spec.name), (PREFIX,), args
