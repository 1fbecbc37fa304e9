"""The rules of the canonical form: how the fields of a state are written (canonical.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Final

from qmodel.conformance.graph.alphabet import FRESH, TICK, tokens
from qmodel.model.state import aging, concurrency_keys, history, queues, throttles
from qmodel.model.state.queues import NO_TIME
from qmodel.model.state.records import Job, ParkedJobs, Queue, Request, Throttle, Turns
from qmodel.model.state.store import Store

OUTCOMES: Final = ("completed", "failed", "retried", "released")
"""The calls that end a lease; their outcomes are remembered with its token."""

AGES: Final = 5
"""Where jobs age, the priorities of a family shift a moment by fewer ticks than this."""

Written = Callable[[Any, "Form"], list[Any]]
"""Writes the fields of a record."""


class Form:
    """The writing of one form: the moments and sequences of a state, and what its family adds."""

    def __init__(self, store: Store, now: int, live: frozenset[str], horizon: int, written: Written) -> None:
        self.store, self.now, self.live, self.written = store, now, live, written
        self.horizon = horizon
        self.aside: list[str] = []
        """Lines of names that nothing but renaming orders."""
        self._old: set[int] = set()
        self._order: dict[int, int] = {}
        self.ranks = {seq: rank for rank, seq in enumerate(sorted([job.seq for job in store.jobs.values()]))}

    def moment(self, at: float) -> str:
        """Write a moment; if it is older than the horizon, by its order among the old ones.

        Comparisons are both strict and not, so the moment at the horizon is exact too.
        """
        if at <= 0 or at >= NO_TIME:
            return "never" if at else "none"
        if at >= self.now - self.horizon * TICK:
            return f"{(at - self.now) / TICK:g}"
        self._old.add(int(at))
        return f"o{self._order.get(int(at), 0)}"

    def again(self) -> bool:
        """Tell whether several old moments were written, which now have an order; then everything is written again."""
        if len(self._old) < 2 or self._order:
            return False
        self._order = {at: rank for rank, at in enumerate(sorted(self._old))}
        return True


Rule = Callable[[Any, Any, Form], Any]


class Dead(str):
    """Why a field is not in the form: dead, or derived from others."""


def exact(value: Any, _record: Any, _form: Form) -> Any:
    """Write the value."""
    return value


def moment(value: int, _record: Any, form: Form) -> str:
    """Write a moment."""
    return form.moment(value)


def moments(value: Iterable[int], _record: Any, form: Form) -> list[str]:
    """Write several moments."""
    return [form.moment(at) for at in value]


def rank(value: int, _record: Any, form: Form) -> int:
    """Write the rank of a job's sequence."""
    return form.ranks.get(value, -1)


def number(value: int | None, _record: Any, _form: Form) -> str:
    """Write the number of an event so that it is replaced by its rank."""
    return f"#{value}" if value else str(value)


def is_set(value: Any, _record: Any, _form: Form) -> bool:
    """Write whether there is a value."""
    return value is not None


def members(value: Iterable[str], _record: Any, form: Form) -> list[str]:
    """Write a set of names; those of jobs in the order of their sequences, which renaming does not change."""
    jobs = form.store.jobs
    return sorted(value, key=lambda name: (jobs[name].seq if name in jobs else 0, name))


def marked(value: dict[str, int], _record: Any, form: Form) -> list[tuple[str, int]]:
    """Write jobs in the order of their sequences, each with its mark."""
    return [(jid, value[jid]) for jid in members(value, _record, form)]


def ended(value: dict[str, tuple[str, int]], request: Request, form: Form) -> list[tuple[str, str, bool]]:
    """Write the sub-requests that have ended, with their outcomes, and whether their jobs are still as they ended;
    those of deleted jobs have no sequence, and a line each.
    """
    jobs = form.store.jobs
    gone = [jid for jid in value if jid not in jobs]
    form.aside += [f"{request.id} has ended: {jid} {value[jid][0]}" for jid in gone]
    kept = members([jid for jid in value if jid in jobs], request, form)
    return [(jid, value[jid][0], jobs[jid].seq == value[jid][1]) for jid in kept]


def deadline(value: int, request: Request, _form: Form) -> int:
    """Write how long a request may take: a call that opens it again must give the same time."""
    return request.deadline_at - value if request.deadline_at else 0


def until_the_end(value: str | None, request: Request, _form: Form) -> str | None:
    """Write how far a change of a request has come; of one that has ended, nothing asks for it."""
    return None if request.ended_at else value


def names(value: Iterable[str], _record: Any, _form: Form) -> list[str]:
    """Write names in their order."""
    return list(value)


def order(value: Iterable[tuple[Any, ...]], _record: Any, _form: Form) -> list[str]:
    """Write the order of a sorted list."""
    return [place[-1] for place in value]


def items(value: dict[str, Any], _record: Any, _form: Form) -> list[tuple[str, Any]]:
    """Write a mapping."""
    return sorted(value.items())


