"""Propagation of failures: each dependent of a failed job follows the policy of its edge.

A thousand jobs may follow one that fails, and their dependents after them. So an operation processes about a thousand
and leaves the rest to the next one; because the dependents of one job are processed together, it may come to two
thousand. The order of failures does not change the outcome: a job with an edge that says `cancel` is canceled, even if
another edge has failed it first; a failed job keeps its other edges, and none of them unblocks it.

When a job is canceled this way, its dependents follow *their* edges. If one of these says `block`, the job fails
instead and is kept: otherwise a dependent would wait for a job that no longer exists. A job that a later operation will
cancel fails now, so that no worker takes it.
"""

from __future__ import annotations

from qmodel.contract.arguments import MOST
from qmodel.model.rules.deletion import delete
from qmodel.model.rules.failure import fail_job
from qmodel.model.rules.stages import unblock
from qmodel.model.state import cascade, dependencies, jobs
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store


def propagate(store: Store, now: int) -> None:
    """Process the dependents of failed jobs, the latest failure first, within the bounds of one operation."""
    if not store.cascade:
        return
    room = MOST
    doomed: list[str] = []
    while room > 0 and (doomed or cascade.is_left(store)):
        if doomed:
            room -= _cancel(store, now, doomed)
            continue
        job, cancels = cascade.take(store)
        if job is None:
            room -= 1
        elif cancels:
            doomed.append(job.jid)
        else:
            room -= _follow(store, now, job, doomed)
    for jid in doomed:
        _put_off(store, now, jid)


def _follow(store: Store, now: int, job: Job, doomed: list[str]) -> int:
    """Let the dependents of a failed job follow their policies; collect those to cancel; give how much work it was."""
    assert job.failure is not None
    failing, ignoring = dependencies.under(job, "fail"), dependencies.under(job, "ignore")
    for jid in failing:
        _fail(store, now, jobs.load(store, jid), f"Its dependency {job.jid} failed.")
    for jid in ignoring:
        _ignore(store, now, jobs.load(store, jid), job, "failed", job.failure.message)
    for jid in dependencies.under(job, "cancel"):
        _doom(store, now, jobs.load(store, jid), f"Its dependency {job.jid} failed.", doomed)
    return len(failing) + len(ignoring) or int(not doomed)


def _fail(store: Store, now: int, job: Job, message: str) -> None:
    """Fail a job that waits for others."""
    if job.state == "depends":
        jobs.lift(store, job)
        fail_job(store, now, job, "failed-dependencies-" + job.queue, message)


def _ignore(store: Store, now: int, job: Job, other_job: Job, state: str, message: str) -> None:
    """Count a dependency as met; unblock the job if it was the last."""
    dependencies.ignore(store, job, other_job, state, message)
    if job.state == "depends" and not job.dependencies:
        unblock(store, now, job)


def _doom(store: Store, now: int, job: Job, message: str, doomed: list[str]) -> None:
    """Collect a job to be canceled, or fail it if a dependent blocks that."""
    if dependencies.under(job, "block"):
        _fail(store, now, job, message)
    else:
        doomed.append(job.jid)


def _cancel(store: Store, now: int, doomed: list[str]) -> int:
    """Cancel the last collected job, and let its dependents follow; give how much work it was."""
    job = jobs.get(store, doomed.pop())
    if job is None or dependencies.under(job, "block"):  # collected twice; or a dependent blocks it now
        return 1
    canceled = len(dependencies.under(job, "cancel"))
    size = len(job.dependents) - canceled + max(len(job.dependencies), 1)
    _leave(store, now, job, doomed)
    if len(job.dependencies) > MOST:
        dependencies.unlink(store, job, dependencies.of(job))
        doomed.append(job.jid)
    else:
        delete(store, now, job)
    return size


def _leave(store: Store, now: int, job: Job, doomed: list[str]) -> None:
    """Let the dependents of a canceled job follow their policies."""
    for jid in dependencies.under(job, "ignore"):
        _ignore(store, now, jobs.load(store, jid), job, "canceled", "")
    message = f"Its dependency {job.jid} was canceled."
    for jid in dependencies.under(job, "fail"):
        dependencies.unlink(store, jobs.load(store, jid), [job.jid])
        _fail(store, now, jobs.load(store, jid), message)
    for jid in dependencies.under(job, "cancel"):
        dependencies.unlink(store, jobs.load(store, jid), [job.jid])
        _doom(store, now, jobs.load(store, jid), message, doomed)


def _put_off(store: Store, now: int, jid: str) -> None:
    """Leave the cancellation of a job to the next operation."""
    job = jobs.get(store, jid)
    if job is not None:
        _fail(store, now, job, "It is about to be canceled, as its dependency was, or failed.")
        cascade.push(store, job, True)
