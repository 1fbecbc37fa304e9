"""What a law is, what it looks at, and the observer that checks all laws along a history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from qmodel.conformance.laws.told import Told, known, tell
from qmodel.conformance.subjects.base import Executed, Seen, Step
from qmodel.contract.events import Event
from qmodel.contract.operations import Operation, Put
from qmodel.contract.settings import OPTIONS, meant_by
from qmodel.model.snapshot import DEFAULT_QUEUE, Record, Snapshot

Ghost = dict[Any, Any]
"""What a law of histories remembers: hashable keys and hashable values, so that it can be copied and compared."""

FEW = 200
"""Up to so many jobs with few tags, no step meets its budget: laws that say that a step leaves nothing undone apply."""


@dataclass
class Moment(Executed):
    """One step, with the whole state before and after it, and what the laws derive from these."""

    before: Snapshot
    step: Step
    outcome: Any
    events: tuple[Event, ...]
    after: Snapshot
    begun: dict[str, bool] = field(default_factory=dict)
    """Whether a job was claimed since its put, for each job of which the events told both."""

    @property
    def whole(self) -> bool:
        """Whether all events of the step are kept: with a low `max-events`, some may be gone."""
        return len(self.events) == self.after.seq - self.before.seq

    @cached_property
    def few(self) -> bool:
        """Whether no budget can cut the step short."""
        return _weight(self.before) <= FEW and _weight(self.after) <= FEW

    @cached_property
    def _tale(self) -> tuple[list[Told], dict[str, Record | None]]:
        return tell(self)

    @property
    def tale(self) -> list[Told]:
        """The events about jobs, each with the job's record before and after it, as the events alone tell."""
        return self._tale[0]

    @property
    def becomes(self) -> dict[str, Record | None]:
        """The record of each job that the events name, as they leave it; None for a deleted one."""
        return self._tale[1]

    @cached_property
    def by_qless(self) -> bool:
        """Whether the step follows the rules of qless, or pops from a queue with a job that such a step has told."""
        if getattr(self.op, "qless", False) or getattr(self.op, "first", False):
            return True
        queues = self.pops()
        return bool(queues) and any(
            job["queue"] in queues and "told" in dict(job["options"]) for job in self.before.jobs.values()
        )

    @property
    def puts(self) -> dict[str, Put]:
        """The puts that the operation gives, by job."""
        if self.name == "put":
            return {self.op.jid: self.op}
        if self.name in ("put_many", "put_new", "request_add", "request_put"):
            return {one.jid: one for one in self.op.jobs}
        return {}

    def option(self, name: str, before: bool = True) -> int:
        """The value of an option of the namespace before the step, or after it."""
        config = (self.before if before else self.after).config
        return config.get(name, OPTIONS[meant_by(name) or name].default)

    def heartbeat(self, queue: str) -> int:
        """How long a lease in a queue lasts by the settings."""
        own = self.before.config.get(f"heartbeat-{queue}")
        return self.option("heartbeat") if own is None else own

    def is_fair(self, queue: str) -> bool:
        """Whether the fair keys of a queue take turns by the settings."""
        return bool(self.before.config.get(f"fair-{queue}", self.option("fair")))

    def aging(self, queue: str) -> int:
        """In how many milliseconds a waiting job of a queue improves by one priority by the settings; 0: never."""
        return 0 if self.is_fair(queue) else self.before.config.get(f"aging-{queue}", self.option("aging"))

    def queue(self, name: str, before: bool = True) -> Record:
        """The record of a queue."""
        return (self.before if before else self.after).queues.get(name, DEFAULT_QUEUE)

    def pops(self) -> list[str]:
        """The queues from which the operation takes jobs, in order."""
        if self.refused:
            return []
        if self.name in ("pop", "complete_and_pop"):
            return [self.op.queue]
        return list(dict.fromkeys(self.op.queues)) if self.name == "pop_any" else []

    @property
    def tries(self) -> int | None:
        """The tries of half a pop by the rules of reqless, where 0 is the half that takes lapsed jobs; or None."""
        return getattr(self.op, "tries", None)

    def is_paused(self, queue: str) -> bool:
        """Whether a queue was paused at this moment, before the step."""
        return any(until == 0 or until > self.now for until in self.queue(queue)["pauses"].values())

    @cached_property
    def follow(self) -> set[str]:
        """The jobs that wait, directly or not, for a request that ended in this step; and all, if an earlier step has
        left jobs that follow another one's end.
        """
        if self.before.cascade:
            return set(self.before.jobs)
        ended = (str(event.facts[0]) for event in self.events if event.event == "request_done")
        found = [jid for id in ended for jid in self.before.requested.get(id, {}).get("dependents", ())]
        met = set(found)
        for jid in found:
            more = set(self.before.jobs[jid]["dependents"]) - met
            met |= more
            found += more
        return met

    def told(self, *kinds: str) -> Iterator[Told]:
        """The events of some kinds about jobs."""
        return (one for one in self.tale if one.event.event in kinds)