def request(value: str, _record: Any, form: Form) -> str:
    """Write a request id. One that was fresh is never used again: nothing tells it apart from none but the entry of its
    worker that remembers the grant, which costs a unit where the budget is small.
    """
    return value if not value.startswith(FRESH) else FRESH if "job.stages" in form.live else ""


def grants(value: dict[str, tuple[str, ...]], worker: Any, form: Form) -> list[tuple[str, Any]]:
    """Write what a worker was granted under requests that may be used again; others apart, as they share a name."""
    written = [(request(id, worker, form), jids) for id, jids in value.items()]
    form.aside += [f"granted together: {jids}" for id, jids in written if id == FRESH]
    return sorted(one for one in written if one[0] not in ("", FRESH))


def apart(value: dict[str, Any], _record: Any, form: Form) -> None:
    """Write each entry of a mapping by itself, so that renaming does not change their order."""
    form.aside += [f"{name} has {entry}" for name, entry in value.items()]


def only(states: str, rule: Rule) -> Rule:
    """Write a field of jobs in these states only: in others, no operation depends on it."""
    chosen = frozenset(states.split())
    return lambda value, job, form: rule(value, job, form) if job.state in chosen else None


def where(name: str, rule: Rule) -> Rule:
    """Write a field in the families that name it as live."""
    return lambda value, record, form: rule(value, record, form) if name in form.live else None


def either(*rules: Rule) -> Rule:
    """Write what the first rule that applies writes."""
    return lambda value, record, form: next((w for r in rules if (w := r(value, record, form)) is not None), None)


def put_at(value: int, job: Job, form: Form) -> str | None:
    """Write when a job was put, while that orders it or ends its time to live."""
    ends = "ttl_ms" in job.options and job.state in ("waiting", "throttled", "scheduled", "depends")
    return form.moment(value) if ends or job.state == "depends" else None


def parks_with(value: int, job: Job, form: Form) -> str | None:
    """Write when a stalled job became ready, if it names throttles: it may be parked at one, with this moment."""
    return form.moment(value) if job.state == "stalled" and "throttles" in job.options else None


def popped_at(value: int, job: Job, form: Form) -> str | None:
    """Write when a lease began, while a timeout counts from there."""
    return form.moment(value) if "timeout_ms" in job.options and job.state == "running" else None


def options(value: dict[str, str], job: Job, form: Form) -> list[Any]:
    """Write options; those that hold a sequence as what is asked of it."""
    written = []
    for name in sorted(value):
        said: Any = value[name]
        if name == "after" and "job.stages" not in form.live:
            continue  # shown by reads only; where the budget is small, an option costs a unit
        if name == "after":
            said = len(said.split())
        elif name in ("parked", "told"):
            said = ""  # the list of the throttle has its order; nothing asks when a holder was told
        elif name == "line":
            said = concurrency_keys.has_begun(job)
        elif name == "request":
            said = said, job.token > 0  # a failure cancels those that were never claimed
        elif name == "turn":
            said = int(said) - (queues.first(form.store.queues[job.queue], job.priority) or form.now)
        elif name == "schedule":
            jid, since = said.split(" ")
            schedule = form.store.schedules.get(jid)
            said = jid, schedule is not None and schedule.since == int(since)
        written.append((name, said))
    return written


def turns(value: dict[int, Turns], record: Queue, form: Form) -> list[Any]:
    """Write the turns of a fair queue; for each key, how much later its next turn is than that of the first job.

    If a job was put first, the next turn follows from the moment instead. A family with such letters lets
    `queue.turns` count: then the moment of the first job is in the form too.
    """
    return [
        (priority, of.jobs, *_turns(of, queues.first(record, priority), form)) for priority, of in sorted(value.items())
    ]


def _turns(turns: Turns, first: int | None, form: Form) -> list[Any]:
    later = sorted((key, max(at - (first or form.now), 0)) for key, at in turns.next.items())
    return [later, form.moment(first or 0)] if "queue.turns" in form.live else [later]


def aged(value: int, job: Job, form: Form) -> Any:
    """Write where a job stands by its age: how much later than its ready time, or else that it stands by its priority.

    Another priority may bring a job between any two of its queue, if their moments are apart. So a family with the
    option `aging` lets `job.aged` count: then the steps from the moment of each to the next later one, and at last to
    now, are in the form too. Steps that are longer than all shifts by priorities are not told apart.
    """
    if "job.aged" not in form.live or job.state != "waiting":
        return 0
    waiting = {one.ready_at for one in form.store.jobs.values() if one.state == "waiting" and one.queue == job.queue}
    moments = [at for at in sorted({*waiting, form.now}) if at >= job.ready_at]
    steps = [min(later - at, AGES * TICK) for at, later in pairwise(moments)]
    return value + aging.APART - job.ready_at if value else None, steps


def place(value: int, _record: Any, form: Form) -> int:
    """Write the place of a schedule in the order of their sequences, which orders those that are due together."""
    return sum(other.seq < value for other in form.store.schedules.values())


