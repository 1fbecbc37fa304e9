"""Snapshots: the whole state of a namespace in one plain form, the same from every subject.

Everything is text, whole numbers, floats, None, tuples and dictionaries, so that two snapshots are compared with `==`
and a difference is named by a path. A tuple is used if order matters; a dictionary has no order. The names of the parts
are a format: old snapshots keep `lines` (concurrency keys), `gates` (parked jobs of a queue) and `let` (admitted jobs).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from qmodel.model.state import epochs, journal, requests, subscriptions
from qmodel.model.state.history import stages
from qmodel.model.state.records import Day, Job, Part, Position, Queue, Request, Sample, Subscription, Throttle, Worker
from qmodel.model.state.store import Store
from qmodel.model.state.throttles import LIMITS, limits

Record = dict[str, Any]

JOB = (
    "klass", "queue", "state", "data", "priority", "retries", "remaining", "tags", "worker", "token",
    "grant", "expires_at", "put_at", "put_request", "ready_at", "popped_at", "ended_at", "result",
    "progress", "failure", "seq", "dependencies", "dependents", "marks", "history", "options",
)  # fmt: skip
"""The fields of a job's record, all as in `state.records.Job` but for:

    tags            ((tag, sequence), ...) in the job's order
    failure         None, or (group, message, at, worker)
    dependencies    ids, sorted, of requests as `<id> request`; so are dependents
    marks           ((id, mark), ...) of the edges to dependencies that are not plain, sorted
    history         ((what, at, (fact, ...)), ...)
    options         ((name, text), ...), by name
"""

QUEUE = (
    "first_seen", "pauses", "idle", "wakes", "ready", "scheduled", "depends", "locks", "throttled", "expires", "recur",
    "gates", "turns", "ends",
)  # fmt: skip
"""The fields of a queue's record.

`first_seen` is None if the queue is not on the list; `pauses` is {reason: until}. `ready` holds (priority, ready_at,
sequence, jid), the other lists hold (time, sequence, jid); the time of a stalled job is minus infinity. Jobs in
`expires` are in another list too, and those in `recur` are recurring jobs. `gates` is throttle -> {moment, parked:
((priority, parked at sequence, jid), ...), let: ((priority, cost, jid), ...)}. `turns` is
priority -> {jobs: how many jobs with a turn are in `ready`, next: {fair key: its next turn}}. `ends` is {request: when
the engine closes or cancels it}.
"""

SCHEDULE = (
    "queue", "klass", "data", "priority", "retries", "tags", "interval_ms", "backlog", "runs", "next_at", "seq",
    "kind", "cron", "later", "last_at", "offset_ms", "start_at", "end_at", "limit", "made", "missed", "catchup_ms",
    "overlap", "open", "paused", "since", "throttles", "fair_key", "fair_weight",
)  # fmt: skip
"""The fields of a recurring job's record, all as in `state.records.Schedule`."""

UNIQUE = ("mode", "jid", "since", "ends", "next")
"""The fields of a key's record, all as in `state.records.Unique`."""
REQUEST = (
    "state", "state_at", "seq", "queue", "priority", "limit", "first_priority", "first_limit", "total", "done",
    "failed", "canceled", "opened_at", "ended_at", "reached", "deadline_at", "lease_ms", "open_until", "fail_fast",
    "reason", "ending", "keep_places", "data",
)  # fmt: skip
"""The fields of a request's record, all as in `state.records.Request`."""

DEFAULT_QUEUE: Record = {
    "first_seen": None, "pauses": {}, "idle": 0, "wakes": 0,
    "ready": (), "scheduled": (), "depends": (), "locks": (), "throttled": (), "expires": (), "recur": (),
    "gates": {}, "turns": {}, "ends": {},
}  # fmt: skip


