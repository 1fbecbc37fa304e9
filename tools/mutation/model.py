"""Record the suite on the model once, and execute it on mutants of the model.

A mutant is planted without reloading modules: the mutated file is compiled, and each function that differs gets the new
code object, so every module that imported the function runs the mutant. A mutated constant replaces the name in every
module that holds the same object.

Replies and events are compared after every step. Comparing states takes several times as long as executing the steps.
So states are compared after every step of a directed history (after fewer if it is long, and if there are many jobs),
and after every 4th step of a generated history, but only if a step since the last comparison ran the mutant; and after
the last step. When a state differs, the history is executed again with a comparison after every step, to report the
first step that differs.

Some histories are executed with a smaller budget. Last, steps are executed with budgets that are too small for them
(`tight`), each on a copy of the state before it.

A mutant is tried first on the histories that noticed other mutants of its file. So the step that is reported may not be
the first one of the whole suite that notices it.
"""

from __future__ import annotations

import ast
import importlib
import pickle
import signal
import sys
import types
from bisect import bisect
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from time import process_time
from typing import Any, NamedTuple, TypeVar

from qmodel.conformance.graph import budgets
from qmodel.conformance.graph.tight import Tight
from qmodel.conformance.histories.script import Named
from qmodel.conformance.subjects.base import Step
from qmodel.model import engine, snapshot
from qmodel.model.snapshot import Snapshot
from qmodel.model.state import budget
from qmodel.model.state.store import Store, events_after
from tools.mutation import python, readers
from tools.mutation.mutants import Mutant, digest
from tools.mutation.replay import Kill, Verdict

SECONDS = 3.0
"""The least limit of CPU time of a history. A long history may take as long as the right model takes with its lines
traced, which is several times as long as without.
"""

JOBS = 50
"""How many jobs each step since the last comparison of states allows: while there are more, the next one waits."""

FIRST = 20
"""How many of the histories that noticed other mutants of a file are executed before the others."""

T = TypeVar("T")

Line = tuple[str, int]
"""A file, and a line in it from 1."""

Steps = dict[int, int]
"""Steps by the number of their history: the bits of a number, the first step's being the lowest."""

ALL = -1
"""All steps of a history."""


class Shown(NamedTuple):
    """The number of a step, its reply and events, and the state after it if it is compared there."""

    at: int
    outcome: Any
    events: tuple[Any, ...]
    snapshot: Snapshot | None


class TooLong(Exception):
    """Raised when a history exceeds its time limit: the mutant probably loops for ever."""