def _outcomes(value: list[Any], job: Job, form: Form) -> Any:
    """Write the outcomes of the leases that the letters name."""
    named = tokens(job)
    told = [(what, facts) for what, _, facts in history.stages(job) if what in OUTCOMES]
    return [[(what, facts[1]) for what, facts in told if facts[0] == token] for token in named]


def _completions(value: list[Any], job: Job, form: Form) -> list[bool]:
    """Write which of these leases a completion ended: complete_and_pop pops under such a token, again and again."""
    return [history.outcome(job, token, "completed") is not None for token in tokens(job)]


def _stages(_value: list[Any], job: Job, _form: Form) -> list[str]:
    return [what for what, _, _ in history.stages(job)]


_TOLD = (where("job.history", _outcomes), where("job.completions", _completions), where("job.stages", _stages))


def outcomes(value: list[Any], job: Job, form: Form) -> list[Any]:
    """Write what the family asks of a history."""
    return [rule(value, job, form) for rule in _TOLD]


def failure(value: Any, job: Job, form: Form) -> Any:
    """Write the group of a failed job, and the length of its last failure's message where texts cost units."""
    group = value.group if value is not None and job.state == "failed" else None
    length = len(value.message) if value is not None and "job.message" in form.live else 0
    return (group, length) if length else group


def _ruled(throttle: Throttle, form: Form) -> Throttle:
    """A throttle under the limits that its window and its bucket belong to: none, if these are of the past."""
    if not throttle.cools_at:
        return throttle
    family = next((name for name, generation in form.store.families if generation == throttle.generation), None)
    return throttles._under(form.store, throttle, family, throttle.generation) if family is not None else Throttle()


def generation(_value: int, throttle: Throttle, form: Form) -> bool:
    """Write whether a throttle remembers what counts under its family."""
    return bool(throttle.cools_at) and bool(_ruled(throttle, form).generation)


def level(_value: int, throttle: Throttle, form: Form) -> int:
    """Write the tokens in a bucket now."""
    return throttles._level(_ruled(throttle, form), form.now)


def claims(value: Iterable[tuple[int, int]], throttle: Throttle, form: Form) -> list[str]:
    """Write the claims in the window; all of them, where a longer window may count those again that are still kept."""
    oldest = 0 if "throttle.claims" in form.live else form.now - _ruled(throttle, form).rate_ms
    return [form.moment(at) for at, _ in value if at > oldest]


def token(value: int, job: Job, form: Form) -> bool:
    """Write whether a job that holds a deduplication key has begun: then no later put changes it."""
    return value > 0 and any(unique.jid == job.jid for unique in form.store.uniques.values())


def memories(value: dict[str, Any], _store: Store, _form: Form) -> list[Any]:
    """Write the remembered requests; not those that were fresh, or of leases of deleted jobs: nothing asks for them."""
    told = [(*id.partition(" ")[::2], reply) for id, reply in value.items()]
    return sorted(
        (what, id, tuple(reply) if isinstance(reply, tuple) else reply)
        for what, id, reply in told
        if what not in OUTCOMES and not id.startswith(FRESH)
    )


def parked(value: dict[str, ParkedJobs], queue: Queue, form: Form) -> list[Any]:
    """Write the throttles of a queue with parked jobs; of several also the order in which a pop looks at those that are
    due, and the order of the turns of their jobs.
    """
    since = sorted({entry.moment for entry in value.values() if entry.moment <= form.now} - {0})
    ordered = [
        (name, since.index(entry.moment) if entry.moment else -1)
        for name, entry in value.items()
        if entry.moment <= form.now
    ]
    turns = sorted((since, jid) for one in value.values() for _, since, *_, jid in (*one.parked, *one.admitted))
    return [
        *each(value, queue, form),
        *(sorted(ordered) if len(ordered) > 1 else ()),
        *([jid for _, jid in turns] if len(turns) > 1 else ()),
    ]


def due(value: int, _parked: ParkedJobs, form: Form) -> str:
    """Write when a pop must look at a throttle."""
    return form.moment(value) if value > form.now else "due"


def pauses(value: dict[str, int], _queue: Queue, form: Form) -> list[tuple[str, str]]:
    """Write when pauses end."""
    return sorted((reason, form.moment(until)) for reason, until in value.items())


def ends(value: dict[str, int], _queue: Queue, form: Form) -> list[tuple[str, str]]:
    """When the requests of a queue are due."""
    return sorted((id, form.moment(moment)) for id, moment in value.items())


def each(value: dict[str, Any], _record: Any, form: Form) -> list[Any]:
    """Write records by name."""
    return sorted(([name, *form.written(record, form)] for name, record in value.items()), key=lambda one: str(one[0]))


def records(value: Iterable[Any], _record: Any, form: Form) -> list[Any]:
    """Write records in their order."""
    return [form.written(record, form) for record in value]


def template(value: Any, _record: Any, _form: Form) -> Any:
    """Write the put that a subscription makes."""
    return str(value)
