"""Renewing leases, and taking them away."""

from __future__ import annotations

from qmodel.operations import Heartbeat, Timeout
from qmodel.refusals import refuse
from qmodel.state import config, history, jobs, queues, workers
from qmodel.state.store import Store, emit


def heartbeat(store: Store, now: int, op: Heartbeat) -> int:
    """Renew a lease from now. A lapsed one too, as long as nobody has taken the job."""
    job, _ = jobs.held(store, op.jid, op.token)

    workers.seen(store, now, job.worker)
    if op.data is not None:
        job.data = op.data
    queues.renew(store, job, now + config.heartbeat(store, job.queue))
    return job.expires_at


def timeout(store: Store, now: int, op: Timeout) -> tuple[str, ...]:
    """Take leases away: the jobs are the next to be handed out."""
    found = [jobs.find(store, jid) for jid in dict.fromkeys(op.jids)]
    for job in found:
        if job.state != "running":
            raise refuse("WRONG_STATE", job.jid, job.state)

    for job in found:
        emit(store, now, "lock_lost", job.jid, job.queue, job.worker, job.token, "timeout")
        jobs.lift(store, job)
        history.add(store, now, job, "timed_out", job.worker, job.token)
        job.worker = job.grant = ""
        job.expires_at = 0
        job.ready_at = now
        jobs.place(store, job, "stalled")
    return tuple(job.jid for job in found)