class Recording:
    """The suite on the right model, and which steps of which histories run each line of each file."""

    def __init__(
        self,
        suite: Sequence[Named],
        tight: Sequence[tuple[Named, list[Tight]]] = (),
        small: Sequence[tuple[int, Named]] = (),
    ) -> None:
        self.budgets = [budget.UNITS for _ in suite] + [units for units, _ in small]
        self.suite = suite = [*suite, *(named for _, named in small)]
        self.tight = [found for _, found in tight]
        self.digests = [digest(*named, *self._unusual(number)) for number, named in enumerate(suite)]
        self.digests += [digest(*named, [(one.at, one.units) for one in found]) for named, found in tight]
        self.noticed: dict[str, dict[int, None]] = {}
        """The histories that noticed mutants of each file, the last one last."""
        self.texts = {name: python.read(name) for name in python.MUTATED}
        self.shown: list[list[Shown]] = []
        self.first: list[int] = []
        self.limits: list[float] = []
        """For each history, the CPU time after which a mutant counts as one that loops forever."""
        self.running: dict[Line, Steps] = {}
        total = 0
        for number, named in enumerate(suite):
            self.first.append(total)
            total += len(named.steps)
            began = process_time()
            with budgets.within(self.budgets[number]), _traced() as lines:
                seen = _execute(named.steps, _looks(named))
                self.shown.append([])
                for shown in seen:
                    self._note(number, lines, shown.at)
                    self.shown[-1].append(shown)
            self.limits.append(max(SECONDS, process_time() - began))
        for number, found in enumerate(self.tight, len(suite)):
            self.first.append(total)
            total += len(found)
            with _traced() as lines:
                for at, one in enumerate(found):
                    assert one.agrees()
                    self._note(number, lines, at)
        self.first.append(total)
        self.all_steps: Steps = dict.fromkeys(range(len(suite) + len(tight)), ALL)

    def _note(self, number: int, lines: set[Line], at: int) -> None:
        """Note which lines a step of a history has run."""
        for line in lines:
            steps = self.running.setdefault(line, {})
            steps[number] = steps.get(number, 0) | 1 << at
        lines.clear()

    def histories_of(self, mutant: Mutant) -> list[int]:
        """List the histories that run a mutant's statement."""
        return sorted(self.steps_of(mutant))

    def _unusual(self, number: int) -> list[int]:
        """Give the budget of a history, if it is not the usual one."""
        units = self.budgets[number]
        return [] if units == budget.UNITS else [units]

    def _steps(self, number: int) -> list[Step]:
        """Give the steps of a history as they were recorded: a mutant with swapped arguments changes the operation."""
        return own(self.suite[number].steps)

    def number(self, kill: Kill) -> int:
        """Give the number of the history in which a mutant was noticed."""
        return bisect(self.first, kill.step) - 1

    def steps_of(self, mutant: Mutant, passed: Container[str] = ()) -> Steps:
        """Find the steps that run a mutant's statement, but for histories with one of these digests.

        If it runs while modules load, these are the steps that run a line that reads its value, or all if it has no
        name.
        """
        found = self._running(_lines(mutant))
        if not found:
            lines = lines_of(mutant)
            found = self.all_steps if lines is None else self._running(lines)
        return {number: steps for number, steps in found.items() if self.digests[number] not in passed}

    def _running(self, lines: Iterable[Line]) -> Steps:
        """Find the steps that run any of these lines."""
        found: Steps = {}
        for line in lines:
            for number, steps in self.running.get(line, {}).items():
                found[number] = found.get(number, 0) | steps
        return found

    def judge(self, mutant: Mutant, *, most: int = 1, steps: Steps | None = None) -> Verdict:
        """Execute a mutant until `most` histories have noticed it, or to the end of the suite.

        `steps` are those that run it, if they are known to be others than the suite's.
        """
        verdict = Verdict()
        with planted(mutant.file, mutant.apply(self.texts[mutant.file])) as wrong:
            if wrong:
                verdict.kills.append(Kill(0, wrong))
                return verdict
            steps = self.steps_of(mutant) if steps is None else steps
            self._judge(verdict, most, steps, self._ordered(steps, mutant.file), mutant.file)
        for kill in [kill for kill in verdict.kills if kill.by == "state"]:
            verdict.kills[verdict.kills.index(kill)] = self._exactly(mutant, kill)
        return verdict

    def _ordered(self, steps: Steps, file: str) -> list[int]:
        """Order histories: first the last FIRST of those that noticed mutants of a file, then as the suite does."""
        before = list(reversed(self.noticed.get(file, ())))[:FIRST]
        first = [number for number in before if number in steps]
        return [*first, *sorted(steps.keys() - set(first))]

    def judge_texts(self, texts: dict[str, str], *, most: int = 1) -> Verdict:
        """Do the same for a model with any files replaced."""
        verdict = Verdict()
        from contextlib import ExitStack

        with ExitStack() as stack:
            for file, text in texts.items():
                assert not stack.enter_context(planted(file, text))
            self._judge(verdict, most, self.all_steps, range(len(self.suite)))
        return verdict

    def _judge(self, verdict: Verdict, most: int, steps: Steps, order: Iterable[int], file: str = "") -> None:
        for number in order:
            found = self._history(number, verdict, steps[number])
            if found is not None:
                verdict.kills.append(found)
                noticed = self.noticed.setdefault(file, {})
                noticed.pop(number, None)
                noticed[number] = None
                if len(verdict.kills) >= most or found.by == "limit":
                    return

    def _history(self, number: int, verdict: Verdict, steps: int) -> Kill | None:
        if number >= len(self.suite):
            return self._with_small_budgets(number, verdict, steps)
        shown = self.shown[number]
        at = 0
        try:
            with budgets.within(self.budgets[number]), _limited(self.limits[number]):
                for seen in _execute(self._steps(number), _looks_again(shown, steps)):
                    at = seen.at
                    verdict.steps += 1
                    by = _differs(shown[at], seen)
                    if by:
                        return Kill(self.first[number] + at, by)
        except TooLong:
            return Kill(self.first[number], "limit")
        except Exception:
            return Kill(self.first[number] + at, "error")
        return None

    def _with_small_budgets(self, number: int, verdict: Verdict, steps: int) -> Kill | None:
        for at, one in enumerate(self.tight[number - len(self.suite)]):
            if not steps >> at & 1:
                continue
            verdict.steps += 1
            try:
                with _limited(SECONDS):
                    if not one._replace(step=own(one.step)).agrees():
                        return Kill(self.first[number] + at, "budget")
            except TooLong:
                return Kill(self.first[number], "limit")
            except Exception:
                return Kill(self.first[number] + at, "error")
        return None

    def _exactly(self, mutant: Mutant, kill: Kill) -> Kill:
        """Find the first step after which the state differs, for a difference noticed some steps later."""
        number = self.number(kill)
        length = kill.step - self.first[number] + 1
        with budgets.within(self.budgets[number]):
            right = [shown.snapshot for shown in _execute(self._steps(number)[:length], _always)]
        at = 0
        with planted(mutant.file, mutant.apply(self.texts[mutant.file])), budgets.within(self.budgets[number]):
            try:
                for at, shown in enumerate(_execute(self._steps(number)[:length], _always)):
                    if shown.snapshot != right[at]:
                        return Kill(self.first[number] + at, "state")
            except Exception:  # the state cannot be read before the step at which it was compared
                return Kill(self.first[number] + at + 1, "error")
        return kill


