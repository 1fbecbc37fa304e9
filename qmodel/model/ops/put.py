"""Putting jobs into queues."""

from __future__ import annotations

from qmodel.contract.operations import Put, PutMany, PutNew
from qmodel.contract.refusals import refuse
from qmodel.model.rules import deduplication, stages
from qmodel.model.rules.admission import check_throttles
from qmodel.model.rules.cleanup import clean_up
from qmodel.model.rules.concurrency import ending, passing, place
from qmodel.model.rules.stages import due, enter
from qmodel.model.state import budget, dependencies, jobs, options, queues, stats, tags
from qmodel.model.state.dependencies import Edges
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store, emit


def put(store: Store, now: int, op: Put) -> str:
    """Put a job into a queue, or move it there."""
    if _is_resend(store, op.jid, op.request):
        return op.jid
    if op.unique is not None:
        return _put_unique(store, now, op)
    edges = _check_plain(store, op) if op.named else None

    put_one(store, now, op, edges, op.request)
    return op.jid


def _check_plain(store: Store, op: Put) -> Edges | None:
    """Check a put without a key; give its edges if it names dependencies; or refuse."""
    stages.check(op, "put")
    deduplication.check(op, "put")
    edges = check(store, (op,)).get(op.jid)
    check_throttles(store, op, "put")
    return edges


def _put_unique(store: Store, now: int, op: Put) -> str:
    """Put a job that has a deduplication key."""
    again: str | None = deduplication.recall(store, "put", op.request)
    if again is not None:
        return again
    stands = deduplication.plan(store, now, (op,), "put")
    edges = check(store, deduplication.redirect(store, now, (op,), stands))
    check_throttles(store, op, "put")

    jid = _put_unless(store, now, op, stands[op.jid], edges.get(op.jid), op.request)
    deduplication.remember(store, "put", op.request, jid)
    return jid


def _put_unless(store: Store, now: int, op: Put, stands: str, edges: Edges | None, request: str) -> str:
    """Put a job, unless another job holds its key; give the job that now stands for it."""
    if stands == op.jid:
        put_one(store, now, op, edges if op.depends is not None else None, request)
    else:
        deduplication.deduplicate(store, now, op, stands)
    return stands


def put_many(store: Store, now: int, op: PutMany) -> tuple[str, ...]:
    """Put several jobs, which may depend on each other."""
    jids = tuple(one.jid for one in op.jobs)
    keyed = any(one.unique is not None for one in op.jobs)
    again = _answered(store, op, jids, keyed)
    if again is not None:
        return again
    check_distinct(jids)
    check_budget(store, op.jobs, "put_many")
    jids = _put_all(store, now, op.jobs, keyed, "put_many", op.request)
    if keyed:
        deduplication.remember(store, "put_many", op.request, jids)
    return jids


def put_new(store: Store, now: int, op: PutNew) -> int:
    """Put those of several jobs whose ids are free."""
    check_distinct(tuple(one.jid for one in op.jobs))
    news = tuple(one for one in op.jobs if jobs.get(store, one.jid) is None)
    check_budget(store, news, "put_new")
    keyed = any(one.unique is not None for one in news)
    stand = _put_all(store, now, news, keyed, "put_new", "")
    return sum(one.jid == jid for one, jid in zip(news, stand, strict=True))


def _put_all(
    store: Store, now: int, puts: tuple[Put, ...], keyed: bool, operation: str, request: str
) -> tuple[str, ...]:
    """Put several jobs, or refuse; give for each the job that stands for it."""
    stands = deduplication.plan(store, now, puts, operation)
    accepted = deduplication.redirect(store, now, puts, stands) if keyed else puts
    edges = check(store, accepted)
    for one in puts:
        check_throttles(store, one, operation)

    _create_all(store, accepted)
    return tuple(
        _put_unless(store, now, one, stands.get(one.jid, one.jid), edges.get(one.jid), request) for one in puts
    )


def _create_all(store: Store, puts: tuple[Put, ...]) -> None:
    """Create the jobs that do not exist yet: a job may depend on one that is put after it."""
    for op in puts:
        jobs.made(store, op.jid)


