"""The alphabet: which operations with which arguments are tried in every state, family by family (families.txt).

    ## name
    What the family is about.
    from core looks            the letters of these families too
    setup ConfigSet(...)       an operation that is executed before the first state, or a list of several
    bound len(s.jobs) <= 2     states outside are compared, and not followed; `s` is the store, `now` the moment
    live job.put_at            fields that count in this family (canonical.py)
    horizon 2                  how many ticks back moments are told apart; 1 if not given
    midnight                   the first state is a tick before midnight
    step 1                     how far the clock goes, in milliseconds, instead of a tick
    units 8                    the budget of an operation, instead of the model's
    scope 0x1                  the largest scope: jobs x workers; 2x2 if not given
    graph                      it is explored by itself, not only as part of others
    night                      the same, but at night only, and it is in no pair
    calls 3                    any two letters that write, and some of any three, are executed in one call and in a row

    Put('q', job, 'k', '')

Any other line is a letter: an operation of the catalogue. It is tried with every value of the variables that it names:
`job` is each job of the scope and `other` each other one; `run` is each job that exists; `worker` is each worker;
`token` is the token of the last lease of `job` or `run`, and of the lease before; `other_token` that of `other`; `last`
is the last due time of the schedule S; `cursor` is where the same operation ends without one, in this state; `now` is
the moment; `fresh` is a request id that no call has used yet; `held` are the ids and tokens of all leased jobs;
`tick` is a second, the unit of every duration; `day` is a day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from itertools import permutations
from operator import itemgetter
from types import CodeType
from typing import Any, Final, NamedTuple

from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.settings import DAY
from qmodel.model import engine
from qmodel.model.copies import copy
from qmodel.model.state import history
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store

TICK: Final = 1000
"""The unit of all durations of a scope. (Workers are seen at most once a second, so it cannot be shorter.)"""

START: Final = 1_700_000_000_000 // DAY * DAY + DAY // 24
"""The moment of the first state: an hour after midnight, so that a search of some ticks stays within the day."""

JOBS: Final = ("A", "B", "C")
WORKERS: Final = ("X", "Y")

FRESH: Final = "fresh"
"""How the request ids begin that no call has used yet; the sequence of the state follows."""

COMMON: Final = (ops.ConfigSet("heartbeat", TICK), ops.ConfigSet("grace-period", TICK))
"""What is executed before the first state of every family."""

READ_IN_PAIRS: Final = frozenset(("Get(job)", "Get(run)", "Why(job)"))
"""The common reads that pairs of families make too."""

_COSTS: Final = {"job.stages", "job.message"}
"""What counts where the budget is small: histories and messages cost units."""

_BY_ID: Final = {"job.jid"}
"""What counts too where requests have sub-requests: a change of those with a slot goes from id to id, and may stop."""

OPERATIONS: Final[dict[str, Any]] = {spec.cls.__name__: spec.cls for spec in CATALOGUE.values()}
_BUILT_IN: Final = {
    "__builtins__": {},
    "tick": TICK,
    "day": DAY,
    "len": len,
    "sum": sum,
    "all": all,
    "abs": abs,
    "int": int,
    "str": str,
    "range": range,
    "tuple": tuple,
}


class Scope(NamedTuple):
    """How many jobs and workers have names."""

    jobs: int
    workers: int

    def __str__(self) -> str:
        return f"{self.jobs}x{self.workers}"

    @classmethod
    def parse(cls, text: str) -> Scope:
        """Read a scope as `str` writes it, up to nine of each; a ValueError says what is wrong."""
        if not re.fullmatch("[0-9]x[0-9]", text):
            raise ValueError(f"{text!r} is not a scope: write 2x1 for two jobs and one worker.")
        return cls(int(text[0]), int(text[2]))


class Letter(NamedTuple):
    """A letter: its text, and the variables that it names."""

    text: str
    names: frozenset[str]
    code: CodeType

    def of(self, values: dict[str, Any]) -> Any:
        """Make the operation for these values of the variables."""
        return eval(self.code, {**_BUILT_IN, **OPERATIONS}, values)


class Family(NamedTuple):
    """Letters that belong together, and what is special about their states."""

    name: str
    says: str
    letters: tuple[Letter, ...] = ()
    setup: tuple[Operation, ...] = ()
    bounds: tuple[str, ...] = ()
    live: frozenset[str] = frozenset()
    horizon: int = 1
    units: int = 0
    scope: Scope = Scope(2, 2)
    midnight: bool = False
    step: int = TICK
    graph: bool = False
    night: bool = False
    calls: int = 0
    """How many operations that write are executed in one call, and in a row, at most."""
    budgets: bool = False
    """In every state, each operation is also tried with every budget that is too small for it."""
    fails: bool = False
    """Operations that write are also tried with each of their commands failing."""

    @property
    def start(self) -> int:
        """The moment of the first state."""
        return START + DAY - TICK - START % DAY if self.midnight else START

    def bound(self) -> Callable[[Store, int], bool] | None:
        """Make the predicate of the states that are followed; None if all are."""
        if not self.bounds:
            return None
        text = " and ".join(f"({bound})" for bound in self.bounds)
        made: Callable[[Store, int], bool] = eval(f"lambda s, now: {text}", dict(_BUILT_IN))
        return made


def letter(text: str) -> Letter:
    """Read a letter."""
    code = compile(text, "families.txt", "eval")
    return Letter(text, frozenset(code.co_names) - OPERATIONS.keys() - {"tick", "day"}, code)


@cache
def families() -> dict[str, Family]:
    """Read all families, those too that are only parts of others."""
    text = resources.files(__package__).joinpath("families.txt").read_text(encoding="utf-8")
    found: dict[str, Family] = {}
    for part in text.split("\n## ")[1:]:
        name, says, *lines = [line for line in part.splitlines() if line and not line.startswith("#")]
        family = Family(name, says)
        for line in lines:
            family = _with(family, line, found)
        found[name] = family
    return found


def explored() -> dict[str, Family]:
    """Give the families that are explored by themselves."""
    return {name: family for name, family in families().items() if family.graph}


def _with(family: Family, line: str, known: dict[str, Family]) -> Family:
    """Apply a line to a family."""
    word, _, rest = line.partition(" ")
    if word == "from":
        for name in rest.split():
            family = joined(family, known[name])
        return family
    if word == "setup":
        found = letter(rest).of({})
        return family._replace(setup=(*family.setup, *(found if isinstance(found, list) else (found,))))
    if word == "bound":
        return family._replace(bounds=(*family.bounds, rest))
    if word == "live":
        return family._replace(live=family.live | set(rest.split()))
    if word == "step":
        return family._replace(step=letter(rest).of({}))
    if word == "horizon":
        return family._replace(horizon=int(rest))
    if word == "units":
        return family._replace(units=int(rest))
    if word == "scope":
        return family._replace(scope=Scope.parse(rest))
    if line in ("graph", "night"):
        return family._replace(graph=True, night=line == "night")
    if word == "calls":
        return family._replace(calls=int(rest))
    if line == "midnight":
        return family._replace(midnight=True)
    return family._replace(letters=(*family.letters, letter(line)))


def joined(one: Family, other: Family) -> Family:
    """Give a family with the letters of two; it keeps the name of the first."""
    letters = {letter.text: letter for letter in (*one.letters, *other.letters)}
    longer, shorter = sorted((one.setup, other.setup), key=len, reverse=True)
    more = [
        op for op in shorter if op not in longer and not hasattr(op, "jid")
    ]  # tokens follow from what stands before
    return one._replace(
        letters=tuple(letters.values()),
        setup=(*longer, *more),
        bounds=tuple(dict.fromkeys((*one.bounds, *other.bounds))),
        live=one.live | other.live,
        horizon=max(one.horizon, other.horizon),
        midnight=one.midnight or other.midnight,
        units=one.units or other.units,
        scope=Scope(max(one.scope.jobs, other.scope.jobs), max(one.scope.workers, other.scope.workers)),
    )


def pair(one: str, other: str) -> Family:
    """Give the family of two families together, without the reads that all families make, but for those of a job.

    What these reads list is compared on every edge, as part of the whole state; each family alone makes them all.
    """
    known = families()
    both = joined(known[one], known[other])
    common = {letter.text for name in ("looks", "glances") for letter in known[name].letters} - READ_IN_PAIRS
    letters = tuple(letter for letter in both.letters if letter.text not in common)
    live = both.live | _costs(both) if both.units else both.live
    return both._replace(name=f"{one}+{other}", says="", letters=letters, live=live)


def scarce(name: str, units: int) -> Family:
    """Give a family where an operation has a budget of so many units: what is more is refused, or done in parts."""
    family = families()[name]
    return family._replace(name=f"{name}/{units}", units=units, live=family.live | _costs(family))


def _costs(family: Family) -> set[str]:
    return _COSTS | (_BY_ID if any("Request" in letter.text for letter in family.letters) else set())


def every_budget(name: str) -> Family:
    """Give a family where each operation is tried with every budget that is too small for it too, in every state."""
    return families()[name]._replace(name=f"{name}/each", budgets=True)


def every_failure(name: str) -> Family:
    """Give a family where operations that write are tried with each of their commands failing too."""
    return families()[name]._replace(name=f"{name}/fails", fails=True)


class Moves:
    """The operations that are tried in a state of a family."""

    def __init__(self, family: Family, scope: Scope) -> None:
        self.jobs = JOBS[: min(scope.jobs, family.scope.jobs)]
        self.workers = WORKERS[: min(scope.workers, family.scope.workers)]
        self._fresh: list[tuple[Letter, dict[str, Any]]] = []
        """These come first, so that the state in which a lease has a request stands for those in which it has none."""
        self._fixed: list[Operation] = []
        self._bound: list[tuple[Letter, dict[str, Any]]] = []
        for one in family.letters:
            for values in self._values(one.names):
                if "fresh" in one.names:
                    self._fresh.append((one, values))
                elif one.names & {"run", "token", "other_token", "last", "cursor", "now", "held"}:
                    self._bound.append((one, values))
                else:
                    self._fixed.append(one.of(values))
        self._fixed = list(dict.fromkeys(self._fixed))

    def _values(self, names: frozenset[str]) -> Iterator[dict[str, str]]:
        """Bind the variables that the scope alone decides."""
        pairs = [("", "")]
        if names & {"other", "other_token"}:
            pairs = list(permutations(self.jobs, 2))
        elif "job" in names:
            pairs = [(job, "") for job in self.jobs]
        for job, other in pairs:
            for worker in self.workers if "worker" in names else ("",):
                yield {"job": job, "other": other, "worker": worker}

    def of(self, store: Store, now: int) -> Iterator[Operation]:
        """Give the operations for a state."""
        yield from self._with(self._fresh, store, now)
        yield from self._fixed
        yield from self._with(self._bound, store, now)

    @staticmethod
    def _with(letters: list[tuple[Letter, dict[str, Any]]], store: Store, now: int) -> Iterator[Operation]:
        """Bind the variables that a state decides."""
        schedule = store.schedules.get("S")
        times: dict[str, Any] = {"now": now, "last": schedule.last_at if schedule is not None else now}
        times["fresh"] = f"{FRESH}{store.seq}"
        for one, values in letters:
            if "held" in one.names:
                times["held"] = _held(store)
            for run in store.jobs if "run" in one.names else (values["job"],):
                job, other = store.jobs.get(run), store.jobs.get(values["other"])
                for token in tokens(job) if "token" in one.names else (0,):
                    second = other.token if other is not None else 0
                    found = {**values, **times, "run": run, "token": token, "other_token": second}
                    if "cursor" in one.names:
                        found["cursor"] = _cursor(store, now, one.of({**found, "cursor": ""}))
                        if not found["cursor"]:
                            continue  # all is on the first page
                    yield one.of(found)


def _held(store: Store) -> list[tuple[str, int]]:
    """Give the ids and tokens of all leased jobs, the oldest lease first."""
    return sorted(((job.jid, job.token) for job in store.jobs.values() if job.state == "running"), key=itemgetter(1))


def _cursor(store: Store, now: int, op: Operation) -> str:
    """Give the cursor of an operation's reply, without changing the state."""
    return str(getattr(engine.step(copy(store), now, op), "cursor", ""))


def tokens(job: Job | None) -> tuple[int, ...]:
    """Give the tokens of a job that letters name: of its last lease, and of the one before."""
    if job is None:
        return ()
    named = [int(facts[1]) for what, _, facts in history.stages(job) if what == "popped"]
    if job.token and job.token not in named:
        named.append(job.token)
    return tuple(named[:-3:-1])