def lines_of(mutant: Mutant) -> set[Line] | None:
    """List the lines where a mutant can differ from the right code; None means any line."""
    return set(_lines(mutant)) if _in_function(mutant) else readers.lines(mutant.file, mutant.line)


def _lines(mutant: Mutant) -> Iterator[Line]:
    return ((mutant.file, line) for line in range(mutant.first, mutant.last + 1))


Looks = Callable[[int, Store], bool]
"""Tells whether the state is compared after a step: its number, and the state."""


def _looks(named: Named) -> Looks:
    """Say where states are compared: the more jobs there are, the less often."""
    drawn, long = named.name.startswith("mutation"), len(named.steps) >= 200 or "thousand" in named.name
    least = 4 if drawn else 10 if long else 1
    last = -1

    def looks(at: int, store: Store) -> bool:
        nonlocal last
        if at + 1 < len(named.steps) and ((at + 1) % least or (at - last) * JOBS < len(store.jobs)):
            return False
        last = at
        return True

    return looks


def _looks_again(shown: Sequence[Shown], steps: int) -> Looks:
    """Compare where the right model was looked at, unless none of these steps came since the last comparison."""
    last = -1

    def looks(at: int, _: Store) -> bool:
        nonlocal last
        if shown[at].snapshot is None or (at + 1 < len(shown) and not steps >> (last + 1) & ((1 << (at - last)) - 1)):
            return False
        last = at
        return True

    return looks


def own(found: T) -> T:
    """Copy a step, or operations, for a mutant, which may change them."""
    copied: T = pickle.loads(pickle.dumps(found))
    return copied


def _always(*_: Any) -> bool:
    return True


def _execute(steps: Sequence[Step], looks: Looks) -> Iterator[Shown]:
    store = Store()
    for at, (now, op) in enumerate(steps):
        seq = store.seq
        outcome = engine.step(store, now, op)
        events = events_after(store, seq, store.seq - seq)
        yield Shown(at, outcome, events, snapshot.of(store) if looks(at, store) else None)


@contextmanager
def _traced() -> Iterator[set[Line]]:
    """Collect the lines of the mutated files that run within this context."""
    paths = {str(python.ROOT / f"{name}.py"): name for name in python.MUTATED}
    lines: set[Line] = set()

    def trace(frame: types.FrameType, event: str, _: Any) -> Any:
        name = paths.get(frame.f_code.co_filename)
        if name is None:
            return None

        def local(frame: types.FrameType, event: str, _: Any) -> Any:
            lines.add((name, frame.f_lineno))
            return local

        return local(frame, event, _)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)


def _differs(one: Shown, other: Shown) -> str:
    if one.outcome != other.outcome or type(one.outcome) is not type(other.outcome):
        return "reply"
    if one.outcome is not other.outcome and repr(one.outcome) != repr(other.outcome):
        return "reply"  # 1 and True, 1 and 1.0
    if one.events != other.events:
        return "events"
    return "state" if other.snapshot is not None and one.snapshot != other.snapshot else ""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# ---- planting


class Change(NamedTuple):
    """One thing that planting a mutant replaces: the code of a function, its defaults, or the value of a name."""

    holder: Any
    name: str
    right: Any
    wrong: Any


@contextmanager
def planted(file: str, text: str) -> Iterator[str]:
    """Run a file with another text within this context; yields "compile" or "load" if the text cannot be loaded."""
    try:
        found = changes(file, text)
    except SyntaxError:
        yield "compile"
        return
    except Exception:
        yield "load"
        return
    with in_place(found):
        yield ""


@contextmanager
def in_place(found: Sequence[Change]) -> Iterator[None]:
    """Run with these changes within this context."""
    for holder, name, _, wrong in found:
        setattr(holder, name, wrong)
    try:
        yield
    finally:
        for holder, name, right, _ in found:
            setattr(holder, name, right)


