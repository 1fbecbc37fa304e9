"""Finishing leased jobs. Each verb ends a lease, and the job's history keeps the outcome to answer a repeated call."""

from __future__ import annotations

from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Complete, CompleteAndPop, CompleteMany, Fail, Release, Retry
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import CompletedAndPopped, Failure
from qmodel.model.ops import pop
from qmodel.model.ops.put import check_distinct
from qmodel.model.rules import backoff
from qmodel.model.rules.cleanup import clean_up
from qmodel.model.rules.concurrency import ending, place
from qmodel.model.rules.failure import fail_job, fail_revoked, is_revoked, retire_due
from qmodel.model.rules.stages import begins, enter, unblock
from qmodel.model.state import budget, completed, dependencies, history, jobs, queues, results, stats, workers
from qmodel.model.state.dependencies import NO_EDGES, Edges
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit

SWEEP = 100
"""The most jobs that one completion retires: enough to come down quickly after a limit was lowered."""


def complete(store: Store, now: int, op: Complete) -> str:
    """Complete a leased job, or send it on to its next queue."""
    job, outcome = jobs.held(store, op.jid, op.token, "completed")
    if outcome is not None:
        return outcome
    depends = _check_next(store, op, "complete") if op.named else NO_EDGES
    if job.dependents:
        results.check_copies(job, op.result)

    return _complete_one(store, now, job, op, depends)


def _complete_one(store: Store, now: int, job: Job, op: Complete | CompleteAndPop, depends: Edges) -> str:
    """Complete a held job, and retire others; give its new state. It is gone itself if it is not kept."""
    outcome = _complete(store, now, job, op, depends)
    gone = op.next is None and _retire(store, now, SWEEP)
    if gone or outcome == "failed":
        jobs.remember(store, job, "completed", outcome)
    return outcome


def complete_many(store: Store, now: int, op: CompleteMany) -> tuple[str, ...]:
    """Complete several leased jobs, all or none."""
    check_distinct(tuple(one.jid for one in op.jobs))
    found = [jobs.held(store, one.jid, one.token, "completed") for one in op.jobs]
    for one in op.jobs:
        if one.named:
            _check_one_of_many(store, one)
    _check_budget(store, op, found)

    outcomes = tuple(
        _complete(store, now, job, one, NO_EDGES) if outcome is None else outcome
        for one, (job, outcome) in zip(op.jobs, found, strict=True)
    )
    if any(before is None for _, before in found):
        _retire(store, now, MOST)
    for (job, before), outcome in zip(found, outcomes, strict=True):
        if before is None:
            jobs.remember(store, job, "completed", outcome)
    return outcomes


def _check_budget(store: Store, op: CompleteMany, found: list[tuple[Job, str | None]]) -> None:
    """Refuse more work than one operation may do."""
    units = 0
    for one, (job, outcome) in zip(op.jobs, found, strict=True):
        if outcome is None:
            units += ending(store, job) + (budget.size(one.result) + budget.size(one.data or "")) // budget.BLOCK
            if job.dependents:
                results.check_copies(job, one.result)
                units += results.copying(job, one.result)
    budget.check("complete_many", len(op.jobs), units)
    budget.spend(store, units)


def complete_and_pop(store: Store, now: int, op: CompleteAndPop) -> CompletedAndPopped:
    """Complete a leased job, then lease the next ones."""
    job, outcome = jobs.held(store, op.jid, op.token, "completed")
    depends = _check_next(store, op, "complete_and_pop") if outcome is None else NO_EDGES
    again = workers.granted(store, op.worker, op.request) if outcome is not None else ()
    if outcome is None and job.dependents:
        results.check_copies(job, op.result)

    if outcome is None:
        outcome = _complete_one(store, now, job, op, depends)
    if again:
        return CompletedAndPopped(outcome, jobs.views(store, now, again))
    return CompletedAndPopped(outcome, pop.grant(store, now, op.queue, op.worker, op.count, op.wait, op.request))


def _check_next(store: Store, op: Complete | CompleteAndPop, operation: str) -> Edges:
    """Check the arguments that need `next`; give the edges for the next queue; or refuse."""
    if op.next is None and (op.delay_ms or op.depends):
        raise refuse("BAD_ARGUMENT", operation, "delay_ms" if op.delay_ms else "depends")
    return dependencies.check_more(store, op.jid, op.depends) if op.depends else NO_EDGES


def _check_one_of_many(store: Store, op: Complete) -> None:
    """Refuse `next` for a job that is completed together with others."""
    if op.next is not None:
        raise refuse("BAD_ARGUMENT", "complete_many", "next")
    _check_next(store, op, "complete_many")


def _complete_revoked(store: Store, now: int, job: Job, op: Complete | CompleteAndPop) -> str:
    """Keep the result of a revoked job, and fail it."""
    jobs.lift(store, job)
    job.result = op.result
    if op.data is not None:
        job.data = op.data
    history.add(store, now, job, "completed", job.token, "failed")
    fail_revoked(store, now, job)
    return "failed"


