"""Record the suite on the model once, and execute it on mutants of the model.

A mutant is planted without reloading modules: the mutated file is compiled, and each function that differs gets the new
code object, so every module that imported the function runs the mutant. A mutated constant replaces the name in every
module that holds the same object.

Replies and events are compared after every step. Comparing states is slower. So states are compared after every step of
a directed history (every 10th step if it is long), after every 4th step of a generated history, and after the last
step. When a state differs, the history is executed again with a comparison after every step, to report the first step
that differs.
"""

from __future__ import annotations

import ast
import importlib
import signal
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from typing import Any, NamedTuple

from qmodel.conformance.histories.script import Named
from qmodel.conformance.subjects.base import Step
from qmodel.model import engine, snapshot
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store, events_after
from tools.mutation import python, readers
from tools.mutation.mutants import Mutant
from tools.mutation.replay import Kill, Verdict

SECONDS = 3.0
"""The least limit of CPU time of a history. A long history may take as long as the right model takes with its lines
traced, which is several times as long as without.
"""


class Shown(NamedTuple):
    """The reply and events of a step, and the state after it if it is compared there."""

    outcome: Any
    events: tuple[Any, ...]
    snapshot: Snapshot | None


class TooLong(Exception):
    """Raised when a history exceeds its time limit: the mutant probably loops for ever."""


class Recording:
    """The suite on the right model, and which histories run each line of each file."""

    def __init__(self, suite: Sequence[Named]) -> None:
        self.suite = suite
        self.texts = {name: python.read(name) for name in python.MUTATED}
        self.shown: list[list[Shown]] = []
        self.first: list[int] = []
        self.limits: list[float] = []
        """For each history, the CPU time after which a mutant counts as one that loops forever."""
        self.running: dict[tuple[str, int], set[int]] = {}
        total = 0
        for number, named in enumerate(suite):
            self.first.append(total)
            total += len(named.steps)
            began = process_time()
            with self._traced(number):
                shown = list(_execute(named.steps, _stride(named)))
            self.shown.append(shown)
            self.limits.append(max(SECONDS, process_time() - began))
        self.first.append(total)

    @contextmanager
    def _traced(self, number: int) -> Iterator[None]:
        paths = {str(python.ROOT / f"{name}.py"): name for name in python.MUTATED}
        running = self.running

        def trace(frame: types.FrameType, event: str, _: Any) -> Any:
            name = paths.get(frame.f_code.co_filename)
            if name is None:
                return None

            def local(frame: types.FrameType, event: str, _: Any) -> Any:
                running.setdefault((name, frame.f_lineno), set()).add(number)
                return local

            return local(frame, event, _)

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(before)

    def histories_of(self, mutant: Mutant) -> list[int]:
        """List the histories that run a mutant's statement.

        If it runs while modules load, list those that run a line that reads its value, or all if it has no name.
        """
        found = self._running(_lines(mutant))
        if not found:
            lines = lines_of(mutant)
            found = set(range(len(self.suite))) if lines is None else self._running(lines)
        return sorted(found)

    def _running(self, lines: Iterable[tuple[str, int]]) -> set[int]:
        """Find the histories that run any of these lines."""
        return set().union(*(self.running.get(line, ()) for line in lines))

    def judge(self, mutant: Mutant, *, most: int = 1, histories: Sequence[int] | None = None) -> Verdict:
        """Execute a mutant until `most` histories have noticed it, or to the end of the suite."""
        verdict = Verdict()
        with planted(mutant.file, mutant.apply(self.texts[mutant.file])) as wrong:
            if wrong:
                verdict.kills.append(Kill(0, wrong))
                return verdict
            self._judge(verdict, most, self.histories_of(mutant) if histories is None else histories)
        for kill in [kill for kill in verdict.kills if kill.by == "state"]:
            verdict.kills[verdict.kills.index(kill)] = self._exactly(mutant, kill)
        return verdict

    def judge_texts(self, texts: dict[str, str], *, most: int = 1) -> Verdict:
        """Do the same for a model with any files replaced."""
        verdict = Verdict()
        from contextlib import ExitStack

        with ExitStack() as stack:
            for file, text in texts.items():
                assert not stack.enter_context(planted(file, text))
            self._judge(verdict, most, range(len(self.suite)))
        return verdict

    def _judge(self, verdict: Verdict, most: int, histories: Sequence[int]) -> None:
        for number in histories:
            found = self._history(number, verdict)
            if found is not None:
                verdict.kills.append(found)
                if len(verdict.kills) >= most or found.by == "limit":
                    return

    def _history(self, number: int, verdict: Verdict) -> Kill | None:
        shown = self.shown[number]
        at = 0
        try:
            with _limited(self.limits[number]):
                for at, seen in enumerate(_execute(self.suite[number].steps, _stride(self.suite[number]))):
                    verdict.steps += 1
                    by = _differs(shown[at], seen)
                    if by:
                        return Kill(self.first[number] + at, by)
        except TooLong:
            return Kill(self.first[number], "limit")
        except Exception:
            return Kill(self.first[number] + at, "error")
        return None

    def _exactly(self, mutant: Mutant, kill: Kill) -> Kill:
        """Find the first step after which the state differs, for a difference noticed some steps later."""
        number = max(n for n in range(len(self.suite)) if self.first[n] <= kill.step)
        steps = self.suite[number].steps[: kill.step - self.first[number] + 1]
        right = [shown.snapshot for shown in _execute(steps, 1)]
        with planted(mutant.file, mutant.apply(self.texts[mutant.file])):
            wrong = [shown.snapshot for shown in _execute(steps, 1)]
        for at, (one, other) in enumerate(zip(right, wrong, strict=True)):
            if one != other:
                return Kill(self.first[number] + at, "state")
        return kill