def changes(file: str, text: str) -> list[Change]:
    """Compile another text of a file, or the one definition in which it differs, and list what planting it changes."""
    module, path = module_of(file), str(python.ROOT / f"{file}.py")
    part = _definition(file, text)
    code = compile(text if part is None else part, path, "exec")
    constants = _constants(module, text, path) if part is None else ()
    return [*constants, *functions(module, code)]


def _definition(file: str, text: str) -> str | None:
    """Give the definition in which a text differs from a file's, at its place, or None if more than its body does."""
    right = python.read(file)
    begin, end = _differing(right, text)
    for first, body, last, line in _definitions(file):
        if body <= begin and end <= last:
            return "\n" * (line - 1) + text[first : last + len(text) - len(right)]
    return None


def _differing(right: str, text: str) -> tuple[int, int]:
    """Give the place in a text at which another one begins to differ, and the one from which they are equal again."""
    begin = _alike(right, text)
    return begin, len(right) - _alike(right[begin:][::-1], text[begin:][::-1])


def _alike(one: str, other: str) -> int:
    """Count the characters with which two texts begin alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


@cache
def _definitions(file: str) -> list[tuple[int, int, int, int]]:
    """List the functions of a file: where each begins, its body, and its end, as places in the text; and its line."""
    text = python.read(file)
    lines = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    return [
        (lines[node.lineno - 1], lines[node.body[0].lineno - 1], lines[node.end_lineno or 0], node.lineno)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    ]


def module_of(file: str) -> types.ModuleType:
    """Give the module of a file."""
    return importlib.import_module("qmodel." + file.replace("/", "."))


def functions(module: types.ModuleType, code: types.CodeType) -> Iterator[Change]:
    """List the functions of a module that have other code in another code of its file."""
    return _functions(vars(module), code)


def _functions(names: Any, code: types.CodeType) -> Iterator[Change]:
    for inner in code.co_consts:
        if not isinstance(inner, types.CodeType):
            continue
        known = names.get(inner.co_name)
        if isinstance(known, types.FunctionType) and inner != known.__code__:
            yield Change(known, "__code__", known.__code__, inner)
        elif isinstance(known, type):
            yield from _functions(vars(known), inner)


def _constants(module: types.ModuleType, text: str, path: str) -> Iterator[Change]:
    """Execute the changed top-level assignments again, and give their names in the module and its importers.

    Argument defaults belong to functions and are replaced there.
    """
    before, after = ast.parse(python.read(_name_of(path))).body, ast.parse(text, path).body
    if gone := _assigned(before) - _assigned(after):
        raise NameError(f"nothing assigns {gone}")
    right = {ast.unparse(node) for node in before}
    scope = dict(vars(module))
    changed = False
    for node in after:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            changed = changed or ast.unparse(node) not in right
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names = readers.assigned(target)
            if changed and names:  # and those after it, which may be made from it
                exec(compile(ast.Module([node], []), path, "exec"), scope)
                for name in names:
                    yield from _holders(module, name, scope[name])
        elif isinstance(node, ast.FunctionDef) and node.args.defaults and ast.unparse(node) not in right:
            exec(compile(ast.Module([node], []), path, "exec"), scope)
            function = vars(module)[node.name]
            yield Change(function, "__defaults__", function.__defaults__, scope[node.name].__defaults__)


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """List the names that top-level statements assign."""
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    return {name for target in targets for name in readers.assigned(target)}


def _name_of(path: str) -> str:
    return path.removesuffix(".py").rpartition("qmodel/")[2]


def _holders(module: types.ModuleType, name: str, wrong: Any) -> Iterator[Change]:
    """List the modules that hold the value of a name: its own, and those of the model that import it."""
    right = vars(module)[name]
    for other in list(sys.modules.values()):
        of_model = other is module or getattr(other, "__name__", "").startswith("qmodel.model.")
        if of_model and vars(other).get(name) is right:
            yield Change(other, name, right, wrong)


def _in_function(mutant: Mutant) -> bool:
    for first, body, last in _functions_of(mutant.file):
        if first <= mutant.line <= last:
            return body <= mutant.line  # the defaults of arguments stand before the body
    return False


@cache
def _functions_of(file: str) -> list[tuple[int, int, int]]:
    """List the functions of a file: the first line of each, that of its body, and the last."""
    return [
        (node.lineno, node.body[0].lineno, node.end_lineno or 0)
        for node in ast.walk(ast.parse(python.read(file)))
        if isinstance(node, ast.FunctionDef)
    ]