@dataclass(slots=True)
class Snapshot:
    """One namespace.

    seq         the sequence of the last event
    epoch       the current epoch
    epochs      ((sequence, epoch), ...): the first kept event and its epoch, and each event that began a later one;
                empty if only the number of the events is known
    events      how many events are kept: those up to `seq`
    jobs        jid -> record (JOB)
    queues      name -> record (QUEUE), without queues that equal DEFAULT_QUEUE
    requested   id -> record of a request (REQUEST), with unfinished: (jid, ...) by id; given: those of them that
                were given dependencies; yielded: those that gave up their slot after they had begun; ended: ((jid,
                outcome, sequence), ...) by id; order: (jid, ...) as they were added; and dependents: the jobs that
                wait for it
    request_states  state -> ((since, sequence, id), ...)
    lines       concurrency key -> {active: (jid, ...) with a slot, by id, parked: ((ready_at, sequence, jid), ...)}
    schedules   jid -> record of a recurring job (SCHEDULE)
    crons       ((last known due time, sequence, jid), ...) of schedules that need more due times
    subscriptions   name -> {seq, position, patterns, queue, klass, priority, retries, delay_ms, tags, options}, where
                position is None if it is up to date, and options are as a job's
    messages    ((number, at, due_at, subject, data), ...)
    workers     name -> {seen_at: moment or None, held: {jid: sequence},
                grants: {request: (jid, ...)}}
    workers_passed  how many silent workers with leases the sweep has passed
    completed   ((ended_at, sequence, jid), ...)
    failed      ((ended_at, sequence, jid), ...), those that may be deleted
    keeping     ((until, sequence, jid), ...), those with their own retention
    newest      job type -> ((ended_at, sequence, jid), ...), the newest ones with keep_newest
    groups      name -> ((ended_at, sequence, jid), ...)
    tags        tag -> ((sequence, jid), ...)
    tracked     jid -> sequence
    throttles   name -> {each of LIMITS, level, level_at, generation, cools_at, held: ((sequence of the claim, jid),
                ...), claims: ((moment, sequence), ...), queues: names of the queues with jobs parked there, sorted}
    days        (day, queue) -> {wait: sample, run: sample, failures, failed, retries, minutes, swept, tags, workers},
                where a sample is {count, mean, squares, bins: {bin: count}} without empty bins, and minutes are
                {minute of the day: (completed, failed, retried, run ms)}; swept says whether the minutes were deleted;
                tags and workers are {name: {wait: sample, run: sample}}
    uniques     key -> {mode, jid, since, ends, next}
    config      option -> value, if set
    journal     the kept entries: ((number, sequence, call, outcome, epoch), ...), as qmodel.contract.replies.Recorded
    journaled   the number of the last entry
    metadata    klass -> {key: text}
    cascade     ((sequence, jid, whether it is to be canceled), ...): failed jobs with dependents still to process, the
                last one last
    results     jid -> ((jid, name, state, text), ...): the outcomes of its named dependencies, in their order
    requests    ((request, reply), ...), oldest first; a reply is text, a whole number, or tuples of them
    """

    seq: int
    events: int
    jobs: dict[str, Record]
    queues: dict[str, Record]
    lines: dict[str, Record]
    requested: dict[str, Record]
    request_states: dict[str, tuple[Position, ...]]
    schedules: dict[str, Record]
    crons: tuple[Position, ...]
    subscriptions: dict[str, Record]
    messages: tuple[tuple[int, int, int, str, str], ...]
    workers: dict[str, Record]
    workers_passed: int
    completed: tuple[Position, ...]
    failed: tuple[Position, ...]
    keeping: tuple[Position, ...]
    groups: dict[str, tuple[Position, ...]]
    tags: dict[str, tuple[tuple[int, str], ...]]
    tracked: dict[str, int]
    throttles: dict[str, Record]
    days: dict[tuple[int, str], Record]
    uniques: dict[str, Record]
    config: dict[str, int]
    journal: tuple[tuple[int, int, str, str, int], ...]
    journaled: int
    metadata: dict[str, dict[str, str]]
    cascade: tuple[tuple[int, str, bool], ...]
    results: dict[str, tuple[tuple[str, str, str, str], ...]]
    requests: tuple[tuple[str, Any], ...]
    epoch: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    newest: dict[str, tuple[Position, ...]] = field(default_factory=dict)