def _answered(store: Store, op: PutMany, jids: tuple[str, ...], keyed: bool) -> tuple[str, ...] | None:
    """The reply to the same request, if it was answered before, or None."""
    again: tuple[str, ...] | None = deduplication.recall(store, "put_many", op.request) if keyed else None
    if again is not None:
        return again
    for jid in jids:
        if _is_resend(store, jid, op.request):
            return jids
    return None


def put_made(store: Store, now: int, op: Put) -> Job:
    """Put a job that the engine creates itself, and that nothing refuses; give it."""
    put_one(store, now, op, None, "")
    return jobs.load(store, op.jid)


def _is_resend(store: Store, jid: str, request: str) -> bool:
    """Whether this very request has put the job."""
    if request == "":
        return False
    job = jobs.get(store, jid)
    return job is not None and job.put_request == request


def check_distinct(jids: tuple[str, ...]) -> None:
    """Refuse an operation that names a job twice."""
    seen = set()
    for jid in jids:
        if jid in seen:
            raise refuse("DUPLICATE_JID", jid)
        seen.add(jid)


def check_budget(store: Store, puts: tuple[Put, ...], operation: str) -> None:
    """Refuse more work than one operation may do: the arguments, and the existing jobs that are moved."""
    units = 0
    for one in puts:
        job = jobs.get(store, one.jid)
        units += budget.of_put(store, one) + (ending(store, job) + passing(job) if job is not None else 0)
    budget.check(operation, len(puts), units)


def check(store: Store, puts: tuple[Put, ...], request: str = "") -> dict[str, Edges]:
    """Give the edges of each job that names dependencies; or refuse. A job that is put is a sub-request of `request`,
    or of none.
    """
    asked = False
    for op in puts:
        asked = asked or op.depends is not None
    if not asked:
        return {}
    for op in puts:
        job = jobs.get(store, op.jid)
        if op.depends is not None and job is not None:
            dependencies.check_bounded(job)
    return dependencies.check(store, {op.jid: op.depends for op in puts}, request)


def _assign(job: Job, op: Put, of: Request | None) -> None:
    """Apply the put's rarely used options, and its priority and retries."""
    if job.options or options.are_given(op):
        options.assign(job, op)
    if of is not None:
        options.set(job, "request", of.id)
        job.priority = of.priority
    if op.priority is not None:
        job.priority = op.priority
    if op.retries is not None:
        job.retries = op.retries


def _bind(store: Store, now: int, job: Job, op: Put, edges: Edges | None) -> None:
    """Link a job to its dependencies, and let it hold its key."""
    if edges is not None:
        dependencies.forget(store, job)
        dependencies.link(store, job, edges)
    if op.unique is not None:
        deduplication.claim(store, now, job, op)


def put_one(store: Store, now: int, op: Put, edges: Edges | None, request: str, of: Request | None = None) -> None:
    """Put a job; a sub-request gets the priority of its request."""
    job = jobs.made(store, op.jid)
    queues.register(store, now, op.queue)
    if job.state or job.options:
        _leave(store, now, job)
    if op.named or job.options or of is not None:
        _assign(job, op, of)
    job.klass = op.klass
    job.data = op.data
    job.put_request = request
    if op.named:
        _bind(store, now, job, op, edges)
    state = enter(store, now, job, op.queue, due(now, op) if op.named else now)
    emit(store, now, "put", job.jid, op.queue, op.klass, state, *tags.fact(job, op.tags))
    if op.tags is not None:
        tags.assign(store, job, op.tags)
    place(store, now, job, state)


def _leave(store: Store, now: int, job: Job) -> None:
    """End a job's present stage, whatever its state."""
    if job.state == "running":
        emit(store, now, "lock_lost", job.jid, job.queue, job.worker, job.token, "put")
    elif job.state == "failed":
        stats.recovered(store, job.ended_at, job.queue)
    jobs.lift(store, job)
    clean_up(store, now, job)
    job.worker = job.grant = job.result = job.progress = ""
    job.expires_at = job.ended_at = job.token = 0