def _complete(store: Store, now: int, job: Job, op: Complete | CompleteAndPop, depends: Edges) -> str:
    """Complete a held job; give its new state."""
    if job.options and is_revoked(job):
        return _complete_revoked(store, now, job, op)
    worker, run_ms = job.worker, now - job.popped_at if now > job.popped_at else 0
    jobs.lift(store, job)
    stats.ran(store, now, job, worker, run_ms)
    job.result = op.result
    job.failure = None
    job.worker = job.grant = ""
    job.expires_at = 0
    if op.data is not None:
        job.data = op.data
    if op.next is not None:
        return _advance(store, now, job, op, depends, (job.queue, worker, job.token, run_ms))

    emit(store, now, "completed", job.jid, job.queue, worker, job.token, run_ms)
    history.add(store, now, job, "completed", job.token, "complete")
    job.remaining = job.retries
    job.ended_at = now
    jobs.place(store, job, "complete")
    if job.dependents:
        for waiting in dependencies.resolve(store, job):
            unblock(store, now, waiting)
    if job.options:
        clean_up(store, now, job)
    return "complete"


def _retire(store: Store, now: int, most: int) -> bool:
    """Delete complete jobs that are past their retention: at least as many as one operation completes, so that none
    accumulate. Say whether there were any.
    """
    found = completed.expired(store, now, most)
    if not (found or store.keeping.size):
        return False
    for old in found:
        emit(store, now, "retired", old.jid)
        jobs.remove(store, old)
    return retire_due(store, now, most) or bool(found)


def _advance(
    store: Store,
    now: int,
    job: Job,
    op: Complete | CompleteAndPop,
    depends: Edges,
    lease: tuple[str, str, int, int],
) -> str:
    """Put a completed job into its next queue; give its new state."""
    assert op.next is not None
    dependencies.link(store, job, depends)
    job.ready_at = now + op.delay_ms
    state = begins(store, now, job)
    history.add(store, now, job, "completed", job.token, state)
    enter(store, now, job, op.next, now + op.delay_ms)
    queues.register(store, now, op.next)
    emit(store, now, "advanced", job.jid, *lease, op.next, state)
    place(store, now, job, state)
    return state


def fail(store: Store, now: int, op: Fail) -> str:
    """Fail a leased job into a group."""
    job, outcome = jobs.held(store, op.jid, op.token, "failed")
    if outcome is not None:
        return op.jid

    jobs.lift(store, job)
    if op.data is not None:
        job.data = op.data
    if not op.qless:
        history.add(store, now, job, "raised", op.group, history.brief(op.message))
    if is_revoked(job):
        fail_revoked(store, now, job, op.message, job.token)
    else:
        fail_job(store, now, job, op.group, op.message, job.token)
    jobs.remember(store, job, "failed", op.group)
    return op.jid


def retry(store: Store, now: int, op: Retry) -> int:
    """Give a leased job back to be tried again, or fail it when no retries remain."""
    job, outcome = jobs.held(store, op.jid, op.token, "retried")
    if outcome is not None:
        return int(outcome)

    jobs.lift(store, job)
    revoked = is_revoked(job)
    if op.group is not None and not op.qless:
        history.add(store, now, job, "raised", op.group, history.brief(op.message))
    history.add(store, now, job, "retried", job.token, -1 if revoked else job.remaining - 1)
    if revoked or job.remaining == 0:
        if revoked:
            fail_revoked(store, now, job, op.message)
        else:
            fail_job(store, now, job, op.group or "failed-retries-" + job.queue, op.message or "No retries remained.")
        jobs.remember(store, job, "retried", "-1")
        return -1
    delay_ms = max(op.delay_ms, backoff.delay(job))
    job.remaining -= 1
    if not op.qless:
        stats.retried(store, now, job.queue)
    state = _give_back(store, now, job, delay_ms)
    group = () if op.group is None else (op.group,)
    emit(store, now, "retried", job.jid, job.queue, job.worker, job.token, job.remaining, state, *group)
    if op.group is not None:
        job.failure = Failure(op.group, op.message, now, job.worker)
    job.worker = job.grant = ""
    jobs.place(store, job, state)
    return job.remaining


def release(store: Store, now: int, op: Release) -> str:
    """Give a leased job back without counting a retry; it may wait for other jobs first."""
    job, outcome = jobs.held(store, op.jid, op.token, "released")
    if outcome is not None:
        return outcome
    depends = dependencies.check_more(store, op.jid, op.depends) if op.depends else NO_EDGES

    jobs.lift(store, job)
    if op.data is not None:
        job.data = op.data
    if is_revoked(job):
        history.add(store, now, job, "released", job.token, "failed")
        fail_revoked(store, now, job)
        jobs.remember(store, job, "released", "failed")
        return "failed"
    dependencies.link(store, job, depends)
    state = _give_back(store, now, job, op.delay_ms)
    history.add(store, now, job, "released", job.token, state)
    emit(store, now, "released", job.jid, job.queue, job.worker, job.token, state)
    job.worker = job.grant = ""
    jobs.place(store, job, state)
    return state


def _give_back(store: Store, now: int, job: Job, delay_ms: int) -> str:
    """End the lease of a lifted job; give the state in which it begins again."""
    job.expires_at = 0
    job.ready_at = now + delay_ms
    return begins(store, now, job)