def of(store: Store) -> Snapshot:
    """Take a snapshot of the model."""
    queues = {name: _queue(queue) for name, queue in store.queues.items()}
    return Snapshot(
        seq=store.seq,
        events=len(store.events),
        jobs={jid: _job(job) for jid, job in store.jobs.items()},
        queues={name: record for name, record in queues.items() if record != DEFAULT_QUEUE},
        requested={id: _request(request) for id, request in store.requested.items()},
        request_states={state: tuple(found) for state, found in store.request_states.items() if found},
        lines={
            name: {"active": tuple(sorted(key.active)), "parked": tuple(key.parked)}
            for name, key in store.concurrency_keys.items()
        },
        schedules={
            jid: {field: getattr(schedule, field) for field in SCHEDULE} for jid, schedule in store.schedules.items()
        },
        crons=tuple(store.crons),
        subscriptions={name: _subscription(one) for name, one in store.subscriptions.items()},
        messages=tuple((*message,) for message in store.messages),
        workers={name: _worker(worker) for name, worker in store.workers.items()},
        workers_passed=store.workers_passed,
        completed=tuple(store.completed),
        failed=tuple(store.failed),
        keeping=tuple(store.keeping),
        newest={klass: tuple(entries) for klass, entries in store.newest.items()},
        groups={name: tuple(jobs) for name, jobs in store.groups.items()},
        tags={tag: tuple(jobs) for tag, jobs in store.tags.items()},
        tracked=dict(store.tracked),
        throttles={name: _throttle(throttle) for name, throttle in store.throttles.items()},
        days={key: _day(day) for key, day in store.days.items()},
        uniques={key: {field: getattr(one, field) for field in UNIQUE} for key, one in store.uniques.items()},
        config=dict(store.config),
        journal=tuple((*entry,) for entry in journal.all_(store)),
        journaled=store.journaled,
        metadata={klass: dict(notes) for klass, notes in store.metadata.items()},
        cascade=tuple(store.cascade),
        results={jid: tuple((other, *one) for other, one in kept.items()) for jid, kept in store.results.items()},
        requests=tuple((request, plain(reply)) for request, reply in store.requests.items()),
        epoch=store.epoch,
        epochs=epochs.kept(store),
    )


def _job(job: Job) -> Record:
    return {
        "klass": job.klass,
        "queue": job.queue,
        "state": job.state,
        "data": job.data,
        "priority": job.priority,
        "retries": job.retries,
        "remaining": job.remaining,
        "tags": tuple(job.tags.items()),
        "worker": job.worker,
        "token": job.token,
        "grant": job.grant,
        "expires_at": job.expires_at,
        "put_at": job.put_at,
        "put_request": job.put_request,
        "ready_at": job.ready_at,
        "popped_at": job.popped_at,
        "ended_at": job.ended_at,
        "result": job.result,
        "progress": job.progress,
        "failure": tuple(job.failure) if job.failure is not None else None,
        "seq": job.seq,
        "dependencies": tuple(sorted(job.dependencies)) if job.dependencies else (),
        "dependents": tuple(sorted(job.dependents)) if job.dependents else (),
        "marks": tuple(sorted(mark for mark in job.dependencies.items() if mark[1])) if job.dependencies else (),
        "history": tuple(stages(job)),
        "options": tuple(sorted(job.options.items())) if job.options else (),
    }


