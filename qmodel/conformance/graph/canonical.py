"""The canonical form of a state: states with one form have, under every operation, successors with one form.

It decides only where the search stops. Edges are executed and compared on concrete states, so a wrong form can lose
coverage; it cannot excuse a difference. And it is tested: two concrete states that arrive at one form are tried under
every operation, and the forms of what follows must be the same (`explore.py`).

FIELDS says of every field of every record of the store how it stands in the form:

- exact: the value;
- a moment: how many ticks it is from now. Moments further back than the horizon are told apart by their order only: all
  durations of a scope are a tick (some are two, where the horizon is two), so no operation asks how old they are;
- a rank: the order of the sequences, which are not told apart otherwise;
- derived: other fields say it; the invariants hold them together;
- dead: no operation depends on it. Replies and events may show it, and they are compared on every edge.

Jobs are interchangeable, and so are workers: of all ways to rename them the smallest text is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any, Final

from qmodel.conformance.graph.alphabet import TICK, tokens
from qmodel.model.state import concurrency_keys, history, throttles
from qmodel.model.state.queues import NO_TIME
from qmodel.model.state.records import (
    ConcurrencyKey,
    Job,
    Message,
    ParkedJobs,
    Queue,
    Request,
    Schedule,
    Subscription,
    Throttle,
    Unique,
    Worker,
)
from qmodel.model.state.store import Store

OUTCOMES: Final = ("completed", "failed", "retried", "released")
"""The calls that end a lease, and whose outcome is remembered with its token."""

_NUMBERED = re.compile(r"(T:|-dead-|#)(\d+)")
"""Where the number of an event stands in a text: jobs of messages, dead letters, and `Form.number`."""


class Form:
    """The writing of one form: the moments and sequences of a state, and what its family adds."""

    def __init__(self, store: Store, now: int, live: frozenset[str], horizon: int) -> None:
        self.store, self.now, self.live = store, now, live
        self.horizon = horizon
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


# ---- rules


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


def names(value: Iterable[str], _record: Any, _form: Form) -> list[str]:
    """Write names in their order."""
    return list(value)


def order(value: Iterable[tuple[Any, ...]], _record: Any, _form: Form) -> list[str]:
    """Write the order of a sorted list."""
    return [place[-1] for place in value]


def items(value: dict[str, Any], _record: Any, _form: Form) -> list[tuple[str, Any]]:
    """Write a mapping."""
    return sorted(value.items())


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


def _put_at(value: int, job: Job, form: Form) -> str | None:
    ends = "ttl_ms" in job.options and job.state in ("waiting", "throttled", "scheduled", "depends")
    return form.moment(value) if ends or job.state == "depends" else None


def _popped_at(value: int, job: Job, form: Form) -> str | None:
    return form.moment(value) if "timeout_ms" in job.options and job.state == "running" else None


def _options(value: dict[str, str], job: Job, form: Form) -> list[Any]:
    """Write options; those that hold a sequence as what is asked of it."""
    written = []
    for name in sorted(value):
        said: Any = value[name]
        if name == "after":
            continue  # shown by reads only
        if name == "parked":
            said = ""  # the list of the throttle has its order
        elif name == "line":
            said = concurrency_keys.has_begun(job)
        elif name == "schedule":
            jid, since = said.split(" ")
            schedule = form.store.schedules.get(jid)
            said = jid, schedule is not None and schedule.since == int(since)
        written.append((name, said))
    return written


def _outcomes(value: list[Any], job: Job, form: Form) -> Any:
    """Write the outcomes of the leases whose tokens the letters name."""
    named = tokens(job)
    told = [(what, facts) for what, _, facts in history.stages(job) if what in OUTCOMES]
    return [[(what, facts[1]) for what, facts in told if facts[0] == token] for token in named]


def _completions(value: list[Any], job: Job, form: Form) -> list[bool]:
    """Write which of these leases a completion ended: complete_and_pop pops under such a token, again and again."""
    return [history.outcome(job, token, "completed") is not None for token in tokens(job)]


def _stages(_value: list[Any], job: Job, _form: Form) -> list[str]:
    return [what for what, _, _ in history.stages(job)]


_TOLD = (where("job.history", _outcomes), where("job.completions", _completions), where("job.stages", _stages))


def _history(value: list[Any], job: Job, form: Form) -> list[Any]:
    return [rule(value, job, form) for rule in _TOLD]


def _failure(value: Any, job: Job, _form: Form) -> Any:
    return value.group if value is not None and job.state == "failed" else None


def _level(_value: int, throttle: Throttle, form: Form) -> int:
    return throttles._level(throttle, form.now)


def _claims(value: Iterable[tuple[int, int]], throttle: Throttle, form: Form) -> list[str]:
    return [form.moment(at) for at, _ in value if at > form.now - throttle.rate_ms]


def _unique_token(value: int, unique: Unique, form: Form) -> bool:
    job = form.store.jobs.get(unique.jid)
    return job is not None and job.token == value


def _memories(value: dict[str, Any], _store: Store, _form: Form) -> list[Any]:
    """Write the remembered requests; not those of leases of deleted jobs, under whose tokens nothing changes."""
    return sorted((request, reply) for request, reply in value.items() if request.split(" ")[0] not in OUTCOMES)


def _due(value: int, _parked: ParkedJobs, form: Form) -> str:
    return form.moment(value) if value > form.now else "due"


def _pauses(value: dict[str, int], _queue: Queue, form: Form) -> list[tuple[str, str]]:
    return sorted((reason, form.moment(until)) for reason, until in value.items())


def _each(value: dict[str, Any], _record: Any, form: Form) -> list[Any]:
    """Write records by name."""
    return sorted(([name, *written(record, form)] for name, record in value.items()), key=lambda one: str(one[0]))


def _all(value: Iterable[Any], _record: Any, form: Form) -> list[Any]:
    """Write records in their order."""
    return [written(record, form) for record in value]


def _template(value: Any, _record: Any, _form: Form) -> Any:
    return str(value)


LISTED = Dead("derived from the fields of the jobs")
SHOWN = Dead("dead: only reads show it")
ORDERS = Dead("dead: its order stands in the lists")

JOB: Final[dict[str, Rule | Dead]] = {
    "jid": Dead("derived: the name under which it stands"),
    "state": exact,
    "queue": exact,
    "klass": exact,
    "data": exact,
    "priority": exact,
    "retries": exact,
    "remaining": exact,
    "worker": exact,
    "grant": exact,
    "result": exact,
    "progress": exact,
    "put_request": exact,
    "token": Dead("dead: letters name it, whatever it is; what compares it is written there"),
    "seq": only("waiting scheduled throttled depends running stalled failed complete", rank),
    "ready_at": only("waiting scheduled throttled depends", moment),
    "expires_at": only("running", moment),
    "put_at": either(_put_at, where("job.put_at", only("waiting scheduled throttled depends running stalled", moment))),
    "popped_at": _popped_at,
    "ended_at": where("job.ended_at", only("complete failed", moment)),
    "failure": _failure,
    "tags": names,
    "options": _options,
    "dependencies": items,
    "dependents": Dead("derived: the dependencies of the others"),
    "history": _history,
}

QUEUE: Final[dict[str, Rule | Dead]] = {
    "first_seen": is_set,
    "pauses": _pauses,
    "idle": exact,
    "wakes": exact,
    "parked": _each,
    **dict.fromkeys(("ready", "scheduled", "depends", "locks", "throttled", "expires"), LISTED),
    "recur": Dead("derived from the schedules"),
}

PARKED: Final[dict[str, Rule | Dead]] = {"moment": _due, "parked": order, "admitted": order}

KEY: Final[dict[str, Rule | Dead]] = {"active": members, "parked": order}

REQUEST: Final[dict[str, Rule | Dead]] = {
    **dict.fromkeys(("state", "queue", "priority", "limit", "first_priority", "first_limit"), exact),
    **dict.fromkeys(("total", "done", "failed", "canceled"), exact),
    "unfinished": members,
    "ended": members,
    "state_at": where("request.state_at", moment),
    "id": Dead("derived: the name under which it stands"),
    "opened_at": SHOWN,
    "ended_at": SHOWN,
    "seq": ORDERS,
}

SCHEDULE: Final[dict[str, Rule | Dead]] = {
    **dict.fromkeys(("queue", "klass", "data", "cron", "kind", "missed", "overlap", "priority", "retries"), exact),
    **dict.fromkeys(("backlog", "runs", "made", "open", "interval_ms", "offset_ms", "catchup_ms", "limit"), exact),
    "paused": exact,
    "tags": exact,
    "later": moments,
    "next_at": moment,
    "last_at": moment,
    "start_at": moment,
    "end_at": moment,
    "jid": Dead("derived: the name under which it stands"),
    "seq": ORDERS,
    "since": Dead("dead: the jobs' option says whether it is theirs"),
}

SUBSCRIPTION: Final[dict[str, Rule | Dead]] = {
    "patterns": exact,
    "position": number,
    "put": _template,
    "name": Dead("derived: the name under which it stands"),
    "seq": ORDERS,
}

MESSAGE: Final[dict[str, Rule | Dead]] = {
    "seq": number,
    "at": Dead("dead: nothing is older than the time that messages are kept"),
    "due_at": moment,
    "subject": exact,
    "data": exact,
}

THROTTLE: Final[dict[str, Rule | Dead]] = {
    **dict.fromkeys(throttles.LIMITS, exact),
    "level": _level,
    "level_at": Dead("derived: the level as of now is written"),
    "held": order,
    "claims": _claims,
    "queues": members,
}

UNIQUE: Final[dict[str, Rule | Dead]] = {
    "mode": exact,
    "jid": exact,
    "next": exact,
    "ends": moment,
    "token": _unique_token,
    "since": where("unique.since", moment),
    "key": Dead("derived: the name under which it stands"),
}

WORKER: Final[dict[str, Rule | Dead]] = {
    "seen_at": either(where("worker.seen_at", lambda value, _, form: value and form.moment(value)), is_set),
    "held": lambda value, _, form: sorted(value, key=value.get),
    "grants": items,
}

STORE: Final[dict[str, Rule | Dead]] = {
    "jobs": Dead("written apart: their names are interchangeable"),
    "queues": _each,
    "concurrency_keys": _each,
    "requested": _each,
    "schedules": _each,
    "subscriptions": _each,
    "messages": _all,
    "workers": _each,
    "throttles": _each,
    "uniques": _each,
    "workers_passed": exact,
    "epoch": exact,
    "tracked": names,
    "config": items,
    "metadata": items,
    "results": items,
    "requests": _memories,
    "cascade": lambda value, _, form: [(jid, flag) for _, jid, flag in value],
    "tags": lambda value, _, form: sorted((tag, [place[-1] for place in jobs]) for tag, jobs in value.items()),
    "settings": Dead("derived from the configuration"),
    "completed": LISTED,
    "failed": LISTED,
    "keeping": LISTED,
    "groups": LISTED,
    "crons": Dead("derived from the schedules"),
    "request_states": Dead("derived from the requests"),
    "unique_ends": Dead("derived from the keys"),
    "seq": Dead("dead: only the order of sequences counts"),
    "epochs": SHOWN,
    "events": SHOWN,
    "days": SHOWN,
    "recorded": SHOWN,
    "journaled": SHOWN,
    "room": Dead("dead: each operation begins with a full budget"),
    "cut": Dead("dead: each operation begins with a full budget"),
}

FIELDS: Final[dict[type, dict[str, Rule | Dead]]] = {
    Store: STORE,
    Job: JOB,
    Queue: QUEUE,
    ParkedJobs: PARKED,
    ConcurrencyKey: KEY,
    Request: REQUEST,
    Schedule: SCHEDULE,
    Subscription: SUBSCRIPTION,
    Message: MESSAGE,
    Throttle: THROTTLE,
    Unique: UNIQUE,
    Worker: WORKER,
}
"""Every field of every record, and how it stands in the form."""

_WRITTEN = {
    cls: [(name, rule) for name, rule in rules.items() if not isinstance(rule, Dead)] for cls, rules in FIELDS.items()
}


def written(record: Any, form: Form) -> list[Any]:
    """Write the fields of a record."""
    return [rule(getattr(record, name), record, form) for name, rule in _WRITTEN[type(record)]]


class Canonical:
    """Writes the forms of the states of one scope."""

    def __init__(self, jobs: tuple[str, ...], workers: tuple[str, ...], live: frozenset[str], horizon: int) -> None:
        self._live, self._horizon = live, horizon
        self._jobs = frozenset(jobs)
        self._tables = [
            {ord(old): new for old, new in zip(jobs + workers, named + others, strict=True)}
            for named in permutations(jobs)
            for others in permutations(workers)
        ]

    def of(self, store: Store, now: int) -> str:
        """Give the form of a state."""
        form = Form(store, now, self._live, self._horizon)
        parts = self._parts(store, form)
        if form.again():
            parts = self._parts(store, form)
        if store.messages.size or store.subscriptions or not self._jobs.issuperset(store.jobs):
            parts = _without_numbers(parts)
        return min("\n".join(sorted([part.translate(table) for part in parts])) for table in self._tables)

    @staticmethod
    def _parts(store: Store, form: Form) -> list[str]:
        """Write each job, and each part of the store that is not empty; the records of a part each by itself, so that
        renaming does not change their order.
        """
        parts = [f"{jid}: {written(job, form)}" for jid, job in store.jobs.items()]
        for name, rule in _WRITTEN[Store]:
            value = rule(getattr(store, name), store, form)
            if rule is _each:
                parts += [f"{name}: {one}" for one in value]
            elif value:
                parts.append(f"{name}: {value}")
        return parts


def _without_numbers(parts: list[str]) -> list[str]:
    """Replace the numbers of events by their ranks."""
    found = sorted({int(at) for part in parts for _, at in _NUMBERED.findall(part)})
    ranks = {str(at): str(rank) for rank, at in enumerate(found)}
    return [_NUMBERED.sub(lambda m: m[1] + ranks[m[2]], part) for part in parts]


# ---- evidence


def told_apart(one: Store, other: Store) -> set[str]:
    """Name the fields that are not in the form and in which two stores differ; renamed records are not compared."""
    found = {f"store.{name}" for name in _dead(Store) if _differ(getattr(one, name), getattr(other, name))}
    for name, rule in STORE.items():
        if rule is _each or name == "jobs":
            records, others = getattr(one, name), getattr(other, name)
            for key in records.keys() & others.keys():
                cls = type(records[key])
                for field in _dead(cls):
                    if _differ(getattr(records[key], field), getattr(others[key], field)):
                        found.add(f"{cls.__name__.lower()}.{field}")
    return found


def _dead(cls: type) -> list[str]:
    return [name for name, rule in FIELDS[cls].items() if isinstance(rule, Dead)]


def _differ(one: Any, other: Any) -> bool:
    if hasattr(one, "__slots__") or isinstance(one, dict):
        return repr(one) != repr(other) if not hasattr(one, "until") else list(one) != list(other)
    return bool(one != other)
