"""What the events of a step tell: the record of each job that they name, derived from them and the operation alone.

The derivation knows nothing of the model's verbs. It starts from the records before the step, and applies one event
after the other: what an event does to a job's record stands in `_BECOMES`. The laws compare the result with the state
after the step, and look at a job's record at the moment of an event, in the middle of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from qmodel.contract.arguments import TOKEN_EPOCH
from qmodel.contract.events import EVENTS, Event
from qmodel.contract.operations import Put
from qmodel.model.snapshot import Record, Snapshot

PENDING = frozenset({"waiting", "scheduled", "depends", "throttled"})
"""The states of a job that waits to be claimed."""

OF_PUT = (
    "lifo", "lease_ms", "timeout_ms", "ttl_ms", "dead_queue", "keep_complete_ms", "keep_failed_ms", "keep_newest",
    "throttles", "cost", "ordered", "max_lapses", "retry_delay_ms", "retry_delay_max_ms", "fair_key",
    "fair_weight", "unique",
)  # fmt: skip
"""The options of a job that a put states anew."""


class Moment(Protocol):
    """What the derivation looks at: a step, the states around it, and its operation."""

    before: Snapshot
    after: Snapshot
    outcome: Any
    events: tuple[Event, ...]
    begun: dict[str, bool]

    @property
    def now(self) -> int:
        """When the step is."""

    @property
    def op(self) -> Any:
        """The operation."""

    @property
    def name(self) -> str:
        """The name of the operation."""

    @property
    def puts(self) -> dict[str, Put]:
        """The puts that the operation gives, by job."""

    def heartbeat(self, queue: str) -> int:
        """How long a lease in a queue lasts by the settings."""

    @property
    def becomes(self) -> dict[str, Record | None]:
        """The record of each job that the events name, as they leave it."""


class Told(NamedTuple):
    """An event about a job, and the job's record before and after it: None if there is no job."""

    event: Event
    was: Record | None
    becomes: Record | None

    @property
    def jid(self) -> str:
        """The job."""
        return str(self.event.facts[0])

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the event by name."""
        return self.event.named


class Tale:
    """The records while the events of one step are applied."""

    def __init__(self, moment: Moment) -> None:
        self.m = moment
        self.records: dict[str, Record | None] = {}
        self.due: dict[str, tuple[str, int]] = {}  # run -> its recurring job and due time
        self.letters: dict[str, Record] = {}  # dead letter -> the failed job
        self.dropped: dict[str, int] = {}  # key -> how many of its puts were deduplicated
        self.epoch = moment.before.epoch

    def since(self, key: str, job: Record) -> int:
        """Since when the holder of a key has held it."""
        before = self.m.before.uniques.get(key)
        same = before is not None and self.m.after.uniques.get(key, {}).get("since") == before["since"]
        return int(before["since"]) if before is not None and same else int(job["put_at"])

    def record(self, jid: str) -> Record | None:
        """The record of a job so far."""
        if jid in self.records:
            return self.records[jid]
        before = self.m.before.jobs.get(jid)
        return before and {**before, "options": dict(before["options"]), "begun": self.m.begun.get(jid), "source": None}


def tell(moment: Moment) -> tuple[list[Told], dict[str, Record | None]]:
    """Apply the events of a step; give those about jobs, and the last record of each job that they name."""
    tale, told = Tale(moment), []
    for event in moment.events:
        if event.event == "epoch_begun":
            tale.epoch = int(event.facts[0])
        if event.event == "fired":
            tale.due[str(event.facts[2])] = str(event.facts[0]), int(event.facts[3])
        if EVENTS[event.event][:1] != ("jid",):
            continue
        jid = str(event.facts[0])
        was = tale.record(jid)
        becomes = dict(was) if was is not None else None
        if event.event == "dead_lettered" and was is not None:
            tale.letters[str(event.facts[2])] = was
        if event.event in ("canceled", "retired"):
            becomes = None
        elif event.event in _BECOMES and (becomes is not None or event.event == "put"):
            becomes = becomes if becomes is not None else _new()
            _BECOMES[event.event](tale, becomes, event.named, event)
        tale.records[jid] = becomes
        told.append(Told(event, was, becomes))
    return told, tale.records


def known(moment: Moment) -> dict[str, bool]:
    """Give which jobs have begun, after a step."""
    begun = dict(moment.begun)
    for jid, record in moment.becomes.items():
        if record is not None and record["begun"] is not None:
            begun[jid] = record["begun"]
    return {jid: said for jid, said in begun.items() if jid in moment.after.jobs}


def _new() -> Record:
    return {
        "klass": "", "queue": "", "state": "", "data": "", "priority": 0, "retries": 5, "remaining": 5, "tags": (),
        "worker": "", "token": 0, "grant": "", "expires_at": 0, "put_at": 0, "put_request": "", "ready_at": 0,
        "popped_at": 0, "ended_at": 0, "result": "", "progress": "", "failure": None, "seq": 0, "dependencies": (),
        "dependents": (), "marks": (), "history": (), "options": {}, "begun": False, "source": None,
    }  # fmt: skip


def is_spent(job: Record) -> bool:
    """Whether a job fails if its lease lapses: it has no retries left, or no lapse up to its limit of them."""
    options = dict(job["options"])
    most = options.get("max_lapses")
    return job["remaining"] == 0 if most is None else int(options.get("lapses", 0)) >= int(most)


def backoff(job: Record, more: int = 0) -> int:
    """How long the next retry or lapse makes a job wait by its options, or the one after so many more."""
    options = dict(job["options"])
    if "retry_delay_ms" not in options:
        return 0
    first, before = int(options["retry_delay_ms"]), job["retries"] - job["remaining"] + int(options.get("lapses", 0))
    most = int(options.get("retry_delay_max_ms", max(86_400_000, first)))
    return int(min(first << min(before + more, 20), most))


def ready_at(put: Put, now: int) -> int:
    """When the job of a put is ready: at the put's moment unless that is past, or after its delay."""
    return now + put.delay_ms if put.at is None else max(put.at, now)