def _weight(snapshot: Snapshot) -> int:
    """The jobs and recurring jobs of a state, and what makes them heavy."""
    if len(snapshot.jobs) > FEW:
        return len(snapshot.jobs)
    schedules = sum(1 + len(one["tags"]) for one in snapshot.schedules.values())
    return schedules + sum(1 + len(job["tags"]) // 2 + len(job["data"]) // 8192 for job in snapshot.jobs.values())


Edge = Callable[[Moment], Iterator[str]]
Path = Callable[[Moment, Ghost], Iterator[str]]


class Law(NamedTuple):
    """A claim about steps: its name, its sentence, what checks it, and what it needs.

    name        how the documents name it: `laws.<name>`
    sentence    the claim
    check       gives the violations
    history     whether it remembers earlier steps; otherwise one edge, with the states at both ends, suffices
    events      whether it needs all events of the step
    """

    name: str
    sentence: str
    check: Path
    history: bool
    events: bool


LAWS: dict[str, Law] = {}
"""All laws, by name. The themes beside this module fill it."""


DIFFERS: dict[str, str] = {}
"""The laws that do not hold for steps by the rules of qless, with what is so instead. `qless` beside this fills it."""


class Broken(NamedTuple):
    """A law that a step breaks, and a detail that shows it."""

    name: str
    detail: str


def law(check: Edge) -> Edge:
    """Register a law of single steps, under the name of the function that checks it."""
    _register(check, lambda moment, ghost: check(moment), history=False, events=True)
    return check


def law_of_reads(check: Edge) -> Edge:
    """Register a law of single steps that does not look at events."""
    _register(check, lambda moment, ghost: check(moment), history=False, events=False)
    return check


def law_of_histories(check: Path) -> Path:
    """Register a law that remembers earlier steps in its ghost."""
    _register(check, check, history=True, events=True)
    return check


def differs_by_qless(instead: str, names: Sequence[str]) -> None:
    """Say that laws do not hold for steps by the rules of qless."""
    DIFFERS.update(dict.fromkeys(names, instead))


def _register(function: Any, check: Path, history: bool, events: bool) -> None:
    name = function.__name__
    assert name not in LAWS and function.__doc__, name
    LAWS[name] = Law(name, " ".join(function.__doc__.split()), check, history, events)


class Observer:
    """Checks all laws along a history, one step after the other.

    It remembers what a snapshot does not hold: which jobs have begun, the claims of a throttle, the holders of keys,
    the durations of a day. All of it is hashable and cheap to copy, so a search over states can keep one observer for
    each state (`copy`), and tell equal ones apart from others (`key`). A law that meets a history in its middle takes
    what it does not know as unknown, and says nothing of it.
    """

    def __init__(self) -> None:
        self._ghosts: dict[str, Ghost] = {name: {} for name, one in LAWS.items() if one.history}
        self._begun: dict[str, bool] = {}

    def step(
        self, before: Snapshot, step: Step, outcome: Any, events: tuple[Event, ...], after: Snapshot
    ) -> list[Broken]:
        """Check one step; give the laws that it breaks."""
        moment = Moment(before, step, outcome, events, after, self._begun)
        if not moment.whole:
            self._forget()
        found = list(_check(moment, self._ghosts))
        if moment.whole and not found:
            self._begun = known(moment)
        return found

    def _forget(self) -> None:
        """Know nothing of the past any more."""
        self._begun = {}
        for ghost in self._ghosts.values():
            ghost.clear()
            ghost["unknown"] = True

    def copy(self) -> Observer:
        """Give an observer that knows the same, to go on along another branch."""
        other = Observer()
        other._ghosts = {name: dict(ghost) for name, ghost in self._ghosts.items()}
        other._begun = dict(self._begun)
        return other

    def key(self) -> tuple[Any, ...]:
        """Give what is remembered, as a hashable value."""
        ghosts = tuple((name, frozenset(ghost.items())) for name, ghost in sorted(self._ghosts.items()))
        return (frozenset(self._begun.items()), *ghosts)


def _check(moment: Moment, ghosts: dict[str, Ghost] | None) -> Iterator[Broken]:
    """Check all laws on a step; without ghosts, only those of single steps."""
    for name, one in LAWS.items():
        if (one.events and not moment.whole) or (one.history and ghosts is None):
            continue
        if moment.by_qless and name in DIFFERS:
            if ghosts is not None and one.history:
                ghosts[name].clear()
                ghosts[name]["unknown"] = True
            continue
        try:
            for detail in one.check(moment, ghosts[name] if one.history and ghosts is not None else {}):
                yield Broken(name, detail)
        except (LookupError, AttributeError, TypeError, ValueError) as error:  # a state in which no derivation holds
            yield Broken(name, f"it cannot be checked: {error!r}")


def check(before: Snapshot, step: Step, outcome: Any, events: tuple[Event, ...], after: Snapshot) -> list[Broken]:
    """Check the laws of single steps on one edge of a graph; those of histories need an `Observer`."""
    moment = Moment(before, step, outcome, events, after)
    return list(_check(moment, None))


def empty() -> Snapshot:
    """The state of an empty namespace."""
    from qmodel.model import snapshot
    from qmodel.model.state.store import Store

    return snapshot.of(Store())


def observe(history: Sequence[Step], seen: Sequence[Seen]) -> Iterator[tuple[int, Broken]]:
    """Check the laws on what a subject did, with a snapshot after every step; give the broken ones with their step."""
    observer, before = Observer(), empty()
    for at, (step, one) in enumerate(zip(history, seen, strict=False)):
        if one.snapshot is None:
            return
        for broken in observer.step(before, step, one.outcome, one.events, one.snapshot):
            yield at, broken
        before = one.snapshot


def without_journal(snapshot: Snapshot) -> Snapshot:
    """The same state without the journal, which also records refusals and resends."""
    return replace(snapshot, journal=(), journaled=0)


__all__ = ["LAWS", "Broken", "Ghost", "Law", "Moment", "Observer", "Operation", "check", "observe"]
