"""How a job fails, whoever says so."""

from __future__ import annotations

from qmodel.ops.settling import settle
from qmodel.replies import Failure
from qmodel.state import history, jobs, stats
from qmodel.state.jobs import Job
from qmodel.state.store import Store, emit


def bury(store: Store, now: int, job: Job, group: str, message: str, ended: int = 0) -> None:
    """Fail a lifted job into a group. `ended` is the token of the lease that ended so by its holder's own word, if any:
    a holder who lost the lease must not be told that it failed the job.
    """
    emit(store, now, "failed", job.jid, job.queue, job.worker, job.token, group)
    history.add(store, now, job, "failed", ended, group)
    stats.failed(store, now, job.queue)
    job.failure = Failure(group, message, now, job.worker)
    job.worker = job.grant = ""
    job.expires_at = 0
    job.ended_at = now
    jobs.place(store, job, "failed")
    settle(store, now, job)