def text(value: Any) -> str:
    """Write an argument of a put as an option of its job."""
    return " ".join(value) if isinstance(value, tuple) else str(int(value)) if isinstance(value, int) else str(value)


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value != "" and value != ()


def _lease(record: Record) -> None:
    record.update(worker="", expires_at=0)


def _copied(job: Record, other: Record, source: str) -> dict[str, str]:
    """Take data, priority and retries from another job; give the options that are taken over."""
    job.update(data=other["data"], priority=other["priority"], retries=other["retries"], source=source)
    given = dict(other["options"])
    return {name: given[name] for name in ("lifo", "lease_ms", "timeout_ms") if name in given}


def _run(m: Moment, job: Record, schedule: str) -> dict[str, str]:
    """Give a run what its recurring job says, and its options."""
    one = m.before.schedules[schedule] if schedule in m.before.schedules else m.after.schedules[schedule]
    job.update(data=one["data"], priority=one["priority"], retries=one["retries"], source="run")
    given = {name: text(one[name]) for name in ("throttles", "fair_key") if one[name]}
    return given | {"fair_weight": str(one["fair_weight"])} if one["fair_weight"] else given


def _put(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    m, jid = tale.m, str(facts["jid"])
    at = m.now
    options = {name: value for name, value in job["options"].items() if name in ("after", "results")}
    if jid in tale.due:
        schedule, at = tale.due[jid]
        options |= _run(m, job, schedule)
    elif jid in tale.letters:
        options |= _copied(job, tale.letters[jid], "letter")
    elif jid in m.puts:
        put = m.puts[jid]
        options |= {name: text(value) for name in OF_PUT if _is_given(value := getattr(put, name))}
        if put.priority is not None:
            job["priority"] = put.priority
        elif m.name in ("request_add", "request_put"):
            job["priority"] = m.before.requested.get(m.op.id, {"priority": getattr(m.op, "priority", 0)})["priority"]
        retries = job["retries"] if put.retries is None else put.retries
        job.update(data=put.data, retries=retries, source="put")
        at = ready_at(put, at)
    elif m.name == "replay":
        letter = m.before.jobs[m.op.jid]
        options |= _copied(job, letter, "replay") | {"dead_queue": dict(letter["options"])["origin_dead_queue"]}
    else:
        at = max(_message(m, job, jid, options), at)
    job.update(
        state=facts["state"], queue=facts["queue"], klass=facts["klass"], remaining=job["retries"],
        put_at=at if job["source"] == "run" else m.now, ready_at=at, ended_at=0, result="", progress="",
        options=options, begun=False, seq=event.seq, token=0,
    )  # fmt: skip
    _lease(job)


def _message(m: Moment, job: Record, jid: str, options: dict[str, str]) -> int:
    """Set up the job of a message, called `<subscription>:<number>`; give when it is due."""
    name, _, number = jid.rpartition(":")
    one = m.after.subscriptions[name]
    kept = {seq: (due, subject, data) for seq, _, due, subject, data in (*m.before.messages, *m.after.messages)}
    if m.name == "publish" and int(number) not in kept:
        kept[int(number)] = m.now + m.op.delay_ms, m.op.subject, m.op.data
    due, subject, data = kept[int(number)]
    options |= {**dict(one["options"]), "subject": subject}
    job.update(data=data, priority=one["priority"] or 0, retries=one["retries"], source="message")
    return int(due) + int(one["delay_ms"])


def _promoted(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    job["state"] = "waiting"
    request = tale.m.before.requested.get(job["options"].get("request", ""))
    if request is not None and "line" not in job["options"]:  # it gets a slot, and the priority of its request
        job["priority"] = request["priority"]
    if tale.m.name == "promote":
        job.update(ready_at=min(job["ready_at"], tale.m.now), seq=event.seq)


def _unblocked(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    job.update(state=facts["state"], ready_at=max(job["ready_at"], tale.m.now), seq=event.seq)


def _deduplicated(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    known = tale.m.before.jobs if tale.m.name == "put_new" else ()
    dropped = [
        one
        for one in tale.m.puts.values()
        if one.unique == facts["unique"] and one.jid != facts["jid"] and one.jid not in known
    ]
    number = tale.dropped.get(facts["unique"], 0)
    tale.dropped[facts["unique"]] = number + 1
    if facts["mode"] not in ("debounce", "again") or job["state"] not in PENDING or job["begun"]:
        return
    if job["begun"] is None:
        job["source"] = "unknown"
        return
    put = dropped[number]
    job["data"] = put.data
    if facts["mode"] == "debounce" and job["state"] != "throttled":
        due = ready_at(put, tale.m.now)
        most = due if put.unique_max_ms is None else tale.since(facts["unique"], job) + put.unique_max_ms
        job.update(state=facts["state"], ready_at=min(due, most), seq=event.seq)


def _delayed(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    if tale.m.name == "delay":
        job.update(ready_at=tale.m.now + tale.m.op.delay_ms, state=tale.m.outcome, seq=event.seq)
        return
    if job["state"] == "running":  # its holder was told in an earlier step
        _lapsed(job)
    job.update(state="scheduled", ready_at=job["ready_at"] + backoff(job, -1), seq=event.seq)
    _lease(job)


def _unfailed(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    now = tale.m.now
    job.update(
        state=facts["state"], queue=facts["queue"], remaining=job["retries"], put_at=now, ready_at=now, ended_at=0,
        seq=event.seq, options={name: value for name, value in job["options"].items() if name != "lapses"},
    )  # fmt: skip


def _throttled(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    job.update(state="throttled", seq=event.seq)
    _lease(job)


def _unthrottled(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    kind, _, id = str(facts["throttle"]).partition(":")
    if kind == "request" and id in tale.m.before.requested:  # it gets a slot, and the priority of its request
        job["priority"] = tale.m.before.requested[id]["priority"]
    job.update(state="waiting", ready_at=tale.m.now, seq=event.seq)


def _popped(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    m = tale.m
    options = {name: value for name, value in job["options"].items() if name != "ttl_ms"}
    ends = m.now + int(options.get("lease_ms", m.heartbeat(job["queue"])))
    if "timeout_ms" in options:
        ends = min(ends, m.now + int(options["timeout_ms"]))
    job.update(
        state="running", worker=facts["worker"], token=tale.epoch * TOKEN_EPOCH + event.seq, popped_at=m.now,
        expires_at=ends, options=options, begun=True, seq=event.seq,
    )  # fmt: skip


def _given(tale: Tale, jid: str) -> Any:
    """The operation of the worker that finishes a job."""
    if tale.m.name == "complete_many":
        return next(one for one in tale.m.op.jobs if one.jid == jid)
    return tale.m.op


def _finished(tale: Tale, job: Record, jid: str) -> None:
    op = _given(tale, jid)
    job.update(result=op.result, failure=None, remaining=job["retries"])
    if op.data is not None:
        job["data"] = op.data
    _lease(job)


def _completed(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    _finished(tale, job, facts["jid"])
    job.update(state="complete", ended_at=tale.m.now, seq=event.seq)


def _advanced(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    _finished(tale, job, facts["jid"])
    op, now = _given(tale, facts["jid"]), tale.m.now
    job.update(state=facts["state"], queue=op.next, put_at=now, ready_at=now + op.delay_ms, seq=event.seq)
    job["options"] = {name: value for name, value in job["options"].items() if name != "lapses"}


def _failed(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    op = tale.m.op
    mine = getattr(op, "jid", None) == facts["jid"] and job["state"] in ("running", "stalled")
    if mine and tale.m.name in ("fail", "release", "complete", "complete_and_pop") and op.data is not None:
        job["data"] = op.data
    if tale.m.name in ("complete", "complete_and_pop", "complete_many"):
        given = [one for one in getattr(op, "jobs", (op,)) if one.jid == facts["jid"]]
        if given and job["state"] == "running":
            job["result"] = given[0].result
            job["data"] = job["data"] if given[0].data is None else given[0].data
    options = {name: value for name, value in job["options"].items() if name not in ("ttl_ms", "revoked")}
    job.update(
        state="failed", ended_at=tale.m.now, failure=(facts["group"], None, tale.m.now, facts["worker"]),
        options=options, seq=event.seq,
    )  # fmt: skip
    _lease(job)


def _given_back(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    op = tale.m.op
    delay_ms = max(op.delay_ms, backoff(job)) if event.event == "retried" else op.delay_ms
    job.update(state=facts["state"], ready_at=tale.m.now + delay_ms, seq=event.seq)
    if event.event == "retried":
        job["remaining"] -= 1
        if op.group is not None:
            job["failure"] = (op.group, None, tale.m.now, facts["worker"])
    elif op.data is not None:
        job["data"] = op.data
    _lease(job)


def _lock_lost(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    if facts["cause"] in ("put", "cancel", "revoke"):
        return
    if tale.m.name == "timeout":
        job.update(state="stalled", ready_at=tale.m.now, seq=event.seq)
        _lease(job)
        return
    _lapsed(job)


def _lapsed(job: Record) -> None:
    job.update(state="taken", ready_at=job["expires_at"])
    if is_spent(job) or "revoked" in job["options"]:
        return
    if "max_lapses" in job["options"]:
        job["options"] = {**job["options"], "lapses": str(int(job["options"].get("lapses", 0)) + 1)}
    else:
        job["remaining"] -= 1


def _revoked(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    if job["state"] == "running":
        job["options"] = {**job["options"], "revoked": "1"}


def _prioritized(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    job["priority"] = tale.m.op.priority
    if "state" in facts:
        options = {name: text for name, text in job["options"].items() if name != "released"}
        job.update(state=facts["state"], ready_at=0, seq=event.seq, options={**options, "ended": "1"})


def _updated(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    if tale.m.name == "update":  # not throttle_unset, which lets the job out of a throttle
        job["data"] = tale.m.op.data


def _progressed(tale: Tale, job: Record, facts: dict[str, Any], event: Event) -> None:
    job["progress"] = tale.m.op.progress


_BECOMES: dict[str, Callable[[Tale, Record, dict[str, Any], Event], None]] = {
    "put": _put,
    "promoted": _promoted,
    "unblocked": _unblocked,
    "deduplicated": _deduplicated,
    "delayed": _delayed,
    "unfailed": _unfailed,
    "throttled": _throttled,
    "unthrottled": _unthrottled,
    "popped": _popped,
    "completed": _completed,
    "advanced": _advanced,
    "failed": _failed,
    "retried": _given_back,
    "released": _given_back,
    "lock_lost": _lock_lost,
    "revoked": _revoked,
    "prioritized": _prioritized,
    "updated": _updated,
    "progressed": _progressed,
}
"""What each event does to the record of its job."""