def _queue(queue: Queue) -> Record:
    return {
        "first_seen": queue.first_seen,
        "pauses": dict(queue.pauses),
        "idle": queue.idle,
        "wakes": queue.wakes,
        "ready": tuple(queue.ready),
        "scheduled": tuple(queue.scheduled),
        "depends": tuple(queue.depends),
        "locks": tuple(queue.locks),
        "throttled": tuple(queue.throttled),
        "expires": tuple(queue.expires),
        "recur": tuple(queue.recur),
        "ends": dict(queue.ends),
        "gates": {
            name: {"moment": entry.moment, "parked": tuple(entry.parked), "let": tuple(entry.admitted)}
            for name, entry in queue.parked.items()
        },
        "turns": {priority: {"jobs": of.jobs, "next": dict(of.next)} for priority, of in queue.turns.items()},
    }


def _throttle(throttle: Throttle) -> Record:
    return {
        **dict(zip(LIMITS, limits(throttle), strict=True)),
        "level": throttle.level,
        "level_at": throttle.level_at,
        "generation": throttle.generation,
        "cools_at": throttle.cools_at,
        "held": tuple(throttle.held),
        "claims": tuple(throttle.claims),
        "queues": tuple(sorted(throttle.queues)),
    }


def _subscription(subscription: Subscription) -> Record:
    put = subscription.put
    return {
        "seq": subscription.seq,
        "position": subscription.position,
        "patterns": subscription.patterns,
        **{name: getattr(put, name) for name in ("queue", "klass", "priority", "retries", "delay_ms", "tags")},
        "options": subscriptions.options(subscription),
    }


def _request(request: Request) -> Record:
    members = {
        "unfinished": tuple(sorted(request.unfinished)),
        "ended": tuple((jid, *end) for jid, end in sorted(request.ended.items())),
        "order": tuple(request.order),
        "given": tuple(sorted(jid for jid, mark in request.unfinished.items() if mark & requests.GIVEN)),
        "yielded": tuple(sorted(jid for jid, mark in request.unfinished.items() if mark & requests.YIELDED)),
        "dependents": tuple(sorted(request.dependents)),
    }
    return {**{field: getattr(request, field) for field in REQUEST}, **members}


def _worker(worker: Worker) -> Record:
    return {"seen_at": worker.seen_at, "held": dict(worker.held), "grants": dict(worker.grants)}


def _day(day: Day) -> Record:
    return {
        "wait": _sample(day.wait),
        "run": _sample(day.run),
        "failures": day.failures,
        "failed": day.failed,
        "retries": day.retries,
        "minutes": {minute: tuple(counts) for minute, counts in day.minutes.items()},
        "swept": day.swept,
        "tags": {name: _part(part) for name, part in day.tags.items()},
        "workers": {name: _part(part) for name, part in day.workers.items()},
    }


def _part(part: Part) -> Record:
    return {"wait": _sample(part.wait), "run": _sample(part.run)}


def _sample(sample: Sample) -> Record:
    return {
        "count": sample.count,
        "mean": sample.mean,
        "squares": sample.squares,
        "bins": dict(sample.bins),
    }


def plain(value: Any) -> Any:
    """Strip a reply of its names: records become tuples."""
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


# ---- comparing


def difference(a: Snapshot, b: Snapshot) -> list[str]:
    """List the differences of two snapshots, as `path: value in a != value in b`; empty if they are equal."""
    if a == b:
        return []
    return [
        line
        for field in fields(Snapshot)
        for line in compare(field.name, getattr(a, field.name), getattr(b, field.name))
    ]


_MISSING = object()


def compare(path: str, a: Any, b: Any) -> Iterator[str]:
    """List the differences of two plain values, each at the deepest path that names it."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys(), key=str):
            yield from compare(f"{path}[{key!r}]" if path else str(key), a.get(key, _MISSING), b.get(key, _MISSING))
    elif isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            name = a._fields[index] if hasattr(a, "_fields") else index
            yield from compare(f"{path}.{name}", one, other)
    elif a != b or type(a) is not type(b):
        yield f"{path}: {_shown(a)} != {_shown(b)}"


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "(nothing)"
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:200]}... ({len(text)} characters)"
