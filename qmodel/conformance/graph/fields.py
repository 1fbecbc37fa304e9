"""How every field of every record of the store stands in the canonical form (canonical.py)."""

from __future__ import annotations

from typing import Any, Final

from qmodel.conformance.graph import rules
from qmodel.conformance.graph.rules import (
    Dead,
    Form,
    Rule,
    Written,
    either,
    exact,
    is_set,
    items,
    members,
    moment,
    moments,
    names,
    number,
    only,
    order,
    rank,
    where,
)
from qmodel.model.state import throttles
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

LISTED = Dead("derived from the fields of the jobs")
SHOWN = Dead("dead: only reads show it")
ORDERS = Dead("dead: its order stands in the lists")

JOB: Final[dict[str, Rule | Dead]] = {
    "jid": Dead("derived: the name under which it stands"),
    "state": exact,
    "aged": rules.aged,
    "queue": exact,
    "klass": exact,
    "data": exact,
    "priority": exact,
    "retries": exact,
    "remaining": exact,
    "worker": exact,
    "grant": rules.request,
    "result": exact,
    "progress": exact,
    "put_request": rules.request,
    "token": rules.token,
    "seq": only("waiting scheduled throttled depends running stalled failed complete", rank),
    "ready_at": either(only("waiting scheduled throttled depends", moment), rules.parks_with),
    "expires_at": only("running", moment),
    "put_at": either(
        rules.put_at, where("job.put_at", only("waiting scheduled throttled depends running stalled", moment))
    ),
    "popped_at": rules.popped_at,
    "ended_at": where("job.ended_at", only("complete failed", moment)),
    "failure": rules.failure,
    "tags": names,
    "options": rules.options,
    "dependencies": items,
    "dependents": Dead("derived: the dependencies of the others"),
    "history": rules.outcomes,
}

QUEUE: Final[dict[str, Rule | Dead]] = {
    "first_seen": is_set,
    "pauses": rules.pauses,
    "idle": exact,
    "wakes": exact,
    "parked": rules.parked,
    "turns": rules.turns,
    "ends": rules.ends,
    **dict.fromkeys(("ready", "scheduled", "depends", "locks", "throttled", "expires"), LISTED),
    "recur": Dead("derived from the schedules"),
}

PARKED: Final[dict[str, Rule | Dead]] = {"moment": rules.due, "parked": order, "admitted": order}

KEY: Final[dict[str, Rule | Dead]] = {"active": members, "parked": order}

REQUEST: Final[dict[str, Rule | Dead]] = {
    **dict.fromkeys(("state", "queue", "priority", "limit", "first_priority", "first_limit"), exact),
    "reached": rules.until_the_end,
    **dict.fromkeys(("total", "done", "failed", "canceled", "lease_ms", "fail_fast", "reason", "ending"), exact),
    "keep_places": exact,
    "order": names,
    "data": exact,
    "deadline_at": moment,
    "open_until": only("open", moment),
    "unfinished": rules.marked,
    "dependents": Dead("derived: the dependencies of the jobs"),
    "jid": Dead("derived: from its id"),
    "ended": rules.ended,
    "state_at": where("request.state_at", moment),
    "id": Dead("derived: the name under which it stands"),
    "opened_at": rules.deadline,
    "ended_at": SHOWN,
    "seq": ORDERS,
}

SCHEDULE: Final[dict[str, Rule | Dead]] = {
    **dict.fromkeys(("queue", "klass", "data", "cron", "kind", "missed", "overlap", "priority", "retries"), exact),
    **dict.fromkeys(("backlog", "runs", "made", "open", "interval_ms", "offset_ms", "catchup_ms", "limit"), exact),
    "paused": exact,
    "tags": exact,
    "throttles": exact,
    "fair_key": exact,
    "fair_weight": exact,
    "later": moments,
    "next_at": moment,
    "last_at": moment,
    "start_at": moment,
    "end_at": moment,
    "jid": Dead("derived: the name under which it stands"),
    "seq": rules.place,
    "since": Dead("dead: the jobs' option says whether it is theirs"),
}

SUBSCRIPTION: Final[dict[str, Rule | Dead]] = {
    "patterns": exact,
    "position": number,
    "put": rules.template,
    "name": Dead("derived: the name under which it stands"),
    "seq": ORDERS,
}

MESSAGE: Final[dict[str, Rule | Dead]] = {
    "seq": number,
    "at": where("message.at", moment),
    "due_at": moment,
    "subject": exact,
    "data": exact,
}

THROTTLE: Final[dict[str, Rule | Dead]] = {
    **dict.fromkeys(throttles.LIMITS, exact),
    "level": rules.level,
    "level_at": Dead("derived: the level as of now is written"),
    "generation": rules.generation,
    "cools_at": Dead("derived: the claims and the level as of now are written"),
    "held": order,
    "claims": rules.claims,
    "queues": members,
}

UNIQUE: Final[dict[str, Rule | Dead]] = {
    "mode": exact,
    "jid": exact,
    "next": exact,
    "ends": moment,
    "since": where("unique.since", moment),
    "key": Dead("derived: the name under which it stands"),
}

WORKER: Final[dict[str, Rule | Dead]] = {
    "seen_at": either(where("worker.seen_at", lambda value, _, form: value and form.moment(value)), is_set),
    "held": lambda value, _, form: sorted(value, key=value.get),
    "grants": rules.grants,
}

STORE: Final[dict[str, Rule | Dead]] = {
    "jobs": Dead("written apart: their names are interchangeable"),
    "queues": rules.each,
    "concurrency_keys": rules.each,
    "requested": rules.each,
    "schedules": rules.each,
    "subscriptions": rules.each,
    "messages": rules.records,
    "workers": rules.each,
    "throttles": rules.each,
    "uniques": rules.each,
    "workers_passed": exact,
    "epoch": exact,
    "tracked": names,
    "config": items,
    "metadata": items,
    "results": rules.apart,
    "requests": rules.memories,
    "cascade": lambda value, _, form: [(jid, flag) for _, jid, flag in value],
    "tags": lambda value, _, form: sorted((tag, [place[-1] for place in jobs]) for tag, jobs in value.items()),
    "settings": Dead("derived from the configuration"),
    "fair": Dead("derived from the configuration"),
    "aging": Dead("derived from the configuration"),
    "journals": Dead("derived from the configuration"),
    "completed": LISTED,
    "failed": LISTED,
    "keeping": LISTED,
    "newest": LISTED,
    "groups": LISTED,
    "crons": Dead("derived from the schedules"),
    "families": Dead("derived from the throttles"),
    "cooling": Dead("derived from the throttles"),
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

WRITTEN: Final = {
    cls: [(name, rule) for name, rule in rules_.items() if not isinstance(rule, Dead)] for cls, rules_ in FIELDS.items()
}
"""For each record, the fields that are in the form."""


def _writer(rules_: list[tuple[str, Rule]]) -> Written:
    """Make the function that writes the fields of one record. It is written out field by field and compiled, which
    halves its time.
    """
    known = {f"rule_{name}": rule for name, rule in rules_}
    parts = [f"r.{name}" if rule is exact else f"rule_{name}(r.{name}, r, form)" for name, rule in rules_]
    made: Written = eval(f"lambda r, form: [{', '.join(parts)}]", known)
    return made


_WRITERS: Final = {cls: _writer(rules_) for cls, rules_ in WRITTEN.items()}


def written(record: Any, form: Form) -> list[Any]:
    """Write the fields of a record."""
    return _WRITERS[type(record)](record, form)