def lines_of(mutant: Mutant) -> set[tuple[str, int]] | None:
    """List the lines where a mutant can differ from the right code; None means any line."""
    return set(_lines(mutant)) if _in_function(mutant) else readers.lines(mutant.file, mutant.line)


def _lines(mutant: Mutant) -> Iterator[tuple[str, int]]:
    return ((mutant.file, line) for line in range(mutant.first, mutant.last + 1))


def _stride(named: Named) -> int:
    """Give the distance, in steps, between two comparisons of the state."""
    if named.name.startswith("mutation"):
        return 4
    return 1 if len(named.steps) < 200 and "thousand" not in named.name else 10


def _execute(steps: Sequence[Step], stride: int) -> Iterator[Shown]:
    store = Store()
    for number, (now, op) in enumerate(steps, 1):
        seq = store.seq
        outcome = engine.step(store, now, op)
        events = events_after(store, seq, store.seq - seq)
        looked = number % stride == 0 or number == len(steps)
        yield Shown(outcome, events, snapshot.of(store) if looked else None)


def _differs(one: Shown, other: Shown) -> str:
    if one.outcome != other.outcome or type(one.outcome) is not type(other.outcome):
        return "reply"
    if one.outcome is not other.outcome and repr(one.outcome) != repr(other.outcome):
        return "reply"  # 1 and True, 1 and 1.0
    if one.events != other.events:
        return "events"
    return "state" if one.snapshot != other.snapshot else ""


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
    """Compile another text of a file, and list what planting it changes."""
    module, path = module_of(file), str(python.ROOT / f"{file}.py")
    code = compile(text, path, "exec")
    return [*_constants(module, text, path), *functions(module, code)]


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
                    yield from _holders(name, vars(module)[name], scope[name])
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


def _holders(name: str, right: Any, wrong: Any) -> Iterator[Change]:
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("qmodel.model.") and vars(module).get(name) is right:
            yield Change(module, name, right, wrong)


def _in_function(mutant: Mutant) -> bool:
    for node in ast.walk(ast.parse(python.read(mutant.file))):
        if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            return node.body[0].lineno <= mutant.line  # the defaults of arguments stand before the body
    return False
