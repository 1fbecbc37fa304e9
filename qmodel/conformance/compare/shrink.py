"""Shrinking: finds a short and simple history that fails as a long one does.

Four kinds of simplification, to a fixpoint: leave out steps (in chunks that halve, from the end),
lower arguments (to their defaults, to zero, to fewer), rename (everything of a kind to its first
names), and lower time (stand still; start at zero; take rounder steps).

A token is the sequence number of an event, so leaving out a step that emits one would change every later
token. So while shrinking, tokens are symbols: the job's last lease, the lease before it, and so on. Before
each try, the model runs and numbers them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.arguments import TOKEN_EPOCH, Choice, Flag, ListOf, Name, Text, Whole
from qmodel.contract.arguments import Operations as OperationsKind
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state.store import Store, events_after

Call = TypeVar("Call")
Fails = Callable[[list[Step]], bool]
MOST_TRIES = 3000


class Lease(NamedTuple):
    """A token as a symbol: the job, and how many leases of the job came after this one."""

    jid: str
    back: int


def shrink(history: Sequence[Step], fails: Fails, most: int = MOST_TRIES) -> list[Step]:
    """Find a simpler history that also fails. `fails` is called at most `most` times."""
    found = _Shrinker(fails, most)
    found.best = _symbolic(history)
    if not found.accept(found.best):
        return list(history)
    size = None
    while size != (size := _size(found.best)):
        _delete(found)
        _lower_arguments(found)
        _rename(found)
        _lower_time(found)
    return _numbered(found.best)


def shorten(history: Sequence[Call], differs: Callable[[Sequence[Call]], int | None]) -> list[Call]:
    """Leave out calls of any kind that a difference does not need, in halves, then in smaller parts.

    `differs` gives the index of the first call that differs, or None.
    """
    at = differs(history)
    found = list(history if at is None else history[: at + 1])
    size = max(len(found) // 2, 1)
    while size:
        begin = 0
        while begin < len(found):
            less = [*found[:begin], *found[begin + size :]]
            at = differs(less) if less else None
            if at is None:
                begin += size
            else:
                found = less[: at + 1]
        size //= 2
    return found


class _Shrinker:
    """The best history so far, and the remaining tries."""

    def __init__(self, fails: Fails, left: int) -> None:
        self._fails = fails
        self._left = left
        self._tried: set[str] = set()
        self.best: list[Step] = []

    def accept(self, candidate: list[Step]) -> bool:
        """Take a candidate for the best if it fails."""
        key = repr(candidate)
        if self._left <= 0 or key in self._tried:
            return False
        self._tried.add(key)
        self._left -= 1
        if not self._fails(_numbered(candidate)):
            return False
        self.best = candidate
        return True


def _size(history: list[Step]) -> tuple[int, str]:
    return len(history), repr(history)


# ---- tokens


def _with_tokens(op: Any, change: Callable[[Any], Any]) -> Any:
    """Change the tokens of an operation and of the operations inside it; leave any other value as it is."""
    if not isinstance(op, Operation):
        return op  # an argument of another type, drawn to be refused
    names = {argument.name for argument in op.spec.arguments}
    if "token" in names:
        token = change(op.token)  # type: ignore[attr-defined]
        return op if token == op.token else _replaced(op, "token", token)  # type: ignore[attr-defined]
    if op.spec.name == "complete_many" and isinstance(op.jobs, tuple):  # type: ignore[attr-defined]
        jobs = tuple(_with_tokens(one, change) for one in op.jobs)  # type: ignore[attr-defined]
        return _replaced(op, "jobs", jobs)
    return op


def _replaced(op: Operation, name: str, value: Any) -> Operation:
    """Make the operation anew with another value of one argument; values are not checked here."""
    changed: Operation = replace(op, **{name: value})  # type: ignore[type-var]
    return changed


class _Leases:
    """The leases granted so far, while the model runs."""

    def __init__(self) -> None:
        self._store = Store()
        self._tokens: dict[str, list[int]] = {}
        self._owner: dict[int, str] = {}

    def step(self, step: Step) -> None:
        """Execute a step, and note the leases that it grants."""
        before = self._store.seq
        try:
            engine.step(self._store, *step)
        except Exception:
            return
        for event in events_after(self._store, before, self._store.seq - before):
            if event.event == "popped":
                jid = str(event.facts[0])
                self._tokens.setdefault(jid, []).append(event.epoch * TOKEN_EPOCH + event.seq)
                self._owner[self._tokens[jid][-1]] = jid

    def symbol(self, token: Any) -> Any:
        """Turn a token into its symbol; give any other number back."""
        jid = self._owner.get(token) if type(token) is int else None
        if jid is None:
            return token
        tokens = self._tokens[jid]
        return Lease(jid, len(tokens) - 1 - tokens.index(token))

    def number(self, token: Any) -> Any:
        """Turn a symbol into its token; 0 if there is no such lease."""
        if not isinstance(token, Lease):
            return token
        tokens = self._tokens.get(token.jid, [])
        return tokens[-1 - token.back] if token.back < len(tokens) else 0


def _symbolic(history: Iterable[Step]) -> list[Step]:
    leases, found = _Leases(), []
    for now, op in history:
        found.append(Step(now, _with_tokens(op, leases.symbol)))
        leases.step(Step(now, op))
    return found


def _numbered(history: Iterable[Step]) -> list[Step]:
    leases, found = _Leases(), []
    for now, op in history:
        step = Step(now, _with_tokens(op, leases.number))
        leases.step(step)
        found.append(step)
    return found


# ---- leaving out


def _delete(found: _Shrinker) -> None:
    size = max(len(found.best) // 2, 1)
    while True:
        end = len(found.best)
        while end > 0:
            start = max(end - size, 0)
            found.accept(found.best[:start] + found.best[end:])
            end = start
        if size == 1:
            return
        size //= 2


# ---- lowering arguments


def _lower_arguments(found: _Shrinker) -> None:
    for at in range(len(found.best)):
        lowered = True
        while lowered:
            now, op = found.best[at]
            lowered = any(
                found.accept([*found.best[:at], Step(now, simpler), *found.best[at + 1 :]]) for simpler in _simpler(op)
            )


_PACES = ("interval_ms", "backlog")
"""Arguments that keep the runs of a recurring job few: lower ones would make a history longer, not simpler."""


def _simpler(op: Operation) -> Iterator[Operation]:
    """Give the operations inside this one, then this operation with one argument simpler each time."""
    if isinstance(op, ops.PutMany | ops.PutNew | ops.CompleteMany) and len(op.jobs) == 1:
        yield op.jobs[0]
    elif isinstance(op, ops.PopAny) and len(op.queues) == 1:
        yield ops.Pop(op.queues[0], op.worker, op.count, op.wait, op.request)
    elif isinstance(op, ops.CompleteAndPop):
        yield ops.Complete(op.jid, op.token, op.result, op.data, op.next, op.delay_ms, op.depends)
    for argument in op.spec.arguments:
        value = getattr(op, argument.name)
        if argument.name in _PACES:
            continue
        if argument.required or value != argument.default:
            if not argument.required:
                yield _replaced(op, argument.name, argument.default)
            for lower in _lower(argument.kind, value):
                yield _replaced(op, argument.name, lower)


def _lower(kind: Any, value: Any) -> Iterator[Any]:
    """Give values that are simpler than this one, simplest first."""
    if isinstance(value, tuple) and isinstance(kind, ListOf | OperationsKind):
        if len(value) > 20:
            yield from (value[:20], value[: len(value) // 2])
        for at in range(len(value[:20]) if len(value) > 1 else 0):
            yield value[:at] + value[at + 1 :]
        for at, one in enumerate(value[:20]):
            inner = _simpler(one) if isinstance(one, Operation) else _lower(getattr(kind, "item", kind), one)
            yield from ((*value[:at], lower, *value[at + 1 :]) for lower in inner)
    elif not kind.accepts(value):
        return  # a hostile value: keep it
    elif isinstance(kind, Whole) and type(value) is int:
        steps = (0, 1, 2, 3, 10, 100, 1000, 10_000, *_nearer(value))
        yield from (n for n in steps if kind.low <= n and abs(n) < abs(value))
        if value < 0:
            yield from (n for n in (-1, -2, value // 2) if n > value)
    elif isinstance(kind, Choice):
        yield from kind.words[: kind.words.index(value)]
    elif isinstance(kind, Flag):
        if value is True:
            yield False
    elif isinstance(kind, Text) and value:
        yield from dict.fromkeys(("", "x", value[: len(value) // 2]))
    elif isinstance(kind, Name) and len(value) > 20:
        yield "n"


def _nearer(value: int) -> Iterator[int]:
    """Give lower values: less by half, by a quarter, and so on to 1. Steps of 1 alone would use up all tries."""
    return (value - (value >> by) for by in range(1, max(value.bit_length(), 2)))


# ---- renaming


_SORTS: dict[str, tuple[str, str]] = {
    "jid": ("jid", "abcdefgh"),
    "jids": ("jid", "abcdefgh"),
    "depends": ("jid", "abcdefgh"),
    "dependencies": ("jid", "abcdefgh"),
    "queue": ("queue", "qrst"),
    "queues": ("queue", "qrst"),
    "next": ("queue", "qrst"),
    "worker": ("worker", "uvwx"),
    "workers": ("worker", "uvwx"),
    "klass": ("klass", "kl"),
    "group": ("group", "ghij"),
    "tag": ("tag", "mnop"),
    "tags": ("tag", "mnop"),
    "request": ("request", "123456789"),
}
"""The sort of the names in each argument, and the simplest names of each sort."""


def _names(op: Operation) -> Iterator[tuple[str, str]]:
    for argument in op.spec.arguments:
        value = getattr(op, argument.name)
        if isinstance(value, Lease):
            yield "jid", value.jid
        elif isinstance(argument.kind, OperationsKind) and isinstance(value, tuple):
            for one in value:
                yield from _names(one)
        elif argument.name in _SORTS and not isinstance(argument.kind, Whole):
            sort = _SORTS[argument.name][0]
            for name in value if isinstance(value, tuple) else (value,):
                if isinstance(name, str) and 0 < len(name) <= 20:
                    yield sort, name.partition(" ")[0] if sort == "jid" else name


def _called(sort: str, name: str, names: dict[tuple[str, str], str]) -> str:
    """Give another name; in an edge, replace the id."""
    first, blank, rest = name.partition(" ") if sort == "jid" else (name, "", "")
    return names.get((sort, first), first) + blank + rest


def _renamed(op: Operation, names: dict[tuple[str, str], str]) -> Operation:
    for argument in op.spec.arguments:
        value = new = getattr(op, argument.name)
        if isinstance(value, Lease):
            new = Lease(names.get(("jid", value.jid), value.jid), value.back)
        elif isinstance(argument.kind, OperationsKind) and isinstance(value, tuple):
            new = tuple(_renamed(one, names) for one in value)
        elif argument.name in _SORTS:
            sort = _SORTS[argument.name][0]
            if isinstance(value, str):
                new = names.get((sort, value), value)
            elif isinstance(value, tuple) and isinstance(argument.kind, ListOf):
                new = tuple(_called(sort, n, names) if isinstance(n, str) else n for n in value)
        if new != value:
            op = _replaced(op, argument.name, new)
    return op


def _rename(found: _Shrinker) -> None:
    """Replace names by the first names of their sort, all at once or one by one, and merge names."""
    calls = {sort: calls for sort, calls in _SORTS.values()}
    seen = dict.fromkeys(pair for step in found.best for pair in _names(step.op))
    wanted: dict[tuple[str, str], str] = {}
    for sort, name in seen:
        number = sum(1 for other, _ in wanted if other == sort)
        wanted[sort, name] = calls[sort][number] if number < len(calls[sort]) else name
    if not _try_names(found, wanted):
        for sort in calls:
            _try_names(found, {pair: name for pair, name in wanted.items() if pair[0] == sort})
    for sort in calls:
        names = list(dict.fromkeys(n for step in found.best for s, n in _names(step.op) if s == sort))
        for at, name in enumerate(names):
            if at == 0 or not _try_names(found, {(sort, name): names[0]}):
                _try_names(found, {(sort, name): name[0]})


def _try_names(found: _Shrinker, names: dict[tuple[str, str], str]) -> bool:
    if all(old == new for (_, old), new in names.items()):
        return False
    return found.accept([Step(now, _renamed(op, names)) for now, op in found.best])


# ---- lowering time


def _lower_time(found: _Shrinker) -> None:
    """Start at zero, or failing that at a round moment; stand still, or take rounder steps."""
    for start in (0, 1000, 86_400_000):
        if found.best and found.best[0].now > start and _shift(found, 0, start - found.best[0].now):
            break
    for at in range(1, len(found.best)):
        gap = found.best[at].now - found.best[at - 1].now
        for lower in (0, 1, 1000, 60_000, 86_400_000, *_nearer(gap)):
            if 0 <= lower < gap and _shift(found, at, lower - gap):
                break
        if gap < 0:
            _shift(found, at, -gap)


def _shift(found: _Shrinker, start: int, by: int) -> bool:
    """Move all steps from one on in time, or that step alone."""
    best = found.best
    rest = [Step(now + by, op) for now, op in best[start:]]
    alone = [Step(best[start].now + by, best[start].op), *best[start + 1 :]]
    return found.accept(best[:start] + rest) or found.accept(best[:start] + alone)


def refusal_of(history: Sequence[Step]) -> str:
    """Give the code of the model's refusal of the last step, or an empty text."""
    store, outcome = Store(), None
    for step in history:
        outcome = engine.step(store, *step)
    return outcome.code if isinstance(outcome, Refusal) else ""
