"""Renewing and ending leases, and revoking jobs."""

from __future__ import annotations

from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Heartbeat, Revoke, Timeout
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Lease
from qmodel.model.rules.concurrency import ending, parked_first
from qmodel.model.rules.failure import fail_revoked, is_revoked, revoke_one
from qmodel.model.state import budget, config, history, jobs, options, parked, queues, throttles, workers
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store, emit


def expiry(store: Store, now: int, job: Job) -> int:
    """When a lease that is granted or renewed now ends: never later than `timeout_ms` after its claim."""
    if not job.options:
        return now + config.heartbeat(store, job.queue)
    own, longest = options.get(job, "lease_ms"), options.get(job, "timeout_ms")
    ends = now + (int(own) if own is not None else config.heartbeat(store, job.queue))
    return min(ends, job.popped_at + int(longest)) if longest is not None else ends


def ran_too_long(job: Job) -> bool:
    """Whether an expired lease could not have been renewed, because it had reached `timeout_ms`."""
    longest = options.get(job, "timeout_ms")
    return longest is not None and job.expires_at >= job.popped_at + int(longest)


def heartbeat(store: Store, now: int, op: Heartbeat) -> Lease:
    """Renew a lease from now. A lapsed lease is renewed too, as long as no other worker has taken the job."""
    job, _ = jobs.held(store, op.jid, op.token)

    workers.seen(store, now, job.worker)
    if op.data is not None:
        job.data = op.data
    options.drop(job, "told")
    queues.renew(store, job, expiry(store, now, job))
    return Lease(job.expires_at, is_revoked(job))


def timeout(store: Store, now: int, op: Timeout) -> tuple[str, ...]:
    """End leases: the jobs are the next to be handed out."""
    found = [jobs.find(store, jid) for jid in dict.fromkeys(op.jids)]
    for job in found:
        if job.state != "running":
            raise refuse("WRONG_STATE", job.jid, job.state)
    budget.check("timeout", len(found), sum(budget.moving(job) + parked.freeing(store, job) for job in found))

    for job in found:
        _take_away(store, now, job, op.qless)
    return tuple(job.jid for job in found)


def _take_away(store: Store, now: int, job: Job, released: bool) -> None:
    """End a lease, and perhaps release the job's throttles. A revoked job fails."""
    revoked = is_revoked(job)
    emit(store, now, "lock_lost", job.jid, job.queue, job.worker, job.token, "revoke" if revoked else "timeout")
    jobs.lift(store, job)
    history.add(store, now, job, "timed_out", job.worker, job.token)
    if revoked:
        fail_revoked(store, now, job)
        return
    job.worker = job.grant = ""
    job.expires_at = 0
    job.ready_at = now
    if released:
        for name in throttles.counted(job):
            throttles.release(job, name)
    jobs.place(store, job, "stalled")


def revoke(store: Store, now: int, op: Revoke) -> tuple[str, ...]:
    """Fail jobs that are not running, and mark running ones as revoked."""
    found = [jobs.find(store, jid) for jid in dict.fromkeys(op.jids)]
    if sum(len(job.dependencies) for job in found) > MOST:
        raise refuse("DEPENDENCY_LIMIT", found[0].jid)
    budget.check("revoke", len(found), sum(budget.failing(job) + ending(store, job) for job in found))

    states = {job.jid: revoke_one(store, now, job) for job in parked_first(found)}
    return tuple(states[job.jid] for job in found)
