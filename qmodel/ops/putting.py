"""Putting jobs into queues."""

from __future__ import annotations

from qmodel.operations import Put, PutMany
from qmodel.ops.gating import check_throttles
from qmodel.ops.lining import admit, give_up, place
from qmodel.ops.settling import settle
from qmodel.refusals import refuse
from qmodel.state import dependencies, history, jobs, options, queues, stats, tags
from qmodel.state.dependencies import Edges
from qmodel.state.jobs import Job
from qmodel.state.store import Store, emit


def put(store: Store, now: int, op: Put) -> str:
    """Put a job into a queue, or move it there."""
    if _is_resend(store, op.jid, op.request):
        return op.jid
    edges = _check(store, (op,))[op.jid] if op.depends is not None else None
    check_throttles(store, op, "put")

    _put(store, now, op, edges, op.request)
    return op.jid


def put_many(store: Store, now: int, op: PutMany) -> tuple[str, ...]:
    """Put several jobs, which may depend on each other."""
    jids = tuple(one.jid for one in op.jobs)
    if any(_is_resend(store, jid, op.request) for jid in jids):
        return jids
    check_distinct(jids)
    edges = _check(store, op.jobs)
    for one in op.jobs:
        check_throttles(store, one, "put_many")

    for jid in jids:
        if jobs.get(store, jid) is None:
            jobs.create(store, jid)
    for one in op.jobs:
        _put(store, now, one, edges.get(one.jid), op.request)
    return jids


def _is_resend(store: Store, jid: str, request: str) -> bool:
    job = jobs.get(store, jid)
    return job is not None and request != "" and job.put_request == request


def check_distinct(jids: tuple[str, ...]) -> None:
    """Refuse an operation that names a job twice."""
    seen = set()
    for jid in jids:
        if jid in seen:
            raise refuse("DUPLICATE_JID", jid)
        seen.add(jid)


def _check(store: Store, puts: tuple[Put, ...]) -> dict[str, Edges]:
    """The edges of each, where they are said; or refuse."""
    asked = False
    for op in puts:
        asked = asked or op.depends is not None
    if not asked:
        return {}
    for op in puts:
        job = jobs.get(store, op.jid)
        if op.depends is not None and job is not None:
            dependencies.check_bounded(job)
    return dependencies.check(store, {op.jid: op.depends for op in puts})


def _put(store: Store, now: int, op: Put, edges: Edges | None, request: str) -> None:
    job = jobs.get(store, op.jid) or jobs.create(store, op.jid)
    queues.register(store, now, op.queue)
    if job.state == "running":
        emit(store, now, "lock_lost", job.jid, job.queue, job.worker, job.token, "put")
    elif job.state == "failed":
        stats.recovered(store, job.ended_at, job.queue)

    jobs.lift(store, job)
    settle(store, now, job)
    options.assign(job, op)
    job.klass = op.klass
    job.data = op.data
    job.result = job.progress = ""
    job.put_request = request
    if op.priority is not None:
        job.priority = op.priority
    if op.retries is not None:
        job.retries = op.retries
    if edges is not None:
        dependencies.forget(store, job)
        dependencies.link(store, job, edges)
    state = enter(store, now, job, op.queue, op.delay_ms)
    emit(store, now, "put", job.jid, op.queue, op.klass, state)
    if op.tags is not None:
        tags.assign(store, job, op.tags)
    place(store, now, job, state)


def enter(store: Store, now: int, job: Job, queue: str, delay_ms: int) -> str:
    """Begin a lifted job's stage in a queue; give the state in which it begins."""
    job.queue = queue
    job.worker = job.grant = ""
    job.expires_at = job.ended_at = 0
    job.remaining = job.retries
    job.put_at = now
    job.ready_at = now + delay_ms
    history.add(store, now, job, "put", queue)
    return begins(store, now, job)


def begins(store: Store, now: int, job: Job) -> str:
    """The state of a job that nothing holds but its dependencies, its time, and its line."""
    if job.dependencies:
        if job.options:
            give_up(store, now, job)
        return "depends"
    if job.ready_at > now:
        return "scheduled"
    return admit(store, job) if job.options else "waiting"
